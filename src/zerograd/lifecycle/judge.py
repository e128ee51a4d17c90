"""Judging one history of events, which happened. Source code is for `verdicts`."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding, explain
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.rule import STEPS, Over, Rule, yields_to
from zerograd.lifecycle.state import INITIAL, BucketState, Contribution, Phase
from zerograd.lifecycle.summary import RunLog
from zerograd.lifecycle.window import Window
from zerograd.lifecycle.windows import WindowFault, WindowLog


class Judge:
    """Feeds events to the machine one by one and tells which rules each one breaks.

    A fault that stays is told again each time it happens; `in_order` keeps one.

    Args:
        holdings: optimizer to the buckets it holds; one that is not named holds
            the bucket of its own name.
    """

    def __init__(
        self, rules: Iterable[Rule], holdings: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._rules = {rule.code: rule for rule in rules}
        self._judged_at = {
            kind: tuple(rule for rule in self._rules.values() if rule.is_judged_at(kind))
            for kind in EventKind
        }
        self._holdings = {owner: tuple(held) for owner, held in (holdings or {}).items()}
        self._states: dict[str, BucketState] = {}
        self._windows = WindowLog()
        self._run = RunLog()

    def hold(self, owner: str, buckets: Sequence[str]) -> None:
        """Say that `owner` holds these buckets from now on."""
        self._holdings[owner] = tuple(buckets)

    def state(self, bucket: str) -> BucketState:
        """Return the present state of a bucket."""
        return self._states.get(bucket, INITIAL)

    def feed(self, event: Event) -> list[Finding]:
        """Return the findings that `event` gives rise to, then move every bucket."""
        event = self.complete(event)
        findings, window = self.weigh(event)
        return findings + self.count(event, window)

    def complete(self, event: Event) -> Event:
        """Fill in what the holdings tell: the buckets of the owner, the owners of the buckets."""
        if not event.buckets and event.owner in self._holdings:
            event = replace(event, buckets=self._holdings[event.owner])
        if event.kind in (EventKind.BACKWARD, EventKind.ASSIGN) and not event.fills:
            event = replace(event, fills=frozenset(self._owners_of(event.reach)))
        if event.kind is EventKind.CLEAR and not event.empties:
            event = replace(event, empties=self._emptied_by(event.reach))
        return event

    def weigh(self, event: Event) -> tuple[list[Finding], Window | None]:
        """Do the part of `feed` that follows from the snapshot alone, for a complete event.

        So a witness that sees the same few events a million times need weigh each
        of them only once in each snapshot.
        """
        for bucket in event.reach:
            self._states.setdefault(bucket, INITIAL)
        states = self._distinct(self._judged(event))
        broken = [rule for rule in self._judged_at[event.kind] if _breaks(rule, event, states)]
        findings = [
            explain(rule, event, next(each for each in states if rule.broken_by(each, event)))
            for rule in broken
            if not rule.windowed and not any(yields_to(rule.code, other.code) for other in broken)
        ]
        window, faults = self._judge_windows(event)
        findings += [self._of_window(fault, event) for fault in faults if fault.code in self._rules]
        self._move(event)
        return findings, window

    def _move(self, event: Event) -> None:
        """Move every bucket; those in the same state share it, and are moved once together."""
        reached = frozenset(event.reach)
        moved: dict[tuple[int, bool], BucketState] = {}
        equal: dict[BucketState, BucketState] = {}
        before = tuple(self._states.items())  # keeps the states alive, and their ids with them
        for bucket, state in before:
            key = (id(state), bucket in reached)
            after = moved.get(key)
            if after is None:
                after = advance(state, event, bucket)
                after = moved[key] = equal.setdefault(after, after)
            self._states[bucket] = after

    def count(self, event: Event, window: Window | None) -> list[Finding]:
        """Do the rest of `feed`: what is counted over epochs and over the whole run."""
        self._run.feed(event)
        tail = window is not None and self._windows.has_tail(event.owner, window)
        if not tail or "ZG502" not in self._rules:
            return []
        return [explain(self._rules["ZG502"], event, INITIAL)]

    def snapshot(self) -> Hashable:
        """Return all that `weigh` depends on, the holdings apart."""
        return tuple(self._states.items()), self._windows.snapshot()

    def restore(self, snapshot: Any) -> None:
        """Go back to what `snapshot` returned."""
        states, windows = snapshot
        self._states = dict(states)
        self._windows.restore(windows)

    def split(self, bucket: str, part: str) -> None:
        """Give `part`, until now within `bucket`, a history of its own from here on."""
        if bucket in self._states:
            self._states[part] = self._states[bucket]
        self._run.split(bucket, part)

    def inherit(self, owner: str, heir: str, bucket: str) -> None:
        """Count what `owner` has used of `bucket` as used by `heir`, who takes its place.

        An optimizer that is made anew in each epoch goes on where the one before it ended.
        """
        state = self._states.get(bucket)
        if state is not None:
            self._states[bucket] = state._replace(
                contributions=tuple(
                    each._replace(used_by=each.used_by | {heir}) if owner in each.used_by else each
                    for each in state.contributions
                ),
            )

    def forget(self, owner: str, buckets: Sequence[str]) -> None:
        """Drop an owner that is gone, and the buckets that nobody else holds."""
        self._holdings.pop(owner, None)
        self._windows.forget(owner)
        self._run.forget(owner, buckets)
        for bucket in buckets:
            self._states.pop(bucket, None)

    def finish(self, not_due: Collection[str] = ()) -> list[Finding]:
        """Return the findings that are known only when the run has ended.

        Args:
            not_due: rules that are not broken where a run that went on might have healed it.
        """
        holders = {bucket: self._owners_of((bucket,)) for bucket in self._states}
        findings = []
        for fault in self._run.faults(self._states, holders):
            rule = self._rules.get(fault.code)
            if rule is not None and not (fault.may_heal and fault.code in not_due):
                severity = fault.severity or rule.severity
                findings.append(explain(replace(rule, severity=severity), fault.event, fault.state))
        return findings

    def _owners_of(self, buckets: Iterable[str]) -> tuple[str, ...]:
        reached = dict.fromkeys(buckets)
        if not self._holdings:
            return tuple(reached)  # nobody was named: each bucket is its own owner
        return tuple(
            owner
            for owner, held in self._holdings.items()
            if any(bucket in reached for bucket in held)
        )

    def _emptied_by(self, buckets: Sequence[str]) -> frozenset[str]:
        return frozenset(
            owner
            for owner in self._owners_of(buckets)
            if all(bucket in buckets for bucket in self._holdings.get(owner, ()))
        )

    def _held(self, buckets: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return who holds which of these buckets."""
        return {
            owner: [b for b in buckets if b in self._holdings.get(owner, (owner,))]
            for owner in self._owners_of(buckets)
        }

    def _distinct(self, buckets: Iterable[str]) -> list[BucketState]:
        """Return the states that these buckets are in, in their order, a shared one once."""
        states = map(self.state, buckets)
        return list({id(state): state for state in states}.values())

    def _judged(self, event: Event) -> Iterable[str]:
        # A suspicion of a leak ends at the next backward, wherever that reaches.
        return self._states if event.kind is EventKind.BACKWARD else event.reach

    def _judge_windows(self, event: Event) -> tuple[Window | None, list[WindowFault]]:
        if event.leaf:
            return None, []
        states = self._distinct(event.reach)
        if event.kind is EventKind.CLIP and any(map(_is_used_or_unknown, states)):
            return None, []  # a rule of its own, and no clip that came too soon
        if event.kind not in STEPS:
            self._windows.feed(event, self._held(event.reach))
            return None, []
        bare = any(state.seen for state in states) and all(
            state.phase(event.owner) is Phase.EMPTY and not state.unknown for state in states
        )
        return self._windows.step(event, bare)

    def _of_window(self, fault: WindowFault, event: Event) -> Finding:
        if fault.spot != event.spot:
            event = replace(event, spot=fault.spot, text="")
        if fault.drop is None:
            return explain(self._rules[fault.code], event, INITIAL)
        if fault.code == "ZG501":  # told at the clear, from the state before it
            state = BucketState(contributions=(Contribution("", fault.drop.backward),))
        else:
            state = BucketState(lost=fault.drop)
        return explain(self._rules[fault.code], event, state)


