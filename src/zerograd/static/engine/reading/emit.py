"""Putting events into the frame that is being read."""

from __future__ import annotations

import ast
from typing import Any

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.branches import Test, branch
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import Block, Happening, Haze, walk
from zerograd.static.engine.identity.values import (
    Constant,
    Gradient,
    Optimizer,
    Params,
    Tested,
    Value,
)
from zerograd.static.engine.text.classes import FunctionNode


def emit(frame: Frame, kind: EventKind, node: ast.AST, **what: Any) -> None:
    """Add one event at `node`."""
    unit = frame.unit
    optimizer: Optimizer | None = what.get("optimizer")
    if optimizer is not None and optimizer.choice is not None:
        _emit_either(frame, kind, node, optimizer.choice, what)
        return
    if kind is EventKind.CLEAR and optimizer is not None and optimizer.picked and optimizer.keys:
        # one of several, by an index that cannot be told: each in its turn, one would think
        what.update(optimizer=None, keys=optimizer.keys)
        optimizer = None
    some = what.pop("some", False) or frame.program.picking
    lacks = what.pop("lacks", False)
    if kind is EventKind.CLEAR and some:
        # of these parameters some are cleared
        frame.emit(Haze(what.get("keys"), whole=True, part=node, lacks=lacks))
        return
    if frame.site is not None and kind is not EventKind.TOUCH:
        # The wrapper does what it says; what is wrong is wrong where it is called.
        unit, node = frame.site
        if what.get("name") and isinstance(node, ast.Call):
            receiver, inner = path_of(node.func).rpartition(".")[0], what["name"]
            what["name"] = receiver or inner
            if receiver and inner.startswith("self.") and _cannot_clear(frame):
                what["cleared_as"] = f"{receiver}{inner.removeprefix('self')}"
    happening = Happening(kind, unit, node, unit.source.spot(node), inside=frame.inside, **what)
    happening.loop = frame.loop
    happening.rescues = frame.program.handling > 0
    if isinstance(frame.node, FunctionNode) and frame.site is None:
        happening.scope = frame.node.lineno, frame.node.end_lineno or frame.node.lineno
    happening.frames = frame.program.open_frames()
    # Of an optimizer that was made elsewhere one has to think that it is prepared.
    if frame.accumulating and optimizer and (optimizer.windowed or optimizer.keys is None):
        # Accelerate lets steps and clears through at the window's end only.
        frame.out.extend(branch(frame.program.sync_test(), [happening], []))
    else:
        frame.emit(happening)


def _cannot_clear(frame: Frame) -> bool:
    """Is this a method of a plain class that steps, and has nothing to clear with?"""
    cls = frame.owner
    if cls is None or any(base != "object" for base in cls.bases):
        return False
    return "zero_grad" not in {*cls.methods, *cls.assigned()} and "__getattr__" not in cls.methods


def _emit_either(
    frame: Frame,
    kind: EventKind,
    node: ast.AST,
    choice: tuple[Test, Optimizer, Optimizer],
    what: dict[str, Any],
) -> None:
    """Add the event of the one optimizer where the test held that chose it, else of the other."""
    test, *optimizers = choice
    blocks: list[Block] = []
    for each in optimizers:
        outer, frame.out = frame.out, []
        emit(frame, kind, node, **{**what, "optimizer": each})
        blocks.append(frame.out)
        frame.out = outer
    for made in walk([*blocks[0], *blocks[1]]):
        if isinstance(made, Happening):
            made.turns |= {test.key, *test.atoms()}
    frame.out.extend(branch(test, *blocks))


def is_part(value: Value) -> bool:
    """Are these parameters, or their gradients, that were picked from a network's?"""
    if isinstance(value, Gradient):
        return is_part(value.of)
    return isinstance(value, Params) and value.part


def is_lacking(value: Value) -> bool:
    """Is it surely not all of a network's parameters?"""
    if isinstance(value, Gradient):
        return is_lacking(value.of)
    return isinstance(value, Params) and value.lacks


def is_false(value: Value | None) -> bool:
    """Is it the constant False (or 0), or `not flag` where the flag is known to be set?"""
    if isinstance(value, Tested):
        return value.test.kind == "never"
    return isinstance(value, Constant) and value.value is not None and not value.value
