"""Subscripts: which item, or which part, `values[index]` and `values[a:b]` stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from zerograd.static.engine.identity.atoms import is_counted
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.groups import Groups
from zerograd.static.engine.identity.keys import joined
from zerograd.static.engine.identity.picks import sliced_by
from zerograd.static.engine.identity.typical import at_place
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.reading.program import Program


class Stem(NamedTuple):
    """What a key that is put together begins with: `"opt_"` of `f"opt_{n}"`."""

    text: str


def item_of(program: Program, base: Value, index: object) -> Value:
    """Return an item; an index of None is one that cannot be told."""
    if isinstance(base, Groups) and isinstance(index, int):
        return base.one()
    if isinstance(base, Several):
        if isinstance(index, int) and not base.open and -len(base.items) <= index < len(base.items):
            return base.items[index]
        if base.open and len(base.items) == 1:
            return at_place(program, base.items[0], index)
        if type(index) is int and not base.open:
            return NOTHING  # there is more in it than was understood
        return _picked(base.items)
    if isinstance(base, Mapping):
        if index in base.items:
            item = base.items[index]
            return NOTHING if _is_counter(index, item) else item
        alike = [item for key, item in base.items.items() if _begins(key, index)]
        if len(base.items) == 1 and not alike:
            (only,) = base.items.values()
            return at_place(program, only, index)
        return _picked(alike or list(base.items.values()))
    if isinstance(base, Named):
        path = f"{base.path}{_spelled(index)}"
        return program.attached(base.path, path) or Named(path)
    if isinstance(base, Instance | Optimizer):
        return Named(f"{base.key}{_spelled(index)}")
    if isinstance(base, Module):
        return Module(f"{base.key}.{'[*]' if index is None or type(index) is Stem else index}")
    if isinstance(base, Params):
        if isinstance(index, int | str) or base.part:
            return base.some(one=True)
        return Params(base.keys, one=True, filled=base.filled)
    if isinstance(base, (Tensor, Leaf)):
        return base
    return NOTHING  # a part of a gradient is no gradient to clear


def _is_counter(index: object, item: Value) -> bool:
    """Is it `state["step"]`, by its name a number that somebody counts up?"""
    return type(item) is Constant and type(item.value) is int and is_counted(str(index))


def _begins(key: object, stem: object) -> bool:
    return isinstance(key, str) and type(stem) is Stem and key.startswith(stem.text)


def _spelled(index: object) -> str:
    if type(index) is Stem:
        return f"[{index.text!r}][*]"
    return "[*]" if index is None else f"[{index!r}]"


def _picked(items: list[Value]) -> Value:
    """Return one of some items, nobody knows which."""
    value = joined(items) if items else NOTHING
    if isinstance(value, Optimizer) and all(value is not each for each in items):
        value.picked = True
        value.key = f"{value.key.partition('[')[0]}[*]"
    if isinstance(value, Named) and any(each.ident != value.ident for each in items):
        return NOTHING  # the name of one of them would make all that are picked that one
    return value


def sliced(frame: Frame, base: Value, cut: ast.Slice) -> Value | None:
    """Return some of a network's parameters, or of a list of things that train."""
    if isinstance(base, Params):
        if cut.lower is None and cut.upper is None:
            return base
        part = base.some(lacks=_leaves_out(cut))
        part.picks = base.picks | sliced_by(cut)
        return part
    if not isinstance(base, Several) or base.open or not base.items:
        return None
    if not all(isinstance(each, Optimizer | Module | Instance) for each in base.items):
        return None
    bounds: list[int | None] = []
    for bound in (cut.lower, cut.upper, cut.step):
        known = frame.program.evaluate(frame, bound) if bound is not None else Constant(None)
        if not isinstance(known, Constant) or not isinstance(known.value, int | None):
            return None
        bounds.append(known.value)
    return Several(base.items[slice(*bounds)]) if bounds[2] != 0 else None


def _leaves_out(cut: ast.Slice) -> bool:
    """Does a slice surely leave some out: `params[1:]`, `params[:-2]`?"""
    first = cut.lower is not None and _is_positive(cut.lower)
    last = isinstance(cut.upper, ast.UnaryOp) and isinstance(cut.upper.op, ast.USub)
    return first or (last and _is_positive(cut.upper.operand))  # type: ignore[union-attr]


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def counted_out(statements: Iterable[ast.AST], index: ast.Name) -> bool | None:
    """Tell of an index that a loop over a range counts whether it surely leaves some out.

    None: it counts them all, `range(len(params))`, or is no such index.
    """
    around = [
        each
        for each in statements
        if isinstance(each, ast.For)
        and each.lineno <= index.lineno <= (each.end_lineno or 0)
        and isinstance(each.target, ast.Name)
        and each.target.id == index.id
    ]
    over = max(around, key=lambda each: each.lineno).iter if around else None
    if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Name):
        return None
    if over.func.id != "range" or not 1 <= len(over.args) <= 2:
        return None
    first, last = over.args if len(over.args) == 2 else (ast.Constant(0), *over.args)
    all_at_the_end = isinstance(last, ast.Call | ast.Name | ast.Attribute)
    if isinstance(first, ast.Constant) and first.value == 0 and all_at_the_end:
        return None
    fewer = (
        isinstance(last, ast.BinOp)
        and isinstance(last.op, ast.Sub)
        and isinstance(last.left, ast.Call)
        and _is_positive(last.right)
    )
    return fewer or _is_positive(first)
