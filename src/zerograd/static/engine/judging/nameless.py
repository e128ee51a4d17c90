"""Optimizers that a whole program names and makes nowhere: it ends there with a NameError.

A fragment, as it is posted, leaves out how its things are made; a program that can be run does
not, nor does a file that makes other optimizers.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.text.places import nodes_on

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_RUNS = re.compile(r"(?m)^if __name__ == [\"']__main__[\"']")
_MAKES = re.compile(r"=\s*(?:torch\.)?optim\.[A-Z]\w*\(")
_BINDS_UNSEEN = re.compile(r"(?<![\w.])(?:globals|locals|exec|eval)\(")
_ROOT = re.compile(r"[^\W\d]\w*")


def without_nameless(program: Program, findings: list[Finding]) -> list[Finding]:
    """Return the findings, those uncertain that tell of a name which nothing binds."""
    unit = program.main
    text = unit.source.text
    if not findings or unit.stars or _BINDS_UNSEEN.search(text):
        return findings
    if not _RUNS.search(text) and not _MAKES.search(text):
        return findings
    return [
        replace(each, certain=False)
        if each.spot.path == unit.source.path and _names_nothing(each.owner, unit)
        else each  # what another file calls it is not for this one to know
        for each in findings
    ]


def _names_nothing(owner: str, unit: Unit) -> bool:
    root = _ROOT.match(owner)
    return root is not None and _is_asked_for(root[0], unit) and not _is_bound(root[0], unit)


def _is_asked_for(name: str, unit: Unit) -> bool:
    """Does the file name it at all? A finding speaks of "the optimizer" where it has no name."""
    return any(
        isinstance(each, ast.Name)
        for each in nodes_on(unit.places.rows(name), unit.source.tree)
        if getattr(each, "id", None) == name
    )


def _is_bound(name: str, unit: Unit) -> bool:
    """Does anything in the file give the name to something?"""
    if name in ("self", "cls") or name in unit.imports or hasattr(builtins, name):
        return True
    return name in map(_bound_by, nodes_on(unit.places.rows(name), unit.source.tree))


def _bound_by(node: ast.AST) -> str | None:
    """Return the name that a node gives to something."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.alias):
        return (node.asname or node.name).split(".", 1)[0]
    return getattr(node, "name", None)  # functions, classes, what is caught, what a case takes
