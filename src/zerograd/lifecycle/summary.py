"""What only a whole run shows: gradients that grow unowned, are never used, or wait in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Severity
from zerograd.lifecycle.state import BucketState

OFTEN = 3  # fewer times may be a set-up or a look at one batch
LONG = 8  # fewer backwards may be a window that the run was too short for


@dataclass(frozen=True, slots=True)
class RunFault:
    """A rule that a run as a whole breaks."""

    code: str
    event: Event  # where to point
    state: BucketState
    severity: Severity | None = None  # None: that of the rule
    may_heal: bool = False  # had the run gone on, a later event might have settled it


@dataclass(slots=True)
class RunLog:
    """Counts what happened to each bucket and owner."""

    filled: Counter[str] = field(default_factory=Counter)
    cleared: set[str] = field(default_factory=set)
    clipped: set[str] = field(default_factory=set)
    stepped: set[str] = field(default_factory=set)
    cleared_by: Counter[str] = field(default_factory=Counter)
    last_fill: dict[str, Event] = field(default_factory=dict)
    last_clear: dict[str, Event] = field(default_factory=dict)  # by owner
    last_step: dict[str, Event] = field(default_factory=dict)  # by owner

    def feed(self, event: Event) -> None:
        """Count one event."""
        if event.kind is EventKind.BACKWARD:
            self.filled.update(event.reach)
            self.last_fill.update(dict.fromkeys(event.reach, event))
        elif event.kind is EventKind.CLEAR:
            self.cleared.update(event.reach)
            self.cleared_by[event.owner] += 1
            self.last_clear[event.owner] = event
        elif event.kind is EventKind.CLIP:
            self.clipped.update(event.reach)
        elif event.kind in (EventKind.STEP, EventKind.STEP_SKIPPED):
            self.stepped.update(event.reach)
            self.last_step[event.owner] = event

    def split(self, bucket: str, part: str) -> None:
        """Let `part` share what has been counted for `bucket` so far."""
        self.filled[part] = self.filled[bucket]
        if bucket in self.last_fill:
            self.last_fill[part] = self.last_fill[bucket]
        self.cleared |= {part} if bucket in self.cleared else set()
        self.clipped |= {part} if bucket in self.clipped else set()
        self.stepped |= {part} if bucket in self.stepped else set()

    def forget(self, owner: str, buckets: Iterable[str]) -> None:
        """Drop what was counted for an owner and buckets that are gone: others get their names."""
        del self.cleared_by[owner]
        self.last_clear.pop(owner, None)
        for bucket in buckets:
            del self.filled[bucket]
            self.last_fill.pop(bucket, None)
            for marked in (self.cleared, self.clipped, self.stepped):
                marked.discard(bucket)

    def faults(
        self, states: Mapping[str, BucketState], holders: Mapping[str, tuple[str, ...]]
    ) -> Iterator[RunFault]:
        """Yield what the run breaks, given the last states and who holds each bucket."""
        for bucket, state in states.items():
            if state.suspicion is not None and not state.unknown:
                step = self.last_step[state.suspicion.owner]
                step = replace(step, owner=state.suspicion.owner)
                yield RunFault("ZG201", step, state, may_heal=True)
            for owner in sorted(state.awaiting.intersection(self.last_step)):
                yield RunFault("ZG302", self.last_step[owner], state, may_heal=True)
            yield from self._unowned(bucket, state, holders[bucket])
            yield from self._unused(bucket, state, holders)

    def _unowned(
        self, bucket: str, state: BucketState, holders: tuple[str, ...]
    ) -> Iterator[RunFault]:
        grows = self.filled[bucket] >= OFTEN and bucket not in self.cleared
        if holders or not grows:
            return
        # In a clip it does harm: its growing norm takes the others' share.
        severity = Severity.WARNING if bucket in self.clipped else None
        yield RunFault("ZG105", replace(self.last_fill[bucket], owner=bucket), state, severity)

    def _unused(
        self, bucket: str, state: BucketState, holders: Mapping[str, tuple[str, ...]]
    ) -> Iterator[RunFault]:
        # By bucket: who has stepped it may be gone, as a wrapped optimizer before its wrapper.
        if self.filled[bucket] < OFTEN or bucket in self.stepped:
            return
        for owner in holders[bucket]:
            # The owner's own clears count: a module may be cleared to look at other gradients.
            if self.cleared_by[owner] >= OFTEN:
                yield RunFault("ZG203", self.last_clear[owner], state, may_heal=True)
            elif self._waits_in_vain(bucket, holders):
                event = replace(self.last_fill[bucket], owner=owner)
                yield RunFault("ZG203", event, state, may_heal=True)

    def _waits_in_vain(self, bucket: str, holders: Mapping[str, tuple[str, ...]]) -> bool:
        """Was it filled all along and never cleared: does a guard keep its step from running?

        Not if anything else is stepped: then this one may wait for its turn. Nor if the same
        loss fills what nobody holds, an input: then that gradient was wanted.
        """
        if self.last_step or self.filled[bucket] < LONG or bucket in self.cleared:
            return False
        return all(holders.get(each) for each in self.last_fill[bucket].reach)
