"""The wrappers of backward, step and clear that a project names in its settings."""

from __future__ import annotations

import ast

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.values import (
    Module,
    Optimizer,
    Params,
    Several,
    Value,
)
from zerograd.static.engine.reading.training import clear, fill, step


def by_wrapper(
    frame: Frame, node: ast.Call, name: str, base: Value | None, arguments: Arguments
) -> bool:
    """Is it one of the wrappers that the project names in its settings?"""
    wrappers = frame.program.wrappers
    short = name.rsplit(".", 1)[-1]
    spelled = path_of(node.func)
    names = {name, short, spelled}
    if not names.isdisjoint(wrappers.backward):
        fill(frame, node, arguments.first(), arguments)
        return True
    if not names.isdisjoint(wrappers.step):
        for each in _concerned(frame, base, arguments):
            step(frame, node, each, Arguments.none(), node)
        return True
    if not names.isdisjoint(wrappers.clear):
        clear(frame, node, Several(_concerned(frame, base, arguments)), Arguments.none())
        return True
    return False


def _concerned(frame: Frame, base: Value | None, arguments: Arguments) -> list[Value]:
    """Return the optimizers that a wrapper is handed, or the one that there is."""
    if isinstance(base, Optimizer):
        return [base]
    found = arguments.optimizers()
    if found:
        return found
    return [
        each for each in arguments.all() if isinstance(each, Module | Params)
    ] or frame.program.all_optimizers()
