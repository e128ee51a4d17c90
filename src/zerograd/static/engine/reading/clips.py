"""Clips of gradients, by torch's functions or by the project's own."""

from __future__ import annotations

import ast
import re

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.ir import Block, happens
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    External,
    Module,
    Named,
    Optimizer,
    Value,
    leaves_of,
)
from zerograd.static.engine.reading.emit import emit
from zerograd.static.engine.reading.gradients import holds_the_scale
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import clips_by_name

_PARAMETERS = re.compile(r"params|parameters")


def clip(frame: Frame, node: ast.Call, arguments: Arguments, base: Value | None = None) -> Value:
    """A clip of gradients; a clip to infinity only measures them."""
    if frame.program.used_up(frame.unit, node) is not None:
        return NOTHING  # it finds no parameters; see `beside.vacant`
    limits: list[ast.expr | ast.keyword] = [*node.args[1:], *node.keywords]
    if any(holds_the_scale(frame, each) for each in limits):
        return NOTHING  # the limit is scaled as the gradients are
    limit = arguments.get("max_norm", 1) or arguments.get("clip_value", 1)
    if _is_infinite(limit) or any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id == "float"
        and each.args
        and isinstance(each.args[0], ast.Constant)
        and str(each.args[0].value) in ("inf", "Inf", "infinity")
        for each in parts_below(node)
    ):
        return NOTHING
    source = arguments.get("parameters", 0)
    keys = keys_of(source) if source is not None else frozenset[str]()
    if source is not None and _is_some_list(source):
        keys = frozenset()  # handed in beside the optimizer: what that one holds, for all one knows
    if isinstance(base, Optimizer):
        keys = base.keys if base.keys is not None else frozenset((f"?{base.key}",))
    elif isinstance(base, Module):
        keys = frozenset((base.key,))
    emit(frame, EventKind.CLIP, node, keys=keys or None, name="")
    return NOTHING


def _is_some_list(source: Value) -> bool:
    """Is it a list of parameters by its name alone, which nothing here has made?"""
    return all(
        isinstance(each, Named) and _PARAMETERS.search(each.path.rsplit(".", 1)[-1])
        for each in leaves_of(source)
    )


def clip_by_name(
    frame: Frame, node: ast.Call, name: str, arguments: Arguments, done: Block
) -> None:
    """A function of the project that clips the gradients of what it is handed, in its own way."""
    if not clips_by_name(name) or happens(done, EventKind.CLIP):
        return  # most functions
    if frame.program.holds(Arguments([arguments.first()], {})):
        clip(frame, node, arguments)


def _is_infinite(value: Value | None) -> bool:
    if isinstance(value, Constant):
        return value.value == float("inf")
    return isinstance(value, External) and value.dotted.rsplit(".", 1)[-1] in ("inf", "infty")
