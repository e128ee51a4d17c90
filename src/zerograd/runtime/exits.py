"""Ends that no exit handler of Python sees: `os._exit`, and becoming another program.

Forked children of multiprocessing end by the first; a launcher may do the second. What is to
be said is said before. A fault of ours in that is told in one line and changes neither.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from zerograd.runtime.aloud import say

_EXECS = ("execv", "execve")  # the others of the family call these two


class Exits:
    """Speaks before this process ends or becomes another program in one of these ways.

    Args:
        leave: called with the exit status, returns the one to end with.
        become: called before another program takes the place of this one.
    """

    def __init__(self, leave: Callable[[int], int], become: Callable[[], object]) -> None:
        self._leave = leave
        self._become = become
        self._undo: list[Callable[[], None]] = []

    def put_on(self) -> None:
        """Take the place of these functions of `os`."""
        self._replace("_exit", self._leaving(os._exit))
        for name in _EXECS:
            self._replace(name, self._becoming(getattr(os, name)))

    def take_off(self) -> None:
        """Put the functions of `os` back, but for those that somebody else has replaced since."""
        while self._undo:
            self._undo.pop()()

    def _replace(self, name: str, ours: Any) -> None:
        real = getattr(os, name)
        setattr(os, name, ours)
        self._undo.append(lambda: setattr(os, name, real) if getattr(os, name) is ours else None)

    def _leaving(self, real: Any) -> Any:
        @functools.wraps(real)
        def _exit(status: int) -> Any:
            try:
                status = self._leave(status)
            except Exception as error:
                _tell(error)
            finally:
                real(status)

        return _exit

    def _becoming(self, real: Any) -> Any:
        @functools.wraps(real)
        def become(path: Any, *more: Any) -> Any:
            try:
                # A search along PATH tries programs that are not there.
                if isinstance(path, int) or os.access(path, os.X_OK):
                    self._become()
            except Exception as error:
                _tell(error)
            return real(path, *more)

        return become


def _tell(error: Exception) -> None:
    say(f"zerograd: the report of process {os.getpid()} failed ({error!r})")
