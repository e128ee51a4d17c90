"""Several processes, where a tree holds enough training code to pay for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from zerograd.errors import ZerogradError
from zerograd.static.files import read_bytes
from zerograd.static.garbage import Sweeper

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from zerograd.static.check import Asked, Checker
    from zerograd.static.checked import Checked

ENOUGH = 600_000  # bytes of training code; below that, starting processes hardly pays
# what is handed over at a time: neighbours share the modules they import, a long file is the last
MOST_FILES = 8
MOST_BYTES = 100_000

_checker: Checker | None = None  # of this worker process
_sweeper = Sweeper()


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_share(jobs: int | None) -> bool:
    """May more than one process be used at all?"""
    return processors() > 1 if jobs is None else jobs > 1


def is_enough(size: int, jobs: int | None) -> bool:
    """Is there enough to do for more than one process? Who gives a number wants it."""
    return size >= (ENOUGH if jobs is None else 1)


def check_in_processes(
    files: Iterable[tuple[str, int]], asked: Asked, roots: Sequence[str], jobs: int | None
) -> Iterator[tuple[Checked, int]]:
    """Yield what came of the files, given as path and size, so many at a time."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    from zerograd.rules import BY_CODE
    from zerograd.static.check import with_rules_of_ours

    number = jobs or min(processors(), 16)
    context = _context()
    if context.get_start_method() == "fork":
        import zerograd.static.engine  # noqa: F401  # loaded once, and not by each of them
    try:
        with ProcessPoolExecutor(
            number, mp_context=context, initializer=_start, initargs=(asked, tuple(roots))
        ) as pool:
            for result, number in pool.map(_check, chunks(files)):
                yield with_rules_of_ours(result, BY_CODE), number
    except BrokenProcessPool:
        raise ZerogradError(
            "a worker process was killed, so not all files were checked.\n"
            "  If memory is short, use --jobs 1."
        ) from None


def _context() -> BaseContext:
    """Return how to start processes: by fork where nothing else runs here that it could break."""
    import multiprocessing
    import threading

    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return multiprocessing.get_context("fork" if sys.platform == "linux" and alone else "spawn")


def chunks(files: Iterable[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    """Yield the paths in parts that are handed over together.

    >>> list(chunks([("a.py", 2_000), ("long.py", 300_000), ("b.py", 3_000)]))
    [('a.py', 'long.py'), ('b.py',)]
    """
    chunk: list[str] = []
    held = 0
    for path, size in files:
        chunk.append(path)
        held += size
        if len(chunk) == MOST_FILES or held >= MOST_BYTES:
            yield tuple(chunk)
            chunk, held = [], 0
    if chunk:
        yield tuple(chunk)


def _start(asked: Asked, roots: tuple[str, ...]) -> None:
    global _checker
    import signal

    from zerograd.static.check import Checker

    # An interrupt ends a worker without a word: the process that leads it speaks for all.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _checker = Checker(asked, roots)
    _sweeper.begin()


def _check(paths: tuple[str, ...]) -> tuple[Checked, int]:
    from zerograd.static.checked import Checked

    assert _checker is not None
    result = Checked()
    for path in paths:
        data = read_bytes(path, result.problems.append)
        if data is not None:
            result.add(_checker.check(data, path))
            _sweeper.file_done()
    return result, len(paths)
