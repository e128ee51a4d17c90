"""Follow one process of a run: watch it from the import of torch to its end.

The process that the user starts and every Python child of it run through here.
Children are reached through PYTHONPATH (see follow/sitecustomize.py) or, when
forked, carry the watch with them. Nothing is written and no thread is started
in a process before its first event, so data-loader workers cost nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerograd.errors import GradientError, GradientWarning
from zerograd.runtime.aloud import say
from zerograd.runtime.exits import Exits
from zerograd.runtime.on_import import when_torch_is_imported

if TYPE_CHECKING:
    from zerograd.lifecycle.events import Event
    from zerograd.lifecycle.findings import Finding
    from zerograd.runtime.run_folder import RunFolder, RunOptions
    from zerograd.runtime.step_log import StepLog
    from zerograd.trace.writer import Entry, TraceWriter

NEVER = 1 << 30
SAVED_EVERY = 0.5  # seconds; what a killed process may lose of its counts

_this: WatchedProcess | None = None


def follow_this_process() -> None:
    """Arrange that this child is watched once it imports torch. Called at its start-up."""
    when_torch_is_imported(_join_run)


def _join_run() -> None:
    global _this
    from zerograd.runtime.run_folder import RunFolder

    if _this is not None or os.environ.get("ZEROGRAD") == "0":
        return
    folder = RunFolder.from_environment()
    if folder is None:
        return
    try:
        process = WatchedProcess(folder, folder.options())
        process.start()
    except Exception as error:  # never the reason that a child dies
        say(f"zerograd: process {os.getpid()} is not followed ({error!r})")
        return
    atexit.register(process.finish)


class WatchedProcess:
    """The watch over this process, and what it has to tell the run.

    It is handed to the sanitizer as its trace: every event passes through
    `write`, every finding through `take`.
    """

    def __init__(self, folder: RunFolder, options: RunOptions, *, rank_slot: int | None = None):
        self.folder = folder
        self._options = options
        self._slot = rank_slot  # set where the process itself was started as a rank
        self._watch: Any = None
        self._trace: TraceWriter | None = None
        self._log: StepLog | None = None
        self._gather: Callable[[], None] | None = None
        self._pid = 0  # of the process that has opened its shard
        self._name = ""
        self._parent: int | None = None
        self._notes: list[str] = []
        self._saving = threading.RLock()  # a signal handler may end us while we save
        self._changed = False
        self._stop = threading.Event()
        self._started = time.time()
        self._exits = Exits(self._leave, self._become)
        self.on_hard_exit: Callable[[int], int] | None = None
        self.on_exec: Callable[[], object] | None = None
        self.on_finding: Callable[[], object] | None = None
        self._home_pid = os.getpid()
        self._place: tuple[int | None, int | None] = (None, None)

    def start(self) -> None:
        """Put the watch on. torch has been imported."""
        global _this
        is_alone = os.getpid() == self._options.root and self._slot is None
        # The user's own process, when nothing is recorded, is spared the telling of each event.
        self._watch = self._new_watch(trace=self._options.trace is not None or not is_alone)
        self._watch.start()
        _this = self
        self._exits.put_on()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._after_fork)

    def _new_watch(self, *, trace: bool) -> Any:
        from zerograd.runtime.sanitizer import watch

        return watch(
            policy="raise" if self._options.policy == "raise" else "collect",
            select=self._options.watched or self._options.codes,
            trace=self if trace else None,
            on_finding=self.take,
        )

    def write(
        self, event: Event, *, iteration: int, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Take an event from the sanitizer."""
        if self._pid == 0:
            self.open()
        if self._trace is not None:
            self._trace.write(event, iteration=iteration, extra=extra)
        if self._log is not None:
            self._log.feed(event, iteration)
            self._changed = True

    def owner_begins(self, owner: str) -> None:
        """Another optimizer is called `owner` from now on."""
        if self._log is not None:
            self._log.begin(owner)

    def be_uneven(self, is_uneven: bool) -> None:
        """Say whether the updates to come need not be as many as those of other ranks."""
        if self._pid == 0:
            self.open()
        if self._log is not None:
            self._log.is_uneven = is_uneven

    def waits_for(self, iteration: int) -> int:
        """Return for how many rounds nothing is written down, nor compared with other ranks."""
        if self._log is not None or self._trace is None:
            return 0
        return self._trace.waits_for(iteration)

    def wants_numbers_in(self, iteration: int) -> range:
        """Return the next rounds that the trace wants numbers of."""
        if self._trace is None:
            return range(NEVER, NEVER)
        return self._trace.wants_numbers_in(iteration)

    def count_rounds(self, events: Mapping[str, int], *, first: int, last: int) -> None:
        """Take rounds that are only counted."""
        if self._trace is not None:
            self._trace.count_rounds(events, first=first, last=last)

    def write_round(self, entries: list[Entry], *, iteration: int) -> None:
        """Take the events of a round that could wait."""
        if self._trace is not None:
            self._trace.write_round(entries, iteration=iteration)
        if self._log is not None:
            for _, event, _ in entries:
                self._log.feed(event, iteration)
            self._changed = True

    @property
    def gather(self) -> Callable[[], None] | None:
        """What brings the rounds that were not told at once."""
        return self._gather

    @gather.setter
    def gather(self, bring: Callable[[], None] | None) -> None:
        self._gather = bring
        if self._trace is not None:
            self._trace.gather = bring

    def keeps(self, iteration: int) -> bool:
        """Does the trace write this iteration down?"""
        return self._trace is not None and self._trace.keeps(iteration)

    def measured(self, event: Event, *, iteration: int, extra: Mapping[str, float]) -> None:
        """Take a number that belongs to an event written before."""
        if self._trace is not None:
            self._trace.measured(event, iteration=iteration, extra=extra)

    def take(self, finding: Finding) -> None:
        """Take a finding: into the trace, into the shard, and to the user if nobody has yet."""
        if self._pid == 0:
            self.open()
        if self._trace is not None and self._is_shown(finding):
            step = finding.live.step if finding.live else None
            self._trace.finding(finding, iteration=step)
        self.save()
        if self.on_finding is not None and os.getpid() == self._home_pid:
            self.on_finding()
        if self._options.policy == "warn" and self._is_shown(finding):
            self._announce(finding)

    def note(self, text: str) -> None:
        """Take a remark: something that is not checked."""
        if text not in self._notes:
            self._notes.append(text)
            if self._trace is not None:
                self._trace.note(text)

    def notes(self) -> list[str]:
        """Return what could not be checked here, and why."""
        seen = self._watch.not_checked if self._watch is not None else []
        return list(dict.fromkeys([*self._notes, *seen]))

    def steps(self) -> int | None:
        """Return how many optimizer steps were seen."""
        return self._watch.steps if self._watch is not None else None

    def explain(self, error: BaseException) -> None:
        """Look whether a rule explains the exception that ended the script."""
        if self._watch is not None:
            self._watch.explain(error)

    def findings(self) -> list[Finding]:
        """Return what this process has found so far, with its rank."""
        from dataclasses import replace

        if self._watch is None:
            return []
        rank, _ = self._rank_and_world()
        return [
            replace(each, live=replace(each.live, ranks=(rank,)))
            if rank is not None and each.live is not None and not each.live.ranks
            else each
            for each in self._watch.findings
        ]

    def save(self, *, done: bool = False, exit_code: int | None = None) -> None:
        """Write the shard: small, whole, at once."""
        if self._pid != os.getpid():
            return
        from zerograd.runtime.run_folder import Shard

        with self._saving:
            self._changed = False
            rank, world = self._rank_and_world()
            shard = Shard(
                pid=self._pid,
                rank=rank,
                world=world,
                parent=self._parent,
                done=done,
                exit=exit_code,
                steps=self.steps() or 0,
                findings=[each.to_json() for each in self.findings()],
                log=self._log.to_json() if self._log is not None else {},
                notes=self.notes(),
                name=self._name,
            )
            self.folder.save(shard)

    def finish(self, exit_code: int | None = None) -> None:
        """Take the watch off and write down the rest. A second call does nothing."""
        if self._watch is not None:
            # The script has ended: the report says it.
            with contextlib.suppress(GradientError, GradientWarning):
                self._watch.stop()
        if self._pid == os.getpid():
            self._stop.set()
            self.save(done=True, exit_code=exit_code)
            if self._trace is not None:
                for finding in filter(self._is_shown, self.findings()):
                    if finding.live is not None and finding.live.count > 1:
                        self._trace.update(finding)
                for note in self.notes():
                    if note not in self._notes:
                        self._trace.note(note)
                self._trace.close(exit_code=exit_code)
                self._trace = None
            self._pid = -1
        self._exits.take_off()

    def _rank_and_world(self) -> tuple[int | None, int | None]:
        # Remembered: a process group may be gone before the process ends.
        place = rank_and_world()
        if place[0] is not None:
            self._place = place
        return self._place

    def open(self) -> None:
        """Open this process's shard and trace: at its first event, a rank's at its start."""
        from zerograd.runtime.run_folder import shard_name

        with self._saving:
            if self._pid:
                return
            self._pid = os.getpid()
        self._name = shard_name(self._pid, self._slot)
        self.folder.live_as(self._name)
        if self._options.trace is not None:
            self._trace = self._open_trace(Path(self._options.trace))
        if self._pid != self._options.root or self._slot is not None:
            from zerograd.runtime.step_log import StepLog

            self._log = StepLog()
            self._stop = threading.Event()
            thread = threading.Thread(target=self._save_often, name="zerograd-run", daemon=True)
            thread.start()
            self.save()

    def _open_trace(self, path: Path) -> TraceWriter | None:
        from zerograd.errors import TraceError
        from zerograd.trace.format import PARTS
        from zerograd.trace.writer import TraceWriter

        place = self._rank_and_world()
        header = self._options.header(self._started, self._pid, self._parent, place)
        if self._pid != self._options.root and self._slot != 0:
            parts = path.with_name(path.name + PARTS)
            path = parts / f"{self.folder.path.name}-{self._name}.jsonl"
        try:
            path.parent.mkdir(exist_ok=True)
            end = f"zerograd: --trace {path}: cannot be written any more"
            return TraceWriter(path, header, ends=lambda why: say(f"{end} ({why}); it ends here"))
        except (OSError, TraceError) as error:
            self.note(f"no trace of process {self._pid}: {error}")
            return None

    def _save_often(self) -> None:
        stop = self._stop
        while not stop.wait(SAVED_EVERY):
            if self._gather is not None:
                self._gather()
            if self._changed:
                self.save()

    def _is_shown(self, finding: Finding) -> bool:
        return not self._options.codes or finding.rule.code in self._options.codes

    def _announce(self, finding: Finding) -> None:
        import hashlib

        from zerograd.runtime.announce import warn_at

        key = f"{finding.rule.code} {finding.spot}".encode("utf-8", "replace")
        is_first = self.folder.claim("said-" + hashlib.sha1(key, usedforsecurity=False).hexdigest())
        if not is_first and self.folder.is_there():
            return
        warn_at(finding.spot, f"{finding.rule.code} {finding.rule.name}: {finding.message}")

    def _leave(self, status: int) -> int:
        """End by `os._exit`, which skips every exit handler."""
        if os.getpid() == self._home_pid and self.on_hard_exit is not None:
            return self.on_hard_exit(status)
        self.finish(status)
        return status

    def _become(self) -> None:
        """Become another program: this process has no end of its own, it speaks before."""
        is_ours = self._pid == os.getpid()
        if is_ours and self._gather is not None:
            self._gather()
        if is_ours and self._trace is not None:
            self._trace.flush()
        if os.getpid() == self._home_pid and self.on_exec is not None:
            self.on_exec()
        elif is_ours:
            self.save(done=True)

    def _after_fork(self) -> None:
        """In a forked child: what the parent opened is the parent's."""
        self._parent = self._home_pid if self._pid == 0 else max(self._pid, 0) or self._home_pid
        self._slot = None
        self._pid = 0
        self._trace = None
        self._log = None
        self._gather = None
        self._saving = threading.RLock()  # a signal handler may end us while we save
        self._started = time.time()
        if self._watch is not None and not self._stop.is_set():
            # What the parent has seen is the parent's too: the child starts a watch of its own.
            parents, self._watch = self._watch, self._new_watch(trace=True)
            self._watch.start()
            parents.abandon()


def rank_and_world() -> tuple[int | None, int | None]:
    """Return this process's rank and how many there are, from torch or the environment."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except (AttributeError, RuntimeError, ValueError):
        pass
    try:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None, None
    return (rank, world) if world > 1 else (None, None)
