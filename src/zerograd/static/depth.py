"""Room for code that is nested deeper than Python's usual recursion limit.

A long `elif` chain or a sum of a thousand terms is a tree as deep as it is
long. Python itself runs such files, so they have to be checked too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

DEEP_LIMIT = 20_000  # frames
DEEP_STACK = 256 * 1024 * 1024  # bytes of address space; only touched pages cost memory
DEEP_TREE = 500  # levels, each of which takes several frames to follow


def with_room(work: Callable[[], Result]) -> Result:
    """Return `work()`, run once more with a far larger stack if it recursed too deeply.

    A RecursionError that remains is the caller's to report.
    """
    try:
        return work()
    except RecursionError:
        return _in_a_deep_thread(work)


def is_deep(tree: ast.AST) -> bool:
    """Is a tree so deep that following it may take more frames than there are?"""
    level = [tree]
    for _ in range(DEEP_TREE):
        level = [each for node in level for each in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _in_a_deep_thread(work: Callable[[], Result]) -> Result:
    import threading  # rare, so not paid for at start-up

    results: list[Result] = []
    faults: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work())
        except BaseException as fault:  # handed to the thread that waits
            faults.append(fault)

    limit = sys.getrecursionlimit()
    size = threading.stack_size(DEEP_STACK)
    sys.setrecursionlimit(max(limit, DEEP_LIMIT))
    try:
        thread = threading.Thread(target=target, name="zerograd-deep")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if faults:
        raise faults[0]
    return results[0]
