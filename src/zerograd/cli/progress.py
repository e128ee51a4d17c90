"""A progress bar on a terminal, for work that takes longer than a second."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

PATIENCE = 1.0  # seconds before anything is drawn
PAUSE = 0.1  # seconds between two drawings
WIDTH = 24


class Progress:
    """Counts files and draws how far the check is; on anything but a terminal it is silent."""

    def __init__(self, out: TextIO, *, silent: bool = False) -> None:
        self._out = out
        self.is_shown = not silent and out.isatty()
        self._next = time.monotonic() + PATIENCE
        self._drawn = False
        self._files = self._waiting = self._done = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def read(self) -> None:
        self._files += 1
        self._draw()

    def found(self) -> None:
        self._waiting += 1

    def checked(self, number: int) -> None:
        self._done += number
        self._draw()

    def _draw(self) -> None:
        if not self.is_shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PAUSE
        self._drawn = True
        full = round(WIDTH * self._done / self._waiting) if self._waiting else 0
        bar = "█" * full + "░" * (WIDTH - full)
        self._out.write(
            f"\r\x1b[K{bar} {self._done} of {self._waiting} checked, {self._files} files read"
        )
        self._out.flush()
