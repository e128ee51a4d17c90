"""ZG102 in one round of so many: `if i % 10 == 0: print(loss); opt.zero_grad()` before the step.

A guard that may hold in any round may throw a bad batch away; one that counts the rounds does not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.verdicts import Verdict, judge_set
from zerograd.static.engine.judging.unscaled import States
from zerograd.static.engine.text.remainders import is_modulo

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program


def judged_by_count(
    program: Program,
    held: dict[str, States],
    verdict: Verdict,
    event: Event,
    varies: Callable[[str], bool],
) -> Verdict:
    """Return the verdict under a condition that counts the rounds, if that one is certain."""
    if verdict.certain:
        return verdict
    found = judge_set(
        held, event, [verdict.rule], lambda key: varies(key) and not _counts(program, key)
    )
    return next(
        (
            each
            for each in found
            if each.certain and each.condition is not None and _counts(program, each.condition[0])
        ),
        verdict,
    )


def _counts(program: Program, key: str) -> bool:
    """Is it a remainder of a number that the loop counts, or that number, set back by hand?"""
    atom = program.atoms.get(key)
    node = atom.node if atom is not None else None
    if atom is not None and atom.tallied and node is not None and not atom.volatile:
        return True
    counted = node.left if isinstance(node, ast.Compare) else node
    return counted is not None and is_modulo(counted) and atom is not None and not atom.volatile
