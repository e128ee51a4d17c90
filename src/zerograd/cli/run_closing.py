"""The last line of a run: how much was watched, and how it ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from zerograd.report.reporter import Closing
from zerograd.runtime.launch import INTERRUPTED
from zerograd.runtime.run_folder import Shard


def closing(
    shards: Sequence[Shard], *, steps: int | None = None, hidden: int = 0, ended: str = ""
) -> Closing:
    """Return what the last line says beside the count.

    Args:
        steps: how many optimizer steps this process has seen; None if it did not look.
        ended: how the script ended, if not well; of ranks, the shards tell.
    """
    return Closing(_watched(steps, shards), hidden, ended or _failed_ranks(shards))


def how_it_ended(code: int, error: BaseException | None = None) -> str:
    """Return how a script ended, nothing if it ended well.

    >>> how_it_ended(1, ValueError("no"))
    'The script ended with ValueError'
    """
    if code == INTERRUPTED:
        return "The script was interrupted"
    if error is not None:
        return f"The script ended with {type(error).__name__}"
    return f"The script ended with exit code {code}" if code else ""


def _failed_ranks(shards: Sequence[Shard]) -> str:
    failed = sorted(shard.rank for shard in shards if shard.rank is not None and shard.exit)
    if not failed:
        return ""
    codes = sorted({shard.exit for shard in shards if shard.rank is not None and shard.exit})
    noun = "Rank" if len(failed) == 1 else "Ranks"
    code = "exit code" if len(codes) == 1 else "exit codes"
    return f"{noun} {_listed(failed)} ended with {code} {_listed(codes)}"


def _watched(steps: int | None, shards: Sequence[Shard]) -> str:
    ranks = sorted({shard.rank for shard in shards if shard.rank is not None})
    words = []
    of_ranks = {shard.steps for shard in shards if shard.rank is not None}
    taken = sorted({steps or 0, *of_ranks} - {0})
    if taken:
        words.append(_steps(*taken))
    elif steps is None and not shards and "torch" not in sys.modules:
        return "PyTorch was not imported, so there was nothing to watch."
    elif steps == 0 and not shards:
        words.append("no optimizer step")  # then there was little to find
    if ranks:
        words.append(f"rank{'' if len(ranks) == 1 else 's'} {_listed(ranks)}")
    elif shards:
        words.append(f"{len(shards)} more process{'' if len(shards) == 1 else 'es'}")
    killed = [shard for shard in shards if shard.was_killed]
    if killed:
        names = ", ".join(
            f"rank {shard.rank}" if shard.rank is not None else f"process {shard.pid}"
            for shard in killed
        )
        words.append(f"killed before the end: {names}")
    return f"Watched {', '.join(words)}." if words else ""


def _steps(fewest: int, *more: int) -> str:
    """Return how many steps were taken, by ranks that took at least the first and at most the last.

    >>> _steps(8, 12)
    '8 to 12 steps'
    """
    if more:
        return f"{fewest:,} to {more[-1]:,} steps"
    return f"{fewest:,} step{'' if fewest == 1 else 's'}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
