"""Steps on what other losses left, or put, into the same gradients: ZG201."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.state import BucketState, Contribution, Suspicion
from zerograd.lifecycle.verdicts import Literal
from zerograd.rules.leaked_gradient import in_window, left_by_hand
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.keys import covers, is_within, spelled, touches
from zerograd.static.engine.identity.picks import are_all
from zerograd.static.engine.judging.dealt import (
    take_other_outputs,
    take_other_ways,
    takes_some_outputs,
)
from zerograd.static.engine.judging.flushed import CLEAR_THERE, flushed_before
from zerograd.static.engine.judging.opposed import SEPARATE, Opposed
from zerograd.static.engine.judging.telling import Telling
from zerograd.static.engine.text.words import OPTIMIZER_WORDS, is_loss_name, words_of

_CALL = re.compile(r"([\w.]*)\(([^()]*)\)")
_CARRIERS = frozenset(("scale", "backward", "manual_backward"))  # methods of or with a loss


class Leaks(Telling):
    """What a step finds in its gradients that was not meant for it."""

    _opposed: Opposed

    def _leaked(self, node: Happening) -> Iterable[Finding]:
        """ZG201: the states at the step leave a suspicion that nothing later takes back."""
        event = node.event
        assert event is not None
        for bucket in event.buckets:
            reached = [
                (self._flow.states[number][0], self._literals(literals))
                for number, literals in self._flow.reached[id(node)].get(bucket, ())
            ]
            judged = [each for each in reached if event.owner in each[0].stepped]
            # What is left before a loop inside comes to its first round alone, but every time.
            entered = [
                (state, literals)
                for state, literals in reached
                if event.owner in state.earlier - state.stepped
            ]
            for chosen in (judged or reached, entered):
                after = [(advance(state, event, bucket), literals) for state, literals in chosen]
                leaks = [state for state, _ in after if _is_suspected(state, event.owner)]
                if leaks:
                    break
            if leaks and self._is_confirmed(bucket, node.spot):
                told = min(leaks, key=_places)  # whichever of them was come to first
                left = told.suspicion
                meant = left is not None and self._is_meant_for(left.left.spot, node)
                # Lightning's toggle keeps the other networks out of the loss.
                meant = meant or "toggle_optimizer(" in node.unit.source.text
                meant = meant or self._is_parted(bucket)
                meant = meant or (left is not None and self._is_dealt_out(bucket, left))
                meant = meant or (left is not None and self._is_spared(bucket, left.left.spot))
                meant = meant or (left is not None and self._is_only_moved(node, left))
                # In a loop the first round is not like the others; outside there is no other.
                known = bool(judged) or node.loop is None
                always = known and _is_always(
                    (_is_suspected(state, event.owner), literals) for state, literals in after
                )
                certain = always and not self._is_doubted(node) and not meant
                finding = self._finding(node, "ZG201", told, certain)
                gathers = left is not None and self._gathers(node, left.own.spot)
                if left is not None:
                    finding = self._told_of_hand(finding, left.left)
                if left is not None and gathers:
                    finding = in_window(finding, self._code_at(left.left.spot))
                yield finding
                return

    def _told_of_hand(self, finding: Finding, left: Contribution) -> Finding:
        """Return the finding in words for what no optimizer left: an attack's or a saliency's."""
        steps = [each for each in self._buckets.happenings if each.spot == left.used_at]
        moved = [
            spelled(key)
            for each in steps
            if each.optimizer is not None and each.optimizer.is_by_hand
            for key in sorted(each.optimizer.keys or ())
        ]
        return left_by_hand(finding, moved[0]) if moved else finding

    def _flushed(self, node: Happening) -> Iterable[Finding]:
        """ZG101: it finds what a step behind its loop has used, which nothing clears there."""
        found = flushed_before(node, self._program, self._buckets, self._flow)
        if found is not None and not self._is_doubted(node):
            last, state = found
            told = self._finding(node, "ZG101", state, True)
            names = {"owner": told.owner, "step": self._code_at(last.spot), "line": last.spot.line}
            yield replace(told, advice=CLEAR_THERE.format_map(names))

    def _gathers(self, step: Happening, loss: Spot) -> bool:
        """Does a counter keep the step away from some of its losses, as it does in a window?"""
        losses = [each for each in self._buckets.happenings if each.spot == loss]
        atoms = [
            self._program.atoms.get(key)
            for each in losses
            for key in (step.guards | step.behind) - each.guards - each.behind
        ]
        return any(atom is not None and atom.counter for atom in atoms)

    def _works_against(self, node: Happening) -> Iterable[Finding]:
        """ZG201: two losses in the gradients of one step pull the same output apart."""
        event = node.event
        assert event is not None
        if len(self._buckets.optimizers) < 2:
            return
        for bucket in event.buckets:
            reached = [
                (self._flow.states[number][0], self._literals(literals))
                for number, literals in self._flow.reached[id(node)].get(bucket, ())
            ]
            judged = [each for each in reached if event.owner in each[0].stepped] or reached
            found = [(self._opposed.at(node, state), literals) for state, literals in judged]
            pair = next((each for each, _ in found if each is not None), None)
            if pair is None:
                continue
            suspicion = Suspicion(event.owner, node.spot, pair.first, pair.second)
            always = _is_always((each is not None, literals) for each, literals in found)
            # A round of a loop inside may go backward with it or not: after the loop none can tell.
            always = always or any(
                self._is_inside(each, node) for each in (pair.first, pair.second)
            )
            certain = always and not self._is_doubted(node)
            finding = self._finding(node, "ZG201", BucketState(suspicion=suspicion), certain)
            names = {"owner": finding.owner, **pair.names}
            yield replace(
                finding,
                message=pair.message.format_map(names),
                advice=SEPARATE.format_map(names),
                trail=tuple(
                    TrailStep(spot, text, self._code_at(spot))
                    for spot, text in pair.stations(node.spot)
                ),
            )
            return

    def _is_inside(self, held: Contribution, step: Happening) -> bool:
        """Did it go backward under a condition, in a loop inside the one that steps?"""
        return any(
            each.kind is EventKind.BACKWARD
            and each.spot == held.spot
            and each.loop is not step.loop
            and step.loop in loops_around(each.loop)
            and bool(each.inner)
            for each in self._buckets.happenings
        )

    def _is_meant_for(self, backward: Spot, step: Happening) -> bool:
        """Does the loss bear this optimizer's name, as loss_GE does that of optimizer_G?"""
        loss = words_of(_name_of_loss(self._code_at(backward)))
        mine = [
            word
            for word in words_of(self._display(step))
            if word not in OPTIMIZER_WORDS and not word.startswith("optim")
        ]
        return any(
            word == other or (len(word) == 1 and len(other) == 2 and word in other)
            for word in mine
            for other in loss
        )

    def _is_parted(self, bucket: str) -> bool:
        """Do several optimizers each hold some of a network's parameters, picked by a test?

        Then a loss may well fill those of one alone.
        """
        owners = [self._buckets.optimizers[owner] for owner in self._buckets.owners_of(bucket)]
        return bucket in self._buckets.parts or (
            len(owners) > 1
            and any(not are_all(picks) for each in owners for picks in each.picks.values())
        )

    def _is_dealt_out(self, bucket: str, left: Suspicion) -> bool:
        """Is it a part of a network, and was that loss another output, or way, of the whole?"""
        first, second = (self._buckets.backward_at(each.spot) for each in (left.left, left.own))
        keys = (first.keys if first is not None else None) or frozenset[str]()
        if first is None or second is None or any(is_within(key, bucket) for key in keys):
            return False
        wholes = {spelled(key) for key in keys if covers(key, bucket)}
        return (
            takes_some_outputs(first, second, wholes)
            or take_other_outputs(first, second)
            or take_other_ways(first, second, wholes)
        )

    def _is_spared(self, bucket: str, loss: Spot) -> bool:
        """Is it a part of a network whose forward was read, and through which no loss there comes?

        `vae(x, of_discriminator=True)` goes through both parts of the network, and cuts one off.
        """
        return any(
            each.kind is EventKind.BACKWARD
            and each.spot == loss
            and any(key != bucket and covers(key, bucket) for key in each.read)
            and not any(touches(key, bucket) for key in (each.keys or frozenset()) - each.read)
            for each in self._buckets.happenings
        )

    def _is_only_moved(self, step: Happening, left: Suspicion) -> bool:
        """Was nothing else stepped than some of its own weights, by hand, for a look from there?

        `p.data.add_(eps * p.grad)` before the second loss of an adversarial training, or of SAM:
        both are its own.
        """
        assert step.event is not None
        others = [self._buckets.optimizers[each] for each in left.left.fills - {step.event.owner}]
        own = (step.optimizer.keys if step.optimizer is not None else None) or frozenset[str]()
        return bool(others) and all(
            each.is_by_hand and each.keys and all(_is_any(own, key) for key in each.keys)
            for each in others
        )

    def _is_confirmed(self, bucket: str, step: Spot) -> bool:
        """Does the suspicion last until the next backward or clear, or until the end?"""
        later = [
            self._flow.reached.get(id(node), {})
            for node in self._buckets.happenings
            if node.kind in (EventKind.BACKWARD, EventKind.CLEAR)
        ]
        if self._flow.end is not None:
            later.append({bucket: set(self._flow.end.get(bucket, ()))})
        for reached in later:
            for number, _ in reached.get(bucket, ()):
                found = self._flow.states[number][0].suspicion
                if found is not None and found.step == step:
                    return True
        return False

    @abstractmethod
    def _is_doubted(self, node: Happening) -> bool:
        """Is the loop around it assumed?"""

    @abstractmethod
    def _literals(self, literals: frozenset[int]) -> frozenset[Literal]:
        """Return the conditions that some numbers stand for."""


