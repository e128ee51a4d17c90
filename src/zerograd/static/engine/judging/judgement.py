"""From the states at each event to findings, in the user's own names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule
from zerograd.lifecycle.state import INITIAL, BucketState, Drop
from zerograd.lifecycle.verdicts import Literal, Verdict, judge_set
from zerograd.rules import BY_CODE
from zerograd.rules.lost_gradient import too_soon
from zerograd.rules.scaler_bypassed import (
    SCALE_IT,
    STEPPED_PAST,
    UNSCALE_BEFORE,
    UNSCALED_AFTER,
)
from zerograd.rules.stale_gradient import in_closure
from zerograd.rules.window_cleared_early import CLEAR_AFTER, CLEARED_LAST
from zerograd.static.engine.flow.closures import repeats
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.conditions import SYNC
from zerograd.static.engine.identity.ir import Doubt, Happening
from zerograd.static.engine.judging.absent import told_of_absence
from zerograd.static.engine.judging.apart import Counts
from zerograd.static.engine.judging.emptiness import NEEDS_CERTAINTY, is_open
from zerograd.static.engine.judging.halfway import (
    is_called_off,
    is_left_by_a_jump,
    is_second_of_a_round,
    may_be_updated,
    stepped_past,
    told_of_condition,
)
from zerograd.static.engine.judging.late import comes_before_its_loss, is_waiting
from zerograd.static.engine.judging.leaks import Leaks
from zerograd.static.engine.judging.losses import LostLosses
from zerograd.static.engine.judging.mixed import stepped_on_plain
from zerograd.static.engine.judging.opposed import Opposed
from zerograd.static.engine.judging.owed import Owed
from zerograd.static.engine.judging.plausible import (
    BEFORE,
    is_ever_cleared,
    is_plausible,
    is_put_elsewhere,
)
from zerograd.static.engine.judging.rest import unless_of_the_rest_alone
from zerograd.static.engine.judging.rows import Rows, needs_an_exception
from zerograd.static.engine.judging.telling import scaler_at, told_of_last_round
from zerograd.static.engine.judging.unscaled import (
    States,
    clipped_before,
    filled_only,
    is_clipped_scaled,
    is_of_apex,
    is_unscaled_after_its_step,
    is_unscaled_too_late,
)
from zerograd.static.engine.judging.vain import (
    CLIPPED_AFTER_CLEAR,
    CLIPPED_TOO_SOON,
    is_clipped_after_clear,
    is_clipped_between,
    is_clipped_too_late,
    is_clipped_too_soon,
    may_find_nothing,
    unless_stepped_on_next,
)

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

_AT_STEP = tuple(
    BY_CODE[code]
    for code in ("ZG101", "ZG102", "ZG202", "ZG302", "ZG303", "ZG305", "ZG401", "ZG402")
)
_ONLY_IN_LOOPS = frozenset(("ZG202", "ZG401", "ZG402"))
_TOO_SOON = frozenset(("ZG101", "ZG102", "ZG401"))
_AT_CLIP = (BY_CODE["ZG301"], BY_CODE["ZG304"])
_AT_UNSCALE = (BY_CODE["ZG302"],)


class Judgement(Leaks):
    """Judges one root once its states are known."""

    def __init__(
        self,
        program: Program,
        buckets: Buckets,
        flow: Flow,
        atoms: dict[str, int],
        doubted: bool,
    ) -> None:
        super().__init__(program, buckets, flow, atoms)
        self._opposed = Opposed(buckets, flow)
        self._losses = LostLosses(buckets, flow, self._meetings)
        self._counts_apart = Counts(program, buckets, flow, atoms)
        self._doubted = doubted  # the loop around it is assumed, and others may clear
        self._spelled: dict[frozenset[int], frozenset[Literal]] = {}  # by their numbers
        self._owed = Owed()

    def findings(self) -> Iterable[Finding]:
        for node in self._buckets.happenings:
            if node.event is None or id(node) not in self._flow.reached:
                continue
            if node.kind is EventKind.STEP:
                yield from self._at_step(node)
            elif node.kind is EventKind.UNSCALE:
                yield from self._at_unscale(node)
            elif node.kind is EventKind.CLIP:
                rules = [each for each in _AT_CLIP if each.code != "ZG301" or not is_of_apex(node)]
                found = list(self._judge(node, rules, node.event.buckets))
                found = unless_stepped_on_next(found, node, self._buckets)
                yield from found
                if not found and is_clipped_scaled(node, self._buckets, self._flow):
                    yield self._finding(node, "ZG301", INITIAL, True)
                elif not found and (
                    is_clipped_too_soon(node, self._buckets, self._flow)
                    or is_clipped_between(node, self._buckets, self._flow)
                ):
                    finding = self._finding(node, "ZG304", INITIAL, True)
                    yield replace(finding, message=CLIPPED_TOO_SOON)
                elif not found and is_clipped_after_clear(node, self._buckets, self._flow):
                    finding = self._finding(node, "ZG304", INITIAL, True)
                    yield replace(finding, message=CLIPPED_AFTER_CLEAR)
                elif not found and is_clipped_too_late(node, self._buckets, self._flow):
                    finding = self._finding(node, "ZG304", INITIAL, True)
                    yield replace(finding, message=BY_CODE["ZG304"].summary, trail=())
                elif not found and may_find_nothing(node, self._flow):
                    yield self._finding(node, "ZG304", INITIAL, False)
            elif node.kind is EventKind.CLEAR:
                for name, state, certain in self._cleared_early(node):
                    step = self._step_before(node, state)
                    if step is not None:
                        state = BucketState(lost=Drop(state.contributions[-1].spot, node.spot))
                        yield self._finding(step, "ZG102", state, certain, name)
                    elif id(node) in self._late:
                        yield replace(
                            self._finding(node, "ZG501", state, certain, name),
                            message=CLEARED_LAST.format(owner=name),
                            advice=CLEAR_AFTER.format(owner=name),
                        )
                    else:
                        told = self._finding(node, "ZG501", state, certain, name)
                        yield told_of_last_round(told) if id(node) in self._inner else told
            elif node.kind is EventKind.TOUCH:
                yield from self._absent(node)
        yield from self._still_awaiting()

    def _at_step(self, node: Happening) -> Iterable[Finding]:
        assert node.event is not None
        found = list(self._judge(node, _AT_STEP, node.event.buckets))
        if node.event.scaler and is_unscaled_too_late(node, self._buckets, self._flow):
            found = [each for each in found if each.rule.code != "ZG303"]  # told at the unscale
        yield from self._owed.once(found, node)
        sure = {each.rule.code for each in found if each.certain}
        if comes_before_its_loss(node, self._buckets, self._flow):
            yield self._finding(node, "ZG401", INITIAL, True)
        late = None if sure & _TOO_SOON or self._is_doubted(node) else self._losses.misplaced(node)
        if late is not None:
            told = self._finding(node, "ZG102", BucketState(lost=late), True)
            yield too_soon(replace(told, spot=node.spot))
        if sure.isdisjoint(("ZG101", "ZG402")):
            leaked = [*self._leaked(node), *self._flushed(node)]
            opposed = [] if any(each.certain for each in leaked) else self._works_against(node)
            yield from [each for each in opposed if each.certain or not leaked] or leaked
        bare = stepped_on_plain(node, self._buckets, self._flow)
        if bare is not None:
            yield self._bypassed(node, bare.loss.spot, bare.message, SCALE_IT, bare.certain)

    def _still_awaiting(self) -> Iterable[Finding]:
        """ZG302 on some path: the last step through a scaler is followed by no update."""
        last = {
            node.event.owner: node
            for node in self._buckets.happenings
            if node.kind is EventKind.STEP and node.event is not None and node.event.scaler
        }
        for bucket, pairs in (self._flow.end or {}).items():
            for number, _ in pairs:
                state, doubt = self._flow.states[number]
                for owner in sorted(state.awaiting.intersection(last)):
                    if not doubt and not state.unknown and bucket in last[owner].event.buckets:  # type: ignore[union-attr]
                        yield self._finding(last.pop(owner), "ZG302", state, False)

    def _at_unscale(self, node: Happening) -> Iterable[Finding]:
        assert node.event is not None
        if "[*]" in node.event.owner:
            return  # one of several, and not always the same one
        if (past := stepped_past(node, self._buckets)) is not None:
            yield self._bypassed(node, past.spot, STEPPED_PAST, BY_CODE["ZG303"].advice, True)
            return
        is_second = is_second_of_a_round(node, self._buckets)
        if not is_second and is_unscaled_after_its_step(node, self._buckets, self._flow):
            yield self._bypassed(node, node.spot, UNSCALED_AFTER, UNSCALE_BEFORE, True)
        clip = clipped_before(node)
        if clip is not None and not any(each.node is clip for each in self._buckets.happenings):
            told = self._finding(node, "ZG301", INITIAL, True)
            yield replace(told, spot=node.unit.source.spot(clip), trail=())
        for found in self._judge(node, _AT_UNSCALE, node.event.buckets):
            sure = found.certain and not may_be_updated(
                node, self._buckets, self._program, self._varies_at(node)
            )
            sure = sure or is_called_off(node, self._buckets, self._program)
            sure = sure or is_left_by_a_jump(node, self._buckets)
            found = told_of_condition(found, node, self._buckets, self._program)
            yield replace(found, certain=sure and not (is_second or self._is_doubted(node)))

    def _bypassed(
        self, node: Happening, spot: Spot, message: str, advice: str, certain: bool
    ) -> Finding:
        """ZG303 in words of its own, told at `spot`."""
        finding = self._finding(node, "ZG303", INITIAL, certain)
        names = {"owner": finding.owner, "scaler": scaler_at(node, node.scaler)}
        return replace(
            finding,
            spot=spot,
            message=message.format_map(names),
            advice=advice.format_map(names),
            trail=(),
        )

    def _states(self, node: Happening, bucket: str, *, certain_only: bool) -> States:
        known: dict[int, list[frozenset[Literal]]] = {}  # by the numbers of the states
        for number, literals in self._flow.reached[id(node)].get(bucket, ()):
            known.setdefault(number, []).append(self._literals(literals))
        # A loss that was certainly thrown away is no other's to make good between two runs. If
        # one is here, in whatever round, then what runs the network forward does just that.
        forward = any(_has_lost(self._flow.states[number][0]) for number in known)
        late = forward and certain_only and self._losses.comes_after(node, (bucket,)) is not None
        states: States = {}
        for number, under in known.items():
            state, doubt = self._flow.states[number]
            harmless = doubt is Doubt.BETWEEN and _has_lost(state)
            harmless = harmless or late or (doubt is Doubt.FORWARD and forward)
            if doubt and certain_only and not harmless:
                state = state._replace(unknown=True)
            states.setdefault(state, []).extend(under)
        return states

    def _literals(self, literals: frozenset[int]) -> frozenset[Literal]:
        spelled = self._spelled.get(literals)
        if spelled is None:
            spelled = self._spelled[literals] = self._spelling(literals)
        return spelled

    def _spelling(self, literals: frozenset[int]) -> frozenset[Literal]:
        return frozenset(
            (self._keys[each // 2], bool(each % 2))
            if each >= 0
            else (f"{BEFORE}{self._keys[(-each - 1) // 2]}", bool((-each - 1) % 2))
            for each in literals
            if each // 2 < len(self._keys)  # what has been true once is for the flow alone
        )

    def _judge(
        self, node: Happening, rules: Iterable[Rule], buckets: tuple[str, ...]
    ) -> Iterable[Finding]:
        event = node.event
        assert event is not None
        found: list[Verdict] = []
        for strict in (True, False):
            chosen = [rule for rule in rules if (rule.code in NEEDS_CERTAINTY) is strict]
            if not chosen:
                continue
            held = {
                bucket: self._states(node, bucket, certain_only=strict)
                for bucket in buckets
                if bucket in self._flow.reached[id(node)]
            }
            if node.kind is EventKind.CLIP:
                held = {bucket: filled_only(states) for bucket, states in held.items()}
            if held:
                verdicts = self._verdicts(node, held, chosen)
                found += unless_of_the_rest_alone(verdicts, held, event, self._varies_at(node))
        for verdict in found:
            lone = node.loop is None or (node.loop.pseudo and verdict.rule.code == "ZG202")
            if lone and verdict.rule.code in _ONLY_IN_LOOPS:
                continue  # done once, as schedulers' demos and warm-ups do
            certain = verdict.certain and is_plausible(node, verdict, self._buckets, self._program)
            # Who may update in the place of this one has been asked for.
            asked = verdict.rule.code == "ZG302" and self._program.project is not None
            doubted = self._is_doubted(node) and verdict.rule.after_step and not asked
            certain = certain and not doubted
            certain = certain and not is_open(
                node, verdict, self._buckets, self._program, self._varies_at(node)
            )
            code, state = verdict.rule.code, verdict.state
            if code == "ZG401" and certain:
                # Whatever makes it certain, this says why it finds nothing.
                taken = self._losses.taken(node, buckets)
                code, state = ("ZG102", taken) if taken is not None else (code, state)
            late: Drop | None = None
            if code == "ZG102":
                late = self._losses.comes_after(node, buckets)
                # A loss that is there, and goes back only after the step: then it is the order.
                waits = late is not None and is_waiting(late.backward, node, self._buckets)
                lost = None if waits else self._losses.between(node, buckets, always=True)
                late = late if lost is None else None
                lost = lost or late or self._losses.told(node, buckets)
                shared = self._losses.between(node, buckets, always=True, shared=True)
                lost = lost or shared
                if lost is None and (state.lost is None or state.lost.shared):
                    lost = late = self._losses.comes_after(node, buckets, for_others=True)
                lost = lost or self._losses.between(node, buckets)
                if late is None and shared is None:
                    late = self._losses.stands_before(node, buckets, lost or state.lost)
                    lost = late or lost
                state = state._replace(lost=lost or state.lost)
                certain = certain and not is_put_elsewhere(state.lost, self._buckets)
            finding = self._finding(node, code, state, certain)
            if late is not None:  # the order of these two is the fault, wherever they are written
                finding = replace(finding, spot=node.spot)
            if code == "ZG102" and finding.spot == node.spot:
                finding = too_soon(finding)
            yield in_closure(finding) if code == "ZG101" and repeats(node) else finding

    def _verdicts(
        self, node: Happening, held: dict[str, States], rules: list[Rule]
    ) -> list[Verdict]:
        """Judge; what Accelerate's windows leave open is settled by a window of one."""
        assert node.event is not None
        verdicts = judge_set(held, node.event, rules, self._varies_at(node))
        verdicts = [
            replace(each, certain=False)
            if each.rule.after_step and each.certain and needs_an_exception(held, each, node.event)
            else each
            for each in verdicts
        ]
        verdicts = [
            replace(each, certain=True)
            if each.rule.code == "ZG101"
            and (self._is_only_added_to(node, held) or self._counts_apart.clear_more_rarely(node))
            else each
            for each in verdicts
        ]
        if all(each.certain and each.condition is None for each in verdicts):
            return verdicts
        rows = Rows(self._program, self._buckets, node, self._varies_at(node))
        verdicts = [rows.judged(held, each) for each in verdicts]
        if SYNC not in node.guards:
            return verdicts
        inside = (f"{BEFORE}{SYNC}", False)
        alone: dict[str, States] = {
            bucket: {
                state: [each for each in under if inside not in each]
                for state, under in states.items()
            }
            for bucket, states in held.items()
        }
        sure = {
            each.rule.code: each
            for each in judge_set(alone, node.event, rules, self._varies_at(node))
            if each.certain and each.rule.code == "ZG101"
        }
        return [sure.get(each.rule.code, each) for each in verdicts]

    def _is_only_added_to(self, node: Happening, held: dict[str, States]) -> bool:
        """Is there no clear in its loop, so that each later step is on gradients that were used?"""
        assert node.event is not None
        owner = node.event.owner
        if node.rescues or is_ever_cleared(node, self._buckets, in_its_loop=True):
            return False
        return all(
            not state.unknown and (owner not in state.stepped or state.contributions)
            for states in held.values()
            for state in states
        )

    def _varies_at(self, node: Happening) -> Callable[[str], bool]:
        """Return what tells whether a condition changes in a loop around `node`."""
        loops = list(loops_around(node.loop))
        return lambda key: any(
            key.startswith(BEFORE) or self._program.varies(each, key) for each in loops
        )

    def _is_doubted(self, node: Happening) -> bool:
        return self._doubted and (node.loop is None or node.loop.pseudo)

    def _absent(self, node: Happening) -> Iterable[Finding]:
        """ZG104: some path gets here before the first backward, or after a clear to None."""
        assert node.event is not None
        for bucket in node.event.buckets:
            for number, _ in self._flow.reached[id(node)].get(bucket, ()):
                state, doubt = self._flow.states[number]
                if state.absent and not doubt and not state.unknown:
                    told = self._finding(node, "ZG104", state, not node.guards)
                    yield told_of_absence(told, node, state, self._buckets, self._program)
                    return


def _has_lost(state: BucketState) -> bool:
    return state.lost is not None and not state.lost.shared
