"""Expressions: what they stand for, and the events that evaluating them sets off."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import MAY_COMPUTE, Arguments
from zerograd.static.engine.identity.attributes import attribute
from zerograd.static.engine.identity.branches import branch
from zerograd.static.engine.identity.choices import either
from zerograd.static.engine.identity.conditions import test_of
from zerograd.static.engine.identity.definitions import Function
from zerograd.static.engine.identity.frame import Frame, path_of, stem_of
from zerograd.static.engine.identity.ir import PAUSE, RETURN, Branch, Haze
from zerograd.static.engine.identity.items import MOST_MAPPED, items_of
from zerograd.static.engine.identity.keys import covers, keys_of
from zerograd.static.engine.identity.picks import picked_by
from zerograd.static.engine.identity.progress import TooLong
from zerograd.static.engine.identity.subscripts import Stem, counted_out, item_of, sliced
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    Gradient,
    Leaf,
    Mapping,
    Named,
    Params,
    Several,
    Tensor,
    Tested,
    Value,
)
from zerograd.static.engine.reading.calls import call
from zerograd.static.engine.reading.emit import emit
from zerograd.static.engine.reading.gradients import touch
from zerograd.static.engine.reading.implied import implied
from zerograd.static.engine.reading.tensors import is_packed, weighed
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.remainders import is_modulo


def evaluate(frame: Frame, node: ast.AST) -> Value:
    """Return what `node` stands for; events inside it go to the frame."""
    kind = type(node)
    if kind is ast.Name:  # nearly half of all expressions
        return frame.locals.get(node.id) or frame.lookup(node.id)  # type: ignore[attr-defined]
    if kind is ast.Constant:
        return _constant(node)  # type: ignore[arg-type]
    program = frame.program
    program.fuel -= 1
    if program.fuel < 0:
        raise TooLong
    return _READERS.get(kind, _other)(frame, node)


def _other(frame: Frame, node: ast.AST) -> Value:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr):
            evaluate(frame, inner)
    return NOTHING


def _formatted(frame: Frame, node: ast.JoinedStr) -> Value:
    for each in node.values:
        if isinstance(each, ast.FormattedValue):
            evaluate(frame, each.value)
            if each.format_spec is not None:
                evaluate(frame, each.format_spec)
    return NOTHING


def _slice(frame: Frame, node: ast.Slice) -> Value:
    for each in (node.lower, node.upper, node.step):
        if each is not None:
            evaluate(frame, each)
    return NOTHING


def _constant(node: ast.Constant) -> Value:
    return Constant(node.value) if node.value is not ... else NOTHING  # to be filled in


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    base = evaluate(frame, node.value)
    if node.attr == "data" and isinstance(base, Tensor) and is_packed(node.value):
        return base  # the steps of all its sequences, one after the other
    acted = implied(frame, node, base, node.attr)
    if acted is not None:
        return acted
    value = attribute(frame, base, node.attr)
    if type(value) is Gradient and type(value.of) is Leaf and not frame.program.peeking:
        _use_leaf(frame, node, value.of)
    return value


def _use_leaf(frame: Frame, node: ast.Attribute, leaf: Leaf) -> None:
    """Reading the gradient of an input is its use, as a step is that of a parameter."""
    emit(
        frame,
        EventKind.STEP,
        node,
        optimizer=frame.program.by_hand(frozenset((leaf.key,))),
        name=path_of(node.value) or leaf.key,
        leaf=True,
        sure=False,
    )


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    base = evaluate(frame, node.value)
    if isinstance(node.slice, ast.Slice):
        cut = sliced(frame, base, node.slice)
        if cut is not None:
            return cut
    if isinstance(base, Params) and isinstance(node.slice, ast.Name):
        short = counted_out(frame.unit.statements(), node.slice)
        if short is not None:
            return base.some(one=True, lacks=short)
    acted = implied(frame, node, base, "__getitem__")
    if acted is not None:
        return acted
    return item_of(frame.program, base, place_of(frame, node.slice))


def place_of(frame: Frame, key: ast.expr) -> object:
    """Return the key of an item, the stem of one that is put together, or None."""
    index = evaluate(frame, key)
    if isinstance(index, Constant):
        return index.value
    stem = stem_of(key)
    return Stem(stem) if stem else None


def _several(frame: Frame, node: ast.Tuple | ast.List | ast.Set) -> Value:
    items: list[Value] = []
    for each in node.elts:
        value = evaluate(frame, each)
        if type(each) is ast.Starred and isinstance(value, Several):
            items.extend(value.items)
        else:
            items.append(value)
    parts = [each for each in items if isinstance(each, Params)]
    if len(parts) == len(items) > 1 and all(type(each) is ast.Starred for each in node.elts):
        return Params(keys_of(Several(items)))  # [*a.parameters(), *b.parameters()]: as of a sum
    row = Several(items)
    row.depth = frame.program.repeating
    return row


def _dict(frame: Frame, node: ast.Dict) -> Value:
    items: dict[object, Value] = {}
    for number, (key, each) in enumerate(zip(node.keys, node.values, strict=True)):
        value = evaluate(frame, each)
        if key is None:
            if isinstance(value, Mapping):
                items.update(value.items)
        else:
            known = evaluate(frame, key)
            items[known.value if isinstance(known, Constant) else ("?", number)] = value
    return Mapping(items)


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if type(left) is Gradient:
        touch(frame, node.left, left)
    if type(right) is Gradient:
        touch(frame, node.right, right)
    if type(node.op) is ast.Add:
        if isinstance(left, Several) and isinstance(right, Several):
            return Several([*left.items, *right.items], left.open or right.open)
        if isinstance(left, (Params, Several)) and isinstance(right, Params | Several):
            return Params(keys_of(left) | keys_of(right))
    if type(node.op) is ast.Sub and isinstance(left, Params) and isinstance(right, Params):
        return _without(left, right)
    value = NOTHING
    if type(left) in MAY_COMPUTE or type(right) in MAY_COMPUTE:
        value = tensor_of([left, right])
    if value is NOTHING and is_modulo(node):
        return Tested(test_of(frame, node))
    return weighed(value, "mul") if isinstance(node.op, (ast.Div, ast.Mult)) else value


def _without(some: Params, others: Params) -> Params:
    """Sets of parameters: those of one that are not the other's, which is a part of it."""
    parts = {key for key in some.keys for each in others.keys if covers(key, each) and key != each}
    if not parts:
        return some.some(lacks=True)
    return Params(frozenset(f"{key}.rest" if key in parts else key for key in some.keys))


