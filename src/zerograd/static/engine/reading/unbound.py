"""Tensors that a posted fragment updates by hand, and does not make."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.ir import Reset
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

_UPDATE = re.compile(r"^[ \t]*(\w+)(?:\.data)?[ \t]*-=[^\n]*\b\1\.grad\b", re.MULTILINE)


def bind_unbound(frame: Frame) -> None:
    """`w -= lr * w.grad`, where nothing in the file is called w before: a leaf, made elsewhere.

    Whether it has a gradient already, nobody here can tell; nor whether it is part of a network,
    so where networks are cleared nothing is said.
    """
    unit = frame.unit
    text = unit.source.text
    if ".grad" not in text or "zero_grad" in text or unit.stars:
        return  # most files: no pattern has to look
    names = dict.fromkeys(_UPDATE.findall(text))
    if not names:
        return
    nodes = parts_below(unit.source.tree)
    updated = {id(each.target) for each in nodes if isinstance(each, ast.AugAssign)}
    bound = {
        each.id
        for each in nodes
        if isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Store)
        and id(each) not in updated
    }
    bound.update(each.arg for each in nodes if isinstance(each, ast.arg))
    bound.update(unit.imports, unit.functions, unit.classes)
    program = frame.program
    for name in names:
        if name not in bound:
            leaf = program.new_leaf()
            frame.assign(name, program.christened(frame, leaf, name))
            frame.emit(Reset(frozenset((leaf.key,)), present=True))
