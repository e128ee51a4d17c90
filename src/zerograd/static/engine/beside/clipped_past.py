"""ZG301: torch's own clip in a loop whose loss Accelerate or Fabric scales.

`Accelerator(mixed_precision="fp16")` and `Fabric(precision="16-mixed")` keep a scaler of their
own: `accelerator.backward(loss)` scales by it, and the step of a prepared optimizer takes the scale
out again. Only their own clip does so before it clips.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_SCALING = re.compile(r"""mixed_precision=["']fp16["']|precision=(?:["']16(?:-mixed)?["']|16\b)""")
_OF_TORCH = re.compile(
    r"(?:(?:(?:torch\.)?nn\.)?utils\.)?(?:clip_grad\.)?clip_grad_(?:norm|value)_?"
)


class _Kind(NamedTuple):
    """A class that scales losses itself, if it is told so."""

    argument: str
    scaling: tuple[object, ...]
    clips: tuple[str, ...]


_KINDS = {
    "Accelerator": _Kind("mixed_precision", ("fp16",), ("clip_grad_norm_", "clip_grad_value_")),
    "Fabric": _Kind("precision", ("16-mixed", "16", 16), ("clip_gradients",)),
}


def clipped_past(program: Program) -> Iterator[Finding]:
    """Yield torch's clips between a backward that scales and the step, where nothing unscales."""
    unit = program.main
    text = unit.source.text
    if "precision=" not in text or "unscale" in text or not _SCALING.search(text):
        return  # most files; whoever unscales by another call is not to be told
    made = dict(_scaling(unit))
    if not made:
        return
    told: dict[int, Finding] = {}
    for scope in (*unit.functions_saying(".backward("), *unit.loops()):
        calls = [each for each in parts_below(scope) if isinstance(each, ast.Call)]
        calls.sort(key=lambda each: (each.lineno, each.col_offset))
        for name, kind in made.items():
            told |= {each.spot.line: each for each in _clipped(program, calls, name, kind)}
    yield from told.values()


def _scaling(unit: Unit) -> Iterator[tuple[str, _Kind]]:
    """Yield the names under which a file keeps what scales losses."""
    for each in unit.statements():
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
            continue
        kind = _KINDS.get(path_of(each.value.func).rpartition(".")[2])
        if kind is None:
            continue
        told = next((word for word in each.value.keywords if word.arg == kind.argument), None)
        if told is None or not isinstance(told.value, ast.Constant):
            continue
        if told.value.value in kind.scaling:
            yield path_of(each.targets[0]), kind


def _clipped(program: Program, calls: list[ast.Call], name: str, kind: _Kind) -> Iterator[Finding]:
    """Yield the clips that find the gradients as `name.backward(loss)` has left them."""
    scaled: ast.Call | None = None
    for number, call in enumerate(calls):
        path = path_of(call.func)
        owner, _, method = path.rpartition(".")
        if path == f"{name}.backward":
            scaled = call
        elif method == "step" or (owner == name and method in kind.clips):
            scaled = None
        elif scaled is not None and _OF_TORCH.fullmatch(path):
            stepped = any(path_of(each.func).endswith(".step") for each in calls[number + 1 :])
            if stepped and "inf" not in ast.unparse(call):
                yield _finding(program, scaled, call, f"{name}.{kind.clips[0]}")


def _finding(program: Program, scaled: ast.Call, clip: ast.Call, own: str) -> Finding:
    rule, source = BY_CODE["ZG301"], program.main.source
    stations = (
        (scaled, "scales the loss"),
        (clip, "clips the gradients with the scale in them"),
    )
    return Finding(
        rule=rule,
        spot=source.spot(clip),
        message=rule.summary,
        advice=f"clip with {own}(…), which unscales first",
        trail=tuple(
            TrailStep(source.spot(node), text, source.segment(node)) for node, text in stations
        ),
    )