def _breaks(rule: Rule, event: Event, states: Sequence[BucketState]) -> bool:
    if rule.over is Over.FILLED:
        states = [state for state in states if state.contributions or state.unknown]
    broken = [rule.broken_by(state, event) for state in states]
    return bool(broken) and (any(broken) if rule.over is Over.ANY else all(broken))


def _is_used_or_unknown(state: BucketState) -> bool:
    used = bool(state.contributions) and all(each.used_by for each in state.contributions)
    return used or state.unknown


def judge(
    events: Iterable[Event],
    rules: Iterable[Rule],
    holdings: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Finding]:
    """Yield a finding for each event that breaks a rule, in event order.

    Each optimizer sees its own phase of each bucket, so interleaved optimizers
    (a GAN's two, say) do not disturb each other.

    >>> from zerograd.lifecycle.events import Spot
    >>> from zerograd.rules import ALL_RULES
    >>> kinds = [EventKind.BACKWARD, EventKind.STEP, EventKind.BACKWARD, EventKind.STEP]
    >>> events = [Event(kind, "opt", Spot("a.py", n)) for n, kind in enumerate(kinds, 1)]
    >>> [(finding.rule.code, finding.spot.line) for finding in judge(events, ALL_RULES)]
    [('ZG101', 4)]
    """
    court = Judge(rules, holdings)
    for event in events:
        yield from court.feed(event)
    yield from court.finish()
