"""ZG304: clips where no backward can have been, whatever the rest of the program does.

Lightning goes backward after `training_step` has returned, and `autograd.grad` gives
gradients back instead of filling them: what is clipped there is not what the step uses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.acting import acts
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import CLIPS

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_BEFORE_BACKWARD = (
    "gradients are clipped in {name}(), before Lightning goes backward: the clip does nothing"
)
_NEVER_FILLED = "autograd.grad() gives gradients back and fills none, so the clip does nothing"
_EARLY = frozenset(("training_step", "on_train_batch_start"))  # what Lightning calls before it
_BY_HAND = re.compile(r"automatic_optimization|backward|optimizers\(|\.step\(|\.grad\b")
_GIVEN_BACK = re.compile(r"\bautograd\.grad\s*\(")
_FILLED = re.compile(r"backward|(?<!autograd)\.grad\b|\.step\(")


def clipped_unfilled(program: Program) -> Iterator[Finding]:
    """Yield the clips of this file that come before any backward, or without one."""
    if not program.main.clips():
        return
    text = program.main.source.text
    if "LightningModule" in text:
        yield from _clipped_before_lightning(program)
    if "autograd.grad" in text and _GIVEN_BACK.search(text):
        yield from _clipped_beside_given(program)


def _clipped_before_lightning(program: Program) -> Iterator[Finding]:
    unit = program.main
    for each in unit.statements():
        if not isinstance(each, ast.ClassDef) or not any(
            path_of(base).rsplit(".", 1)[-1] == "LightningModule" for base in each.bases
        ):
            continue
        if "automatic_optimization" in unit.text_of(each):
            continue
        for method in each.body:
            if not isinstance(method, FunctionNode) or method.name not in _EARLY:
                continue
            if _BY_HAND.search(_code(method)):
                continue
            message = _BEFORE_BACKWARD.format(name=method.name)
            yield from (_finding(program, clip, message) for clip in _clips(method))


def _clipped_beside_given(program: Program) -> Iterator[Finding]:
    unit = program.main
    for function in unit.functions_saying("autograd.grad"):
        code = _code(function)
        if _FILLED.search(code) or acts(_GIVEN_BACK.sub("(", code), unit):
            continue
        given = min(
            (
                each.lineno
                for each in parts_below(function)
                if isinstance(each, ast.Call) and path_of(each.func).endswith("autograd.grad")
            ),
            default=0,
        )
        for clip in _clips(function):
            if given and clip.lineno > given:
                yield _finding(program, clip, _NEVER_FILLED)


def _clips(function: FunctionNode) -> Iterator[ast.Call]:
    """Yield the calls that clip a network's parameters: not what is told only to measure."""
    for each in parts_below(function):
        if not isinstance(each, ast.Call) or path_of(each.func).rsplit(".", 1)[-1] not in CLIPS:
            continue
        spelled = ast.unparse(each)
        measures = "inf" in spelled or any(
            isinstance(word.value, ast.Constant) and word.value.value is False
            for word in each.keywords
        )
        if ".parameters()" in spelled and not measures:
            yield each


def _code(function: FunctionNode) -> str:
    """Return what a function does, without its comments and its docstring."""
    return "\n".join(
        ast.unparse(part)
        for part in function.body
        if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
    )


def _finding(program: Program, clip: ast.Call, message: str) -> Finding:
    rule = BY_CODE["ZG304"]
    return Finding(
        rule=rule,
        spot=program.main.source.spot(clip),
        message=message,
        advice=rule.advice.format_map({"owner": "the optimizer"}),
    )
