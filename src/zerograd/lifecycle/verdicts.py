"""Judging all states that a line of source code may be in.

It is reached in many, each under the conditions that led there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.rule import STEPS, Over, Rule, yields_to
from zerograd.lifecycle.state import BucketState

Literal = tuple[str, bool]  # a condition's text, and the truth it was found to have
Literals = frozenset[Literal]
States = Mapping[BucketState, Iterable[Literals]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rule broken at a line of source code, and under which condition."""

    rule: Rule
    condition: Literal | None  # None: on every path
    certain: bool  # False: on some path only
    state: BucketState  # one that breaks it, for the trail


def _always(condition: str) -> bool:
    return True


def judge_set(
    buckets: Mapping[str, States],
    event: Event,
    rules: Iterable[Rule],
    varies: Callable[[str], bool] = _always,
) -> list[Verdict]:
    """Return the rules that `event` breaks, given every state each bucket may be in.

    A rule is broken for certain if there is one condition literal, or none,
    under which *all* judged states break it. That finds a clear on one branch
    only, and stays quiet where a flag guards clear and step alike.

    Args:
        varies: may this condition change from one iteration to the next? A step
            that finds nothing in some iterations is no fault: a loss may be zero,
            a guard may have thrown a bad batch away. Under a condition that is
            the same in all of them, it is.
    """
    verdicts = []
    judged = [rule for rule in rules if rule.is_judged_at(event.kind)]
    for rule in judged:
        taking_part = [
            states
            for states in buckets.values()
            if rule.over is not Over.FILLED
            or any(each.contributions or each.unknown for each in states)
        ]
        single = [_judge_bucket(states, event, rule, varies) for states in taking_part]
        chosen = _combine(single, rule)
        if chosen is None:
            continue
        if rule.every_path and chosen.condition is not None and varies(chosen.condition[0]):
            chosen = replace(chosen, condition=None, certain=False)
        verdicts.append(chosen)
    verdicts = _named_for_the_loss(verdicts, buckets, event, judged)
    return [verdict for verdict in verdicts if not any(_gives_way(verdict, v) for v in verdicts)]


def _gives_way(verdict: Verdict, other: Verdict) -> bool:
    """Is `other` the better name of the same fault? What is certain gives way to no guess."""
    return yields_to(verdict.rule.code, other.rule.code) and other.certain >= verdict.certain


def _judge_bucket(
    states: States, event: Event, rule: Rule, varies: Callable[[str], bool]
) -> Verdict | None:
    told: list[tuple[BucketState, bool, Iterable[Literals]]] = []
    some = False
    later = rule.after_step and any(_has_stepped(state, event) for state in states)
    carried: list[BucketState] = []  # faults that an earlier activation of the loop left behind
    for state, reached_under in states.items():
        if later and not _has_stepped(state, event):
            if rule.broken_by(state, event):
                carried.append(state)
            continue
        if (rule.once_seen and not state.seen) or (rule.filled and not state.contributions):
            continue
        broken = rule.broken_by(state, event)
        some = some or broken
        told.append((state, broken, reached_under))
    if not some and not carried:
        return None  # most rules
    judged = [(literals, broken, state) for state, broken, under in told for literals in under]
    example = min((state for _, broken, state in judged if broken), key=_story, default=None)
    if example is None:
        return Verdict(rule, None, False, min(carried, key=_story)) if carried else None
    if all(broken for _, broken, _ in judged):
        return Verdict(rule, None, True, example)
    known = {literal for literals, broken, _ in judged if broken for literal in literals}
    # A state that does not know the condition could be on either side of it, unless the
    # condition is only asked where something else holds that does not hold there. A clear
    # that is missing on some path may well be on another that is as good, unless that path
    # stays the same in all iterations, and only in some of them it clears.
    missing = rule.after_step and rule.over is Over.ANY
    found = None if not missing else _broken_under({each: {each} for each in known}, judged)
    if found is None:
        met = {literals for literals, _, _ in judged}
        wider = {each: _asked_under(each, met) for each in known}
        if missing:
            wider = {
                each: under
                for each, under in wider.items()
                if varies(each[0]) and not any(varies(key) for key, _ in under - {each})
            }
        found = _broken_under(wider, judged)
    if found is not None:
        literal, state = found
        return Verdict(rule, literal, True, state)
    return Verdict(rule, None, False, example)


def _broken_under(
    sides: Mapping[Literal, Collection[Literal]], judged: list[tuple[Literals, bool, BucketState]]
) -> tuple[Literal, BucketState] | None:
    """Return the first condition on whose side all states break a rule, and one of them."""
    unbroken = {literals for literals, broken, _ in judged if not broken}
    for literal, under in sorted(sides.items(), key=lambda each: each[0]):
        ruled_out = {(key, not truth) for key, truth in under}
        if not any(map(ruled_out.isdisjoint, unbroken)):
            side = [state for literals, _, state in judged if ruled_out.isdisjoint(literals)]
            return literal, min(side, key=_story)
    return None


def _story(state: BucketState) -> tuple[Any, ...]:
    """Return what a trail would tell of a state, what was lost first, and then the shortest.

    So which of many is told does not depend on which was come to first.
    """
    return (
        state.lost is None,
        state.lost[:2] if state.lost is not None else (),
        len(state.contributions),
        [(each.spot, each.used_at or (), each.early or ()) for each in state.contributions],
    )


def _asked_under(literal: Literal, met: set[Literals]) -> Literals:
    """Return the literal and all that holds wherever its condition has been asked."""
    opposite = (literal[0], not literal[1])
    asked = [each - {opposite} | {literal} for each in met if literal in each or opposite in each]
    return frozenset.intersection(*asked)


def _has_stepped(state: BucketState, event: Event) -> bool:
    """Is this no first iteration, for the owner that steps or, at other events, for anyone?"""
    return event.owner in state.stepped if event.kind in STEPS else bool(state.stepped)


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


def _named_for_the_loss(
    verdicts: list[Verdict], buckets: Mapping[str, States], event: Event, rules: Sequence[Rule]
) -> list[Verdict]:
    """Call a step that certainly finds nothing ZG102 where some state has lost a gradient."""
    by_code = {verdict.rule.code: verdict for verdict in verdicts}
    bare = by_code.get("ZG401")
    lost = next((rule for rule in rules if rule.code == "ZG102"), None)
    if bare is None or not bare.certain or lost is None:
        return verdicts
    if "ZG102" in by_code and by_code["ZG102"].certain:
        return verdicts
    # Where a condition makes it find nothing, what is lost where that does not hold is no reason.
    ruled_out = {(bare.condition[0], not bare.condition[1])} if bare.condition else frozenset()
    for states in buckets.values():
        found = [
            state
            for state, under in states.items()
            if any(ruled_out.isdisjoint(literals) for literals in under)
            and lost.broken_by(state, event)
        ]
        if found:
            named = replace(bare, rule=lost, state=min(found, key=_story))
            others = [each for each in verdicts if each.rule.code not in ("ZG102", "ZG401")]
            return [*others, named]
    return verdicts