def tensor_of(values: list[Value]) -> Value:
    """Return what computing with these values gives: it depends on what any of them does."""
    return Arguments(values, {}).computed()


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return _tested(frame, node)
    value = evaluate(frame, node.operand)
    if isinstance(value, Constant) and isinstance(value.value, int | float):
        return Constant(-value.value if isinstance(node.op, ast.USub) else value.value)
    return value


def _tested(frame: Frame, node: ast.BoolOp | ast.Compare | ast.UnaryOp) -> Value:
    evaluate_parts(frame, node)
    return Tested(test_of(frame, node))


def evaluate_parts(frame: Frame, node: ast.expr) -> None:
    """Evaluate a condition for what happens in it; its truth is for `test_of`."""
    if isinstance(node, ast.BoolOp):
        _guarded(frame, node.values[0], node.values)
    elif isinstance(node, ast.Compare):
        evaluate(frame, node.left)
        for each in node.comparators:
            evaluate(frame, each)
    elif isinstance(node, ast.UnaryOp):
        evaluate(frame, node.operand)
    else:
        evaluate(frame, node)


def _guarded(frame: Frame, test: ast.expr, parts: list[ast.expr]) -> list[Value]:
    """Evaluate what is read only if `test` says so: a test of a gradient guards its use."""
    program = frame.program
    before = program.guarded
    program.guarded = before or frame.unit.mentions_gradient(test)
    values = [evaluate(frame, each) for each in parts]
    program.guarded = before
    return values


def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    if any(isinstance(each, ast.Compare | ast.UnaryOp) for each in node.values):
        return _tested(frame, node)
    values = _guarded(frame, node.values[0], node.values)
    first = values[0]
    if isinstance(node.op, ast.Or) and isinstance(first, Several) and first.items:
        return first  # `*names` that were given
    known = [value for value in values if not isinstance(value, Constant | Named)]
    return known[-1] if known else values[-1]


def _choice(frame: Frame, node: ast.IfExp) -> Value:
    program = frame.program
    test = test_of(frame, node.test)
    guarded = program.guarded
    program.guarded = guarded or frame.unit.mentions_gradient(node.test)
    if test.kind in ("always", "never"):
        value = evaluate(frame, node.body if test.kind == "always" else node.orelse)
    else:
        outer, frame.out = frame.out, []
        then = evaluate(frame, node.body)
        one, frame.out = frame.out, []
        otherwise = evaluate(frame, node.orelse)
        other, frame.out = frame.out, outer
        frame.out.extend(branch(test, one, other))  # scaler.step(opt) if scaler else opt.step()
        value = either(program, test, then, otherwise)
    program.guarded = guarded
    return value


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    return Function(node, frame.unit, closure={**frame.closure, **frame.locals})


