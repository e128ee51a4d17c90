"""The machine: what each event does to a bucket. What is *wrong* is for the rules.

`AFTER` is the specification of the phase, seen by the owner that clears, fills
and steps; `advance` moves the whole state, and a property test holds the two
together. Both are total: every kind in every state, and neither raises.
"""

from __future__ import annotations

from collections.abc import Callable

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.state import (
    MOST_CONTRIBUTIONS,
    BucketState,
    Contribution,
    Drop,
    Phase,
    Suspicion,
)

EMPTY, FRESH, SPENT, STALE = Phase

_SAME = {phase: phase for phase in Phase}
_USED = {EMPTY: EMPTY, FRESH: SPENT, SPENT: SPENT, STALE: SPENT}

AFTER: dict[EventKind, dict[Phase, Phase]] = {
    EventKind.CLEAR: dict.fromkeys(Phase, EMPTY),
    EventKind.BACKWARD: {EMPTY: FRESH, FRESH: FRESH, SPENT: STALE, STALE: STALE},
    EventKind.ASSIGN: dict.fromkeys(Phase, FRESH),
    EventKind.UNSCALE: _SAME,
    EventKind.CLIP: _SAME,
    EventKind.STEP: _USED,
    EventKind.STEP_SKIPPED: _USED,
    EventKind.SCALER_UPDATE: _SAME,
    EventKind.TOUCH: _SAME,
}


def next_phase(phase: Phase, kind: EventKind) -> Phase:
    """Return the phase after `kind` for the owner concerned.

    >>> next_phase(Phase.SPENT, EventKind.BACKWARD)
    <Phase.STALE: 'stale'>
    """
    return AFTER[kind][phase]


def advance(state: BucketState, event: Event, bucket: str) -> BucketState:
    """Return the state of `bucket` after `event`.

    Events that do not reach the bucket are fed too: a step of another optimizer
    says that the loss it shares with this bucket has been used.
    """
    return _MOVES[event.kind](state, event, bucket in event.reach)


def _clear(state: BucketState, event: Event, reached: bool) -> BucketState:
    if not reached:
        return _left_alone(state, event.empties)
    lost = state.lost
    if not event.inside:  # what is held was seen to come, whatever was there before
        lost = _dropped(state, event) or lost
    return state._replace(
        contributions=(),
        scaled="",
        unscaled="",
        lost=lost,
        absent=state.absent or event.to_none,
        seen=True,
        unknown=False,
    )


def _dropped(state: BucketState, event: Event) -> Drop | None:
    # Who took the gradient of an input did not use those of the weights.
    unused = next((each for each in state.contributions if each.used_by <= each.read_by), None)
    if unused is not None:
        return Drop(unused.spot, event.spot, event.finite)
    if state.lost is not None:
        return None
    # Another optimizer has stepped on it, this one has not.
    left = next((each for each in state.contributions if event.empties - each.used_by), None)
    return Drop(left.spot, event.spot, event.finite, shared=True) if left is not None else None


def _left_alone(state: BucketState, emptied: frozenset[str]) -> BucketState:
    """Whoever was emptied has no part any more in the losses that are still held here."""
    if not any(each.fills & emptied for each in state.contributions):
        return state
    held = tuple(each._replace(fills=each.fills - emptied) for each in state.contributions)
    return state._replace(contributions=_bounded(held))


def _backward(state: BucketState, event: Event, reached: bool) -> BucketState:
    if state.lost is not None and state.lost.shared:
        state = state._replace(lost=None)  # this is the loss that the next step is about
    if not reached:
        return state._replace(suspicion=None) if state.suspicion else state
    new = Contribution(event.backward or str(event.spot), event.spot, event.fills)
    # Whoever stepped on an older contribution until now did so before this backward.
    older = (
        each if each.before == each.used_by else each._replace(before=each.used_by)
        for each in state.contributions
    )
    return state._replace(
        contributions=_bounded((*older, new)),
        scaled=event.scaler or state.scaled,
        absent=False,
        seen=True,
        suspicion=None,
    )


def _assign(state: BucketState, event: Event, reached: bool) -> BucketState:
    if not reached:
        return state
    new = Contribution(event.backward or str(event.spot), event.spot, event.fills)
    return state._replace(
        contributions=(new,),
        scaled=event.scaler,
        unscaled="",
        lost=None,  # what is assigned may be made of what was cleared (PCGrad)
        absent=False,
        seen=True,
        suspicion=None,
        unknown=False,
    )


def _unscale(state: BucketState, event: Event, reached: bool) -> BucketState:
    if not reached:
        return state
    return state._replace(
        scaled="",
        unscaled=event.scaler or state.scaled,
        halfway=state.halfway | {event.owner} if event.scaler and event.owner else state.halfway,
        due=event.scaler or state.due,
    )


