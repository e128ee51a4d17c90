"""Statements: the control flow around the events."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zerograd.static.engine.identity.branches import Test, branch
from zerograd.static.engine.identity.choices import either, last_choice
from zerograd.static.engine.identity.conditions import RAISED, opaque_test, test_of
from zerograd.static.engine.identity.definitions import Class, Function, Instance
from zerograd.static.engine.identity.endings import ends_program, leaves
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import (
    BREAK,
    CONTINUE,
    RAISE,
    RETURN,
    Attempt,
    Block,
    Branch,
    Jump,
)
from zerograd.static.engine.identity.picks import picks_of
from zerograd.static.engine.identity.values import External, Value
from zerograd.static.engine.reading.assignments import (
    assign,
    assign_annotated,
    assign_augmented,
)
from zerograd.static.engine.reading.contexts import read_with
from zerograd.static.engine.reading.expressions import evaluate, evaluate_parts
from zerograd.static.engine.reading.given import delete, gradients_given, peek, there_now
from zerograd.static.engine.reading.knobs import is_knob
from zerograd.static.engine.reading.loops import read_for, read_while
from zerograd.static.engine.reading.mapped import Statement, as_rounds, rounds_inside, taken_out
from zerograd.static.engine.reading.uncalled import uncalled
from zerograd.static.engine.text.classes import ClassUnit
from zerograd.static.engine.text.matches import as_choice
from zerograd.static.engine.text.parts import names_below, parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program


_YIELDS = frozenset((ast.Yield, ast.YieldFrom))


def read_block(frame: Frame, body: list[ast.stmt]) -> Block:
    """Return the nodes for some statements."""
    outer, frame.out = frame.out, []
    guarded = frame.program.guarded
    for number, statement in enumerate(body, 1):
        read = _READERS.get(type(statement))
        if read is not None:
            read(frame, statement)
        if number < len(body) and frame.out and _leaves(frame, statement):
            _read_unreached(frame, body[number:])
            break
    frame.program.guarded = guarded
    inner, frame.out = frame.out, outer
    return inner


def _leaves(frame: Frame, statement: ast.stmt) -> bool:
    """Does what was just read leave for sure? So does an `if` whose condition is known here."""
    if type(frame.out[-1]) is not Jump:
        return False
    # That there is a gradient is taken for granted, not known.
    return not (isinstance(statement, ast.If) and frame.unit.mentions_gradient(statement.test))


def _go_round(frame: Frame, rounds: ast.For) -> None:
    """Read a loop that is written as an expression."""
    frame.program.written.append(rounds)
    before = dict(frame.locals)
    _for(frame, rounds)
    frame.go_on_with(before)  # its variable is its own


def _after_rounds(frame: Frame, node: Statement) -> Statement:
    """Return what is left of a statement once the rounds inside it that train are read."""
    rounds = rounds_inside(node.value)
    if rounds is None or not frame.unit.has_events(rounds.elt):
        return node
    loop, rest = taken_out(node, rounds)
    _go_round(frame, loop)
    frame.program.written.append(rest)
    return rest


def _assign(frame: Frame, node: ast.Assign) -> None:
    assign(frame, _after_rounds(frame, node))


def _assign_augmented(frame: Frame, node: ast.AugAssign) -> None:
    assign_augmented(frame, _after_rounds(frame, node))


def _expression(frame: Frame, node: ast.Expr) -> None:
    if type(node.value) is ast.Attribute:
        uncalled(frame, node.value)
        return
    rounds = as_rounds(node)
    if rounds is not None:
        _go_round(frame, rounds)
        return
    node = _after_rounds(frame, node)
    frame.bare = type(node.value) not in _YIELDS  # whose value is handed out
    evaluate(frame, node.value)
    frame.bare = False
    if ends_program(frame.unit, node.value):
        frame.emit(RAISE)


def _if(frame: Frame, node: ast.If) -> None:
    program = frame.program
    test = test_of(frame, node.test)
    if test.kind in ("always", "never") and is_knob(frame, node, test.kind):
        test = opaque_test(frame, node.test)
    if not isinstance(node.test, (ast.Name, ast.Attribute)) and frame.unit.mentions(node.test, "("):
        evaluate_parts(frame, node.test)
    before = dict(frame.locals)
    guarded = program.guarded
    about_grad = frame.unit.mentions_gradient(node.test)
    program.guarded = guarded or about_grad
    asked = test.kind not in ("always", "never")
    program.conditional += asked
    program.around.append(test)
    picking = bool(program.items) and not about_grad and _is_of_an_item(frame, node.test)
    around = program.picking
    program.picking = around | picks_of(node.test, True) if picking else around
    then = read_block(frame, node.body) if test.kind != "never" else []
    after_then = frame.locals
    frame.go_on_with(dict(before) if node.orelse else before)
    program.around[-1] = test.negated()
    program.picking = around | picks_of(node.test, False) if picking else around
    other = node.orelse and test.kind != "always"
    otherwise = _read_otherwise(frame, node) if other else []
    program.around.pop()
    program.conditional -= asked
    # What follows `if "head" in name: continue` is done with some of them as well.
    left_out = picking and isinstance(node.body[-1], ast.Continue | ast.Break)
    program.picking = around | picks_of(node.test, False) if left_out else around
    if test.kind in ("always", "never"):
        _read_unreached(frame, node.body if test.kind == "never" else node.orelse)
    given = gradients_given(node.body) if about_grad else []
    settled = about_grad and (leaves(frame.unit, node.body) or bool(given))
    program.guarded = guarded or settled
    merged = _merged(
        program,
        test,
        after_then if test.kind != "never" else before,
        frame.locals,
        leaves(frame.unit, node.body),
        bool(node.orelse) and leaves(frame.unit, node.orelse),
    )
    frame.go_on_with(merged)
    frame.out.extend(branch(test, then, otherwise))
    for holder in given:
        there_now(frame, holder)


def _is_of_an_item(frame: Frame, test: ast.expr) -> bool:
    """Does it tell one parameter of a loop from another? Those that need no gradient have none."""
    names = set(names_below(test))
    return not frame.program.items.isdisjoint(names) and not frame.unit.mentions(
        test, "requires_grad"
    )


def _read_otherwise(frame: Frame, node: ast.If) -> Block:
    """Read the other branch; where it is the last of some choices, its condition holds there."""
    body = last_choice(node)
    otherwise = read_block(frame, body)
    if body is node.orelse or not otherwise:
        return otherwise
    assert isinstance(node.orelse[0], ast.If)
    test = test_of(frame, node.orelse[0].test)
    return branch(test, otherwise, [RAISE]) if test.kind == "atom" else otherwise


def _read_unreached(frame: Frame, body: list[ast.stmt]) -> None:
    """Read what is kept from running, for the methods that it forgets to call.

    What is called from there only is called by nobody: those functions are judged by themselves.
    """
    program = frame.program
    if any(frame.unit.has_events(part) for part in body):
        before = dict(frame.locals), program.frozen, set(program.called)
        owner = frame.self_value if isinstance(frame.self_value, Instance) else None
        kept = dict(owner.attributes) if owner is not None else {}
        read_block(frame, body)
        frame.locals, program.frozen, program.called = before
        if owner is not None:
            owner.attributes = kept


def _merged(
    program: Program,
    test: Test,
    then: dict[str, Value],
    otherwise: dict[str, Value],
    gone: bool,
    other_gone: bool,
) -> dict[str, Value]:
    if test.kind == "always" or (other_gone and not gone):
        return then
    if test.kind == "never" or (gone and not other_gone):
        return otherwise
    if then == otherwise:
        return otherwise  # neither branch assigned anything
    result = dict(otherwise)
    # Most names hold what they held before.
    both = zip(then, then.values(), map(otherwise.get, then), strict=True)
    for name, value, other in [each for each in both if each[1] is not each[2]]:
        result[name] = value if other is None else either(program, test, value, other)
    return result


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    if frame.program.used_up(frame.unit, node) is None:  # else it finds none to go over
        read_for(frame, node, read_block)


def _while(frame: Frame, node: ast.While) -> None:
    read_while(frame, node, read_block)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    read_with(frame, node, lambda inner: read_block(inner, node.body))


def _try(frame: Frame, node: Any) -> None:
    guarded = frame.program.guarded
    frame.program.guarded = guarded or any(map(_catches_absence, node.handlers))
    body = read_block(frame, node.body)
    frame.program.guarded = guarded
    after = dict(frame.locals)
    frame.program.handling += 1
    handlers = [read_block(frame, handler.body) for handler in node.handlers]
    frame.program.handling -= 1
    frame.locals.clear()  # and not another dict: a module's locals are what its functions see
    frame.locals.update(after)
    otherwise = read_block(frame, node.orelse)
    final = read_block(frame, node.finalbody)
    if body or any(handlers) or otherwise or final:
        key = f"{RAISED}|{id(node)}" if handlers else ""
        if key:
            frame.program.note_opaque(key, RAISED)
        frame.emit(Attempt(body, handlers, otherwise, final, key))


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    """Does it catch what using a gradient that is None raises?"""
    if handler.type is None:
        return True
    names = {path_of(each).rsplit(".", 1)[-1] for each in parts_below(handler.type)}
    return not names.isdisjoint(("Exception", "BaseException", "AttributeError", "TypeError"))


def _match(frame: Frame, node: Any) -> None:
    choice = as_choice(node)
    if choice is not None:
        frame.program.written.append(choice)
        _if(frame, choice)
        return
    evaluate(frame, node.subject)
    blocks: list[Block] = []
    for case in node.cases:
        blocks.append(read_block(frame, case.body))
    rest: Block = []
    if node.cases and _takes_all(node.cases[-1]):
        rest = blocks.pop()
    for number, block in reversed(list(enumerate(blocks))):
        key = f"case {number}|{id(node)}"
        frame.program.note_opaque(key, frame.unit.source.segment(node.subject))
        if block or rest:
            rest = [Branch(key, block, rest)]
    frame.out.extend(rest)


def _takes_all(case: Any) -> bool:
    """Is it `case _:`, or a name that takes whatever is left?"""
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and not case.pattern.pattern


def _define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if frame.unit.functions.get(node.name) is node:
        frame.locals.pop(node.name, None)  # an earlier one of that name, if there was any
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
        cls = ClassUnit(node, frame.unit)
        cls.bases = [
            _base(frame, each) or name for each, name in zip(node.bases, cls.bases, strict=True)
        ]
        frame.locals[node.name] = Class(cls)
        if frame.unit is frame.program.main:
            frame.program.inner_classes.append(cls)
    elif not stands_in:
        frame.locals.pop(node.name, None)  # an earlier one of that name, if there was any


def _base(frame: Frame, node: ast.expr) -> str:
    """Return the class that a variable holds: `kind = optim.SGD`, then `class Mine(kind)`."""
    value = frame.locals.get(node.id) if isinstance(node, ast.Name) else None
    return value.dotted if isinstance(value, External) else ""


def _import(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    frame.unit.add_import(node)


def _global(frame: Frame, node: ast.Global) -> None:
    frame.shared.update(node.names)
    for name in node.names:  # what another function gave it, not what the same name held here
        frame.locals.pop(name, None)


def _return(frame: Frame, node: ast.Return) -> None:
    node = _after_rounds(frame, node)
    if node.value is not None:
        frame.returned.append(evaluate(frame, node.value))
    frame.emit(RETURN)


def _raise(frame: Frame, node: ast.Raise) -> None:
    frame.emit(RAISE)


def _break(frame: Frame, node: ast.Break) -> None:
    frame.emit(BREAK)


def _continue(frame: Frame, node: ast.Continue) -> None:
    frame.emit(CONTINUE)


def _assert(frame: Frame, node: ast.Assert) -> None:
    if isinstance(node.test, ast.Constant) and not node.test.value:
        frame.emit(RAISE)
    if frame.unit.mentions(node.test, "("):
        peek(frame, node.test)
    if frame.unit.mentions_gradient(node.test):
        frame.program.guarded = True  # for the rest of its block


_READERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: assign_annotated,
    ast.AugAssign: _assign_augmented,
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
    ast.Global: _global,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Delete: delete,
    ast.Assert: _assert,
    ast.Match: _match,
}
if hasattr(ast, "TryStar"):
    _READERS[ast.TryStar] = _try