def _is_any(wholes: frozenset[str], key: str) -> bool:
    return any(covers(whole, key) for whole in wholes)


def _name_of_loss(code: str) -> str:
    """Return the words that name the loss in a backward; what it is computed from does not."""
    known = ""
    while known != code:
        known, code = code, _CALL.sub(_named, code)
    return code


def _named(call: re.Match[str]) -> str:
    called, handed = call.groups()
    receiver, _, method = called.rpartition(".")
    if not called or method in _CARRIERS:  # (a + b), scaler.scale(loss), loss.backward()
        return f" {receiver} {handed} "
    return called if is_loss_name(called) else ""


def _is_always(judged: Iterable[tuple[bool, frozenset[Literal]]]) -> bool:
    """Is it so in every state, or in every one that one condition leads to?"""
    found = list(judged)
    if all(broken for broken, _ in found):
        return True
    known = {each for broken, literals in found if broken for each in literals}
    return any(
        all(broken or (key, not truth) in literals for broken, literals in found)
        for key, truth in known
    )


def _places(state: BucketState) -> list[Spot]:
    """Return where what was left came from, and what was added to it."""
    found = state.suspicion
    return [] if found is None else [found.left.spot, found.own.spot]


def _is_suspected(after: BucketState, owner: str) -> bool:
    """Is what another's loss left behind proved to have come here?"""
    return after.suspicion is not None and owner in after.suspicion.left.fills
