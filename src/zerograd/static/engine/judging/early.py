"""Windows that a clear cuts short: filled at every micro-batch, stepped at the last only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import BucketState, Contribution, Phase
from zerograd.static.engine.flow.meetings import Meetings
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.conditions import SYNC
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.taken import is_for_reading, is_unused
from zerograd.static.engine.judging.inner import InnerClears
from zerograd.static.engine.judging.window import is_before_the_window, must_be_one, starts_a_window
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program


_IS_A_NUMBER = re.compile(r"==-?\d+$")  # a count, or its remainder
_IS_ONE_OF_TWO = re.compile(r"%2==[01]$")
_ENDING = frozenset(("update", "step", "sync", "synced", "boundary", "optimizer", "gradient"))


class EarlyClears(InnerClears):
    """What was reached in which state, and the clears that come too early."""

    def __init__(
        self, program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
    ) -> None:
        super().__init__(program, buckets, flow, atoms)
        self._meetings = Meetings(program, flow, atoms)
        self._late: set[int] = set()  # clears that come just before the last loss of a window
        self._inner: set[int] = set()  # clears in each round of a loop with the step behind it
        self._apart = {  # what is assigned, or read by hand, adds nothing up
            each.event.backward or str(each.event.spot)
            for each in buckets.happenings
            if each.event and (each.kind is EventKind.ASSIGN or is_for_reading(each))
        }

    def _cleared_early(self, node: Happening) -> Iterable[tuple[str, BucketState, bool]]:
        """Yield whose window a clear cuts short, in which state, and whether that is certain.

        ZG501: in an iteration after one that did not step, the clear drops what was filled.
        """
        event = node.event
        if event is None or node.inside or node.loop is None or node.rescues:
            return
        # Accelerate's own boundary stands around steps and clears alike.
        varying = {
            key
            for key in node.inner | node.behind
            if key != SYNC and self._program.varies(node.loop, key)
        }
        doubt: tuple[str, BucketState, bool] | None = None
        for owner, guard, shared in self._window_guards(node):
            losses = self._losses_of(owner, node.loop)
            beside = self._with_the_losses(losses, node)
            skips = _before(losses)
            own = varying - {guard} - (node.behind & skips) - beside
            skipped = self._skipped(losses, skips | beside)
            sits_out = self._sits_out(owner, guard)
            if sits_out and not _IS_ONE_OF_TWO.search(guard.partition("|")[0]):
                continue  # of two rounds either may be the one that is meant to step
            if guard == SYNC and is_before_the_window(node):
                continue
            if any(self._program.atoms[key].counter for key in own - shared):
                continue  # a counter of its own, which may be the window's start
            number = next(n for n, key in self._keys.items() if key == guard)
            stepping = number * 2 + self._stepping_side(owner, guard)
            with_step = guard != SYNC and self._comes_with_the_step(node, stepping)
            if with_step and not self._fills_after(node, owner, guard):
                continue  # once a window: what it loses is lost to that step, which is another rule
            if with_step and starts_a_window(
                node, owner, self._program.atoms[guard], self._buckets
            ):
                continue
            if with_step:
                self._late.add(id(node))
            for truth in (0, 1):
                before = -(number * 2 + truth) - 1
                held = [b for b in event.buckets if b in self._buckets.holdings[owner]]
                if not held or truth == self._stepping_side(owner, guard):
                    continue
                # Under the same guard a step before it in this round excuses it.
                strict = guard in node.guards | node.behind
                name = self._names.get(owner, owner)
                for judged in self._judged_sets(node, held, before, skipped):
                    # A part that no loss fills, an unused head, is thrown away with the rest.
                    filled = [b for b in held if any(each.contributions for each in judged[b])]
                    drops = [self._drops(judged[b], owner, guard, strict) for b in filled]
                    if drops and all(drops) and all(map(all, drops)) and not own:
                        counts = self._counts(guard) or (with_step and self._ends_windows(guard))
                        certain = counts and not (sits_out or self._takes_turns(owner, guard))
                        yield name, _example(judged[filled[0]]), certain
                        return
                    if drops and all(map(any, drops)):
                        doubt = doubt or (name, _example(judged[filled[0]]), False)
        nested = list(self._nested(node, node.loop))
        if nested:
            self._inner.add(id(node))
        yield from nested or ([doubt] if doubt is not None else [])

    def _step_before(self, clear: Happening, state: BucketState) -> Happening | None:
        """Return the step that stands before the backward whose gradients are thrown away.

        Accelerate lets step and clear through at the window's end only. There the clear drops
        the last loss, because the step came before it: the order of these two is the fault.
        """
        assert clear.event is not None
        filled = state.contributions[-1].spot
        for each in self._buckets.happenings:
            if (
                each.kind is EventKind.STEP
                and each.event is not None
                and SYNC in each.guards & clear.guards
                and each.loop is clear.loop
                and not set(each.event.buckets).isdisjoint(clear.event.buckets)
                and each.spot.path == filled.path
                and each.spot.line < filled.line < clear.spot.line
            ):
                return each
        return None

    def _sits_out(self, owner: str, guard: str) -> bool:
        """Does it step where a count or its remainder is not some number? Then it sits one out."""
        is_number = _IS_A_NUMBER.search(guard.partition("|")[0])
        return is_number is not None and not self._stepping_side(owner, guard)

    def _with_the_losses(self, losses: list[Happening], clear: Happening) -> frozenset[str]:
        """Return the conditions under which a clear stands, and on the same side all the losses."""
        around = [each.guards for each in losses]
        shared = clear.guards.intersection(*around) if around else frozenset()
        return frozenset(
            key
            for number, key in self._keys.items()
            if key in shared and len(self._sides((clear, *losses), number)) == 1
        )

    def _sides(self, nodes: Iterable[Happening], number: int) -> set[int]:
        """Return on which sides of a condition these events are reached."""
        return {
            side
            for node in nodes
            for each in self._flow.known_at(node)
            for side in (number * 2, number * 2 + 1)
            if side in each
        }

    def _skipped(self, losses: list[Happening], skips: frozenset[str]) -> frozenset[int]:
        """Return what is known of a round one iteration back that did not come to its loss."""
        met = {
            literal
            for loss in losses
            for literals in self._flow.known_at(loss)
            for literal in literals
        }
        return frozenset(
            -(number * 2 + truth) - 1
            for number, key in self._keys.items()
            if key in skips
            for truth in (0, 1)
            if number * 2 + truth not in met
        )

    def _counts(self, guard: str) -> bool:
        """Is it a remainder or Accelerate's boundary, which only a loop can have?"""
        atom = self._program.atoms[guard]
        if atom.unit is not None and "%" in atom.text and must_be_one(atom.unit, atom.text):
            return False
        return guard == SYNC or "%" in atom.text or atom.tallied

    def _ends_windows(self, guard: str) -> bool:
        """Is it by its name what tells the last round of a window: `is_update_step(n)`?"""
        words = set(words_of(self._program.atoms[guard].text.split("(", 1)[0]))
        return any(each.startswith("accum") for each in words) or len(words & _ENDING) > 1

    def _window_guards(self, node: Happening) -> Iterable[tuple[str, str, frozenset[str]]]:
        """Yield the owners whose step stands under a counter in the loop of this clear.

        With it, all conditions around that step.
        """
        around = set(loops_around(node.loop))
        for each in self._buckets.happenings:
            if each.kind is not EventKind.STEP or each.optimizer is None:
                continue
            if each.loop is None or each.loop not in around:
                continue  # a clear outside the loop that is counted comes once for all its rounds
            counters = [
                key
                for key in sorted((each.guards | each.behind) - each.turns)
                if self._is_counter(key) and self._program.varies(each.loop, key)
            ]
            if not counters or self._steps_within(each.optimizer.key, each.loop):
                continue
            if self._meetings.may_meet(node, each):
                for key in counters:
                    yield each.optimizer.key, key, each.guards | each.behind

    def _is_counter(self, key: str) -> bool:
        """Is it a condition that is told apart, and counts?"""
        atom = self._program.atoms.get(key)
        return atom is not None and atom.counter and key in self._keys.values()

    def _steps_within(self, owner: str, loop: Loop) -> bool:
        """Does a loop inside this one step, too? The step after it is for what is left over."""
        return any(
            each.kind is EventKind.STEP
            and each.optimizer is not None
            and each.optimizer.key == owner
            and each.loop is not loop
            and (loop.pseudo or loop in loops_around(each.loop))
            for each in self._buckets.happenings
        )

    def _comes_with_the_step(self, node: Happening, literal: int) -> bool:
        """Is it reached only where the owner steps in the same round?"""
        return all(literal in literals for literals in self._flow.known_at(node))

    def _fills_after(self, clear: Happening, owner: str, guard: str) -> bool:
        """Does the loss of every round come after the clear, and before the step?

        `if last: clear`, then the backward, then `if last: step`: of the window only the last
        loss is left.
        """
        assert clear.event is not None
        inside = [
            each
            for each in self._buckets.happenings
            if each.event is not None
            and each.loop is clear.loop
            and each.unit is clear.unit
            and not set(each.event.buckets).isdisjoint(clear.event.buckets)
        ]
        later = inside[inside.index(clear) + 1 :] if clear in inside else []
        if any(each.kind is EventKind.CLEAR for each in inside if each is not clear):
            return False
        filled = False
        for each in later:
            if each.kind is EventKind.BACKWARD:
                filled = guard not in each.guards | each.behind
            elif each.kind is EventKind.STEP and each.event.owner == owner:  # type: ignore[union-attr]
                return filled and guard in each.guards and guard in clear.guards
        return False

    def _judged_sets(
        self, node: Happening, held: list[str], before: int, skipped: frozenset[int]
    ) -> Iterable[dict[str, list[BucketState]]]:
        """Yield the states of each bucket after a round that did not step, but came to its loss.

        With two rounds a window the next one always steps, and what it clears then may be used
        already. So the states within a round that does not step are judged, too.
        """
        reached = self._flow.reached[id(node)]
        pairs = {
            b: [
                (self._flow.states[number][0], literals)
                for number, literals in reached.get(b, ())
                if not self._flow.states[number][0].unknown
            ]
            for b in held
        }
        idle = -before - 1
        after = {
            b: [each for each in pairs[b] if before in each[1] and skipped.isdisjoint(each[1])]
            for b in held
        }
        yield {b: [state for state, _ in after[b]] for b in held}
        if all(idle ^ 1 in literals for b in held for _, literals in after[b]):
            yield {b: [state for state, literals in pairs[b] if idle in literals] for b in held}

    def _drops(self, judged: list[BucketState], owner: str, guard: str, strict: bool) -> list[bool]:
        """Tell of each judged state whether it loses something, but for those stepped otherwise.

        A round that has left nothing, whose loss stands under a condition, has nothing to lose.
        """
        return [
            any(
                is_unused(each) and self._is_meant(each, owner, guard)
                for each in state.contributions
            )
            for state in judged
            if state.contributions and (strict or state.phase(owner) is not Phase.SPENT)
        ]

    def _is_meant(self, each: Contribution, owner: str, guard: str) -> bool:
        """Is it a loss for `owner`: its step uses it, and it is proved or nobody else could?"""
        if each.backward not in self._stepped_on(owner) or each.backward in self._apart:
            return False
        if owner in each.fills:
            return not any(
                each.backward in self._stepped_on(other) and self._steps_anyway(other, guard)
                for other in each.fills - each.read_by - self._called_as(owner)
            )
        others = {
            other
            for other in self._buckets.optimizers.keys() - self._called_as(owner)
            if each.backward in self._stepped_on(other)
        }
        # Those that step in the same window share it, if nothing comes between it and the step.
        return not others or (
            each.backward in self._stepped_on(owner, last=True)
            and all(
                guard in step.guards | step.behind
                for step in self._buckets.happenings
                if step.kind is EventKind.STEP and step.event and step.event.owner in others
            )
        )


def _before(losses: list[Happening]) -> frozenset[str]:
    """Return the conditions that skip every one of these losses: `if …: continue`."""
    around = [each.behind for each in losses]
    return frozenset.intersection(*around) if around else frozenset()


def _example(states: list[BucketState]) -> BucketState:
    return next(state for state in states if any(map(is_unused, state.contributions)))
