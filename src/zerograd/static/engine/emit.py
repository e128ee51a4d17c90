"""Putting events into the frame that is being read."""

from __future__ import annotations

import ast
from typing import Any

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.branches import branch
from zerograd.static.engine.frame import Frame, path_of
from zerograd.static.engine.ir import Happening, Haze
from zerograd.static.engine.unit import FunctionNode
from zerograd.static.engine.values import Constant, Optimizer, Value


def emit(frame: Frame, kind: EventKind, node: ast.AST, **what: Any) -> None:
    """Add one event at `node`."""
    unit = frame.unit
    if kind is EventKind.CLEAR and frame.program.picking:
        frame.emit(Haze(what.get("keys"), whole=True))  # of these parameters some are cleared
        return
    if frame.site is not None and kind is not EventKind.TOUCH:
        # The wrapper does what it says; what is wrong is wrong where it is called.
        unit, node = frame.site
        if what.get("name") and isinstance(node, ast.Call):
            what["name"] = path_of(node.func).rpartition(".")[0] or what["name"]
    happening = Happening(kind, unit, node, unit.source.spot(node), inside=frame.inside, **what)
    happening.loop = frame.loop
    happening.rescues = frame.program.handling > 0
    if isinstance(frame.node, FunctionNode) and frame.site is None:
        happening.scope = frame.node.lineno, frame.node.end_lineno or frame.node.lineno
    happening.frames = frame.program.open_frames()
    optimizer: Optimizer | None = what.get("optimizer")
    # Of an optimizer that was made elsewhere one has to think that it is prepared.
    if frame.accumulating and optimizer and (optimizer.windowed or optimizer.keys is None):
        # Accelerate lets steps and clears through at the window's end only.
        frame.out.extend(branch(frame.program.sync_test(), [happening], []))
    else:
        frame.emit(happening)


def is_false(value: Value | None) -> bool:
    """Is it the constant False (or 0)?"""
    return isinstance(value, Constant) and value.value is not None and not value.value