def _step(state: BucketState, event: Event, reached: bool) -> BucketState:
    owner = event.owner
    if not reached:
        # Not ours, but the same loss filled it: that loss is used, here it is left over.
        suspicion = state.suspicion
        if suspicion is not None and owner in suspicion.own.fills:
            suspicion = None
        if not any(owner in each.fills for each in state.contributions):
            return state if suspicion is state.suspicion else state._replace(suspicion=suspicion)
        return state._replace(
            contributions=_use(state.contributions, event, only_filled=True),
            suspicion=suspicion,
        )
    return state._replace(
        contributions=_use(state.contributions, event, only_filled=False),
        # scaler.step takes the factor out itself if unscale_ has not
        scaled="" if event.scaler else state.scaled,
        unscaled="" if event.scaler else state.unscaled,
        lost=None,
        # a step on nothing is no first iteration yet
        stepped=state.stepped | {owner} if state.contributions else state.stepped,
        # Whatever else was in it, with what was seen to be: this step has used it.
        unknown=state.unknown and not state.contributions,
        awaiting=state.awaiting | {owner} if event.scaler else state.awaiting,
        due=event.scaler or state.due,
        suspicion=_suspect(state, event),
    )


def _suspect(state: BucketState, event: Event) -> Suspicion | None:
    """A leftover of another optimizer's loss under a later loss that is this owner's alone."""
    if state.unknown or not state.contributions:
        return None
    owner, newest = event.owner, state.contributions[-1]
    if newest.used_by - {owner} or any(owner in each.used_by for each in state.contributions):
        return None
    for each in state.contributions[:-1]:
        if owner not in each.used_by and each.before - {owner}:
            return Suspicion(owner, event.spot, each, newest)
    return None


def _scaler_update(state: BucketState, event: Event, reached: bool) -> BucketState:
    # An update reaches every bucket of that scaler, wherever it stands.
    if event.scaler and event.scaler in (state.scaled, state.unscaled):
        early = tuple(
            each._replace(early=each.early or event.spot, early_by=each.early_by or event.scaler)
            for each in state.contributions
        )
        state = state._replace(contributions=_bounded(early))
    if (state.awaiting or state.halfway) and event.scaler in ("", state.due):
        state = state._replace(awaiting=frozenset(), halfway=frozenset(), due="")
    return state


def _stay(state: BucketState, event: Event, reached: bool) -> BucketState:
    return state


def _use(
    contributions: tuple[Contribution, ...], event: Event, *, only_filled: bool
) -> tuple[Contribution, ...]:
    return _bounded(
        tuple(
            _used(each, event, only_filled)
            if not only_filled or event.owner in each.fills
            else each
            for each in contributions
        )
    )


def _used(contribution: Contribution, event: Event, only_filled: bool) -> Contribution:
    owner = frozenset({event.owner})
    backward, spot, fills, used_by, read_by, used_at, before, early, early_by = contribution
    return Contribution(  # far faster than to replace some of it, and done for each step
        backward,
        spot,
        fills,
        used_by | owner,
        read_by | owner if event.leaf else read_by,
        # a holder's own step is what its trail is about
        (used_at or event.spot) if only_filled else event.spot,
        before,
        early,
        early_by,
    )


def _bounded(contributions: tuple[Contribution, ...]) -> tuple[Contribution, ...]:
    """Drop repeats, keeping the latest, and join two neighbours while there are too many."""
    if len(contributions) < 2:
        return contributions
    unique = tuple(dict.fromkeys(reversed(contributions)))[::-1]
    while len(unique) > MOST_CONTRIBUTIONS:
        pairs = range(len(unique) - 1)
        # Neighbours that the same owners have used look alike to every phase. Where there are
        # none, the oldest stays alone: it may be all that an owner has used, which makes it STALE.
        at = next((n for n in pairs if unique[n].used_by == unique[n + 1].used_by), 1)
        unique = (*unique[:at], _joined(unique[at], unique[at + 1]), *unique[at + 2 :])
    return unique


def _joined(older: Contribution, newer: Contribution) -> Contribution:
    return newer._replace(
        fills=older.fills & newer.fills,
        used_by=older.used_by & newer.used_by,
        read_by=older.read_by | newer.read_by,
        before=older.before & newer.before,
    )


_Move = Callable[[BucketState, Event, bool], BucketState]

_MOVES: dict[EventKind, _Move] = {
    EventKind.CLEAR: _clear,
    EventKind.BACKWARD: _backward,
    EventKind.ASSIGN: _assign,
    EventKind.UNSCALE: _unscale,
    EventKind.CLIP: _stay,
    EventKind.STEP: _step,
    EventKind.STEP_SKIPPED: _step,
    EventKind.SCALER_UPDATE: _scaler_update,
    EventKind.TOUCH: _stay,
}
