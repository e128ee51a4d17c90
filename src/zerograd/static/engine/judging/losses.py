"""Which loss it was that a clear threw away before the step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.state import BucketState, Drop
from zerograd.static.engine.flow.marks import happens_wherever
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.ir import FILLS, Happening, Haze, walk
from zerograd.static.engine.identity.taken import is_taken_by_hand
from zerograd.static.engine.judging.between import is_trained_between

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.flow.meetings import Meetings


class LostLosses:
    """The losses of one root that no step has used when they are cleared."""

    def __init__(self, buckets: Buckets, flow: Flow, meetings: Meetings) -> None:
        self._buckets = buckets
        self._flow = flow
        self._meetings = meetings

    def taken(self, step: Happening, buckets: tuple[str, ...]) -> BucketState | None:
        """Return a state in which a loss was cleared after another optimizer's step."""
        for state in self._held(step, buckets):
            if state.lost is not None and state.lost.shared and state.lost.finite:
                return state
        return None

    def told(self, step: Happening, buckets: tuple[str, ...]) -> Drop | None:
        """Return what says best what was lost: a loss that no step ever uses.

        Where two optimizers take turns, the other one's loss is thrown away as well, and is
        none of this step's.
        """
        for each in self._held(step, buckets):
            if each.lost is not None and each.lost.finite and each.lost.backward not in self._used:
                return each.lost
        return None

    def between(
        self,
        step: Happening,
        buckets: tuple[str, ...],
        *,
        always: bool = False,
        shared: bool = False,
    ) -> Drop | None:
        """Return a loss of this very round that a clear throws away before the step.

        Args:
            always: in every round that steps, in the function that does, and not looked at before.
            shared: another optimizer may have stepped on it before the clear.
        """
        order = self._buckets.happenings
        here = [each for each in order[: order.index(step)] if each.loop is step.loop]
        drops = [each.lost for each in self._held(step, buckets)]
        clears = {each.clear for each in drops if each is not None and each.finite}
        for number, clear in enumerate(here):
            if clear.kind is not EventKind.CLEAR or clear.spot not in clears:
                continue
            looked_at = any(each.kind is EventKind.TOUCH for each in here[:number])
            if always and (looked_at or not happens_wherever(clear, step)):
                continue
            before = {
                each.spot for each in here[:number] if not always or happens_wherever(each, step)
            }
            for state in self._held(clear, buckets):
                for each in reversed(state.contributions):
                    used = each.used_by - (self._others(step) if shared else each.read_by)
                    if each.spot in before and not used:
                        return Drop(each.spot, clear.spot)
        return None

    def comes_after(
        self, step: Happening, buckets: tuple[str, ...], *, for_others: bool = False
    ) -> Drop | None:
        """Return the loss of each round that comes after this step, for the next clear to drop.

        Whatever a call before the step may have filled in unseen, that loss is lost; but what by
        its name trains may be what the step is for.

        Args:
            for_others: other optimizers may use it.
        """
        if step.loop is None or step.event is None:
            return None
        if step.optimizer is None or step.optimizer.is_by_hand:
            return None  # whose gradients such an update takes is its own affair
        if is_trained_between(step, self._buckets):
            return None
        used = self._used_by(step.event.owner) if for_others else self._used
        order = self._buckets.happenings
        later = order[order.index(step) + 1 :]
        for number, each in enumerate(later):
            if each.kind is EventKind.CLEAR and each.event is not None:
                if not set(buckets).isdisjoint(each.event.buckets):
                    return None  # what comes after that is for another purpose
            elif (
                each.kind is EventKind.BACKWARD
                and each.event is not None
                and _is_in_round(each, step)
                and step.frames <= each.frames
                and each.spot not in used
                and not set(buckets).isdisjoint(each.event.buckets)
                and (for_others or not self._is_stepped_on(each, step, later[number:]))
            ):
                clear = self._cleared_at(each.spot, buckets)
                if clear is not None:
                    return Drop(each.spot, clear)
        return None

    def stands_before(
        self, step: Happening, buckets: tuple[str, ...], lost: Drop | None
    ) -> Drop | None:
        """Return the first loss after this step, where all before it in a round are for others.

        Then it is the order of these two that is wrong, and not the place of the clear.
        """
        if step.optimizer is None or step.optimizer.is_by_hand:
            return None
        mine = set(buckets)
        here = [
            each
            for each in self._buckets.happenings
            if each.loop is step.loop
            and each.event is not None
            and not mine.isdisjoint(each.event.buckets)
        ]
        place = here.index(step)
        order = self._buckets.happenings
        before = order[: order.index(step)]
        for each in here[:place]:
            after = before[before.index(each) :]
            if each.kind in FILLS and not self._is_stepped_on(each, step, after):
                return None
        for each in here[place + 1 :]:
            if each.kind is EventKind.CLEAR:
                return None
            if each.kind in FILLS and each.spot not in self._used_by(step.event.owner):  # type: ignore[union-attr]
                clear = self._cleared_at(each.spot, buckets) or (lost and lost.clear)
                return Drop(each.spot, clear) if clear is not None else None
        return None

    def misplaced(self, step: Happening) -> Drop | None:
        """Return the loss after this step that each round goes backward and clears for nothing.

        Whatever else the step may find, what it is there for comes too late: it is the only step
        on these gradients, and no loss stands before it.
        """
        assert step.event is not None
        mine = set(step.event.buckets)
        beside = [
            each
            for each in self._buckets.happenings
            if each.event is not None
            and each is not step
            and _is_in_round(each, step)
            and not mine.isdisjoint(each.event.buckets)
            and self._meetings.may_meet(step, each)
        ]
        order = self._buckets.happenings
        filled = [
            each
            for each in order[: order.index(step)]
            if each in beside
            and (each.frames == step.frames or each.guards <= step.guards)
            and each.kind in FILLS
            and not self._is_of_another(each, step, order)
        ]
        given = any(  # by hand, to parameters that go by another name
            each.kind is EventKind.ASSIGN and not mine.isdisjoint(each.doubted)
            for each in order[: order.index(step)]
        )
        if filled or given or is_taken_by_hand(step):
            return None
        if any(each.kind is EventKind.STEP for each in beside):
            return None
        drop = self.comes_after(step, step.event.buckets)
        shared = drop is None
        if shared:
            drop = self.comes_after(step, step.event.buckets, for_others=True)
        losses = [each for each in beside if drop is not None and each.spot == drop.backward]
        clears = [each for each in beside if drop is not None and each.spot == drop.clear]
        if drop is None or not losses or not clears:
            return None
        # others step on it as well: then it must be seen to be this one's
        own = self._is_alone(step) or any(
            step.event.owner in each.event.fills for each in losses if each.event
        )
        if shared and not own:
            return None
        after = order[order.index(clears[-1]) :]
        again = [
            each
            for each in after
            if each in beside and each.kind in FILLS and not self._is_of_another(each, step, order)
        ]
        if again and step not in after:  # the next round steps on that one
            return None
        always = all(each.guards == step.guards for each in losses) and all(
            each.guards <= step.guards and not each.behind - step.behind for each in clears
        )
        return (
            None if not always or _may_be_used_between(losses[0], clears[0], step, mine) else drop
        )

    def _is_alone(self, step: Happening) -> bool:
        """Is there no other optimizer in its loop, whose a loss could be?"""
        return all(
            each.optimizer is None or each.optimizer is step.optimizer
            for each in self._buckets.happenings
            if _is_in_round(each, step) and self._meetings.may_meet(step, each)
        )

    def _cleared_at(self, backward: Spot, buckets: tuple[str, ...]) -> Spot | None:
        """Return the clear that finds a loss, and throws it away."""
        for each in self._buckets.happenings:
            if each.kind is not EventKind.CLEAR or each.inside or each.event is None:
                continue
            mine = tuple(bucket for bucket in buckets if bucket in each.event.buckets)
            for state in self._held(each, mine):
                if any(held.spot == backward for held in state.contributions):
                    return each.spot
        return None

    @cached_property
    def _used(self) -> frozenset[Spot]:
        """The backwards that some step uses."""
        return self._used_by("")

    def _used_by(self, owner: str) -> frozenset[Spot]:
        """Return the backwards that the steps of an owner use, or of all."""
        return frozenset(
            each.spot
            for step in self._buckets.happenings
            if step.kind is EventKind.STEP and step.event is not None
            if not owner or step.event.owner == owner
            for state in self._held(step, step.event.buckets)
            for each in state.contributions
        )

    def _others(self, step: Happening) -> set[str]:
        return {key for key in self._buckets.optimizers if key != step.event.owner}  # type: ignore[union-attr]

    def _held(self, event: Happening, buckets: tuple[str, ...]) -> Iterator[BucketState]:
        """Yield the states in which an event finds some buckets."""
        reached = self._flow.reached.get(id(event), {})
        for bucket in buckets:
            for number, _ in reached.get(bucket, ()):
                yield self._flow.states[number][0]

    def _is_of_another(self, loss: Happening, step: Happening, order: list[Happening]) -> bool:
        """Does another optimizer step on a loss that is not seen to fill this one?"""
        assert loss.event is not None and step.event is not None
        after = order[order.index(loss) :]
        return step.event.owner not in loss.event.fills and self._is_stepped_on(loss, step, after)

    def _is_stepped_on(self, loss: Happening, step: Happening, after: list[Happening]) -> bool:
        """Does another optimizer step after a loss that may be its own, whatever it finds then?"""
        assert loss.event is not None
        filled = set(loss.event.buckets)
        return any(
            each.kind is EventKind.STEP
            and each.event is not None
            and each.loop is loss.loop
            and (loss.loop is None or self._meetings.may_meet(loss, each))
            and each.optimizer is not step.optimizer
            and not filled.isdisjoint(each.event.buckets)
            for each in after
        )


def _is_in_round(each: Happening, step: Happening) -> bool:
    """Does it happen in the loop of the step, or in one inside it?"""
    return step.loop is not None and step.loop in loops_around(each.loop)


def _may_be_used_between(
    loss: Happening, clear: Happening, step: Happening, mine: set[str]
) -> bool:
    """Does a call that cannot be seen come between a loss and the clear, also round the loop?"""
    assert step.loop is not None
    nodes = walk(step.loop.body)
    start, end = nodes.index(loss), nodes.index(clear)
    between = nodes[start:end] if start < end else nodes[start:] + nodes[:end]
    return any(
        isinstance(each, Haze) and each.whole and not mine.isdisjoint(each.buckets)
        for each in between
    )
