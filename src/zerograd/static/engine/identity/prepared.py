"""What Accelerate, Fabric, apex and DeepSpeed give back for what they are handed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.ir import Haze
from zerograd.static.engine.identity.values import (
    NOTHING,
    Engine,
    Named,
    Optimizer,
    Several,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.words import clears_by_name, is_optimizer_name, is_scheduler_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.reading.program import Program


def prepared(program: Program, arguments: Arguments, windowed: bool = False) -> Value:
    """Return what Accelerate, Fabric or apex give back: the same things, wrapped."""
    for value in arguments.all():
        for each in leaves_of(value):
            if isinstance(each, Optimizer):
                each.windowed = each.windowed or windowed
            elif isinstance(each, Named) and is_optimizer_name(each.path) and windowed:
                program.named_optimizer(each.path).windowed = True
    values = [
        program.named_optimizer(value.path)
        if isinstance(value, Named)
        and is_optimizer_name(value.path)
        and not is_scheduler_name(value.path)
        else value
        for value in arguments.positional
    ]
    return values[0] if len(values) == 1 else Several(list(values))


def engine_method(
    frame: Frame, node: ast.Call, base: Engine, name: str, arguments: Arguments
) -> Value:
    """A method of an engine, which does all by itself; a clear may be for when there is none."""
    if clears_by_name(name):
        frame.emit(Haze(None, whole=True))  # what becomes an engine by a flag is a network else
    return NOTHING
