"""Decorators of the project: what they put around a function is part of what it does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Class, Function
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.values import NOTHING
from zerograd.static.engine.text.classes import FunctionNode

if TYPE_CHECKING:
    from zerograd.static.engine.reading.readings import Readings


_COMMANDS = frozenset(("click", "typer", "hydra", "gin", "draccus", "pyrallis", "plac", "tyro"))
# of Sacred's experiments, and of an application of one of the above
_COMMANDED = frozenset(("automain", "capture", "command", "configurable", "option"))


def has_decorator(node: ast.AST, name: str) -> bool:
    """Is there a decorator of this name?"""
    if not isinstance(node, FunctionNode):
        return False
    for each in node.decorator_list:
        target = each.func if isinstance(each, ast.Call) else each
        if path_of(target).rsplit(".", 1)[-1] == name:
            return True
    return False


def is_manager(node: ast.AST) -> bool:
    """Is it a generator that `with` enters and leaves?"""
    return has_decorator(node, "contextmanager") or has_decorator(node, "asynccontextmanager")


def hands_arguments(node: FunctionNode) -> bool:
    """Does a decorator call it with what comes from a command line or a file of settings?"""
    for each in node.decorator_list:
        target = each.func if isinstance(each, ast.Call) else each
        path = path_of(target).split(".")
        if path[0] in _COMMANDS or path[-1] in _COMMANDED:
            return True
    return False


def is_decorated_to_act(readings: Readings, function: Function) -> bool:
    """Does a decorator of the project, that was not followed, do something to gradients?"""
    if function.bare:
        return False
    for each in getattr(function.node, "decorator_list", ()):
        name = each.func if isinstance(each, ast.Call) else each
        if isinstance(name, ast.Name):
            found = readings.global_value(function.unit, name.id)
            if isinstance(found, Function) and found.unit.has_events(found.node):
                return True
            if isinstance(found, Class) and found.unit.unit.has_events(found.unit.node):
                return True
    return False


def with_decorators(readings: Readings, function: Function) -> Function:
    """Return what stands for a function once the project's own decorators are around it."""
    node = function.node
    if function.bare or isinstance(node, ast.Lambda):
        return function
    known = readings.decorated
    key = (id(node), function.bound.ident if function.bound else "")
    if key not in known:
        known[key] = function  # should a decorator come back to it
        known[key] = _decorate(readings, function, node.decorator_list)
    made = known[key]
    return made.with_given(list(function.given), function.named) if function.given else made


def _decorate(readings: Readings, function: Function, decorators: list[ast.expr]) -> Function:
    unit = function.unit
    bare = Function(function.node, unit, closure=function.closure, owner=function.owner)
    bare.maker, bare.bare = function.maker, True
    now: Function = bare
    for each in reversed(decorators):
        target = each.func if isinstance(each, ast.Call) else each
        frame = readings.frame(unit)
        maker = readings.evaluate(frame, target) if isinstance(target, ast.Name) else NOTHING
        if not isinstance(maker, Function) or not maker.unit.has_events(maker.node):
            continue
        if isinstance(each, ast.Call):
            made = readings.evaluate(frame, each)
            maker = made if isinstance(made, Function) else maker
        value = readings.invoke(frame, each, maker, Arguments([now], {}))
        if not isinstance(value, Function):
            return function
        now = value
    if now is bare:
        return function
    whole = Function(now.node, now.unit, bound=function.bound, closure=now.closure)
    whole.maker = now.maker
    return whole
