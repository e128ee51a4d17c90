"""Where a loss pulls the outputs of networks: up, down, or to something and away from it.

Minimizing `criterion(D(fake), ones)` or `-D(fake).mean()` raises the output, minimizing
`criterion(D(fake), zeros)` or `relu(1 + D(fake))` lowers it. What cannot be told is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.judging.origins import Assignments
from zerograd.static.engine.text.words import words_of

_DEEPEST = 12
_ONES = frozenset(("ones", "ones_like", "new_ones"))
_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_FULL = frozenset(("full", "full_like", "new_full", "fill_"))
_SAME_VALUES = frozenset(
    (
        *("to", "cuda", "cpu", "float", "double", "type", "type_as", "detach", "requires_grad_"),
        *("view", "reshape", "squeeze", "unsqueeze", "flatten", "expand", "expand_as", "clone"),
        *("contiguous", "sigmoid", "Variable", "Sigmoid"),
    )
)
# what grows with its first argument
_RISING = _SAME_VALUES | frozenset(
    (*("mean", "sum", "log", "exp", "tanh", "relu", "softplus", "logsigmoid", "clamp", "min"),)
)
_LIBRARIES = frozenset(("torch", "F", "nn", "functional", "nn.functional", "torch.nn.functional"))
_WEIGHTS = frozenset(
    (
        *("lambda", "lam", "lambd", "weight", "weights", "coef", "coeff", "alpha", "beta", "gamma"),
        *("scale", "factor", "w"),
    )
)
_GREEK = frozenset("αβγλ")


class Output(NamedTuple):
    """What a network gives for what it is handed."""

    network: str
    text: str
    call: ast.Call


@dataclass(frozen=True, slots=True)
class Pull:
    """Where an output is pulled; `to` names what it is drawn to, or pushed from."""

    network: str
    output: str
    to: str
    up: bool
    call: ast.Call = field(compare=False)

    def opposes(self, other: Pull) -> bool:
        """Is the same output pulled to the other side?"""
        return replace(self, up=not self.up) == other


def pulls(
    node: ast.expr, given: Assignments, rises: bool = False, depth: int = 0
) -> Iterator[Pull]:
    """Yield where minimizing `node` pulls; with `rises`, where maximizing it does."""
    if depth > _DEEPEST:
        return
    deeper = depth + 1
    if isinstance(node, ast.Name | ast.Attribute):
        for value in given.before(path_of(node), node.lineno):
            yield from pulls(value, given, rises, deeper)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from pulls(node.operand, given, not rises, deeper)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from pulls(node.left, given, rises, deeper)
        minus = isinstance(node.op, ast.Sub)
        yield from pulls(node.right, given, rises ^ minus, deeper)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            sign = _sign(one, given)
            if sign is not None:
                yield from pulls(other, given, rises ^ (not sign), deeper)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from pulls(node.left, given, rises, deeper)
    elif isinstance(node, ast.Call):
        yield from _pulls_of_call(node, given, rises, deeper)
    elif isinstance(node, ast.Subscript):
        yield from _outright(node, given, rises)


def _pulls_of_call(call: ast.Call, given: Assignments, rises: bool, depth: int) -> Iterator[Pull]:
    inner = _inside(call, _RISING)
    if inner is not None:
        yield from pulls(inner, given, rises, depth)
        return
    yield from _outright(call, given, rises)
    if len(call.args) + len(call.keywords) != 2 or not call.args:
        return
    one, other = call.args[0], call.args[1] if len(call.args) == 2 else call.keywords[0].value
    side = _side(other, given)
    if side is not None:
        found = output_of(one, given)
        if found is not None:
            yield Pull(found.network, found.text, "", side ^ rises, found.call)
        return
    for each, to in ((one, other), (other, one)):
        found = output_of(each, given)
        if found is not None:
            yield Pull(found.network, found.text, _plain(to, given), not rises, found.call)


def _outright(node: ast.expr, given: Assignments, rises: bool) -> Iterator[Pull]:
    found = output_of(node, given)
    if found is not None:
        yield Pull(found.network, found.text, "", rises, found.call)


def output_of(node: ast.expr, given: Assignments, depth: int = 0) -> Output | None:
    """Return what a network gave, if that is what the expression stands for."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Name | ast.Attribute):
        values = given.before(path_of(node), node.lineno)
        return output_of(values[0], given, depth + 1) if len(values) == 1 else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        found = output_of(node.value, given, depth + 1)
        if found is None:
            return None
        return found._replace(text=f"{found.text}[{node.slice.value!r}]")
    if not isinstance(node, ast.Call):
        return None
    inner = _inside(node, _SAME_VALUES)
    if inner is not None:
        return output_of(inner, given, depth + 1)
    network = path_of(node.func)
    if not network or not node.args or _name(node) in _SAME_VALUES:
        return None
    handed = ", ".join(_plain(each, given) for each in node.args)
    return Output(network, f"{network}({handed})", node)


