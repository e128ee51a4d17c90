"""Loss scalers: scale, unscale, step and update, one by one or all in one call."""

from __future__ import annotations

import ast

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.branches import ALWAYS, branch
from zerograd.static.engine.identity.conditions import test_of
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import Block
from zerograd.static.engine.identity.values import (
    NOTHING,
    Scaler,
    Tensor,
    Value,
    leaves_of,
    read_in,
)
from zerograd.static.engine.reading.emit import emit
from zerograd.static.engine.reading.training import fill, step
from zerograd.static.engine.text.words import is_scaler_name, words_of


def scaler_method(
    frame: Frame, node: ast.Call, scaler: Scaler, name: str, arguments: Arguments
) -> Value:
    """A method of a loss scaler; where it is switched off, only the step does anything."""
    if not scaler.live:
        return _method_when_off(frame, node, name, arguments)
    if scaler.on is None:
        return _method_when_on(frame, node, scaler, name, arguments)
    values: list[Value] = []
    blocks: list[Block] = []
    for is_on in (True, False):
        outer, frame.out = frame.out, []
        values.append(
            _method_when_on(frame, node, scaler, name, arguments)
            if is_on
            else _method_when_off(frame, node, name, arguments)
        )
        blocks.append(frame.out)
        frame.out = outer
    frame.out.extend(branch(scaler.on, *blocks))
    scaled, plain = values
    if not isinstance(scaled, Tensor):
        return scaled
    plain = plain if isinstance(plain, Tensor) else Tensor(sure=False)
    chosen = scaled.with_scaler(scaler.key)
    chosen.choice = scaler.on, scaled, plain
    return chosen


def _method_when_off(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    if name == "step":
        named_at = node.args[0] if node.args else node
        step(frame, node, arguments.first(), arguments, named_at)
    return arguments.first() if name == "scale" else NOTHING


def _method_when_on(
    frame: Frame, node: ast.Call, scaler: Scaler, name: str, arguments: Arguments
) -> Value:
    if name == "scale":
        value = arguments.first()
        tensors = [each for each in leaves_of(value) if isinstance(each, Tensor)]
        if not tensors:
            return Tensor(sure=False, scaler=scaler.key)
        if len(tensors) == 1:
            return tensors[0].with_scaler(scaler.key)
        return Tensor(
            frozenset().union(*(each.deps for each in tensors)),
            sure=all(each.sure for each in tensors),
            scaler=scaler.key,
            averaged=any(each.averaged for each in tensors),
            leaves=frozenset().union(*(each.leaves for each in tensors)),
            read=read_in(tensors),
        )
    if name == "step":
        named_at = node.args[0] if node.args else node
        step(frame, node, arguments.first(), arguments, named_at, scaler=scaler.key)
    elif name in ("unscale_", "unscale"):
        given = arguments.first()
        spelled = path_of(node.args[0]) if node.args else ""
        optimizer = frame.program.as_optimizer(frame, given) or frame.program.spelled_optimizer(
            frame, given, spelled
        )
        # of what cannot be told it may be any of them
        emit(
            frame,
            EventKind.UNSCALE,
            node,
            optimizer=optimizer,
            keys=None,
            name=spelled,
            scaler=scaler.key,
        )
    elif name == "update":
        emit(frame, EventKind.SCALER_UPDATE, node, scaler=scaler.key, keys=None)
    elif name == "backward":
        fill(frame, node, arguments.first(), arguments)
    return NOTHING


def hand_scaler(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> None:
    """`step_with(scaler, optimizer)`, of elsewhere: who steps for the scaler updates it, too."""
    if "step" not in words_of(name) or not arguments.optimizers():
        return
    for value in arguments.all():
        key = value.key if isinstance(value, Scaler) else getattr(value, "path", "")
        stands = isinstance(value, Scaler) or is_scaler_name(key)
        if stands and f"{key.partition('@')[0]}.step(" not in frame.unit.source.text:
            emit(frame, EventKind.SCALER_UPDATE, node, scaler=key, keys=None)


def run_scaler(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`loss_scaler(loss, optimizer, …)`: backward, unscale, clip, step and update in one."""
    optimizers = arguments.optimizers()
    if not optimizers and not frame.bare:
        return arguments.computed()  # `x = scaler(x)`: one of data, asked for what it makes of it
    fill(frame, node, arguments.first(), Arguments.none())
    if not optimizers:
        return NOTHING
    guard = next(
        (arguments.nodes[key] for key in ("update_grad", "need_update") if key in arguments.nodes),
        None,
    )
    test = test_of(frame, guard) if guard is not None else ALWAYS
    place = next((each for each in node.args[1:] if path_of(each)), node)
    outer, frame.out = frame.out, []
    step(frame, node, optimizers[0], Arguments.none(), place)
    inner, frame.out = frame.out, outer
    frame.out.extend(branch(test, inner, []))
    return NOTHING
