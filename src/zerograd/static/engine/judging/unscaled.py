"""Scalers of which the file shows one half only: what scaled the loss, or what is scaled at all.

A clip of gradients that somebody else scaled: the scaler's own step tells that they are. And a
scaler's step on a loss that nothing has scaled.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.state import BucketState, Phase
from zerograd.lifecycle.verdicts import Literal
from zerograd.rules.scaler_bypassed import NEVER_SCALED, SCALED_NONE
from zerograd.rules.scaler_bypassed import RULE as SCALER_BYPASSED
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.judging.emptiness import only_moves_a_schedule
from zerograd.static.engine.reading.contexts import scale_of
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import clips_by_name, is_loss_name

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow

States = dict[BucketState, list[frozenset[Literal]]]  # with the conditions they are reached under

_SCALING = re.compile(r"\.scale\(|scale_loss|\.backward\([^)\n]*\w*scal")
_AT_ONCE = re.compile(r"\.scale\(.+\)\.backward\(")  # what it gives goes back, and has no name
_BY_HAND = re.compile(r"get_scale\(|\._scale\b|GradScaler\([^)\n]*enabled")


def is_of_apex(clip: Happening) -> bool:
    """Does it clip amp.master_params(opt)? Apex has divided those, once its block has ended."""
    if is_in_scale_loss(clip):
        return False
    return isinstance(clip.node, ast.Call) and any(
        isinstance(each, ast.Call) and path_of(each.func).endswith("master_params")
        for each in clip.node.args
    )


def is_in_scale_loss(clip: Happening) -> bool:
    """Does it stand in a block of apex's, which takes the scale out where it ends?"""
    return "scale_loss" in clip.unit.source.text and any(
        isinstance(each, ast.With)
        and each.body[0].lineno <= clip.spot.line <= (each.end_lineno or 0)
        and any(scale_of(item.context_expr) for item in each.items)
        for each in clip.unit.statements()
    )


def told_of_block(finding: Finding) -> Finding:
    """There is no scaler that could be told to unscale."""
    return replace(
        finding, advice="clip after the `with` block, which takes the scale out at its end"
    )


class Unscaled(NamedTuple):
    """A loss that a scaler steps on, and that it has not scaled."""

    loss: Happening
    message: str
    certain: bool


def stepped_unscaled(step: Happening, buckets: Buckets, flow: Flow) -> Unscaled | None:
    """Return the loss that the scaler which steps has not scaled, if there is one."""
    loss = _unscaled_loss(step, buckets, flow) or _unscaled_beside(step, buckets, flow)
    certain = loss is not None
    loss = loss or _maybe_unscaled_loss(step, buckets, flow)
    if loss is None:
        return None
    made_here = "GradScaler(" in step.unit.source.text and not _scales(step)
    return Unscaled(loss, SCALED_NONE if made_here else NEVER_SCALED, certain)


def _scales(step: Happening) -> bool:
    """Does anything in the file scale a loss?"""
    lines = step.unit.source.lines
    return any("scal" in line and _SCALING.search(line.split("#", 1)[0]) for line in lines)


def _unscaled_loss(step: Happening, buckets: Buckets, flow: Flow) -> Happening | None:
    """Return the backward of a loss that the scaler which steps has never scaled.

    Nothing in the file scales anything, and the scaler was made there; or it is handed in, and
    handed on to nobody who could scale. What is cleared before the step is none of its business.
    """
    assert step.event is not None
    source = step.unit.source
    if not step.scaler or not ("GradScaler(" in source.text or _is_only_stepped(step)):
        return None
    if _scales(step):
        return None
    mine = set(step.event.buckets)
    losses = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.BACKWARD and each.event and mine & set(each.event.buckets)
    ]
    strangers = "enabled" in source.text or _leads_away(step)
    plain = all(
        ((each.sure and not strangers) or (_goes_plainly_back(each) and _is_made_and_stepped(step)))
        and each.unit is step.unit
        and each.loop is step.loop
        and isinstance(each.node, ast.Call)
        and isinstance(each.node.func, ast.Attribute)
        for each in losses
    )
    held = {
        each.spot
        for pairs in flow.reached[id(step)].values()
        for number, _ in pairs
        for each in flow.states[number][0].contributions
    }
    before = [each for each in losses if each.spot.line < step.spot.line and each.spot in held]
    return before[-1] if before and plain else None


