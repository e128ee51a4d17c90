"""Python's collector kept from walking over syntax trees again and again.

Trees are many small objects, and nearly all of them go by reference counts. In
a process of our own the collector therefore runs between files only, and only
once enough objects have stayed behind: what it costs is paid for those that stay.
"""

from __future__ import annotations

import gc

MOST_LEFT = 2_000_000  # objects that may have stayed since the last collection


class Sweeper:
    """Holds the collector off from one `with` to its end, and runs it every so many files."""

    def __init__(self) -> None:
        self._was_on = False

    def __enter__(self) -> Sweeper:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        gc.freeze()  # together: all that is here counts as old, and is not walked over right now
        gc.unfreeze()
        if self._was_on:
            gc.enable()

    def begin(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()
        gc.freeze()  # what is there now stays: no need to look at it again

    def file_done(self) -> None:
        if gc.get_count()[0] > MOST_LEFT:
            gc.collect()
