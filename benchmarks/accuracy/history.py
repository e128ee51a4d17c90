"""Say which faults one concrete history of gradient events holds.

This is the plain reading of docs/explanation (phases of a bucket, faults at the step),
written a second time and without the checker's machine: it walks one list of events
that really happened, in order, and never has to think about what may happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

Bucket = object


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; buckets are whatever the kind says it touched."""

    kind: str  # clear, backward, assign, step, unscale, update, clip
    line: int
    buckets: frozenset[Bucket] = frozenset()
    owner: object = None  # the optimizer of a step
    scaler: object = None  # set if a scaler's factor is involved


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule broken, with every line that is part of it, the reported one first.

    An empty step is sure only if the next one at its spot is empty too: a single one
    may be the start of an epoch.
    """

    code: str
    lines: tuple[int, ...]
    sure: bool = True

    def merged(self, other: Fault) -> Fault:
        """Return both as one: the same rule at the same line, seen twice."""
        lines = tuple(dict.fromkeys((*self.lines, *other.lines)))
        return Fault(self.code, lines, self.sure or other.sure)


@dataclass(slots=True)
class _State:
    contributions: list[tuple[int, Event]] = field(default_factory=list)
    spent: bool = False  # a step has used what is in it
    fresh: bool = False  # something came after the last clear or step
    scaler: object = None
    unscaled: bool = False  # since the last clear or step
    lost: list[tuple[Event, Event]] = field(default_factory=list)  # (backward, clear)
    taken: list[Event] = field(default_factory=list)  # clears since the last backward
    touched: bool = False  # filled or cleared at least once

    @property
    def phase(self) -> str:
        if not self.contributions:
            return "EMPTY"
        if not self.spent:
            return "FRESH"
        return "STALE" if self.fresh else "SPENT"


def faults(events: list[Event]) -> list[Fault]:
    """Return the faults of one history, in order; each (code, line) once."""
    return _Judge(events).run()


class _Judge:
    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.found: dict[tuple[str, int], Fault] = {}
        self.states: dict[Bucket, _State] = {}
        self.empty_steps: dict[tuple[object, int], int] = {}  # in a row
        self.all_empty: dict[tuple[object, int], int] = {}
        self.steps = Counter((e.owner, e.line) for e in events if e.kind == "step")
        self.pending: dict[object, dict[object, Event]] = {}
        self.halfway: dict[object, Event] = {}  # owners unscaled since the last update
        self.used: set[int] = set()  # backwards that some optimizer's step has used
        self.updated: set[int] = set()  # lines of scaler steps that an update followed
        self.early: dict[Bucket, Event] = {}
        self.stepped_on: dict[int, set[int]] = {}  # step to the backwards that it used
        self.clipped: dict[Bucket, Event] = {}  # a clip of what was used, and nothing since
        self.cut: dict[tuple[object, int], int] = {}  # owner and clear to the last window it cut
        self.windows: dict[object, int] = {}  # steps of each owner so far
        self.fed: set[tuple[object, int]] = set()  # owners and lines of steps that found something

    def run(self) -> list[Fault]:
        for index, event in enumerate(self.events):
            getattr(self, f"_{event.kind}")(index, event)
        self._end_clips(self.clipped)
        self.found = {
            key: replace(fault, sure=fault.sure and not self._is_sometimes_fed(fault))
            for key, fault in self.found.items()
        }
        for steps in self.pending.values():
            for step in steps.values():
                if step.line not in self.updated:
                    self._add("ZG302", step.line, sure=self._is_fed(step))
        return list(self.found.values())

    def _add(self, code: str, line: int, *others: int, sure: bool = True) -> None:
        new = Fault(code, (line, *others), sure)
        old = self.found.get((code, line))
        self.found[(code, line)] = new if old is None else old.merged(new)

    def _is_sometimes_fed(self, fault: Fault) -> bool:
        """Does the step that found nothing find something in other rounds?

        A loss may be zero in some rounds, or left out: that alone is no fault.
        """
        return fault.code == "ZG401" and any(line == fault.lines[0] for _, line in self.fed)

    def _is_fed(self, step: Event) -> bool:
        """Did it ever find something? On nothing torch itself raises, and no update is owed."""
        return (step.owner, step.line) in self.fed

    def _end_clips(self, buckets: Iterable[Bucket]) -> None:
        """Whatever was clipped here after its step is used no more."""
        for bucket in list(buckets):
            clip = self.clipped.pop(bucket, None)
            if clip is not None:
                self._add("ZG304", clip.line)

    def _of(self, buckets: Iterable[Bucket]) -> list[_State]:
        return [self.states.setdefault(bucket, _State()) for bucket in buckets]

    def _clear(self, index: int, event: Event) -> None:
        self._end_clips(event.buckets)
        for state in self._of(event.buckets):
            state.lost += [(b, event) for at, b in state.contributions if at not in self.used]
            if state.fresh:
                state.taken.append(event)
            state.touched = True
            state.contributions = []
            state.spent = state.fresh = state.unscaled = False
            state.scaler = None
        for bucket in event.buckets:
            self.early.pop(bucket, None)

    def _backward(self, index: int, event: Event) -> None:
        self._end_clips(event.buckets)
        for state in self.states.values():
            state.taken = []
        for state in self._of(event.buckets):
            state.touched = True
            state.contributions.append((index, event))
            state.fresh = True
            state.scaler = event.scaler or state.scaler

    def _assign(self, index: int, event: Event) -> None:
        self._clear(index, event)
        self._backward(index, event)

    def _unscale(self, index: int, event: Event) -> None:
        stepped = any(event.owner in waiting for waiting in self.pending.values())
        if event.owner in self.halfway or stepped:  # torch raises
            self._add("ZG302", event.line, sure=False)
        self.halfway[event.owner] = event
        for state in self._of(event.buckets):
            state.scaler, state.unscaled = None, True

    def _clip(self, index: int, event: Event) -> None:
        states = self._of(event.buckets)
        if any(state.scaler is not None for state in states):
            self._add("ZG301", event.line)
        if states and all(state.phase == "SPENT" for state in states):
            # Stepped once more, the clip is not in vain, and that step is the fault.
            self._add("ZG304", event.line, sure=False)
            self.clipped.update(dict.fromkeys(event.buckets, event))
        elif states and not any(state.contributions for state in states):
            self._add("ZG304", event.line, sure=False)  # if the backward is still to come

    def _update(self, index: int, event: Event) -> None:
        followed = self.pending.pop(event.scaler, {})
        self.halfway.clear()
        self.updated.update(step.line for step in followed.values())
        for bucket, state in self.states.items():
            involved = state.unscaled or state.scaler is event.scaler
            if state.phase in ("FRESH", "STALE") and involved:
                self.early[bucket] = event

    def _step(self, index: int, event: Event) -> None:
        states = self._of(event.buckets)
        phases = {state.phase for state in states}
        self.windows[event.owner] = self.windows.get(event.owner, 0) + 1
        for bucket in event.buckets:
            self.clipped.pop(bucket, None)
        if event.scaler is not None:
            unscale = self.halfway.get(event.owner)
            stepped = event.owner in self.pending.get(event.scaler, {})  # torch raises
            left_in = any(state.scaler is event.scaler for state in states)
            if unscale is not None and left_in and not stepped:
                self._add("ZG303", event.line, unscale.line)  # what came since is not unscaled
            self._scaler_step(event)
            for _, backward in (each for state in states for each in state.contributions):
                if backward.scaler is None:  # divided by a factor that was never in it
                    self._add("ZG303", backward.line, event.line, sure=False)
        elif any(state.scaler is not None for state in states):
            self._add("ZG303", event.line)
        leaked = "STALE" not in phases and self._leaked(index, event, states)
        meant = "STALE" not in phases and self._leaked(index, event, states, by_meaning=True)
        if "STALE" in phases:
            self._add("ZG101", event.line)
        elif leaked or meant:
            self._add("ZG201", event.line, sure=leaked)
        elif phases == {"SPENT"}:
            self._add("ZG402", event.line)
        elif phases == {"EMPTY"}:
            self._empty_step(event, states)
        if phases & {"FRESH", "STALE"}:
            # What another rule says of the step does not unsay what a clear threw away before it.
            self._window(event, states, alone=not leaked and not meant and "STALE" not in phases)
        if phases != {"EMPTY"}:
            self.empty_steps.pop((event.owner, event.line), None)
            self.fed.add((event.owner, event.line))
        self.stepped_on[index] = {at for state in states for at, _ in state.contributions}
        for state in states:
            self.used.update(at for at, _ in state.contributions)
            if state.contributions:
                state.spent, state.fresh = True, False
            if event.scaler is not None:  # a bare step leaves the factor where it is
                state.scaler, state.unscaled = None, False
            state.lost = []
            state.taken = []

    def _scaler_step(self, event: Event) -> None:
        waiting = self.pending.setdefault(event.scaler, {})
        if event.owner in waiting:
            before = waiting[event.owner]
            self._add("ZG302", before.line, event.line, sure=self._is_fed(before))
        waiting[event.owner] = event
        for bucket in event.buckets:
            if bucket in self.early:
                self._add("ZG305", self.early.pop(bucket).line, event.line)

    def _empty_step(self, event: Event, states: list[_State]) -> None:
        # One empty step may be the first round of a loop that steps before it fills, and a
        # step on what nothing ever fills or clears is made to move a schedule.
        if not any(state.touched for state in states):
            return
        key = (event.owner, event.line)
        self.empty_steps[key] = self.empty_steps.get(key, 0) + 1
        clears = tuple(clear.line for state in states for _, clear in state.lost)
        # Another optimizer has used the loss before it was cleared here: lost to this one.
        clears = clears or tuple(clear.line for state in states for clear in state.taken)
        self.all_empty[key] = self.all_empty.get(key, 0) + 1
        # The only step there is, and its loss was thrown away: no later round makes it good.
        only = bool(clears) and self.steps[key] == 1
        if self.all_empty[key] >= 2 or only:
            code = "ZG102" if clears else "ZG401"
            self._add(code, event.line, *clears, sure=self.empty_steps[key] >= 2)

    def _window(self, event: Event, states: list[_State], *, alone: bool) -> None:
        for state in states:
            # Losing another spot's backward is a waste, and no proof of a broken window: the
            # step is for the last one.
            meant = state.contributions[-1][1].line if state.contributions else 0
            for backward, clear in state.lost:
                # A clear before each epoch drops a tail: one window, not two in a row.
                key, now = (event.owner, clear.line), self.windows[event.owner]
                sure = alone and backward.line == meant and self.cut.get(key) == now - 1
                self._add("ZG501", clear.line, event.line, sure=sure)
            for _, clear in state.lost:
                self.cut[event.owner, clear.line] = self.windows[event.owner]

    def _leaked(
        self, index: int, event: Event, states: list[_State], *, by_meaning: bool = False
    ) -> bool:
        for state in states:
            for first, _one in state.contributions:
                for second, _two in state.contributions:
                    if first < second and self._crosses(event, first, second, by_meaning):
                        return True
        return False

    def _crosses(self, event: Event, first: int, second: int, by_meaning: bool) -> bool:
        """Tell whether backward `first` was another optimizer's before `second` came."""
        between = [n for n in range(first, second) if self.events[n].kind == "step"]
        if any(self.events[n].owner is event.owner for n in between):
            return False
        others = [n for n in between if by_meaning and self._is_meant(first, n)]
        if not others and not any(first in self.stepped_on[n] for n in between):
            return False
        after: list[Event] = []
        for later in self.events[second + 1 :]:
            if later.kind in ("backward", "clear", "assign") and later.buckets & event.buckets:
                break
            if later.kind == "step" and later.buckets & self.events[second].buckets:
                after.append(later)
        return bool(after) and all(e.owner is event.owner for e in after)

    def _is_meant(self, loss: int, step: int) -> bool:
        """Is it the only loss since the clear of the optimizer that steps there?

        Then it was meant for that one, also where it reaches none of its weights.
        """
        losses: list[int] = []
        for n in range(step - 1, -1, -1):
            event = self.events[n]
            if event.kind == "clear" and event.buckets >= self.events[step].buckets:
                return losses == [loss]
            if event.kind in ("backward", "assign"):
                losses.append(n)
        return False
