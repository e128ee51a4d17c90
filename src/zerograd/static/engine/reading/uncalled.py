"""ZG103: `opt.zero_grad` written without the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.values import Gradient, Optimizer, Scaler
from zerograd.static.engine.text.words import is_optimizer_name, is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program


def uncalled(frame: Frame, node: ast.Attribute) -> None:
    """Report a method that is only named, and go on as if it had been called."""
    program = frame.program
    base = program.evaluate(frame, node.value)
    # `make_optimizer(config).step`: who is called to give it is named for it
    named = node.value.func if isinstance(node.value, ast.Call) else node.value
    if not _is_method(frame, base, node, path_of(named)):
        if not isinstance(base, Gradient):
            program.evaluate(frame, node)
        return
    call = ast.Call(func=node, args=[], keywords=[])
    ast.copy_location(call, node)
    program.note_uncalled(frame, node)
    program.evaluate(frame, call)


def uncalled_findings(program: Program) -> Iterator[Finding]:
    """Yield a finding for each method that was only named."""
    rule = BY_CODE["ZG103"]
    for unit, node in program.uncalled:
        names = {"owner": unit.source.segment(node.value), "method": node.attr}
        yield Finding(
            rule=rule,
            spot=unit.source.spot(node),
            message=rule.summary.format_map(names),
            advice=rule.advice.format_map(names),
            owner=names["owner"],
        )


def _is_method(frame: Frame, base: object, node: ast.Attribute, path: str) -> bool:
    if node.attr in ("zero_grad", "backward"):
        return True  # a statement of its own that only names them can mean nothing else
    if node.attr == "zero_":
        return isinstance(base, Gradient) or path.endswith((".grad", ".grad.data"))
    if node.attr == "step":
        if isinstance(base, Optimizer) or is_optimizer_name(path):
            return True
        # Beside a backward, whatever steps does so by a call: an engine, a scheduler, a pruner.
        return bool(path) and _trains(frame)
    if node.attr == "update":
        return isinstance(base, Scaler) or is_scaler_name(path)
    return False


def _trains(frame: Frame) -> bool:
    """Does the function, or the script, go backward? A cell of a notebook may show a value."""
    if frame.node is None:
        return frame.unit.source.notebook is None and frame.unit.goes_backward_plainly()
    return frame.unit.mentions(frame.node, "backward(")
