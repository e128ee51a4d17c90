"""The one report of a run: who shows which findings, and what the exit code becomes."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from zerograd.cli.output import write_findings
from zerograd.cli.run_paths import near, worded_note
from zerograd.cli.streams import voice
from zerograd.errors import ZerogradError
from zerograd.lifecycle.findings import Finding
from zerograd.report.excerpt import read_source
from zerograd.report.reporter import NOTHING_MORE, Closing
from zerograd.runtime.ranks import disagreements
from zerograd.runtime.run_folder import RunFolder, Shard, notes_of
from zerograd.trace.format import PARTS
from zerograd.trace.reader import merge_parts

FILE = "report.json"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How the user wants to see what a run found."""

    format: str = "text"
    output: str | None = None
    codes: tuple[str, ...] = ()
    exit_zero: bool = False
    cwd: str = "."
    trace: str | None = None

    def save(self, folder: RunFolder) -> None:
        (folder.path / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, folder: RunFolder) -> ReportOptions:
        shape = json.loads((folder.path / FILE).read_text(encoding="utf-8"))
        return cls(**{**shape, "codes": tuple(shape["codes"])})


def shown(findings: Iterable[Finding], options: ReportOptions) -> list[Finding]:
    """Return the findings that count: of the chosen rules, with paths as the user types them."""
    return [near(each, options.cwd) for each in findings if each.rule.code in options.codes]


def hidden(findings: Iterable[Finding], options: ReportOptions) -> int:
    """Return how many faults were found by rules that are not shown."""
    return len({each.key for each in findings if each.rule.code not in options.codes})


def counted(findings: Sequence[Finding]) -> str:
    """Return how many there are, in words."""
    return f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"


def write_report(
    findings: Sequence[Finding],
    shards: Sequence[Shard],
    options: ReportOptions,
    closing: Closing = NOTHING_MORE,
) -> None:
    """Write the findings to FILE or stderr, and what was not checked to stderr."""
    # The script may have changed the working directory; excerpts are read from where it began.
    here, stderr = _current_folder(), voice()
    try:
        os.chdir(options.cwd)
    except OSError:
        pass
    try:
        for note in notes_of(shards):
            print(f"zerograd: {worded_note(note)}", file=stderr)
        output = Path(options.output) if options.output is not None else None
        wanted = argparse.Namespace(format=options.format, output=output)
        write_findings(findings, wanted, stream=stderr, closing=closing)
        if output is not None:
            told = (f"{counted(findings)} in {options.output}", closing.words, closing.ended)
            sentences = [each.rstrip(".") for each in told if each]
            end = "." if len(sentences) > 1 else ""  # FILE alone may be copied as it stands
            print(f"zerograd: {'. '.join(sentences)}{end}", file=stderr)
        stderr.flush()
    except ZerogradError as error:
        print(f"zerograd: {error}", file=stderr)
    except (OSError, ValueError):
        pass  # nobody reads stderr any more
    finally:
        if here is not None:
            os.chdir(here)


def write_so_far(findings: Sequence[Finding], options: ReportOptions) -> None:
    """Write the findings of a run that goes on to FILE; the end writes it anew."""
    output = Path(options.output or "")
    if output.exists() and not output.is_file():
        return  # a pipe takes one report only

    def source(path: str, cell: int | None) -> Sequence[str]:
        return read_source(os.path.join(options.cwd, path), cell)  # the script may have moved

    try:
        wanted = argparse.Namespace(format=options.format, output=output)
        write_findings(findings, wanted, source=source)
    except (ZerogradError, OSError):
        pass  # the end will say so


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def merge_trace(
    folder: RunFolder,
    options: ReportOptions,
    shards: Sequence[Shard],
    everywhere: Sequence[Shard] | None = None,
) -> None:
    """Bring the sections of the run's ended processes, and what is seen only in all of them
    together, into the one trace file.

    Args:
        everywhere: the shards of all machines, where there are several.
    """
    if options.trace is None:
        return
    trace = Path(options.trace)
    parts = trace.with_name(trace.name + PARTS)
    start = f"{folder.path.name}-"
    at_work = {f"{start}{shard.name}.jsonl" for shard in shards if shard.is_at_work}
    mine = [part for part in sorted(parts.glob(f"{start}*.jsonl")) if part.name not in at_work]
    compared = disagreements(shards if everywhere is None else everywhere)
    together = [each for each in compared if each.rule.code in options.codes]
    try:
        if mine or together:
            merge_parts(trace, mine, together)
        parts.rmdir()
    except OSError:
        pass  # parts of processes that are still at work stay where they are


def clear_old_parts(folder: RunFolder, trace: str | None) -> None:
    """Remove what an earlier run, killed before it could merge, left beside this trace."""
    if trace is None:
        return
    path = Path(trace)
    for part in path.with_name(path.name + PARTS).glob("*.jsonl"):
        if not part.name.startswith(f"{folder.path.name}-"):
            part.unlink(missing_ok=True)
