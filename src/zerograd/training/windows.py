"""`windows()`: the batches of a loader in groups of at most k, one group an update.

A window draws its batches from the loader one by one, when the loop asks for them,
so the order in which data is loaded and random numbers are drawn is that of a
hand-written loop. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from zerograd.errors import StepError

T = TypeVar("T")

_NOTHING = object()


class _Source(Generic[T]):
    """One pass over a loader, able to say whether a batch is left."""

    __slots__ = ("_ahead", "_iterator", "current", "left")

    def __init__(self, loader: Iterable[T]) -> None:
        self.left = _length(loader)  # batches not yet taken, None if the loader does not say
        self._iterator = iter(loader)
        self._ahead: object = _NOTHING
        self.current: Window[T] | None = None  # the window that may draw

    def has_next(self) -> bool:
        if self._ahead is _NOTHING:
            self._ahead = next(self._iterator, _NOTHING)
        return self._ahead is not _NOTHING

    def take(self) -> object:
        """The next batch, or _NOTHING."""
        batch, self._ahead = self._ahead, _NOTHING
        if batch is _NOTHING:
            batch = next(self._iterator, _NOTHING)
        if self.left is not None:
            self.left -= 1
        return batch


class Window(Generic[T]):
    """The batches of one update; iterate over it once, inside `with step(window):`."""

    __slots__ = ("_listener", "_source", "drawn", "look_ahead", "short", "size")

    def __init__(self, source: _Source[T], size: int) -> None:
        self._source = source
        self._listener: Callable[[bool], None] | None = None
        self.size = size
        self.drawn = 0  # batches handed out so far
        self.short = False  # the loader ended before `size` batches
        self.look_ahead = False  # fetch one batch early, to know which one is the last

    def __repr__(self) -> str:
        return f"Window(drawn={self.drawn}, size={self.size}, short={self.short})"

    def listen(self, listener: Callable[[bool], None] | None) -> None:
        """Call `listener(is_last)` before each batch is handed out."""
        self._listener = listener

    def __iter__(self) -> Iterator[T]:
        if self.drawn:
            raise StepError(
                f"This window has handed out {self.drawn} of its batches already. A window is "
                "iterated once: write `for batch in window:` inside `with step(window):`."
            )
        return self._draw()

    def _draw(self) -> Iterator[T]:
        source = self._source
        while self.drawn < self.size:
            if source.current is not self:
                raise StepError(
                    "This window is over: windows() has moved on to the next one. Draw its "
                    "batches before the outer loop goes on."
                )
            batch = source.take()
            if batch is _NOTHING:
                self.short = True
                return
            self.drawn += 1
            if self._listener is not None:
                self._listener(self._is_last())
            yield batch  # type: ignore[misc]

    def _is_last(self) -> bool:
        if self.drawn == self.size:
            return True
        if self.look_ahead:
            return not self._source.has_next()
        return self._source.left is not None and self._source.left <= 0


class Windows(Generic[T]):
    """What `windows()` returns: iterate over it once an epoch."""

    def __init__(self, loader: Iterable[T], size: int, done: int = 0) -> None:
        self._loader = loader
        self._size = size
        self._done = done

    def __len__(self) -> int:
        batches = _length(self._loader)
        if batches is None:
            raise TypeError(f"{type(self._loader).__name__} does not say how many batches it has")
        return -(-(batches + self._done) // self._size)

    def __iter__(self) -> Iterator[Window[T]]:
        source = _Source(self._loader)
        size, self._done = self._size - self._done, 0  # only the first pass is a resumed one
        while source.has_next():
            window = source.current = Window(source, size)
            yield window
            if not window.drawn:
                raise StepError(
                    "A window was left without drawing a batch from it. "
                    "Write `for batch in window:` inside `with step(window):`."
                )
            size = self._size


def windows(loader: Iterable[T], size: int, *, done: int = 0) -> Windows[T]:
    """Group the batches of `loader` into windows of at most `size`, one window an update.

    >>> [list(window) for window in windows([1, 2, 3, 4, 5], 2)]
    [[1, 2], [3, 4], [5]]

    The last window of an epoch may be short; `Step` divides by what it really holds.
    `break` inside a window leaves the batches not drawn to the next one. To go on in
    the middle of a window after a restart, give the number of batches it had drawn
    as `done` (`step.state_dict()["drawn"]`) and a loader that starts behind them.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"a window's size is an int, not {size!r}")
    if size < 1:
        raise ValueError(f"a window holds at least 1 batch, but size is {size}")
    if isinstance(done, bool) or not isinstance(done, int):
        raise TypeError(f"done is a number of batches (an int), not {done!r}")
    if not 0 <= done < size:
        raise ValueError(f"done must be at least 0 and less than size {size}, but is {done}")
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise TypeError(f"windows() needs an iterable of batches, not {type(loader).__name__}")
    return Windows(loader, size, done)


def _length(loader: object) -> int | None:
    try:
        return len(loader)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):  # an IterableDataset's loader has __len__ that raises
        return None
