"""ZG401: a loss that goes backward in mixed precision only, and a step that comes all the same.

`if fp16:` around the only backward has lost its `else`. A flag of another kind may switch the
training off; one that asks for a precision does not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.endings import leaves
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import names_below
from zerograd.static.engine.text.places import has_row
from zerograd.static.engine.text.stores import COMPOUND, names_stored
from zerograd.static.engine.text.words import is_optimizer_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

MESSAGE = "{owner}.step() finds no gradients unless {test}: backward() is called only then"
ADVICE = "give `if {test}:` an else with loss.backward()"

_FLAGS = (ast.Name, ast.Attribute, ast.Subscript)  # `args["fp16"]` too
_PRECISION = frozenset(("amp", "apex", "half", "mixed", "precision", "autocast"))
_KINDS = re.compile(r"(?:fp|bf|float)_?16")
# calls that by their name may go backward in another place
_FILLING = re.compile(
    r"\w*(?:backward|backprop|grad|optimi[sz]e|fit|train\w*step|step_fn)\w*\s*\(", re.IGNORECASE
)
_CLEARING = re.compile(r"\w*zero_grad\w*\s*\(|\bclip_grad\w*\s*\(|\bno_grad\s*\(")


def filled_in_one_precision(program: Program) -> Iterator[Finding]:
    """Yield the steps after such a backward, where nothing else in the function goes back."""
    unit = program.main
    for function in unit.functions_saying(".backward("):
        for block in blocks(unit, function.body):
            for at, part in enumerate(block):
                if not isinstance(part, ast.If) or not _is_of_precision(part):
                    continue
                body = unit.text_of(part)
                if ".backward(" not in body or ".step(" in body or leaves(unit, part.body):
                    continue
                rest = "\n".join(map(unit.text_of, function.body)).replace(body, "")
                if may_fill(rest) or not _computes(function, part):
                    continue
                for later in block[at + 1 :]:
                    for call in _steps(later, ast.dump(part.test)):
                        yield _finding(program, call, unit.source.segment(part.test))


def blocks(unit: Unit, body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield a block, and those inside its statements that go back, but for inner functions."""
    yield body
    rows = unit.places.rows(".backward(")
    for each in body:
        if type(each) in COMPOUND and has_row(rows, each.lineno, each.end_lineno or 0):
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(each, name, None)
                if inner:
                    yield from blocks(unit, inner)


def may_fill(text: str) -> bool:
    """Does it call something that by its name goes back, or trains?"""
    return _FILLING.search(_CLEARING.sub("", text)) is not None


def _is_of_precision(node: ast.If) -> bool:
    """Is it a plain flag by whose name the precision is chosen, with nothing for the other?"""
    if node.orelse or type(node.test) not in _FLAGS:
        return False
    name = path_of(node.test).rsplit(".", 1)[-1]
    return not _PRECISION.isdisjoint(words_of(name)) or _KINDS.search(name) is not None


def _computes(function: FunctionNode, part: ast.If) -> bool:
    """Is the loss that goes backward there one that this function has computed?"""
    used = set(names_below(part))
    before = [each for each in function.body if each.lineno < part.lineno]
    return any("loss" in words_of(name) for name in used & names_stored(before))


def _steps(node: ast.AST, test: str) -> Iterator[ast.Call]:
    """Yield the steps of optimizers there, but for those that the same flag lets through."""
    if isinstance(node, FunctionNode | ast.ClassDef):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = path_of(node.func.value)
        if node.func.attr == "step" and not node.args and is_optimizer_name(owner):
            yield node
    asked = isinstance(node, ast.If) and test in ast.dump(node.test)
    for each in node.orelse if isinstance(node, ast.If) and asked else ast.iter_child_nodes(node):
        yield from _steps(each, test)


def _finding(program: Program, call: ast.Call, test: str) -> Finding:
    assert isinstance(call.func, ast.Attribute)
    names = {"owner": path_of(call.func.value), "test": test}
    return Finding(
        rule=BY_CODE["ZG401"],
        spot=program.main.source.spot(call),
        message=MESSAGE.format_map(names),
        advice=ADVICE.format_map(names),
        owner=names["owner"],
    )
