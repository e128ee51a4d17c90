"""Statements: control flow around the events, and what variables come to hold."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.arguments import Arguments
from zerograd.static.engine.conditions import branch, test_of
from zerograd.static.engine.emit import emit, is_false
from zerograd.static.engine.expressions import evaluate, items_of
from zerograd.static.engine.frame import Frame, path_of
from zerograd.static.engine.ir import (
    BREAK,
    CONTINUE,
    RAISE,
    RETURN,
    Attempt,
    Block,
    Branch,
    Haze,
    Loop,
    Reset,
    has_effect,
    walk,
)
from zerograd.static.engine.keys import joined, keys_of
from zerograd.static.engine.stores import names_stored
from zerograd.static.engine.training import clear, touch
from zerograd.static.engine.uncalled import uncalled
from zerograd.static.engine.unit import ClassUnit
from zerograd.static.engine.values import (
    MADE,
    NOTHING,
    WRAPPED,
    Class,
    Constant,
    Function,
    Gradient,
    Instance,
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
from zerograd.static.engine.words import words_of

_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
MOST_UNROLLED = 6  # items of a known list that a loop is written out for


def read_block(frame: Frame, body: list[ast.stmt]) -> Block:
    """Return the nodes for some statements."""
    outer, frame.out = frame.out, []
    guarded = frame.program.guarded
    for statement in body:
        read = _READERS.get(type(statement))
        if read is not None:
            read(frame, statement)
    frame.program.guarded = guarded
    inner, frame.out = frame.out, outer
    return inner


def _expression(frame: Frame, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Attribute):
        uncalled(frame, node.value)
    else:
        evaluate(frame, node.value)


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = evaluate(frame, node.value)
    for target in node.targets:
        if not _stays(frame, target, value, node.value):
            _store(frame, node, target, value, node.value)


def _stays(frame: Frame, target: ast.expr, value: Value, right: ast.expr) -> bool:
    """`model = wrap(model)`: what an unseen call gives back for a network is that network."""
    if not isinstance(right, ast.Call):
        return False
    if isinstance(target, ast.Tuple) and not isinstance(value, Several):
        return all(_stays(frame, each, value, right) for each in target.elts)
    unseen = value in (NOTHING, MADE, WRAPPED) or (isinstance(value, Tensor) and not value.sure)
    path = path_of(target)
    if not path or not unseen or all(path_of(each) != path for each in right.args):
        return False
    current = _peek(frame, target)
    if isinstance(current, Named):
        return not words_of(path) or "loss" not in words_of(path)
    return frame.program.is_lasting(current)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        _store(frame, node, node.target, evaluate(frame, node.value), node.value)


def _store(frame: Frame, node: ast.stmt, target: ast.expr, value: Value, right: ast.expr) -> None:
    if isinstance(target, ast.Attribute):
        if target.attr in ("grad", "_grad"):
            _assign_gradient(frame, target, value, right)
            return
        if target.attr == "requires_grad":
            _assign_requirement(frame, target, value)
            return
        of_gradient = isinstance(target.value, ast.Attribute) and target.value.attr == "grad"
        if target.attr == "data" and frame.unit.mentions_gradient(right) and not of_gradient:
            _update_by_hand(frame, node, target.value)
            return
        if target.attr == "data":
            if of_gradient and not frame.unit.mentions_gradient(right):
                _assign_gradient(frame, target.value, value, right)
            return
    elif isinstance(target, ast.Name) and frame.unit.mentions_gradient(right):
        current = frame.lookup(target.id)
        if isinstance(current, Leaf) and not isinstance(value, Leaf):
            # x = x + eps * x.grad: what comes out is a new tensor without a gradient
            frame.assign(target.id, Tensor())
            return
    bind(frame, target, value)


def _assign_gradient(frame: Frame, target: ast.expr, value: Value, right: ast.expr) -> None:
    """`p.grad = …`: None and zeros clear, all else is a gradient given by hand."""
    holder = target.value if isinstance(target, ast.Attribute) else target
    owner = _peek(frame, holder)
    if isinstance(owner, Gradient):
        owner = owner.of
    if isinstance(owner, Tensor) or owner is NOTHING:
        frame.emit(Haze(None, whole=False))  # somebody's gradient, given by hand
        return
    to_none = isinstance(right, ast.Constant) and right.value is None
    zeros = isinstance(right, ast.Call) and path_of(right.func).rsplit(".", 1)[-1] in _ZEROS
    zero = isinstance(right, ast.Constant) and right.value == 0 and not to_none
    if to_none or zeros or zero:
        emit(
            frame,
            EventKind.CLEAR,
            target,
            keys=keys_of(owner),
            name=path_of(holder),
            to_none=to_none,
        )
        if not to_none:
            frame.emit(Reset(keys_of(owner), present=True))  # there now, and zero
    else:
        emit(frame, EventKind.ASSIGN, target, keys=keys_of(owner), name=path_of(holder))


def _peek(frame: Frame, node: ast.expr) -> Value:
    """Evaluate without counting the reading of a gradient as its use."""
    program = frame.program
    before, program.peeking = program.peeking, True
    value = evaluate(frame, node)
    program.peeking = before
    return value


def _assign_requirement(frame: Frame, target: ast.Attribute, value: Value) -> None:
    """`x.requires_grad = True` makes a leaf; on parameters it thaws or freezes."""
    owner = evaluate(frame, target.value)
    if isinstance(owner, Params | Module | Instance):
        if isinstance(value, Constant):
            frame.program.freeze(keys_of(owner), is_false(value))
        else:
            frame.program.freeze(keys_of(owner), False)
    elif isinstance(target.value, ast.Name) and not is_false(value) and not isinstance(owner, Leaf):
        bind(frame, target.value, frame.program.new_leaf(frame))


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Attribute) and target.attr == "grad":
        owner = _peek(frame, target.value)
        value = evaluate(frame, node.value)
        gradient = Gradient(owner)
        touch(frame, target, gradient)
        if isinstance(node.op, ast.Add):
            frame.emit(Haze(keys_of(owner), whole=False))  # filled by hand
        if isinstance(node.op, ast.Mult | ast.Div) and not is_false(value):
            frame.emit(Haze(keys_of(owner), whole=True, spent=True))
        if isinstance(node.op, ast.Mult) and is_false(value):
            clear(frame, target, owner, Arguments([NOTHING, Constant(False)], {}))
        return
    if frame.unit.mentions_gradient(node.value):
        holder = target.value if isinstance(target, ast.Attribute) else target
        if _update_by_hand(frame, node, holder):
            return
    value = evaluate(frame, node.value)
    if isinstance(target, ast.Name):
        current = frame.lookup(target.id)
        if isinstance(current, Several) and isinstance(node.op, ast.Add):
            current.items.extend(value.items if isinstance(value, Several) else [value])
            return
        if isinstance(current, Params) and isinstance(node.op, ast.Add):
            frame.assign(target.id, Params(current.keys | keys_of(value)))
            return
        if isinstance(node.op, ast.Div | ast.Mult) and isinstance(current, Tensor):
            frame.assign(
                target.id,
                Tensor(
                    current.deps,
                    sure=current.sure,
                    scaler=current.scaler,
                    averaged=True,
                    leaves=current.leaves,
                ),
            )
            return
        if isinstance(current, Leaf):
            return  # in place: still the same leaf
        result = Arguments([current, value], {}).computed()
        frame.assign(target.id, result if isinstance(result, Tensor) else NOTHING)
        if result is NOTHING and isinstance(current, Named | Optimizer | Module):
            frame.assign(target.id, current)


def _update_by_hand(frame: Frame, node: ast.stmt, holder: ast.expr) -> bool:
    """`w -= lr * w.grad`: the update of weights that no optimizer holds."""
    owner = _peek(frame, holder)
    if isinstance(owner, Gradient):
        owner = owner.of
    if not isinstance(owner, Params | Module | Leaf):
        return False
    emit(
        frame,
        EventKind.STEP,
        node,
        optimizer=frame.program.by_hand(keys_of(owner)),
        name=path_of(holder),
        leaf=isinstance(owner, Leaf),
    )
    return True


def bind(frame: Frame, target: ast.expr, value: Value) -> None:
    """Give `target` the value."""
    program = frame.program
    if isinstance(target, ast.Name):
        frame.assign(target.id, program.christened(frame, value, target.id))
    elif isinstance(target, ast.Attribute):
        if target.attr in ("grad", "_grad"):  # one of several targets
            _assign_gradient(frame, target, value, target)
            return
        owner = _peek(frame, target.value)
        path = path_of(target)
        named = program.christened(frame, value, path or target.attr)
        if isinstance(owner, Instance):
            before = owner.attributes.get(target.attr)
            if before is not None and program.conditional:
                named = joined([before, named])  # assigned on one branch only
            owner.attributes[target.attr] = named
        elif isinstance(owner, Module | Named):
            key = owner.key if isinstance(owner, Module) else owner.path
            program.attach(key, target.attr, named)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, value)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(frame, target.value)
        index = evaluate(frame, target.slice)
        if isinstance(owner, Mapping):
            place = index.value if isinstance(index, Constant) else ("?", len(owner.items))
            owner.items[place] = program.christened(frame, value, path_of(target))
        elif isinstance(owner, Named) and isinstance(value, Optimizer):
            program.christened(frame, value, path_of(target))


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Value) -> None:
    items: list[Value] = []
    if isinstance(value, Several) and not value.open and len(value.items) == len(target.elts):
        items = value.items
    for number, each in enumerate(target.elts):
        if items:
            bind(frame, each, items[number])
        elif isinstance(value, Several) and value.items and value.open:
            bind(frame, each, value.items[0])
        elif isinstance(value, Tensor):
            bind(frame, each, value)
        elif isinstance(value, Named):
            bind(frame, each, Named(f"{value.path}[{number}]"))
        else:
            bind(frame, each, NOTHING)


def _if(frame: Frame, node: ast.If) -> None:
    program = frame.program
    test = test_of(frame, node.test)
    if not isinstance(node.test, ast.Name | ast.Attribute) and frame.unit.mentions(node.test, "("):
        evaluate(frame, node.test)
    before = dict(frame.locals)
    guarded = program.guarded
    about_grad = frame.unit.mentions_gradient(node.test)
    program.guarded = guarded or about_grad
    program.conditional += test.kind not in ("always", "never")
    then = read_block(frame, node.body) if test.kind != "never" else []
    after_then, frame.locals = frame.locals, dict(before)
    otherwise = read_block(frame, node.orelse) if test.kind != "always" else []
    program.conditional -= test.kind not in ("always", "never")
    program.guarded = guarded or (about_grad and _leaves(node.body))
    frame.locals = _merged(
        after_then if test.kind != "never" else before,
        frame.locals,
        _leaves(node.body),
        bool(node.orelse) and _leaves(node.orelse),
        test.kind,
    )
    frame.out.extend(branch(test, then, otherwise))


def _merged(
    then: dict[str, Value], otherwise: dict[str, Value], gone: bool, other_gone: bool, kind: str
) -> dict[str, Value]:
    if kind == "always" or (other_gone and not gone):
        return then
    if kind == "never" or (gone and not other_gone):
        return otherwise
    result = dict(otherwise)
    for name, value in then.items():
        other = otherwise.get(name)
        if other is None or other is value:
            result[name] = value
        else:
            result[name] = joined([value, other])
    return result


def _leaves(body: list[ast.stmt]) -> bool:
    """Does the block never fall through?"""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    program = frame.program
    source = evaluate(frame, node.iter)
    items, open_ended = items_of(source)
    if items and all(_is_one_param(item) for item in items):
        # A loop over parameters does one thing to all of them.
        bind(frame, node.target, items[0])
        frame.out.extend(read_block(frame, node.body))
        return
    lasting = [item for item in items if program.is_lasting(item, deep=True)]
    if lasting and not open_ended and len(items) <= MOST_UNROLLED:
        for item in items:
            bind(frame, node.target, item)
            frame.out.extend(_rounds(frame, node.body))
        return
    if lasting and len(items) == 1:
        # A list of unknown length: what is done to one is done to each.
        bind(frame, node.target, items[0])
        frame.out.extend(_rounds(frame, node.body))
        return
    loop = Loop(node, frame.loop)
    stored = names_stored([node])
    program.note_loop(loop, frame, stored)
    frame.forget(stored)
    bind(frame, node.target, items[0] if items else NOTHING)
    _read_loop(frame, loop, node.body, node.orelse, once=_runs_once(node.iter))


def _is_one_param(item: Value) -> bool:
    if isinstance(item, Several) and item.items:
        return any(isinstance(each, Params) and each.one for each in item.items)
    return isinstance(item, Params) and item.one


def _rounds(frame: Frame, body: list[ast.stmt]) -> Block:
    """Return one written-out round of a loop; its break and continue end that round only."""
    block = read_block(frame, body)
    if not block or not _jumps(body):
        return block
    loop = Loop(None, frame.loop)
    loop.body = [*block, BREAK]
    loop.endless = loop.once = True
    return [loop]


def _jumps(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(each, ast.Break | ast.Continue) for part in body for each in ast.walk(part)
    )


def _runs_once(source: ast.expr) -> bool:
    return (
        isinstance(source, ast.Call)
        and isinstance(source.func, ast.Name)
        and source.func.id == "range"
        and len(source.args) == 1
        and isinstance(source.args[0], ast.Constant)
        and source.args[0].value == 1
    )


def _read_loop(
    frame: Frame, loop: Loop, body: list[ast.stmt], orelse: list[ast.stmt], once: bool = False
) -> None:
    outer = frame.loop
    frame.loop = outer if once else loop
    before = dict(frame.locals)
    loop.body.extend(read_block(frame, body))
    frame.loop = outer
    for name, value in before.items():
        if frame.locals.get(name) is NOTHING:
            frame.locals[name] = value
    loop.otherwise = read_block(frame, orelse)
    if once:
        loop.body.append(BREAK)
        loop.endless = loop.once = True
    if has_effect([loop]) or any(node is RETURN for node in walk([loop])):
        frame.emit(loop)


def _while(frame: Frame, node: ast.While) -> None:
    loop = Loop(node, frame.loop)
    stored = names_stored(node.body)
    frame.program.note_loop(loop, frame, stored)
    frame.forget(stored)
    test = test_of(frame, node.test)
    loop.endless = test.kind == "always"
    if frame.unit.mentions(node.test, "("):
        evaluate(frame, node.test)
    _read_loop(frame, loop, node.body, node.orelse)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    no_grad, accumulating = frame.no_grad, frame.accumulating
    for item in node.items:
        value = evaluate(frame, item.context_expr)
        name = _context_name(item.context_expr)
        if name in ("no_grad", "inference_mode"):
            frame.no_grad = True
        elif name == "enable_grad":
            frame.no_grad = False
        elif name == "accumulate" and frame.program.accumulates(frame, item.context_expr):
            frame.accumulating = True
        elif name == "context" and "autograd" in ast.dump(item.context_expr):
            # Distributed autograd keeps gradients in its context and forgets them at its end.
            frame.accumulating, frame.no_grad = accumulating, no_grad
            return
        if item.optional_vars is not None:
            bind(frame, item.optional_vars, value)
    frame.out.extend(read_block(frame, node.body))
    frame.no_grad, frame.accumulating = no_grad, accumulating


def _context_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return path_of(node).rsplit(".", 1)[-1]


def _try(frame: Frame, node: Any) -> None:
    guarded = frame.program.guarded
    frame.program.guarded = guarded or bool(node.handlers)
    body = read_block(frame, node.body)
    frame.program.guarded = guarded
    after = dict(frame.locals)
    handlers = [read_block(frame, handler.body) for handler in node.handlers]
    frame.locals = after
    otherwise = read_block(frame, node.orelse)
    final = read_block(frame, node.finalbody)
    if body or any(handlers) or otherwise or final:
        frame.emit(Attempt(body, handlers, otherwise, final))


def _match(frame: Frame, node: Any) -> None:
    evaluate(frame, node.subject)
    blocks: list[Block] = []
    for case in node.cases:
        blocks.append(read_block(frame, case.body))
    rest: Block = []
    for number, block in reversed(list(enumerate(blocks))):
        key = f"case {number}|{id(node)}"
        frame.program.note_opaque(key, frame.unit.source.segment(node.subject))
        if block or rest:
            rest = [Branch(key, block, rest)]
    frame.out.extend(rest)


def _define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if frame.unit.functions.get(node.name) is node:
        return
    scope = {**frame.closure, **frame.locals}
    function = Function(node, frame.unit, closure=scope, owner=frame.owner)
    function.maker = frame
    if frame.self_value is not None:
        scope.setdefault("self", frame.self_value)
    frame.locals[node.name] = function
    scope[node.name] = function  # it may call itself
    frame.program.note_closure(function, frame)


def _class(frame: Frame, node: ast.ClassDef) -> None:
    known = frame.unit.classes.get(node.name)
    stands_in = known is None and node.name in frame.unit.imports
    if not stands_in and (known is None or known.node is not node):
        frame.locals[node.name] = Class(ClassUnit(node, frame.unit))


def _import(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    frame.unit.add_import(node)


def _return(frame: Frame, node: ast.Return) -> None:
    if node.value is not None:
        frame.returned.append(evaluate(frame, node.value))
    frame.emit(RETURN)


def _raise(frame: Frame, node: ast.Raise) -> None:
    frame.emit(RAISE)


def _break(frame: Frame, node: ast.Break) -> None:
    frame.emit(BREAK)


def _continue(frame: Frame, node: ast.Continue) -> None:
    frame.emit(CONTINUE)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Attribute) and target.attr == "grad":
            owner = _peek(frame, target.value)
            emit(frame, EventKind.CLEAR, target, keys=keys_of(owner), name=path_of(target.value))


def _assert(frame: Frame, node: ast.Assert) -> None:
    if frame.unit.mentions(node.test, "("):
        _peek(frame, node.test)


_READERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Delete: _delete,
    ast.Assert: _assert,
    ast.Match: _match,
}
if hasattr(ast, "TryStar"):
    _READERS[ast.TryStar] = _try
