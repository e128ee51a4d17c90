"""An unscale whose update is called off later in the iteration, for a bad norm, say."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.rules.missing_scaler_update import in_window, where_skipped
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.judging.telling import scaler_at
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.stores import names_stored

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program

_LOOKS_FOR_OVERFLOW = re.compile(r"(?i)finite|nan|inf\b|_inf|infs|overflow|skip|continue|return")


def may_be_updated(
    unscale: Happening, buckets: Buckets, program: Program, varies: Callable[[str], bool]
) -> bool:
    """Is there an update after it under a condition that may be the unscale's in other words?

    That is one that was decided before the unscale, and is the same in every round.
    """
    updates = _updates_after(unscale, buckets)
    return any(
        not varies(atom) and not _is_made_up_after(unscale, atom, program)
        for each in updates
        for atom in each.guards - unscale.guards
    )


def is_called_off(unscale: Happening, buckets: Buckets, program: Program) -> bool:
    """Does every update stand under a condition that is made up after the unscale?"""
    updates = _updates_after(unscale, buckets)
    return bool(updates) and all(
        any(_is_made_up_after(unscale, atom, program) for atom in _around(each) - _around(unscale))
        for each in updates
    )


def is_left_by_a_jump(unscale: Happening, buckets: Buckets) -> bool:
    """Does a `continue` leave the round between it and its update, whatever is asked around that?

    `if checking: if isnan(loss): continue` is there to be taken, and the next round unscales again.
    """
    loop = unscale.loop.node if unscale.loop is not None else None
    updates = [each.spot.line for each in _updates_after(unscale, buckets)]
    if not isinstance(loop, ast.For | ast.While) or not updates:
        return False
    stored = names_stored(loop.body)
    return any(
        any(isinstance(each, ast.Name) and each.id in stored for each in parts_below(test))
        and unscale.spot.line < test.lineno
        and not any(test.lineno < line < jump.lineno for line in updates)
        and jump.lineno < max(updates)
        for test, jump in _jumps(loop.body)
    )


def _jumps(body: list[ast.stmt]) -> Iterator[tuple[ast.expr, ast.Continue]]:
    """Yield each `continue` of a loop, with the innermost test that it stands under."""
    for part in body:
        if isinstance(part, ast.If):
            for each in part.body:
                if isinstance(each, ast.Continue):
                    yield part.test, each
            yield from _jumps(part.body)
            yield from _jumps(part.orelse)


def told_of_condition(
    finding: Finding, unscale: Happening, buckets: Buckets, program: Program
) -> Finding:
    """Return it in the words for what keeps every update away: until a window ends, or at all."""
    updates = _updates_after(unscale, buckets)
    scaler = scaler_at(unscale, unscale.scaler)
    if not updates or not all(_around(each) - _around(unscale) for each in updates):
        left = is_left_by_a_jump(unscale, buckets)
        return where_skipped(finding, scaler) if left else finding
    if not all(_counters(each, unscale, program) for each in updates):
        return where_skipped(finding, scaler)
    clips = any(
        each.kind is EventKind.CLIP
        and each.loop is unscale.loop
        and each.spot.line > unscale.spot.line
        and not _counters(each, unscale, program)
        for each in buckets.happenings
    )
    return in_window(finding, scaler, clips=clips)


def _counters(node: Happening, unscale: Happening, program: Program) -> list[str]:
    """Return the conditions of windows that it depends on, and the unscale does not."""
    return [
        key
        for key in _around(node) - _around(unscale)
        if (atom := program.atoms.get(key)) is not None and atom.counter
    ]


def is_second_of_a_round(unscale: Happening, buckets: Buckets) -> bool:
    """Does another unscale of it come in the same round, where this one may be left out?"""
    return any(
        each.kind is EventKind.UNSCALE
        and each is not unscale
        and each.optimizer is unscale.optimizer
        and not unscale.guards <= each.guards
        for each in buckets.happenings
    )


def stepped_past(unscale: Happening, buckets: Buckets) -> Happening | None:
    """Return the plain step of what a scaler has unscaled, if no step of it goes through a scaler.

    The scaler has noted whether anything overflowed, and only its own step asks for that. Who
    looks for it by hand may do without.
    """
    assert unscale.event is not None
    steps = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.STEP and each.event and each.event.owner == unscale.event.owner
    ]
    if len(steps) != 1:
        return None
    (step,) = steps
    if step.scaler or step.unit is not unscale.unit or step.loop is not unscale.loop:
        return None
    if step.spot.line <= unscale.spot.line or not _around(step) <= _around(unscale):
        return None
    between = step.unit.source.lines[unscale.spot.line : step.spot.line]
    return None if any(map(_LOOKS_FOR_OVERFLOW.search, between)) else step


def _around(node: Happening) -> frozenset[str]:
    """Return the conditions that an event depends on, those that skip it by `continue` too."""
    return node.guards | node.behind


def _updates_after(unscale: Happening, buckets: Buckets) -> list[Happening]:
    return [
        each
        for each in buckets.happenings
        if each.kind is EventKind.SCALER_UPDATE
        and each.scaler == unscale.scaler
        and each.loop is unscale.loop
        and each.unit is unscale.unit
        and each.spot.line > unscale.spot.line
    ]


def _is_made_up_after(unscale: Happening, key: str, program: Program) -> bool:
    atom = program.atoms.get(key)
    if atom is None or atom.node is None:
        return False
    asked = set(names_below(atom.node))
    return any(
        isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Store)
        and each.id in asked
        and unscale.spot.line < each.lineno < atom.node.lineno
        for each in parts_below(unscale.unit.source.tree)
    )
