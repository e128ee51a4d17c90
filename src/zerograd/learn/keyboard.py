"""Single key presses from a terminal, on POSIX and on Windows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

END = ""  # the terminal is gone


@contextmanager
def key_by_key() -> Iterator[None]:
    """Let keys arrive without Enter and unseen; the terminal is restored on the way out."""
    if os.name == "nt":
        yield
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)  # Ctrl-C still interrupts
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def read_key(seconds: float) -> str | None:
    """Return the next key in lower case, None if none came in time, END if none ever will."""
    if sys.platform == "win32":
        import msvcrt
        import time

        until = time.monotonic() + seconds
        while not msvcrt.kbhit():
            if time.monotonic() >= until:
                return None
            time.sleep(0.05)
        return msvcrt.getwch().lower()
    import select

    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return None
    read = os.read(sys.stdin.fileno(), 1)
    return read.decode("ascii", "replace").lower() if read else END
