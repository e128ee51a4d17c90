"""Windows of one round: what is left over of a division by their size is zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.text.remainders import is_modulo, is_one, is_positive

if TYPE_CHECKING:
    from zerograd.static.engine.identity.branches import Test
    from zerograd.static.engine.identity.frame import Frame

# What a size is compared with where it is one if that holds, and where it is one if not.
_HOLDS: dict[type[ast.cmpop], int] = {ast.Eq: 1, ast.LtE: 1, ast.Lt: 2}
_HOLDS_NOT: dict[type[ast.cmpop], int] = {ast.NotEq: 1, ast.Gt: 1, ast.GtE: 2}


def is_of_one(frame: Frame, node: ast.expr) -> bool:
    """Is it `i % 1`, or `i % n` where `if n > 1:` around it went the other way?"""
    if not isinstance(node, ast.BinOp) or not is_modulo(node):
        return False
    return is_one(node.right) or any(
        ast.dump(each) == ast.dump(node.right) for each in _ones(frame, frame.program.around)
    )


def _ones(frame: Frame, holding: list[Test] | tuple[Test, ...]) -> Iterator[ast.expr]:
    """Yield what these conditions say to be one, where its names mean the same here."""
    for test in holding:
        if test.kind == "both":
            yield from _ones(frame, test.parts)
        atom = frame.program.atoms.get(test.key) if test.kind == "atom" else None
        asked = atom.node if atom is not None else None
        if not isinstance(asked, ast.Compare) or len(asked.ops) > 1:
            continue
        right = asked.comparators[0]
        one = _HOLDS if test.truth is is_positive(asked) else _HOLDS_NOT
        if isinstance(right, ast.Constant) and right.value == one.get(type(asked.ops[0])):
            names = [frame.spelling(each)[0] for each in frame.unit.names_in(asked)]
            if test.key.endswith(f"|{','.join(names)}"):
                yield asked.left
