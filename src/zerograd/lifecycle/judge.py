"""Judging: one history of events, or all states that a line may be in.

`judge` is for a history that happened; `judge_set` is for source code, where a
line is reached in many states, each under the conditions that led there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, explain
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.rule import Over, Rule, RuleKind, yields_to
from zerograd.lifecycle.state import INITIAL, BucketState
from zerograd.lifecycle.windows import Window, WindowLog

Literal = tuple[str, bool]  # a condition's text, and the truth it was found to have
Literals = frozenset[Literal]
States = Mapping[BucketState, Iterable[Literals]]


class Judge:
    """Feeds events to the machine one by one and tells which rules each one breaks.

    Args:
        holdings: optimizer to the buckets it holds; one that is not named holds
            the bucket of its own name.
    """

    def __init__(
        self, rules: Iterable[Rule], holdings: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._rules = tuple(rules)
        self._holdings = {owner: tuple(held) for owner, held in (holdings or {}).items()}
        self._states: dict[str, BucketState] = {}
        self._windows = WindowLog()
        self._backwards: Counter[str] = Counter()
        self._clears: Counter[str] = Counter()
        self._steps: Counter[str] = Counter()
        self._last: dict[str, Event] = {}

    def hold(self, owner: str, buckets: Sequence[str]) -> None:
        """Say that `owner` holds these buckets from now on."""
        self._holdings[owner] = tuple(buckets)

    def state(self, bucket: str) -> BucketState:
        """Return the present state of a bucket."""
        return self._states.get(bucket, INITIAL)

    def feed(self, event: Event) -> list[Finding]:
        """Return the findings that `event` gives rise to, then move every bucket."""
        event = self._complete(event)
        for bucket in event.reach:
            self._states.setdefault(bucket, INITIAL)
        broken = [rule for rule in self._rules if self._breaks(rule, event)]
        findings = [
            explain(rule, event, self._worst(rule, event))
            for rule in broken
            if not rule.windowed and not any(yields_to(rule.code, other.code) for other in broken)
        ]
        findings += self._judge_window(event)
        self._move(event)
        return findings

    def finish(self) -> list[Finding]:
        """Return the findings that are known only when the run has ended."""
        findings = []
        for bucket, state in self._states.items():
            if state.suspicion is not None:
                end = Event(EventKind.CLEAR, state.suspicion.owner, state.suspicion.step, (bucket,))
                findings += self._of_code("ZG201", end, state)
            event = self._last.get(bucket)
            if event is None:
                continue
            owners = self._owners_of((bucket,))
            often = self._backwards[bucket] >= 3
            if not owners and often and not self._clears[bucket]:
                findings += self._of_code("ZG105", replace(event, owner=bucket), state)
            for owner in owners:
                if often and self._clears[bucket] >= 3 and not self._steps[owner]:
                    findings += self._of_code("ZG203", replace(event, owner=owner), state)
        return list({finding.key: finding for finding in findings}.values())

    def _complete(self, event: Event) -> Event:
        if event.kind in (EventKind.STEP, EventKind.STEP_SKIPPED) and not event.buckets:
            event = replace(event, buckets=self._holdings.get(event.owner, (event.owner,)))
        if event.kind in (EventKind.BACKWARD, EventKind.ASSIGN) and not event.fills:
            event = replace(event, fills=frozenset(self._owners_of(event.reach)) or event.fills)
        return event

    def _owners_of(self, buckets: Iterable[str]) -> tuple[str, ...]:
        reached = set(buckets)
        named = tuple(owner for owner, held in self._holdings.items() if reached & set(held))
        if self._holdings:
            return named
        return tuple(reached)  # nobody was named: each bucket is its own owner

    def _breaks(self, rule: Rule, event: Event) -> bool:
        if rule.kind is not RuleKind.TRANSITION:
            return False
        broken = [rule.broken_by(self.state(bucket), event) for bucket in self._judged(event)]
        return bool(broken) and (any(broken) if rule.over is Over.ANY else all(broken))

    def _judged(self, event: Event) -> tuple[str, ...]:
        # A suspicion of a leak ends at the next backward or clear, wherever that reaches.
        if event.kind in (EventKind.BACKWARD, EventKind.CLEAR, EventKind.SCALER_UPDATE):
            return tuple(self._states)
        return event.reach

    def _worst(self, rule: Rule, event: Event) -> BucketState:
        states = [self.state(bucket) for bucket in self._judged(event)]
        return next(state for state in states if rule.broken_by(state, event))

    def _judge_window(self, event: Event) -> list[Finding]:
        owners = self._owners_of(event.reach)
        window = self._windows.feed(event, owners)
        if window is None:
            return []
        broken = window_faults(self._windows.last(event.owner))
        known = {rule.code: rule for rule in self._rules}
        return [
            explain(known[code], replace(event, spot=spot), INITIAL)
            for code, spot in broken
            if code in known
        ]

    def _of_code(self, code: str, event: Event, state: BucketState) -> list[Finding]:
        return [explain(rule, event, state) for rule in self._rules if rule.code == code]

    def _move(self, event: Event) -> None:
        if event.kind in (EventKind.STEP, EventKind.STEP_SKIPPED):
            self._steps[event.owner] += 1
        for bucket, state in self._states.items():
            self._states[bucket] = advance(state, event, bucket)
        for bucket in event.reach:
            self._last[bucket] = event
            self._backwards[bucket] += event.kind is EventKind.BACKWARD
            self._clears[bucket] += event.kind is EventKind.CLEAR


def judge(
    events: Iterable[Event],
    rules: Iterable[Rule],
    holdings: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Finding]:
    """Yield a finding for each event that breaks a rule, in event order.

    Each optimizer sees its own phase of each bucket, so interleaved optimizers
    (a GAN's two, say) do not disturb each other.

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


def window_faults(windows: Sequence[Window]) -> list[tuple[str, Spot]]:
    """Return the codes that the last few windows of one owner break, and where.

    Two windows in a row must agree before one is called wrong.
    """
    if len(windows) < 2:
        return []
    before, last = windows[-2], windows[-1]
    faults: list[tuple[str, Spot]] = []
    finite = before.lost_finite and last.lost_finite
    if before.empty and last.empty and before.lost and last.lost and finite:
        faults.append(("ZG102", last.lost_at or last.step))
    early = last.lost_of_its_own()
    if early and early == before.lost_of_its_own() and finite:
        faults.append(("ZG501", last.lost_at or last.step))
    if last.size >= 2 and before.size >= 2 and last.averaged is False and before.averaged is False:
        faults.append(("ZG503", last.step))
    if last.synchronised >= 2 and before.synchronised >= 2 and last.size >= 2:
        faults.append(("ZG505", last.step))
    if len(windows) >= 3 and _tail(windows[-3].size, before.size, last):
        faults.append(("ZG502", last.step))
    return faults


def _tail(first: int, second: int, last: Window) -> bool:
    """After two windows of K: one of K+r, or one before which r < K were dropped."""
    if first != second or first < 2:
        return False
    dropped = last.lost_of_its_own()
    leaked = first < last.size < 2 * first
    return leaked or (0 < dropped < first and last.size == first)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rule broken at a line of source code, and under which condition."""

    rule: Rule
    condition: Literal | None  # None: on every path
    certain: bool  # False: on some path only
    state: BucketState  # one that breaks it, for the trail


def judge_set(buckets: Mapping[str, States], event: Event, rules: Iterable[Rule]) -> list[Verdict]:
    """Return the rules that `event` breaks, given every state each bucket may be in.

    A rule is broken for certain if there is one condition literal, or none,
    under which *all* judged states break it. That finds a clear on one branch
    only, and stays quiet where a flag guards clear and step alike.
    """
    verdicts = []
    for rule in rules:
        if rule.kind is not RuleKind.TRANSITION or event.kind not in rule.on:
            continue
        single = [_judge_bucket(states, event, rule) for states in buckets.values()]
        chosen = _combine(single, rule)
        if chosen is not None:
            verdicts.append(chosen)
    codes = {verdict.rule.code for verdict in verdicts if verdict.certain}
    return [
        verdict
        for verdict in verdicts
        if not any(yields_to(verdict.rule.code, code) for code in codes)
    ]


def _judge_bucket(states: States, event: Event, rule: Rule) -> Verdict | None:
    judged: list[tuple[Literals, bool, BucketState]] = []
    for state, reached_under in states.items():
        if rule.after_step and event.owner not in state.stepped:
            continue
        broken = rule.broken_by(state, event)
        judged.extend((literals, broken, state) for literals in reached_under)
    example = next((state for _, broken, state in judged if broken), None)
    if example is None:
        return None
    if all(broken for _, broken, _ in judged):
        return Verdict(rule, None, True, example)
    known = {literal for literals, broken, _ in judged if broken for literal in literals}
    for literal in sorted(known):
        # a state that does not know the condition could be on either side of it
        opposite = (literal[0], not literal[1])
        side = [(broken, state) for literals, broken, state in judged if opposite not in literals]
        if all(broken for broken, _ in side):
            return Verdict(rule, literal, True, side[0][1])
    return Verdict(rule, None, False, example)


def _combine(single: list[Verdict | None], rule: Rule) -> Verdict | None:
    """Join the verdicts over an optimizer's buckets: any of them, or all under one condition."""
    found = [verdict for verdict in single if verdict is not None]
    if not found:
        return None
    if rule.over is Over.ANY:
        return next((verdict for verdict in found if verdict.certain), found[0])
    if len(found) < len(single):
        return None
    conditions = {verdict.condition for verdict in found} - {None}
    certain = all(verdict.certain for verdict in found) and len(conditions) < 2
    chosen = next((verdict for verdict in found if verdict.condition), found[0])
    return replace(chosen, certain=certain)
