"""Optimizers that a whole program names and makes nowhere: it ends there with a NameError.

A fragment, as it is posted, leaves out how its things are made; a program that can be run does not.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_RUNS = re.compile(r"(?m)^if __name__ == [\"']__main__[\"']")
_BINDS_UNSEEN = re.compile(r"(?<![\w.])(?:globals|locals|exec|eval)\(")
_ROOT = re.compile(r"[^\W\d]\w*")


def without_nameless(program: Program, findings: list[Finding]) -> list[Finding]:
    """Return the findings, those uncertain that tell of a name which nothing binds."""
    unit = program.main
    text = unit.source.text
    if not findings or not _RUNS.search(text) or unit.stars or _BINDS_UNSEEN.search(text):
        return findings  # most files
    bound = _bound(unit)
    return [
        replace(each, certain=False) if _names_nothing(each.owner, bound) else each
        for each in findings
    ]


def _names_nothing(owner: str, bound: set[str]) -> bool:
    root = _ROOT.match(owner)
    return root is not None and root[0] not in bound


def _bound(unit: Unit) -> set[str]:
    """Return all names that anything in the file gives to something."""
    found = {"self", "cls", *unit.imports}
    for each in ast.walk(unit.source.tree):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, ast.alias):
            found.add((each.asname or each.name).split(".", 1)[0])
        else:  # functions, classes, what is caught, what a case takes
            name = getattr(each, "name", None)
            if isinstance(name, str):
                found.add(name)
    return found
