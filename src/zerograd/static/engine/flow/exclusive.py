"""Conditions that settle one another: a name that is one value is no other one.

`if task == "a": …` and then `if task == "b": …` are never both taken, as if the second were an
`elif`; what is `"a"` is also in `("a", "b")`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.ir import Branch, Happening, Loop, Node, walk
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.identity.atoms import Atom
    from zerograd.static.engine.reading.program import Program

_ONE = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)
_SEVERAL = (ast.In, ast.NotIn)
_READING = frozenset(("get", "lower", "upper", "strip"))  # methods that say the same each time


class Ruled(NamedTuple):
    """The literals that cannot hold where a condition does, and where it does not."""

    then: frozenset[int]
    otherwise: frozenset[int]


Settled = list[dict[str, frozenset[object]]]  # of each thing asked for: key -> the values it names


def ruled_out(settled: Settled, atoms: dict[str, int]) -> dict[str, Ruled]:
    """Return, for the conditions asked, what they rule out of those that are told apart."""
    return {key: _ruled(key, values, atoms) for values in settled for key in values}


def settled_by_one(program: Program, nodes: list[Node]) -> Settled:
    """Return the conditions that ask for values of one thing, which has one of them at a time."""
    subjects: dict[str, dict[str, frozenset[object]]] = {}
    branches = [node for node in nodes if isinstance(node, Branch)]
    for key in dict.fromkeys(node.atom for node in branches):
        atom = program.atoms.get(key)
        if atom is None or not isinstance(atom.node, ast.Compare):
            continue
        values = _values(atom.node)
        if values and _is_lasting(atom):
            subject = f"{ast.dump(atom.node.left)}|{key.rpartition('|')[2]}"
            subjects.setdefault(subject, {})[key] = values
    loops = [node for node in nodes if isinstance(node, Loop)]
    return [
        values
        for values in subjects.values()
        if len(values) > 1 and not _are_turns(program, values.keys(), branches, loops)
    ]


def _are_turns(
    program: Program, keys: Collection[str], branches: list[Branch], loops: list[Loop]
) -> bool:
    """Do the rounds take turns, one of them to clear and another one to step: a window?"""
    return any(program.varies(loop, key) for loop in loops for key in keys) and any(
        isinstance(inner, Happening) and inner.kind is EventKind.CLEAR
        for node in branches
        if node.atom in keys
        for inner in walk([node])
    )


def _ruled(key: str, values: dict[str, frozenset[object]], atoms: dict[str, int]) -> Ruled:
    mine = values[key]
    then: set[int] = set()
    otherwise: set[int] = set()
    for other, theirs in values.items():
        number = atoms.get(other)
        if number is None or other == key:
            continue
        if mine.isdisjoint(theirs):
            then.add(number * 2 + 1)
        if mine <= theirs:
            then.add(number * 2)
        if theirs <= mine:
            otherwise.add(number * 2 + 1)
    return Ruled(frozenset(then), frozenset(otherwise))


def _is_lasting(atom: Atom) -> bool:
    """Is the answer the same wherever it is asked in one round?

    A variable that is set anew is another operand. An attribute that someone sets may be another
    one by then. What counts is for those who know of windows.
    """
    assert isinstance(atom.node, ast.Compare)
    if atom.counter or atom.unit is None:
        return False
    parts = parts_below(atom.node.left)
    asked: set[ast.expr] = set()
    for each in parts:
        if isinstance(each, ast.Call):
            if not isinstance(each.func, ast.Attribute) or each.func.attr not in _READING:
                return False
            asked.add(each.func)
    return not any(
        isinstance(each, ast.Attribute)
        and each not in asked
        and atom.unit.changes_attribute(each.attr)
        for each in parts
    )


def _values(test: ast.Compare) -> frozenset[object]:
    """Return what something is compared with, as far as that is written out."""
    operator, right = test.ops[0], test.comparators[0]
    if len(test.ops) > 1:
        return frozenset()
    if isinstance(operator, _ONE):
        options = [right]
    elif isinstance(operator, _SEVERAL) and isinstance(right, ast.Tuple | ast.List | ast.Set):
        options = right.elts
    else:
        return frozenset()
    values = list(map(_value, options))
    return frozenset() if None in values else frozenset(values)


def _value(node: ast.expr) -> object:
    """Return a constant, or the member of an enumeration as it is written; None for all else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return ast.dump(node) if node.value.id[:1].isupper() else None
    return None
