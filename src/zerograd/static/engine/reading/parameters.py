"""Parameters: what each of them stands for, in a function that is called or read for nobody."""

from __future__ import annotations

import ast
import re

from zerograd.static.engine.identity.answering import class_of_parameter
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.decorators import has_decorator
from zerograd.static.engine.identity.definitions import Class, Function, Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.values import (
    NOTHING,
    Accelerator,
    Constant,
    External,
    Mapping,
    Module,
    Named,
    Several,
    Value,
)
from zerograd.static.engine.reading.expressions import evaluate
from zerograd.static.engine.text.words import is_optimizer_name


def bind_parameters(
    frame: Frame, function: Function, arguments: Arguments, *, outermost: bool
) -> None:
    """Give each parameter what the call hands over, its default, or what its annotation says."""
    parameters = function.node.args
    names = parameters_of(function)
    values = arguments.positional
    if function.bound is not None and not has_decorator(function.node, "staticmethod"):
        first = [*parameters.posonlyargs, *parameters.args][:1]
        if first:
            frame.locals[first[0].arg] = function.bound

    def bind(name: str, given: Value | None) -> None:
        value = given or _by_itself(frame, function, name, arguments.unknown)
        if value is NOTHING or value is None:
            value = Named(name if outermost else f"{name}@{frame.number}")
        frame.locals[name] = value

    for number, name in enumerate(names):
        bind(name, values[number] if number < len(values) else arguments.named.get(name))
    if parameters.vararg is not None:
        frame.locals[parameters.vararg.arg] = Several(list(values[len(names) :]))
    if parameters.kwarg is not None:
        known = {*names, *(each.arg for each in parameters.kwonlyargs)}
        extra = {name: value for name, value in arguments.named.items() if name not in known}
        name = parameters.kwarg.arg
        frame.locals[name] = Named(name) if arguments.unknown else Mapping(dict(extra.items()))
    for each in parameters.kwonlyargs:
        bind(each.arg, arguments.named.get(each.arg))


def parameters_of(function: Function) -> list[str]:
    """Return the names that positional arguments are bound to."""
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    if function.bound is not None and not has_decorator(function.node, "staticmethod"):
        return names[1:]
    return names


def _by_itself(frame: Frame, function: Function, name: str, unknown: bool) -> Value | None:
    """Return what a parameter is that the call says nothing of."""
    default = _default(function.node.args, name)
    if isinstance(default, ast.Constant) and not unknown:
        return Constant(default.value)
    value = _annotated(frame, function, name)
    asked = class_of_parameter(function, name) if value is None else None
    value = Instance(asked, name) if asked is not None else value
    if value is None and isinstance(default, ast.Name | ast.Attribute) and not unknown:
        program = frame.program
        found = evaluate(program.frame(function.unit, closure=function.closure), default)
        around = isinstance(default, ast.Name) and default.id in (function.closure or ())
        known = isinstance(found, External) or program.is_lasting(found) or around
        value = found if known else None
    return value


def _annotated(frame: Frame, function: Function, name: str) -> Value | None:
    """Return an instance for a parameter that is annotated with a class of the project."""
    program = frame.program
    parameters = function.node.args
    for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        if each.arg != name or each.annotation is None:
            continue
        annotation = each.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            found = program.global_value(function.unit, annotation.value)
        elif isinstance(annotation, ast.Name):
            found = program.global_value(function.unit, annotation.id)
        else:
            found = None
        if not isinstance(found, Class) and _is_shared_out(function, name):
            found = program.plain_class(function.unit, path_of(annotation)) or found
        if isinstance(found, Class):
            if program.is_optimizer(found.unit) or program.is_written_out(found.unit):
                return program.named_optimizer(name)
            return Instance(found.unit, name)
        text = path_of(annotation)
        if isinstance(found, External) or text:
            dotted = found.dotted if isinstance(found, External) else text
            if dotted.rsplit(".", 1)[-1] in ("Optimizer", "GradScaler"):
                if dotted.endswith("Optimizer"):
                    owner = function.bound if program.quiet else None
                    if isinstance(owner, Instance) and owner.key != "self":
                        name = f"{owner.key}.{name}"  # each of several has its own
                    return program.named_optimizer(name)
                return program.named_scaler(name)
            if dotted.endswith("nn.Module") and not is_optimizer_name(name):
                return Module(name)
            if dotted.rsplit(".", 1)[-1] in ("Fabric", "Accelerator"):
                return Accelerator(window=dotted.endswith("Accelerator"))
    return None


def _is_shared_out(function: Function, name: str) -> bool:
    """Are parameters of its parts asked for, by whoever gives each an optimizer of its own?

    Which of them a loss comes through, the network's own forward shows.
    """
    text = function.unit.text_of(function.node)
    return (
        f"{name}." in text
        and "parameters(" in text
        and bool(re.search(rf"(?<![\w.]){name}\.(?:\w+\.parameters|\w+_parameters)\(", text))
    )


def _default(parameters: ast.arguments, name: str) -> ast.expr | None:
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    given = dict(zip(reversed(names), reversed(parameters.defaults), strict=False))
    for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if default is not None:
            given[each.arg] = default
    return given.get(name)
