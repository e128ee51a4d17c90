"""Updates by hand: what of a leaf's gradient goes into them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Haze
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import Leaf, Module, Params, Value
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

_NORMING = frozenset(("sign", "sgn", "normalize"))
_PUT_BACK = re.compile(
    r"\.(?:data\s*=|copy_\()\s*(?:\w+\.)*\w*(?:backup|old|orig|kept|keep|save|clean)",
    re.IGNORECASE,
)


def uses_gradient(frame: Frame, right: ast.expr, holder: ast.expr, owner: Value) -> bool:
    """Does it use a gradient, or what the loop makes of this leaf's: a momentum, say?"""
    if frame.unit.mentions_gradient(right):
        return True
    read = f"{path_of(holder)}.grad"
    if not isinstance(owner, Leaf) or read not in frame.unit.source.text:
        return False
    loop = frame.loop.node if frame.loop is not None else None
    if not isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return False
    given: dict[str, list[ast.Assign | ast.AugAssign]] = {}
    for each in statements_in(loop.body):
        if isinstance(each, ast.Assign | ast.AugAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    given.setdefault(target.id, []).append(each)
    asked = [right]
    seen = {path_of(holder).split(".", 1)[0]}  # weights that are scaled afterwards are not updated
    while asked:
        part = asked.pop()
        for inner in parts_below(part):
            if isinstance(inner, ast.Attribute) and path_of(inner) == read:
                return not _is_kept_past_a_clear(part, right, read, loop)
            if isinstance(inner, ast.Name) and inner.id not in seen:
                seen.add(inner.id)
                before = [each for each in given.get(inner.id, ()) if each.lineno < part.lineno]
                if before:
                    asked.append(max(before, key=lambda each: each.lineno).value)
    return False


def _is_kept_past_a_clear(
    part: ast.expr, right: ast.expr, read: str, loop: ast.For | ast.AsyncFor | ast.While
) -> bool:
    """Is what an update is made of a copy of the gradient, which is cleared in between?

    `g = w.grad.clone(); w.grad.zero_(); w.data -= lr * g` neither loses it nor uses it twice. A
    mere name for it, `g = w.grad`, is cleared with it.
    """
    whole = part
    while isinstance(whole, ast.Attribute | ast.Call) and path_of(whole) != read:
        inner = whole.func if isinstance(whole, ast.Call) else whole
        if not isinstance(inner, ast.Attribute) or inner.attr not in ("data", "detach"):
            break
        whole = inner.value
    if part is right or path_of(whole) == read:
        return False
    return any(
        _place(part) < _place(each) < _place(right) and _wipes(each, read)
        for each in statements_in(loop.body)
        if isinstance(each, ast.Expr)
    )


def _wipes(statement: ast.Expr, read: str) -> bool:
    """Is it `w.grad.zero_()`, or a `zero_grad()`?"""
    function = statement.value.func if isinstance(statement.value, ast.Call) else None
    name = path_of(function) if function is not None else ""
    return name.endswith(".zero_grad") or name in (f"{read}.zero_", f"{read}.data.zero_")


def _place(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def perturbs(frame: Frame, node: ast.stmt | ast.Call, owner: Value) -> bool:
    """Are weights moved up along their gradient for a while, as FGM and SAM do?

    `p.data.add_(eps * p.grad / norm)`: no update is meant. The next loss is that of the moved
    weights, and then they are put back. What is divided by its norm has no factor in it, either.
    """
    if not isinstance(owner, Params | Module):
        return False
    up, parts = _moved_up(node)
    if not up or any(isinstance(each, ast.USub) for part in parts for each in ast.walk(part)):
        return False
    return any(map(_is_normed, parts)) or _PUT_BACK.search(frame.unit.source.text) is not None


def _moved_up(node: ast.stmt | ast.Call) -> tuple[bool, list[ast.expr]]:
    """Return whether something is added to weights, and what it is made of."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = [*node.args, *(each.value for each in node.keywords)]
        if name != "copy_":
            return name == "add_", given
    elif isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add), [node.value]
    else:
        given = [node.value] if isinstance(node, ast.Assign) else []
    return all(
        isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add) for each in given
    ), given


def _is_normed(part: ast.expr) -> bool:
    """Is it a gradient's sign, or what is divided by a norm?"""
    for each in parts_below(part):
        if isinstance(each, ast.Call) and path_of(each.func).rsplit(".", 1)[-1] in _NORMING:
            return True
        if isinstance(each, ast.Attribute) and each.attr == "sign":
            return True
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div):
            below = (path_of(inner) for inner in parts_below(each.right))
            if any("norm" in path.rsplit(".", 1)[-1] for path in below):
                return True
    return False


def put_back(frame: Frame, owner: Value, holder: ast.expr, given: list[ast.expr]) -> None:
    """Weights that are given other values, not made of their own, are put back to where they were.

    A line search does that: it moves them along the same gradients again, from where it kept
    them: `p.copy_(kept - rate * p.grad)`.
    """
    if not isinstance(owner, Params):
        return
    own = path_of(holder).split(".", 1)[0]
    parts = [each for part in given for each in parts_below(part)]
    asked = [
        id(each.value) for each in parts if isinstance(each, ast.Attribute) and each.attr == "grad"
    ]
    names = {each.id for each in parts if isinstance(each, ast.Name) and id(each) not in asked}
    if own not in names:
        frame.emit(Haze(keys_of(owner), whole=True, spent=True))
