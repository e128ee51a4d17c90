"""`watch`: the live witness for one stretch of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.findings import Finding

P = ParamSpec("P")
R = TypeVar("R")
Policy = Literal["warn", "raise", "collect"]

_active: list[Sanitizer] = []


class TraceSink(Protocol):
    """Whatever takes events down: `zerograd.trace.writer.TraceWriter` does."""

    def write(self, event: Event, *, iteration: int, extra: Mapping[str, Any] | None) -> None: ...


class Sanitizer:
    """Watches gradients between `start` and `stop`; a context manager and a decorator too."""

    def __init__(
        self,
        *objects: object,
        policy: Policy = "warn",
        select: Sequence[str] = (),
        ignore: Sequence[str] = (),
        show_notes: bool = False,
        on_finding: Callable[[Finding], object] | None = None,
        trace: TraceSink | None = None,
    ) -> None:
        self._findings: list[Finding] = []

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, in order of place."""
        return list(self._findings)

    @property
    def not_checked(self) -> list[str]:
        """What could not be checked, and why, each said once."""
        return []

    @property
    def steps(self) -> int:
        """How many optimizer steps were seen."""
        return 0

    def metrics(self) -> dict[str, float]:
        """Return counts for an experiment tracker."""
        return {}

    def start(self) -> Sanitizer:
        """Begin to watch. A second call does nothing."""
        if self not in _active:
            _active.append(self)
        return self

    def stop(self) -> None:
        """Take every patch off and judge what is judged at the end. A second call does nothing."""
        if self in _active:
            _active.remove(self)

    def explain(self, error: BaseException) -> None:
        """Look whether a rule explains `error`, which the user's code raised; never raises."""

    def __enter__(self) -> Sanitizer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.explain(error)
        self.stop()


watch = Sanitizer


def active() -> Sanitizer | None:
    """Return the innermost sanitizer at work, or None."""
    return _active[-1] if _active else None