def _comprehension(
    frame: Frame, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
) -> Value:
    saved = dict(frame.locals)
    program = frame.program
    guarded = program.guarded
    tests = [test for generator in node.generators for test in generator.ifs]
    filled = any(map(frame.unit.mentions_gradient, tests))
    program.guarded = guarded or filled
    results: list[Value] = []
    keys: list[Value] = []  # of a dict
    open_ended = _collect(frame, node, list(node.generators), results, keys)
    program.guarded = guarded
    frame.go_on_with(saved)
    if results and all(isinstance(value, Params) and value.one for value in results):
        picked = filled or all(getattr(value, "filled", False) for value in results)
        part = any(not frame.unit.mentions(each, "grad") for each in tests)
        part = part or any(getattr(value, "part", False) for value in results)
        found = Params(keys_of(Several(results)), filled=picked, part=part)
        found.picks = picked_by(node.generators)
        return found
    names = [each.value for each in keys if isinstance(each, Constant)]
    if keys and not open_ended and len(set(map(repr, names))) == len(results):
        return Mapping(dict(zip(names, results, strict=True)))
    return Several(results, open_ended)


def _collect(
    frame: Frame,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp,
    generators: list[ast.comprehension],
    results: list[Value],
    keys: list[Value],
) -> bool:
    """Evaluate a comprehension for each item of each list in it; tell if there may be more."""
    if not generators:
        if isinstance(node, ast.DictComp):
            keys.append(evaluate(frame, node.key))
            results.append(evaluate(frame, node.value))
        else:
            results.append(evaluate(frame, node.elt))
        return False
    first, *rest = generators
    rounds, open_ended = items_of(evaluate(frame, first.iter))
    more = False
    frame.program.repeating += open_ended
    for each in (rounds[:MOST_MAPPED] if rest else rounds) or [NOTHING]:
        frame.program.bind(frame, first.target, each)
        if any(test_of(frame, test).kind == "never" for test in first.ifs):
            continue  # this one is left out
        more = _collect(frame, node, rest, results, keys) or more
    frame.program.repeating -= open_ended
    return open_ended or more


def _inner(frame: Frame, node: Any) -> Value:
    return evaluate(frame, node.value) if node.value is not None else NOTHING


def _yield(frame: Frame, node: ast.Yield) -> Value:
    value = _inner(frame, node)
    if frame.is_manager:
        frame.returned.append(value)
        frame.emit(PAUSE)
        return NOTHING
    if _leaves_backward(frame, value):
        frame.yields.append(Haze(None, whole=True))
        frame.emit(frame.yields[-1])
    elif _hands_over(frame):
        frame.emit(Haze(None, whole=True, pauses=True))
    frame.emit(Branch("", [RETURN], []))  # who asks for no more of it leaves it there
    return NOTHING


def _leaves_backward(frame: Frame, given: Value) -> bool:
    """Does who is given this go back? It is a loss, or stands between a clear and a step."""
    function = frame.node
    if not isinstance(function, FunctionNode) or frame.unit.mentions(function, "backward"):
        return False
    return isinstance(given, Tensor) or frame.unit.mentions(function, "zero_grad")


def _hands_over(frame: Frame) -> bool:
    """Does a generator that trains stop here, for others to work on what it yields?"""
    function = frame.node
    return frame.program.handing and function is not None and frame.unit.has_events(function)


def _walrus(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    frame.program.bind(frame, node.target, value)
    return frame.lookup(node.target.id)


_READERS: dict[type[ast.AST], Callable[[Frame, Any], Value]] = {
    ast.Attribute: _attribute,
    ast.Call: call,
    ast.JoinedStr: _formatted,
    ast.Slice: _slice,
    ast.Subscript: _subscript,
    ast.Tuple: _several,
    ast.List: _several,
    ast.Set: _several,
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _tested,
    ast.BoolOp: _boolean,
    ast.IfExp: _choice,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Starred: _inner,
    ast.Await: _inner,
    ast.Yield: _yield,
    ast.YieldFrom: _inner,
    ast.NamedExpr: _walrus,
}
