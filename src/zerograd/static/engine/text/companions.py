"""Names that are there together, or not at all.

    if settings is not None:
        self.extra, self.extra_opt = Extra(), Adam(…)
    else:
        self.extra = self.extra_opt = None

To ask for one of them is to ask for the other.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.text.stores import SIMPLE, statements_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zerograd.static.engine.identity.unit import Unit

_BLOCKS = ("body", "orelse", "finalbody")


def companions(tree: Sequence[ast.AST]) -> dict[str, frozenset[str]]:
    """Return of each name, `.name` for an attribute, those that are None exactly where it is."""
    groups: dict[str, frozenset[str]] = {}
    twice: set[str] = set()
    for node in statements_in(tree):
        if type(node) in SIMPLE:
            continue
        for field in _BLOCKS:
            block: list[ast.stmt] = getattr(node, field, None) or []
            for group in _groups(block):
                for name in group:
                    if name in groups and groups[name] != group:
                        twice.add(name)  # made in two places, together with others there
                    groups[name] = group
    return {name: group - {name} for name, group in groups.items() if not group & twice}


def asked_with(unit: Unit, node: ast.Name | ast.Attribute) -> Iterable[tuple[ast.expr, str]]:
    """Yield the companions of a name that the file asks for, each with how it is written."""
    before = ""
    key = ""
    if isinstance(node, ast.Name):
        key = node.id
    elif isinstance(node.value, ast.Name):
        key, before = f".{node.attr}", node.value.id
    for name in sorted(unit.companions(key)) if key else ():
        text = f"{before}{name}"
        if not re.search(rf"\b(?:if|elif|and|or|not) {re.escape(text)}\b", unit.source.text):
            continue
        made: ast.expr = ast.Name(name, ast.Load())
        if isinstance(node, ast.Attribute):
            made = ast.Attribute(node.value, name[1:], ast.Load())
        yield ast.copy_location(made, node), text


def _groups(block: list[ast.stmt]) -> Iterable[frozenset[str]]:
    """Yield what one way of a condition makes, and is None on the other, or was before it."""
    none_before: set[str] = set()
    last = max((at for at, node in enumerate(block) if type(node) is ast.If), default=-1)
    for node in block[: last + 1]:
        if type(node) is ast.If:
            made, none = _stored([*node.body]), _stored([*node.orelse])
            ways = (made[0] & none[1], none[0] & made[1], made[0] & none_before - none[0] - none[1])
            for group in ways:
                if len(group) > 1:
                    yield frozenset(group)
        given, none_here = _stored([node]) if type(node) is not ast.If else (set(), set())
        none_before = (none_before - given) | none_here


def _stored(block: list[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return the names to which the statements of a block give something, and None."""
    given: set[str] = set()
    none: set[str] = set()
    for node in block:
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        for target, value in [part for pair in pairs for part in _parts(*pair)]:
            name = _name(target)
            if name and value is not None:
                (none if _is_none(value) else given).add(name)
    return given - none, none - given


def _parts(target: ast.expr, value: ast.expr | None) -> Iterable[tuple[ast.expr, ast.expr | None]]:
    """Take `a, b = x, y` apart."""
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return zip(target.elts, value.elts, strict=True)
    return [(each, value) for each in target.elts]


def _name(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return f".{target.attr}" if target.value.id == "self" else ""
    return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
