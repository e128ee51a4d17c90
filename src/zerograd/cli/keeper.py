"""Shows what ranks have found when they are killed before they can say it themselves.

A launcher that loses one rank kills the others, and a killed process cannot
speak. So one small process beside the ranks waits until they have ended and
writes the report if none of them has. It holds nothing that they wait for.
"""

from __future__ import annotations

import sys
import time

from zerograd.cli.run_closing import closing
from zerograd.cli.run_report import ReportOptions, hidden, merge_trace, shown, write_report
from zerograd.runtime.ranks import LATE_START, PRINTED, merge, ranks_of
from zerograd.runtime.run_folder import RunFolder, Shard

LOOKS_EVERY = 0.25
NOBODY_COMES = 30.0
SPEAKS_AFTER = 2.0  # seconds after a rank's death, if the others go on


def keep(path: str) -> None:
    """Watch the run's folder until its report has been written, here or by a rank."""
    folder = RunFolder(path)
    began = time.monotonic()
    died: float | None = None
    told = 0
    while folder.path.is_dir() and not folder.is_claimed(PRINTED):
        ranks = ranks_of(folder)
        if not ranks and time.monotonic() - began > NOBODY_COMES:
            return
        killed = [shard for shard in ranks if shard.was_killed]
        gone = bool(ranks) and not any(shard.lives for shard in ranks)
        # Nobody else will speak then, unless one is late to start.
        if gone and (killed or any(shard.exit for shard in ranks) or _is_late(began)):
            _speak(folder, last=True)
            return
        if len(killed) > told:
            died = died or time.monotonic()
            if time.monotonic() - died > SPEAKS_AFTER:
                told, died = len(killed), None
                _speak(folder, last=False)
        time.sleep(LOOKS_EVERY)


def _is_late(began: float) -> bool:
    return time.monotonic() - began > LATE_START


def _speak(folder: RunFolder, *, last: bool) -> None:
    if last and not folder.claim(PRINTED):
        return
    options = ReportOptions.load(folder)
    shards: list[Shard] = folder.shards()
    everything = merge(shards)
    if not last:
        killed = [str(shard.rank) for shard in shards if shard.was_killed]
        print(
            f"zerograd: rank {', '.join(killed)} was killed; what was found up to now:",
            file=sys.stderr,
        )
    told = closing(shards, hidden=hidden(everything, options))
    write_report(shown(everything, options), shards, options, told)
    if last:
        merge_trace(folder, options, shards)
        folder.remove()
