"""Which loss it was that a clear threw away before the step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.state import BucketState
from zerograd.static.engine.ir import Happening

if TYPE_CHECKING:
    from zerograd.static.engine.buckets import Buckets
    from zerograd.static.engine.flow import Flow


class LostLosses:
    """The losses of one root that no step has used when they are cleared."""

    def __init__(self, buckets: Buckets, flow: Flow) -> None:
        self._buckets = buckets
        self._flow = flow

    def taken(self, step: Happening, buckets: tuple[str, ...]) -> BucketState | None:
        """Return a state in which a loss was cleared after another optimizer's step."""
        for state in self._held(step, buckets):
            if state.lost is not None and state.lost.shared and state.lost.finite:
                return state
        return None

    def told(self, step: Happening, buckets: tuple[str, ...], state: BucketState) -> BucketState:
        """Return the state that says best what was lost: a loss that no step ever uses.

        Where two optimizers take turns, the other one's loss is thrown away as well, and is
        none of this step's.
        """
        for each in self._held(step, buckets):
            if each.lost is not None and each.lost.finite and each.lost.backward not in self._used:
                return each
        return state

    @cached_property
    def _used(self) -> frozenset[Spot]:
        """The backwards that some step uses."""
        return frozenset(
            each.spot
            for step in self._buckets.happenings
            if step.kind is EventKind.STEP and step.event is not None
            for state in self._held(step, step.event.buckets)
            for each in state.contributions
        )

    def _held(self, event: Happening, buckets: tuple[str, ...]) -> Iterator[BucketState]:
        """Yield the states in which an event finds some buckets."""
        reached = self._flow.reached.get(id(event), {})
        for bucket in buckets:
            for number, _ in reached.get(bucket, ()):
                yield self._flow.states[number][0]