def _unscaled_beside(step: Happening, buckets: Buckets, flow: Flow) -> Happening | None:
    """Return the backward of a plain loss, where all that the file scales goes back at once.

    `scaler.scale(loss).backward()` leaves no scaled loss behind that could be sent back here. On
    every way to the step, what it divides by the scale is such plain losses.
    """
    text = step.unit.source.text
    if not step.scaler or not ("GradScaler" in text or "autocast" in text):
        return None
    for line in step.unit.source.lines:
        code = line.split("#", 1)[0]
        if _BY_HAND.search(code) or (_SCALING.search(code) and not _AT_ONCE.search(code)):
            return None
    held = _held(step, buckets, flow)
    if not held or any(_is_scaled(each) for losses in held for each in losses):
        return None
    last = max((losses[-1] for losses in held), key=lambda loss: loss.spot.line)
    beside = last.unit is step.unit and last.loop is step.loop and last.frames == step.frames
    known = last.sure or _goes_plainly_back(last)
    if not beside or not known or last.spot.line > step.spot.line:
        return None
    return None if _is_lent(step) else last


def _is_lent(step: Happening) -> bool:
    """Is the scaler given to another call in the function of its step?"""
    functions = step.unit.functions_around(step.spot.line)
    return _is_given(functions[-1] if functions else step.unit.source.tree, _scaler_of(step))


def _goes_plainly_back(loss: Happening) -> bool:
    """`loss.backward()`: whatever gave that loss, a network of elsewhere say, no scaler has."""
    func = loss.node.func if isinstance(loss.node, ast.Call) else None
    return isinstance(func, ast.Attribute) and is_loss_name(path_of(func.value))


def _is_made_and_stepped(step: Happening) -> bool:
    """Is the scaler made here, always on, and given to nobody who could scale with it?"""
    text = step.unit.source.text
    path = _scaler_of(step)
    made = re.search(rf"(?m)^[ \t]*{re.escape(path)} *= *[\w.]*GradScaler\(", text)
    if not path or made is None or "enabled" in text:
        return False
    return not _is_given(step.unit.source.tree, path)


def _leads_away(step: Happening) -> bool:
    """Is the scaler given to a call that is not defined in its file?"""
    unit = step.unit
    here = {each.name for each in unit.every_function()} | unit.classes.keys()
    return _is_given(unit.source.tree, _scaler_of(step), here)


def _scaler_of(step: Happening) -> str:
    return path_of(step.node.func).rpartition(".")[0] if isinstance(step.node, ast.Call) else ""


def _is_given(scope: ast.AST, path: str, known: Collection[str] = ()) -> bool:
    """Is it given to a call, other than of functions that are known?"""
    return any(
        path_of(given) == path
        for each in parts_below(scope)
        if isinstance(each, ast.Call) and path_of(each.func).rsplit(".", 1)[-1] not in known
        for given in (*each.args, *(word.value for word in each.keywords))
    )


def _is_only_stepped(step: Happening) -> bool:
    """Is the scaler one of mixed precision, updated here, and given to no other call?"""
    text = step.unit.source.text
    if "autocast" not in text:
        return False
    path = _scaler_of(step)
    return bool(path) and f"{path}.update(" in text and not _is_given(step.unit.source.tree, path)


def _maybe_unscaled_loss(step: Happening, buckets: Buckets, flow: Flow) -> Happening | None:
    """Return the backward of a loss that the scaler which steps has not scaled as far as is seen.

    Others are scaled in the file, and this one may be in a way that is not seen. Where the
    scaler is switched on or off, a plain loss may be what it steps on while it is off.
    """
    if not step.scaler:
        return None
    held = _held(step, buckets, flow)
    plain = [each for each in held if not any(map(_is_scaled, each))]
    if len(plain) < len(held) and "enabled" in step.unit.source.text:
        return None
    return max((each[-1] for each in plain), key=lambda loss: loss.spot.line, default=None)


def _held(step: Happening, buckets: Buckets, flow: Flow) -> list[list[Happening]]:
    """Return the losses that a step finds, way by way."""
    assert step.event is not None
    mine = set(step.event.buckets)
    filling = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.BACKWARD and each.event and mine & set(each.event.buckets)
    ]
    # one line may be both, by whether its scaler is switched on
    losses = {each.spot: each for each in sorted(filling, key=_is_scaled)}
    held = [
        [losses[each.spot] for each in state.contributions if each.spot in losses]
        for bucket, pairs in flow.reached[id(step)].items()
        if bucket in mine
        for state in {flow.states[number][0] for number, _ in pairs}
    ]
    return [each for each in held if each]


def _is_scaled(loss: Happening) -> bool:
    return bool(loss.scaler or (loss.event and loss.event.scaler))


