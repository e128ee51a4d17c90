"""Clips of gradients that are not there yet: the backward comes after them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.acting import acts
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import FILLS, Happening, Loop
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.judging.unscaled import are_on_one_way
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import CLIPS

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

CLIPPED_TOO_SOON = (
    "gradients are clipped before backward() has filled them, so the clip does nothing"
)
CLIPPED_AFTER_CLEAR = (
    "gradients are clipped after zero_grad() has emptied them, so the clip does nothing"
)
_FILLING = re.compile(r"backward|\.step\(|\.grad\b|\._grad\b")


def is_clipped_too_soon(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Does every backward of the loop come after the clip, and the step after that?

    Inside a window older gradients may be there to clip; the newest never are. As with a
    step on nothing, what cannot be seen may have filled them.
    """
    assert clip.event is not None
    if clip.loop is None or clip.loop.pseudo or not _finds_nothing(clip, flow):
        return False
    if _is_made_good(clip, buckets, flow):
        return False
    mine = set(clip.event.buckets)
    inside = [
        each
        for each in buckets.happenings
        if each.event is not None
        and not mine.isdisjoint(each.event.buckets)
        and _is_within(each.loop, clip.loop)
    ]
    at = next(number for number, each in enumerate(inside) if each is clip)
    if any(each.kind in FILLS for each in inside[:at]):
        return False
    later = [each for each in inside[at:] if each.kind in (*FILLS, EventKind.STEP)]
    steps = [each for each in later if each.kind is EventKind.STEP and each.loop is clip.loop]
    if not steps or later[0].kind not in FILLS or later[0].loop is not clip.loop:
        return False
    if not are_on_one_way(clip, later[0], flow):
        return False
    begin = getattr(clip.loop.node, "lineno", clip.spot.line)
    return not acts("\n".join(clip.unit.source.lines[begin : clip.spot.line - 1]), clip.unit)


