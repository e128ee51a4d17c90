"""ZG301: gradients clipped in a hook of the backward, while the loss is scaled.

`p.register_hook(lambda grad: grad.clamp(-1, 1))` sees each gradient as backward() makes it, with
the scaler's factor in it: nothing can unscale it before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_MESSAGE = "a hook clips gradients that still carry the scaler's factor"
_ADVICE = "clip after {scaler}.unscale_(the optimizer), in place of the hook"
_SCALED = re.compile(r"([\w.]+)\.scale\([^\n]*\)\.backward\(")
_CLIPS = re.compile(r"clamp|clip")
_KNOWS = re.compile(r"scale")
_OFF = re.compile(r"GradScaler\([^()]*\benabled\s*=\s*False")  # a scaler that scales nothing


def clipped_in_hooks(program: Program) -> Iterator[Finding]:
    """Yield the hooks of parameters that clip, where the losses of the file are scaled."""
    unit = program.main
    text = unit.source.text
    if "register_hook" not in text or ".scale(" not in text:
        return
    scalers = [name for name in _SCALED.findall(text) if is_scaler_name(name)]
    if not scalers or _OFF.search(text):
        return
    for loop in unit.statements():
        if not isinstance(loop, ast.For) or "parameters(" not in unit.text_of(loop.iter):
            continue
        for call in parts_below(loop):
            if _registers(call, loop.target) and _clips(unit, call):
                yield _finding(program, call, scalers[0])  # type: ignore[arg-type]


def _registers(call: ast.AST, target: ast.expr) -> bool:
    """Is it `p.register_hook(…)` of the parameter that a loop goes through?"""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    given = set(names_below(target))
    return call.func.attr == "register_hook" and path_of(call.func.value) in given


def _clips(unit: Unit, call: ast.AST) -> bool:
    """Does the hook give back its gradient, clipped, and know of no scale?"""
    assert isinstance(call, ast.Call)
    hook = call.args[0] if call.args else None
    if isinstance(hook, ast.Name):
        named = [each for each in unit.every_function() if each.name == hook.id]
        code = "\n".join(map(ast.unparse, named[0].body)) if len(named) == 1 else ""
    else:
        code = ast.unparse(hook.body) if isinstance(hook, ast.Lambda) else ""
    return bool(_CLIPS.search(code)) and not _KNOWS.search(code)


def _finding(program: Program, call: ast.Call, scaler: str) -> Finding:
    return Finding(
        rule=BY_CODE["ZG301"],
        spot=program.main.source.spot(call),
        message=_MESSAGE,
        advice=_ADVICE.format(scaler=scaler),
    )
