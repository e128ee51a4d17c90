"""Python's collector kept from walking over syntax trees again and again.

Trees are many small objects, and nearly all of them go by reference counts. While
files are checked the collector therefore runs between them only, and only once
enough objects have stayed behind: what it costs is paid for those that stay.
"""

from __future__ import annotations

import atexit
import gc

MOST_LEFT = 2_000_000  # objects that may have stayed since the last collection


class Sweeper:
    """Holds the collector off from one `with` to its end, and runs it every so many files.

    Afterwards the collector is as it was found: who had it off, or objects frozen, has that still.
    """

    def __init__(self) -> None:
        self._was_on = False
        self._was_frozen = False

    def __enter__(self) -> Sweeper:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._was_frozen:
            gc.freeze()  # together: all here counts as old, and is not walked over now
            gc.unfreeze()
        if self._was_on:
            gc.enable()

    def begin(self) -> None:
        self._was_on = gc.isenabled()
        self._was_frozen = gc.get_freeze_count() > 0  # by who calls us, who wants it to stay so
        gc.disable()
        if not self._was_frozen:
            gc.freeze()  # what is there now stays: no need to look at it again

    def file_done(self) -> None:
        if gc.get_count()[0] > MOST_LEFT:
            gc.collect()


def leave_at_exit() -> None:
    """Let this process, if it is all ours, end without looking for what could be freed.

    Python looks through all objects once more before it ends, and frees trees one by one.
    """
    atexit.register(gc.freeze)