def is_clipped_after_clear(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Has the same round stepped and cleared before it, so that nothing is left to clip?"""
    assert clip.event is not None
    if clip.loop is None or clip.loop.pseudo or _is_made_good(clip, buckets, flow):
        return False
    judged = [
        flow.states[number]
        for bucket in clip.event.buckets
        for number, _ in flow.reached[id(clip)].get(bucket, ())
    ]
    judged = [each for each in judged if each[0].stepped]
    if not judged or any(state.contributions or state.unknown or doubt for state, doubt in judged):
        return False
    mine = set(clip.event.buckets)
    before = [
        each
        for each in buckets.happenings[: buckets.happenings.index(clip)]
        if each.event is not None
        and each.loop is clip.loop
        and each.unit is clip.unit
        and not mine.isdisjoint(each.event.buckets)
    ]
    kinds = [each.kind for each in before if each.kind in (EventKind.STEP, EventKind.CLEAR)]
    if kinds[-2:] != [EventKind.STEP, EventKind.CLEAR]:
        return False
    lines = clip.unit.source.lines[before[-1].spot.line : clip.spot.line - 1]
    return not acts("\n".join(lines), clip.unit)


def unless_stepped_on_next(
    found: Iterable[Finding], clip: Happening, buckets: Buckets
) -> list[Finding]:
    """Return what was found, in doubt if a step follows at once: one of two steps is in vain."""
    beside, at = _beside(clip, buckets)
    after = beside[at + 1] if at + 1 < len(beside) else None
    is_next = (
        after is not None
        and after.kind is EventKind.STEP
        and after.loop is clip.loop
        and after.guards <= clip.guards
    )
    return [
        replace(each, certain=False) if is_next and each.rule.code == "ZG304" else each
        for each in found
    ]


def is_clipped_too_late(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Has the same function stepped before it, and is what it clips cleared before any other use?

    The clear comes between the two, or first thing in the next round. In the other rounds of a
    window such a clip does find gradients; the last ones, on which the step is taken, it never
    does.
    """
    assert clip.event is not None
    mine = set(clip.event.buckets)
    beside, at = _beside(clip, buckets)
    moves = [each for each in beside[:at] if each.kind is not EventKind.CLEAR]
    if not moves or any(each.kind is not EventKind.CLEAR for each in beside[at + 1 :]):
        return False
    step = moves[-1]
    if step.kind is not EventKind.STEP or any(
        each.kind is EventKind.CLIP or each.loop is not clip.loop or each.frames != clip.frames
        for each in moves
    ):
        return False
    if not are_on_one_way(step, clip, flow):
        return False
    cleared = [
        each
        for each in beside[:at]
        if each.kind is EventKind.CLEAR
        and each.frames == clip.frames
        and each.event is not None
        and mine <= set(each.event.buckets)
    ]
    early = beside[: beside.index(moves[0])]
    first = any(each in early and each.guards <= clip.guards for each in cleared)
    between = any(beside.index(each) > beside.index(step) for each in cleared)
    filled = moves[0].kind in FILLS and moves[0].guards <= clip.guards
    if not (first and step.guards <= clip.guards) and not (between and filled):
        return False
    lines = clip.unit.source.lines[step.spot.line : clip.spot.line - 1]
    return not acts("\n".join(lines), clip.unit)


def is_clipped_between(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Has the same function cleared just before it, and does it go backward just after it?

    Then whoever calls it, and whatever was there before, this clip finds nothing.
    """
    assert clip.event is not None
    if _is_made_good(clip, buckets, flow):
        return False
    mine = set(clip.event.buckets)
    beside, at = _beside(clip, buckets)
    if at == 0 or at + 1 == len(beside):
        return False
    before, after = beside[at - 1], beside[at + 1]
    together = all(
        each.loop is clip.loop and each.frames == clip.frames and each.guards <= clip.guards
        for each in (before, after)
    )
    if not together or before.kind is not EventKind.CLEAR or after.kind not in FILLS:
        return False
    assert before.event is not None
    held = [
        flow.states[number]
        for bucket in mine
        for number, _ in flow.reached[id(clip)].get(bucket, ())
    ]
    if not held or any(state.contributions or state.unknown or doubt for state, doubt in held):
        return False
    lines = clip.unit.source.lines[before.spot.line : clip.spot.line - 1]
    return mine <= set(before.event.buckets) and not acts("\n".join(lines), clip.unit)


def _beside(clip: Happening, buckets: Buckets) -> tuple[list[Happening], int]:
    """Return all that is done to what it clips, and its own place among them."""
    assert clip.event is not None
    mine = set(clip.event.buckets)
    beside = [
        each
        for each in buckets.happenings
        if each.event is not None
        and each.kind in (*FILLS, EventKind.STEP, EventKind.CLEAR, EventKind.CLIP)
        and not mine.isdisjoint(each.event.buckets)
    ]
    return beside, next(number for number, each in enumerate(beside) if each is clip)


def _is_made_good(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Does another clip of the loop find gradients, or does the next step find none either?

    Then what is stepped on has been clipped, and this one is only one too many; or the step on
    nothing is the fault.
    """
    assert clip.event is not None
    mine = set(clip.event.buckets)
    inside = [
        each
        for each in buckets.happenings
        if each.event is not None
        and each.loop is clip.loop
        and not mine.isdisjoint(each.event.buckets)
    ]
    for each in inside:
        if each.kind is EventKind.CLIP and each is not clip:
            reached = flow.reached.get(id(each), {})
            held = (flow.states[n][0] for bucket in mine for n, _ in reached.get(bucket, ()))
            if any(state.contributions for state in held):
                return True
    at = next(number for number, each in enumerate(inside) if each is clip)
    moving = (*FILLS, EventKind.STEP)
    after = next((each for each in inside[at + 1 :] if each.kind in moving), None)
    return after is not None and after.kind is EventKind.STEP


def clipped_before_its_loss(program: Program) -> Iterator[Finding]:
    """Yield the clips of a function that goes backward only after them, and steps elsewhere."""
    unit = program.main
    if not unit.clips():
        return
    stepping = {each.name for each in unit.functions_saying(".step(")}
    for function in unit.functions_saying(".backward("):
        clip = _clipped_too_soon(unit, function.body, [], stepping)
        if clip is not None:
            rule = BY_CODE["ZG304"]
            yield Finding(
                rule=rule,
                spot=unit.source.spot(clip),
                message=CLIPPED_TOO_SOON,
                advice=rule.advice.format_map({"owner": "the optimizer"}),
            )


def _clipped_too_soon(
    unit: Unit, body: list[ast.stmt], before: list[ast.stmt], stepping: set[str]
) -> ast.Call | None:
    """Return the first clip of these statements, if nothing has gone back and its loss then does.

    `before` is what comes before them, outside the branch that they are.
    """
    for at, part in enumerate(body):
        if not unit.mentions(part, "clip"):
            continue
        earlier, after = [*before, *body[:at]], body[at + 1 :]
        if isinstance(part, ast.If | ast.With):
            inner = _clipped_too_soon(unit, part.body, earlier, stepping)
            if inner is not None:
                return inner
        clip = _clip_in(part)
        if clip is None:
            continue
        if _acts_in(unit, [*earlier, part]) or not after or _is_in_no_loss(after, stepping):
            return None
        if any(_clip_in(each) for each in after if unit.mentions(each, "clip")):
            return None  # what is stepped on may have been clipped there
        return clip
    return None


def _clip_in(part: ast.stmt) -> ast.Call | None:
    if isinstance(part, ast.For | ast.While | ast.FunctionDef | ast.ClassDef):
        return None
    for each in parts_below(part):
        if isinstance(each, ast.Call) and path_of(each.func).rsplit(".", 1)[-1] in CLIPS:
            return each if "inf" not in ast.unparse(each) else None
    return None


def _acts_in(unit: Unit, body: list[ast.stmt]) -> bool:
    """Does anything there go backward, step or put gradients in their place?

    Who unscales there has gradients to unscale no more than to clip.
    """
    text = "\n".join(ast.unparse(part) for part in body if not _is_docstring(part))
    return acts(text, unit) or _FILLING.search(text) is not None


def _is_docstring(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


def _is_in_no_loss(after: list[ast.stmt], stepping: set[str]) -> bool:
    """Is what comes next no plain `loss.backward()`, or a step before it?"""
    for part in after:
        text = ast.unparse(part)
        if ".step(" in text or "autograd" in text or any(f"{name}(" in text for name in stepping):
            return True
        if ".backward(" in text:
            value = part.value if isinstance(part, ast.Expr) else None
            function = value.func if isinstance(value, ast.Call) else None
            return not (isinstance(function, ast.Attribute) and function.attr == "backward")
    return True


def may_find_nothing(clip: Happening, flow: Flow) -> bool:
    """Is there a way on which all that is clipped here has been cleared, and not filled since?"""
    assert clip.event is not None
    if clip.loop is None:
        return False
    for bucket in clip.event.buckets:
        pairs = flow.reached[id(clip)].get(bucket, ())
        states = [flow.states[number][0] for number, _ in pairs]
        if not any(each.seen and not each.contributions and not each.unknown for each in states):
            return False
    return bool(clip.event.buckets)


def _finds_nothing(clip: Happening, flow: Flow) -> bool:
    """Is it empty there on some way after a step, and never filled by something unseen?"""
    assert clip.event is not None
    for bucket in clip.event.buckets:
        pairs = flow.reached[id(clip)].get(bucket, ())
        judged = [each for each in (flow.states[number] for number, _ in pairs) if each[0].stepped]
        if any(state.unknown or doubt for state, doubt in judged):
            return False
        if all(state.contributions for state, _ in judged):
            return False
    return True


def _is_within(loop: Loop | None, outer: Loop) -> bool:
    while loop is not None and loop is not outer:
        loop = loop.parent
    return loop is outer
