"""One `zerograd run` from the first line of the script to the last of the report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from zerograd.cli.run_closing import closing, how_it_ended
from zerograd.cli.run_report import (
    ReportOptions,
    clear_old_parts,
    counted,
    hidden,
    merge_trace,
    shown,
    write_report,
    write_so_far,
)
from zerograd.lifecycle.findings import Finding
from zerograd.runtime.aloud import say
from zerograd.runtime.children import lead_children, watch_for_unfollowed
from zerograd.runtime.launch import Target, end_like_the_script, run_as_main
from zerograd.runtime.on_import import is_torch_ready, when_torch_is_imported
from zerograd.runtime.processes import WatchedProcess
from zerograd.runtime.ranks import (
    FAILS,
    PRINTED,
    Nodes,
    Rank,
    any_at_work,
    is_last,
    join_ranks,
    merge,
    wait_for_late,
    wait_for_report,
    wait_until_gone,
)
from zerograd.runtime.run_folder import RunFolder, RunOptions, Shard

_HOME = str(Path(__file__).resolve().parents[2])
_KEEPER = (
    "import sys; sys.path.insert(0, {home!r}); from zerograd.cli.keeper import keep; keep({path!r})"
)


def run_session(target: Target, options: RunOptions, report: ReportOptions) -> int:
    """Run the target under the watch; return the exit code of `zerograd run`."""
    place = Rank.from_environment()
    if os.environ.get("ZEROGRAD") == "0":
        return end_like_the_script(run_as_main(target))
    session = _Session(options, report, place)
    undo = lead_children(session.folder)
    unhear = watch_for_unfollowed(session.process.note)
    cancel = when_torch_is_imported(session.start)
    try:
        code = run_as_main(target, on_error=session.failed)
    finally:
        if is_torch_ready() and session.process.steps() is None:
            session.process.note("this process: torch came in unnoticed, past the import system")
        cancel()
        unhear()
        undo()
    return end_like_the_script(session.end(code))


class _Session:
    def __init__(self, options: RunOptions, report: ReportOptions, place: Rank | None) -> None:
        self._report = report
        self._place = place
        self._pid = os.getpid()
        self._error: BaseException | None = None  # that ended the script
        if place is None:
            self.folder = RunFolder.create(options)
            self.process = WatchedProcess(self.folder, options)
            if options.trace is not None:
                self.process.open()  # the file of an earlier run goes, whatever this one does
            if report.output is not None:
                self.process.on_finding = self.so_far
        else:
            options = replace(options, root=0)  # no process of the run is above the others
            self.folder = join_ranks(place, options)
            self.process = WatchedProcess(self.folder, options, rank_slot=place.rank)
            self.process.open()
        self.process.on_hard_exit = self.end
        self.process.on_exec = self.before_exec
        report.save(self.folder)
        if place is None or place.rank == 0:
            clear_old_parts(self.folder, report.trace)
        if place is not None and self.folder.claim("keeper"):
            _start_keeper(self.folder)

    def start(self) -> None:
        """torch has been imported: put the watch on."""
        try:
            self.process.start()
        except Exception as error:  # a fault of ours must not keep the script from running
            say(f"zerograd: not watching, a fault of its own ({error!r})")

    def failed(self, error: BaseException) -> None:
        """An exception ends the script."""
        if not isinstance(error, SystemExit):  # which is told by its exit code
            self._error = error
        self.process.explain(error)

    def so_far(self) -> None:
        """A finding has come: it is in the file now, should the script be killed later on."""
        write_so_far(shown(self.process.findings(), self._report), self._report)

    def before_exec(self) -> None:
        """The script becomes another program: say now what would be said at its end."""
        if self._place is None:
            found = shown(self.process.findings(), self._report)
            note = (
                "the script replaces itself by another program (os.exec): findings there are "
                "warned of as they come, and in no report"
            )
            notes = Shard(os.getpid(), notes=[*self.process.notes(), note])
            write_report(found, [notes], self._report, closing([], steps=self.process.steps()))

    def end(self, code: int) -> int:
        """Write the report, if it is this process that writes it; return the exit code."""
        self.process.finish(code)
        if os.getpid() != self._pid:
            return code  # a forked child that came to the script's end: its parent reports
        if self._place is None:
            return self._end_alone(code)
        return self._end_as_rank(code, self._place)

    def _end_alone(self, code: int) -> int:
        shards = self.folder.shards()
        others = [shard for shard in shards if shard.pid != os.getpid()]
        everything = merge(others, self.process.findings())
        found = shown(everything, self._report)
        notes = Shard(os.getpid(), notes=self.process.notes())
        told = closing(
            others,
            steps=self.process.steps(),
            hidden=hidden(everything, self._report),
            ended=how_it_ended(code, self._error),
        )
        write_report(found, [notes, *others], self._report, told)
        merge_trace(self.folder, self._report, shards)
        self.folder.remove()
        return self._code(code, found)

    def _end_as_rank(self, code: int, place: Rank) -> int:
        own = shown(self.process.findings(), self._report)
        if own:
            wait_for_late(self.folder, place)
        may_fail = code == 0 and not self._report.exit_zero
        # A launcher that sees one rank fail kills the others: one fails for all, and at last.
        if any_at_work(self.folder, place) or not (own or is_last(self.folder, place)):
            return code
        if may_fail:
            if not self.folder.claim(FAILS):
                return code
            wait_until_gone(self.folder, place)
        if place.nodes > 1:
            return self._end_among_nodes(code, place)
        return self._print_once(code, self.folder.shards(mine=place.name))

    def _end_among_nodes(self, code: int, place: Rank) -> int:
        shards = self.folder.shards(mine=place.name)
        nodes = Nodes(place)
        everywhere = nodes.exchange(shards) if nodes.connect() else None
        if everywhere is None:
            own = self._print_once(0, shards)
            if code == 0 and own:
                say(
                    "zerograd: exit 0 although there are findings: another machine may still "
                    "train, and a failing exit would stop it"
                )
            return code
        if place.node == 0:
            code = self._print_once(code, everywhere)
            nodes.say_told()
            return code
        nodes.wait_until_told()
        self.folder.claim(PRINTED)
        found = shown(merge(everywhere), self._report)
        for each in found:
            say(f"zerograd: {each.spot}: {each.rule.code} {each.rule.name}")
        if found:
            say(f"zerograd: {counted(found)}; the report is on the machine of rank 0")
        merge_trace(self.folder, self._report, shards, everywhere)
        self.folder.remove()
        return self._code(code, found)

    def _print_once(self, code: int, shards: list[Shard]) -> int:
        everything = merge(shards)
        found = shown(everything, self._report)
        if self.folder.claim(PRINTED):
            told = closing(
                shards, steps=self.process.steps(), hidden=hidden(everything, self._report)
            )
            write_report(found, shards, self._report, told)
            merge_trace(self.folder, self._report, shards)
            self.folder.remove()
        else:
            # Ending with a failure now would make the launcher kill the rank that speaks.
            wait_for_report(self.folder)
        return self._code(code, found)

    def _code(self, code: int, found: list[Finding]) -> int:
        if code:
            return code
        return 1 if found and not self._report.exit_zero else 0


def _start_keeper(folder: RunFolder) -> None:
    """Start the small process that shows the findings of ranks that are killed."""
    program = _KEEPER.format(home=_HOME, path=str(folder.path))
    launch: Callable[..., object] = subprocess.Popen
    try:
        launch(
            [sys.executable, "-I", "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        pass  # then findings are shown by the last rank that ends by itself
