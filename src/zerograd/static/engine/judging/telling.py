"""Findings in the user's own names, and words for faults whose usual ones would lead astray."""

from __future__ import annotations

import ast
from dataclasses import replace

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.findings import Finding, TrailStep, explain
from zerograd.lifecycle.state import BucketState
from zerograd.rules import BY_CODE
from zerograd.rules.clip_before_unscale import moved
from zerograd.rules.scaler_bypassed import by_hand as past_by_hand
from zerograd.rules.scaler_updated_early import TWICE
from zerograd.rules.stale_gradient import by_hand
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.keys import spelled
from zerograd.static.engine.identity.shown import code_of, in_rounds, name_of
from zerograd.static.engine.judging.early import EarlyClears
from zerograd.static.engine.judging.followed import told_of_updates
from zerograd.static.engine.judging.passed import told_of_clears
from zerograd.static.engine.judging.unscaled import is_in_scale_loss, told_of_block
from zerograd.static.engine.reading.applied import is_applied, told_of_applied


class Telling(EarlyClears):
    """Puts a fault at an event into a finding."""

    def _finding(
        self, node: Happening, code: str, state: BucketState, certain: bool, name: str = ""
    ) -> Finding:
        """Return the finding at `node`, in the user's own names."""
        event = node.event
        assert event is not None
        rule = BY_CODE[code]
        name = name or self._display(node)
        finding = in_rounds(
            explain(rule, event, state, self._code_at),
            self._buckets.happenings,
            self._program.entrances,
        )
        story = rule.tells(state, event)
        names = {"owner": name, **{k: v for k, v in story.names if k != "owner"}}
        if "scaler" in names:
            names["scaler"] = scaler_at(node, names["scaler"])
        message = (story.summary or rule.summary).format_map(names)
        advice = (story.advice or rule.advice).format_map(names)
        if event.scaler and event.kind is EventKind.STEP:  # what is written there is another's step
            message = message.replace(f"{name}.step()", code_of(node))
        finding = replace(finding, message=message, advice=advice, owner=name, certain=certain)
        if node.cleared_as:  # what steps may have no zero_grad() of its own
            clear = advice.replace(f"{name}.zero_grad()", f"{node.cleared_as}.zero_grad()")
            finding = replace(finding, advice=clear, owner=node.cleared_as)
        if node.optimizer is not None and node.optimizer.is_by_hand:
            bypassed = code == "ZG303" and "scaler" in names
            finding = past_by_hand(finding, names["scaler"]) if bypassed else by_hand(finding)
        if code == "ZG305" and finding.trail[-1].text.endswith(TWICE):
            finding = self._told_of_unscale(finding, node)
        if code == "ZG101":
            finding = told_of_clears(finding, node, self._buckets, self._program)
        if code == "ZG101" and is_applied(node):
            finding = told_of_applied(finding, node)
        if code == "ZG302" and "scaler" in names:
            finding = told_of_updates(finding, node, names["scaler"], self._buckets)
        late = self._unscaled_late(node) if code == "ZG301" else None
        if late is not None:
            finding = moved(finding, code_of(late))
        elif code == "ZG301" and is_in_scale_loss(node):
            finding = told_of_block(finding)
        return finding

    def _told_of_unscale(self, finding: Finding, step: Happening) -> Finding:
        """Return the finding with the unscale in its trail that the step repeats."""
        before: list[Happening] = []
        for each in self._buckets.happenings:
            if each.spot == finding.spot:
                break  # the update that came too early
            if each.kind is EventKind.UNSCALE and each.event and each.event.owner == _owner(step):
                before.append(each)
        if not before:
            return finding
        station = TrailStep(before[-1].spot, "takes the scale out", code_of(before[-1]))
        *filled, update, again = finding.trail
        return replace(finding, trail=(*filled, station, update, again))

    def _unscaled_late(self, clip: Happening) -> Happening | None:
        """Return what unscales the same gradients further down, before they are stepped on."""
        if clip.kind is EventKind.UNSCALE:
            return clip  # what clips is no event, and is told by what comes after it
        assert clip.event is not None
        mine = set(clip.event.buckets)
        later = [
            each
            for each in self._buckets.happenings
            if each.kind in (EventKind.UNSCALE, EventKind.STEP)
            and (each.unit, each.loop) == (clip.unit, clip.loop)
            and each.spot.line > clip.spot.line
            and each.event is not None
            and mine.intersection(each.event.buckets)
        ]
        first = min(later, key=lambda each: each.spot.line, default=None)
        return first if first is not None and first.kind is EventKind.UNSCALE else None

    def _display(self, node: Happening) -> str:
        """Return the optimizer as the user writes it there."""
        if node.optimizer is not None:
            return name_of(node) or node.optimizer.key
        if node.name:
            return name_of(node)
        assert node.event is not None
        for bucket in node.event.buckets:
            for owner in self._buckets.owners_of(bucket):
                return self._names.get(owner, owner)
        return "the optimizer"

    def _code_at(self, spot: Spot) -> str:
        """Return the code of the event at `spot`."""
        for each in self._buckets.happenings:
            if each.spot == spot:
                return code_of(each)
        return ""


def _owner(step: Happening) -> str:
    return step.event.owner if step.event is not None else ""


def scaler_at(node: Happening, key: str) -> str:
    """Return a scaler as the user writes it there: `self.scaler` in `self.scaler.step(opt)`."""
    call = node.node
    receiver = (
        call.func.value if isinstance(call, ast.Call) and type(call.func) is ast.Attribute else call
    )
    written = path_of(receiver)
    same = written.rsplit(".", 1)[-1] == spelled(key).rsplit(".", 1)[-1]
    return written if same else key.split("@", 1)[0]


def told_of_last_round(finding: Finding) -> Finding:
    """A loop that clears in each round, with the step behind it."""
    owner = finding.owner
    return replace(
        finding,
        message=f"{owner} is cleared in each round of this loop but stepped only after it, "
        "so the gradients of all rounds but the last are lost",
        advice=f"call {owner}.step() in the loop, or clear once before it to add its rounds up",
    )
