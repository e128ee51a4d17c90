"""What a finding shows of the program: names and statements as they are written, calls on the way.

An engine's own names, `optims[*]` for one of several, are no Python and nobody's own words.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import NEXT_ROUND, Finding, TrailStep
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit

    Entrances = Mapping[int, Sequence[tuple[Unit, ast.AST]]]  # frames: where they are called

_ANY = "[*]"
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Expr, ast.Return)


def name_of(node: Happening) -> str:
    """Return the object of an event by a name that can be written: `optims['D']`.

    Where it is not known which of several it is, by the expression that stands there.
    """
    if _ANY not in node.name:
        return node.name
    key = node.optimizer.key.split("@", 1)[0] if node.optimizer is not None else ""
    stem, _, rest = node.name.partition(_ANY)
    kept, _, place = key.partition("[")
    same = stem.rsplit(".", 1)[-1] == kept.rsplit(".", 1)[-1]
    if same and place and _ANY not in key and not rest:
        return f"{stem}[{place}"
    return next(
        (
            node.unit.source.segment(each)
            for each in parts_below(node.node)
            if isinstance(each, ast.Subscript | ast.Attribute) and path_of(each) == node.name
        ),
        node.name,
    )


def code_of(node: Happening) -> str:
    """Return the code of an event: a call, or the statement in which a gradient is named."""
    named = isinstance(node.node, ast.Attribute)
    return node.unit.source.segment(statement_of(node.unit, node.node) if named else node.node)


def statement_of(unit: Unit, node: ast.AST) -> ast.AST:
    """Return the statement that an expression is a part of, if it is no block's head."""
    line: int = node.lineno  # type: ignore[attr-defined]
    return next(
        (
            each
            for each in unit.statements()
            if isinstance(each, _SIMPLE)
            and each.lineno <= line <= (each.end_lineno or 0)
            and any(part is node for part in unit.parts_of(each))
        ),
        node,
    )


def in_rounds(finding: Finding, happenings: Sequence[Happening], entrances: Entrances) -> Finding:
    """Say "next iteration" in a trail where the program comes to a station again.

    Lines tell that in one function only: what is called may stand above its caller. One line
    that is come to from two calls is two stations, so these calls are named.
    """
    trail: list[TrailStep] = []
    passed: list[Happening] = []
    at = -1
    for station in finding.trail:
        places = [n for n, each in enumerate(happenings) if each.spot == station.spot]
        if not places:
            return finding  # it passes what is no event: lines are all that is known
        later = [n for n in places if n > at]
        words = station.text.removeprefix(NEXT_ROUND)
        again = bool(trail) and not later
        trail.append(replace(station, text=f"{NEXT_ROUND}{words}" if again else words))
        at = (later or places)[0]
        passed.append(happenings[at])
    return by_way_of(replace(finding, trail=tuple(trail)), passed, entrances)


def by_way_of(finding: Finding, passed: Sequence[Happening], entrances: Entrances) -> Finding:
    """Name the calls in a trail that comes to one line by two ways."""
    trail = []
    for station, node in zip(finding.trail, passed, strict=True):
        call = next(filter(None, (call_apart(node, each, entrances) for each in passed)), None)
        if call is not None:
            again = NEXT_ROUND if station.text.startswith(NEXT_ROUND) else ""
            words = station.text.removeprefix(again)
            here = call.path == finding.spot.path
            place = f"line {call.line}" if here else f"{call.path}:{call.line}"
            station = replace(station, text=f"{again}(by the call in {place}) {words}")
        trail.append(station)
    return replace(finding, trail=tuple(trail))


def call_apart(node: Happening, other: Happening, entrances: Entrances) -> Spot | None:
    """Return the innermost call that leads to the one and not to the other event of one function.

    Of one line, or of two lines that two calls of one function come to.
    """
    if node is other:
        return None
    ways = (sorted(each.frames, reverse=True) for each in (node, other))
    for mine, others in zip(*ways, strict=False):
        calls = [entrances.get(each, []) for each in (mine, others)]
        if any(len(each) != 1 for each in calls):
            return None  # it is called from several places, or from none that is known
        (unit, call), (_, another) = (each[0] for each in calls)
        if call is not another:
            apart = node.spot == other.spot or _are_of_one(call, another)
            return unit.source.spot(call) if apart else None
    return None


def _are_of_one(call: ast.AST, another: ast.AST) -> bool:
    """Do two calls name the same function?"""
    both = [path_of(each.func) for each in (call, another) if isinstance(each, ast.Call)]
    return len(both) == 2 and both[0] == both[1] != ""
