"""Locks that a forked child finds free, whatever the other threads of its parent were at.

A thread that holds a lock while another one forks does not exist in the child, where that lock
would stay shut for good.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

# The locks, each with what to do in the child if one was held.
_locks: WeakKeyDictionary[Any, Callable[[], object] | None] = WeakKeyDictionary()


def new_lock(if_held: Callable[[], object] | None = None) -> threading.RLock:
    """Return a lock that is free in every forked child.

    Args:
        if_held: called in the child if another thread held it: what it guards is half done.
            Must not keep the owner of the lock alive.
    """
    lock = threading.RLock()
    _locks[lock] = if_held
    return lock


def _free() -> None:
    for lock, if_held in list(_locks.items()):
        if lock.acquire(blocking=False):
            lock.release()  # free, or the forking thread's own
            continue
        lock._at_fork_reinit()
        if if_held is not None:
            if_held()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_free)
