"""ZG302 in words: on which way a step through a scaler is not followed by its update."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import NEXT_ROUND, Finding, TrailStep
from zerograd.static.engine.identity.endings import leaves
from zerograd.static.engine.identity.shown import code_of
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.identity.ir import Happening
    from zerograd.static.engine.identity.unit import Unit

ONLY_IF = "{step} is followed by {scaler}.update() only {when}"
_ONCE = "{scaler}.update() comes once after the last {scaler}.step() of an iteration"
TAKE_OUT = f"take line {{line}} out of that condition: {_ONCE}"
PUT_IN = f"put line {{line}} into that loop: {_ONCE}"
BEFORE_LEAVING = "call {scaler}.update() before line {line} leaves the iteration"
AGAIN = "finds it stepped already, and raises"

_ENDS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


class _Missed(NamedTuple):
    """Under which condition an update comes, and what to do about it."""

    when: str
    line: int
    advice: str


def told_of_updates(finding: Finding, step: Happening, scaler: str, buckets: Buckets) -> Finding:
    """Say in a finding of ZG302 which update comes under a condition, and at which step."""
    if step.kind is not EventKind.STEP or not isinstance(step.node, ast.Call):
        return finding
    unit = step.unit
    steps = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.STEP
        and each.optimizer is step.optimizer
        and each.unit is unit
        and each.loop is step.loop
        and isinstance(each.node, ast.Call)
    ]
    # It is told at the step that finds none; another may be the one that is left without.
    for each in (step, *steps):
        missed = _missed(unit, each.node, scaler)
        if missed is not None:
            break
        if not _is_followed(unit, each.node, scaler):
            break
    else:
        return finding
    if missed is None and _is_updated_elsewhere(step, buckets):
        return finding
    words = {"step": code_of(each), "scaler": scaler}
    trail = [TrailStep(each.spot, "steps, and nothing updates the scaler", code_of(each))]
    if missed is not None:
        words.update(when=missed.when, line=str(missed.line))
        told = f"steps; line {missed.line} updates the scaler only {missed.when}"
        trail[0] = replace(trail[0], text=told)
        finding = replace(
            finding,
            message=ONLY_IF.format_map(words),
            advice=missed.advice.format_map(words),
        )
    if step.loop is not None:
        asked = _first_in_round(step, buckets)
        again = NEXT_ROUND if asked.spot.line <= each.spot.line else ""
        trail.append(TrailStep(asked.spot, f"{again}{AGAIN}", code_of(asked)))
    return replace(finding, spot=each.spot, trail=tuple(trail))


def _is_updated_elsewhere(step: Happening, buckets: Buckets) -> bool:
    """Does a function that is called update it, on some way?"""
    around = _function(step.unit, step.node.lineno)  # type: ignore[attr-defined]
    return any(
        each.kind is EventKind.SCALER_UPDATE
        and each.scaler == step.scaler
        and not (each.unit is step.unit and _function(each.unit, each.node.lineno) is around)  # type: ignore[attr-defined]
        for each in buckets.happenings
    )


def _first_in_round(step: Happening, buckets: Buckets) -> Happening:
    """Return the unscale that comes before a step in its round: it is what raises then."""
    before = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.UNSCALE
        and each.optimizer is step.optimizer
        and each.unit is step.unit
        and each.loop is step.loop
        and each.guards <= step.guards
        and each.spot.line < step.spot.line
    ]
    return before[0] if before else step


def _missed(unit: Unit, step: ast.AST, scaler: str) -> _Missed | None:
    """Return the condition under which alone an update comes after a step, in its round."""
    left: _Missed | None = None
    for each in _rest(unit, step):
        update = _update_in(unit, each, scaler)
        if update is None:
            if isinstance(each, ast.If) and leaves(unit, each.body) and not each.orelse:
                when = f"where not `{unit.source.segment(each.test)}`"
                left = left or _Missed(when, unit.source.spot(each.body[-1]).line, BEFORE_LEAVING)
            continue
        if left is not None:
            return left
        if isinstance(each, ast.If):
            inside = any(update is one for part in each.body for one in parts_below(part))
            when = "if `{}`" if inside else "where not `{}`"
            said = when.format(unit.source.segment(each.test))
            return _Missed(said, unit.source.spot(update).line, TAKE_OUT)
        return None
    function = _function(unit, step.lineno)  # type: ignore[attr-defined]
    outside = [
        update
        for holder, block in list(_around(function, step.lineno))[:-1]  # type: ignore[attr-defined]
        for each in block
        if not isinstance(holder, ast.If)
        and each.lineno > step.lineno  # type: ignore[attr-defined]
        and (update := _update_in(unit, each, scaler)) is not None
    ]
    here = unit.source.spot(step)
    spots = [each for each in map(unit.source.spot, outside) if each.cell == here.cell]
    return _Missed("after this loop", spots[0].line, PUT_IN) if spots else None


def _is_followed(unit: Unit, step: ast.AST, scaler: str) -> bool:
    return any(_update_in(unit, each, scaler) is not None for each in _rest(unit, step))


def _update_in(unit: Unit, statement: ast.stmt, scaler: str) -> ast.Call | None:
    return next(
        (
            each
            for each in parts_below(statement)
            if isinstance(each, ast.Call) and unit.source.segment(each.func) == f"{scaler}.update"
        ),
        None,
    )


def _rest(unit: Unit, step: ast.AST) -> Iterator[ast.stmt]:
    """Yield what comes after a step in its round, from the inside out."""
    line: int = step.lineno  # type: ignore[attr-defined]
    for holder, block in reversed(list(_around(_function(unit, line), line))):
        yield from (each for each in block if each.lineno > line)
        if isinstance(holder, _ENDS):
            return


def _function(unit: Unit, line: int) -> ast.AST:
    around = unit.functions_around(line)
    return around[-1] if around else unit.source.tree


def _around(node: ast.AST, line: int) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield the blocks that a line stands in, the outer ones first, with what holds them."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        for each in block if isinstance(block, list) else ():
            if isinstance(each, ast.stmt) and each.lineno <= line <= (each.end_lineno or 0):
                yield node, block  # type: ignore[misc]
                yield from _around(each, line)
    for handler in getattr(node, "handlers", ()):
        yield from _around(handler, line)