def _inside(call: ast.Call, names: frozenset[str]) -> ast.expr | None:
    """Return `x` of `x.mean()` or `torch.mean(x)`, if it is a call of one of these names."""
    if _name(call) not in names:
        return None
    if isinstance(call.func, ast.Attribute) and path_of(call.func.value) not in _LIBRARIES:
        return call.func.value
    return call.args[0] if call.args else None


def _name(call: ast.Call) -> str:
    called = call.func.func if isinstance(call.func, ast.Call) else call.func
    return called.attr if isinstance(called, ast.Attribute) else path_of(called)


def _plain(node: ast.expr, given: Assignments) -> str:
    """Return what is written there, by the first of the names that it bears."""
    return ast.unparse(_first_name(node, given)).replace(".detach()", "")


def _first_name(node: ast.expr, given: Assignments, depth: int = 0) -> ast.expr:
    """`fake = output`, `output, code = made`: the first name of `fake` is `made[0]`."""
    if isinstance(node, ast.Call) and _name(node) == "detach":
        return _first_name(_inside(node, _SAME_VALUES) or node, given, depth)
    if isinstance(node, ast.Name | ast.Attribute) and depth < _DEEPEST:
        values = given.before(path_of(node), node.lineno)
        if len(values) == 1 and isinstance(values[0], ast.Name | ast.Attribute | ast.Subscript):
            first = _first_name(values[0], given, depth + 1)
            return first if not isinstance(first, ast.Subscript) or path_of(first.value) else node
    return node


def _sign(node: ast.expr, given: Assignments, depth: int = 0) -> bool | None:
    """Return whether a factor is positive; None where it is no mere number, for all one knows."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign = _sign(node.operand, given, depth)
        return None if sign is None else not sign
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value >= 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        signs = [_sign(each, given, depth + 1) for each in (node.left, node.right)]
        return None if None in signs else signs[0] is signs[1]
    if isinstance(node, ast.Call | ast.Subscript):
        return True if _is_weight(node) else None
    if not isinstance(node, ast.Name | ast.Attribute) or depth > 4:
        return None
    values = given.before(path_of(node), node.lineno)
    sign = _sign(values[0], given, depth + 1) if len(values) == 1 else None
    return True if sign is None and _is_weight(node) else sign


def _is_weight(node: ast.expr) -> bool:
    """Is it by its name what a loss is weighed with: `lam`, `config["disc_weight"]`?"""
    named: ast.expr = node.func if isinstance(node, ast.Call) else node
    if isinstance(named, ast.Subscript):
        name = str(named.slice.value) if isinstance(named.slice, ast.Constant) else ""
    else:
        name = path_of(named)
    return name in _GREEK or not _WEIGHTS.isdisjoint(words_of(name))


def _side(node: ast.expr, given: Assignments, depth: int = 0) -> bool | None:
    """Return whether a target is all ones, or all zeros; None where it cannot be told."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value >= 0.5 if 0 <= node.value <= 1 else None
    if depth > 4:
        return None
    if isinstance(node, ast.Name | ast.Attribute):
        values = given.before(path_of(node), node.lineno)
        constant = None if values else given.lasting(path_of(node))
        if constant is not None:
            values = [constant]
        return _side(values[0], given, depth + 1) if len(values) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else path_of(node.func)
    if name in _ONES or name in _ZEROS:
        return name in _ONES
    if name in _FULL:
        filled = [*node.args, *(each.value for each in node.keywords if each.arg == "fill_value")]
        if name != "fill_":
            filled = filled[1:] if len(node.args) > 1 else filled[len(node.args) :]
        return _side(filled[0], given, depth + 1) if filled else None
    if name not in _SAME_VALUES:
        return None
    if isinstance(node.func, ast.Attribute) and path_of(node.func.value) not in _LIBRARIES:
        return _side(node.func.value, given, depth + 1)
    return _side(node.args[0], given, depth + 1) if node.args else None