def is_unscaled_after_its_step(unscale: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Has a step used all that is unscaled here, and an update ended that round?

    The scaler notes that this optimizer is unscaled, and does not unscale what comes next: some
    step finds the scale still in it.
    """
    assert unscale.event is not None
    owner = unscale.event.owner
    if not any(
        each.kind is EventKind.SCALER_UPDATE and each.scaler == unscale.scaler
        for each in buckets.happenings
    ):
        return False
    if not any(_finds_the_scale(each, owner, flow) for each in buckets.happenings):
        return False
    states = [
        flow.states[number]
        for bucket in unscale.event.buckets
        for number, _ in flow.reached[id(unscale)].get(bucket, ())
    ]
    return bool(states) and all(
        not doubt
        and not state.unknown
        and state.phase(owner) is Phase.SPENT
        and owner not in state.awaiting | state.halfway
        for state, doubt in states
    )


def is_unscaled_too_late(step: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Does any unscale of the owner come after its step? Then that is where it is told."""
    assert step.event is not None
    return any(
        each.kind is EventKind.UNSCALE
        and each.event is not None
        and each.event.owner == step.event.owner
        and is_unscaled_after_its_step(each, buckets, flow)
        for each in buckets.happenings
    )


def _finds_the_scale(step: Happening, owner: str, flow: Flow) -> bool:
    """Is it a step through a scaler that leaves the scale in, on some way?"""
    if step.kind is not EventKind.STEP or step.event is None or step.event.owner != owner:
        return False
    reached = flow.reached.get(id(step), {})
    return bool(step.event.scaler) and any(
        SCALER_BYPASSED.broken_by(flow.states[number][0], step.event)
        for bucket in step.event.buckets
        for number, _ in reached.get(bucket, ())
    )


def clipped_before(unscale: Happening) -> ast.Call | None:
    """Return a call of a method that nobody sees, which by its name clips, and then this unscales.

    It has not unscaled itself: a second time before the update raises.
    """
    line = unscale.spot.line
    blocks = [
        part
        for each in unscale.unit.statements()
        for part in (getattr(each, "body", None), getattr(each, "orelse", None))
        if isinstance(part, list) and part
    ]
    around = [each for each in blocks if each[0].lineno <= line <= (each[-1].end_lineno or 0)]
    block = max(around, key=lambda each: each[0].lineno, default=[])
    before = [each for each in block if (each.end_lineno or 0) < line]
    calls = [part for each in before for part in parts_below(each) if isinstance(part, ast.Call)]
    if any(path_of(each.func).endswith("unscale_") for each in calls):
        return None  # those that are clipped are another's
    for call in [each for each in parts_below(before[-1]) if each in calls] if before else []:
        path = path_of(call.func)
        if path.startswith("self.") and clips_by_name(path) and not (call.args or call.keywords):
            return call
    return None


def is_clipped_scaled(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Is a scaler's step the first to unscale what is clipped here?

    The backward is elsewhere, so the states do not know of the factor. Nothing in
    the file unscales, and `scaler.step(opt)` comes after the clip on its way.
    """
    assert clip.event is not None
    mine = set(clip.event.buckets)
    if only_moves_a_schedule(clip):
        return False
    shown = (EventKind.UNSCALE, EventKind.BACKWARD)
    if any(each.kind in shown for each in buckets.happenings):
        return False
    if any("unscale" in line.split("#", 1)[0] for line in clip.unit.source.lines):
        return False
    later = buckets.happenings[buckets.happenings.index(clip) + 1 :]
    return any(
        step.kind is EventKind.STEP
        and bool(step.scaler)
        and step.loop is clip.loop
        and step.event is not None
        and not mine.isdisjoint(step.event.buckets)
        and are_on_one_way(clip, step, flow)
        for step in later
    )


def are_on_one_way(one: Happening, other: Happening, flow: Flow) -> bool:
    """May both happen in one round, for all that the conditions around them say?"""
    return any(
        all(literal ^ 1 not in there for literal in here if literal >= 0)
        for here in flow.known_at(one)
        for there in flow.known_at(other)
    )


def filled_only(states: States) -> States:
    """Leave out the ways on which there is nothing to clip: no loss in that round, say."""
    filled: States = {}
    for state, under in states.items():
        if state.contributions:
            # Whatever else may be in there, what came since is scaled.
            known = state._replace(unknown=False) if state.scaled else state
            filled.setdefault(known, []).extend(under)
    return filled if any(state.scaled for state in filled) else states
