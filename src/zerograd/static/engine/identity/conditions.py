"""Conditions as atoms: which tests are the same test, and which can change.

Two tests with the same text and the same operands have the same truth within an
iteration, so a clear and a step under them belong together. What is copied into
a variable or handed to a function stays the same atom.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.alone import is_of_one
from zerograd.static.engine.identity.atoms import Atom, atom_of, setting_of
from zerograd.static.engine.identity.branches import ALWAYS, NEVER, Test, combined
from zerograd.static.engine.identity.definitions import Class, Function, Instance
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.membership import asks_for_more, is_container_of, is_member
from zerograd.static.engine.identity.spelled import spelled_out
from zerograd.static.engine.identity.tallies import is_full_each_turn
from zerograd.static.engine.identity.values import (
    Bound,
    Constant,
    Gradient,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Scaler,
    Several,
    Tensor,
    Tested,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.companions import asked_with
from zerograd.static.engine.text.remainders import OPPOSITE, is_modulo, is_one
from zerograd.static.engine.text.stores import targets
from zerograd.static.engine.text.words import is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

SYNC = "the window ends here"  # Accelerate's own boundary
RAISED = "an exception was caught"

_SIGN: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.Is: "is",
    ast.Lt: "<",
    ast.Gt: ">",
    ast.In: "in",
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
_TRAINED = (Optimizer, Module, Instance, Params, Gradient, Scaler, Bound)


def test_of(frame: Frame, node: ast.expr) -> Test:
    """Return the condition that `node` is."""
    if type(node) is ast.UnaryOp and type(node.op) is ast.Not:
        return test_of(frame, node.operand).negated()
    if type(node) is ast.BoolOp:
        test = combined(
            "both" if isinstance(node.op, ast.And) else "either",
            [test_of(frame, value) for value in node.values],
        )
        return _named(frame, node, test) if test.parts and not test.key else test
    if type(node) is ast.Constant:
        return ALWAYS if node.value else NEVER
    if type(node) is ast.Compare and len(node.ops) == 1:
        return _comparison(frame, node)
    if type(node) is ast.NamedExpr:
        return test_of(frame, node.value)
    if isinstance(node, ast.IfExp):
        test = test_of(frame, node.test)
        then = combined("both", [test, test_of(frame, node.body)])
        other = combined("both", [test.negated(), test_of(frame, node.orelse)])
        return combined("either", [then, other])
    if is_modulo(node):
        if is_of_one(frame, node):
            return NEVER
        return _atom(frame, node, f"{_text(frame, node)}==0").negated()
    if type(node) is ast.Call:
        return _call(frame, node)
    return _truth(frame, node)


def _named(frame: Frame, node: ast.expr, test: Test) -> Test:
    """Give a condition of several parts a key of its own."""
    atoms = [frame.program.atoms[key] for key in test.atoms()]
    key = " ".join(test.atoms())
    key = f"{test.kind}({key})"
    whole = Atom(
        None,  # what the counters and windows ask about, they ask of the parts
        frame.unit.source.segment(node),
        frozenset[str]().union(*(atom.names for atom in atoms)),
        any(atom.volatile for atom in atoms),
        any(atom.counter for atom in atoms),
        # `args.least == 0 or tokens >= args.least`: the tally is full, or none is kept
        any(atom.tallied for atom in atoms)
        and any(not atom.tallied and not atom.volatile for atom in atoms),
    )
    whole.parts = tuple(test.atoms())
    frame.program.note_atom(key, whole)
    return Test(test.kind, key, parts=test.parts)


def _call(frame: Frame, node: ast.Call) -> Test:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in ("hasattr", "isinstance", "callable") and node.args:
        value = frame.program.evaluate(frame, node.args[0])
        if name == "isinstance" and len(node.args) > 1:
            is_one = is_container_of(value, node.args[1])
            if is_one is not None:
                return ALWAYS if is_one else NEVER
        if _is_trained(frame, value) and not asks_for_more(frame, value, node):
            return ALWAYS
        return _atom(frame, node, _text(frame, node), settled=True)
    if name == "bool" and node.args:
        return test_of(frame, node.args[0])
    if isinstance(node.func, ast.Attribute) and node.func.attr == "is_enabled":
        value = frame.program.evaluate(frame, node.func.value)
        if isinstance(value, Scaler):
            return value.on or (ALWAYS if value.live else NEVER)
    answered = _answered(frame, node)
    if answered is not None:
        return answered
    return _atom(frame, node, _text(frame, node))


def _answered(frame: Frame, node: ast.Call) -> Test | None:
    """Return the condition that a function of the project answers with, `is_due(i)` say."""
    program = frame.program
    if not isinstance(node.func, ast.Name | ast.Attribute) or program.asking:
        return None
    function = program.evaluate(frame, node.func)
    if not isinstance(function, Function):
        return None
    answer = spelled_out(frame.unit, node, function)
    if answer is not None:
        return test_of(frame, answer)
    if not _is_an_answer(function, node):
        return None
    program.asking = True
    value = program.evaluate(frame, node)
    program.asking = False
    if isinstance(value, Constant):
        return ALWAYS if value.value else NEVER
    return value.test if isinstance(value, Tested) else None


def _is_an_answer(function: Function, call: ast.Call) -> bool:
    """Is all that it does to return something, of things that it calls as its caller does?"""
    node = function.node
    names = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    given = [*call.args, *(each.value for each in call.keywords)]
    if not all(isinstance(each, ast.Name) and each.id in names for each in given):
        return False
    if isinstance(node, ast.Lambda):
        return True
    body = [each for each in node.body if not _is_docstring(each)]
    plain = all(path_of(each) in ("staticmethod", "classmethod") for each in node.decorator_list)
    return len(body) == 1 and isinstance(body[0], ast.Return) and plain


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _comparison(frame: Frame, node: ast.Compare) -> Test:
    node = _turned(frame, node)
    left, right, operator = node.left, node.comparators[0], type(node.ops[0])
    if isinstance(right, ast.Constant) and right.value is None:
        if operator in (ast.Is, ast.Eq):
            return _present(frame, left).negated()
        if operator in (ast.IsNot, ast.NotEq):
            return _present(frame, left)
    if _is_main(left, right) or is_full_each_turn(frame, node):
        return ALWAYS
    truth = isinstance(right, ast.Constant) and isinstance(right.value, bool)
    if truth and operator in (ast.Eq, ast.Is):
        inner = test_of(frame, left)
        return inner if right.value else inner.negated()  # type: ignore[attr-defined]
    zero = isinstance(right, ast.Constant) and right.value == 0
    if zero and isinstance(left, ast.Name) and operator is ast.Eq:
        rest = frame.lookup(left.id)
        if isinstance(rest, Tested):  # rest = i % n
            return rest.test.negated()
    known = _folded(frame, left, operator, right)
    if known is not None:
        return known
    if operator in (ast.In, ast.NotIn):
        there = is_member(frame, left, right)
        if there is not None:
            return ALWAYS if there is (operator is ast.In) else NEVER
    kind = _asked_type(left)
    if kind is not None and operator in (ast.Is, ast.Eq, ast.IsNot, ast.NotEq):
        value = frame.program.evaluate(frame, kind)
        is_one = is_container_of(value, right)
        if is_one is not None:
            return ALWAYS if is_one is (operator in (ast.Is, ast.Eq)) else NEVER
    written_out = isinstance(right, ast.Constant)
    if written_out and operator in (ast.Eq, ast.NotEq) and is_of_one(frame, left):
        return ALWAYS if zero is (operator is ast.Eq) else NEVER
    if not is_modulo(left):
        counted = _counted(frame, node, left, operator, right)
        if counted is not None:
            return counted
    if is_modulo(left) and zero and operator in (ast.Gt, ast.NotEq):
        return _atom(frame, node, f"{_text(frame, left)}==0").negated()
    positive = OPPOSITE.get(operator, operator)
    test = _atom(
        frame, node, f"{_text(frame, left)}{_SIGN.get(positive, '?')}{_text(frame, right)}"
    )
    return test if positive is operator else test.negated()


def _turned(frame: Frame, node: ast.Compare) -> ast.Compare:
    """Return the comparison as it is usually written: `0 == i % n`, `i % n < 1` as `i % n == 0`.

    It is kept as long as the program is read: what is known of nodes goes by their identity.
    """
    left, right, operator = node.left, node.comparators[0], type(node.ops[0])
    if isinstance(left, ast.Constant) and operator in _MIRRORED:
        left, right, operator = right, left, _MIRRORED[operator]
    if isinstance(right, ast.Tuple) and len(right.elts) == 1 and operator is ast.In:
        right, operator = right.elts[0], ast.Eq
    if is_modulo(left) and operator is ast.Lt and is_one(right):
        right, operator = ast.copy_location(ast.Constant(0), right), ast.Eq
    if left is node.left and right is node.comparators[0]:
        return node
    made = ast.copy_location(ast.Compare(left, [operator()], [right]), node)
    frame.program.written.append(made)
    return made


def _counted(
    frame: Frame, node: ast.Compare, left: ast.expr, operator: type[ast.cmpop], right: ast.expr
) -> Test | None:
    """Read `n > 1` and `n >= 2` as not `n == 1`, where the file asks that too: n counts."""
    above = operator in (ast.Gt, ast.LtE)
    if not above and operator not in (ast.GtE, ast.Lt):
        return None
    if not isinstance(right, ast.Constant) or type(right.value) is not int:
        return None
    least = right.value if above else right.value - 1
    if least not in (0, 1):
        return None
    name = _text(frame, left)
    same = frame.unit.equality(node, name, least)
    if same is None:
        return None
    test = _atom(frame, same, f"{name}=={least}")
    return test if operator in (ast.LtE, ast.Lt) else test.negated()


def _is_main(left: ast.expr, right: ast.expr) -> bool:
    return (
        isinstance(left, ast.Name)
        and left.id == "__name__"
        and isinstance(right, ast.Constant)
        and right.value == "__main__"
    )


def _folded(
    frame: Frame, left: ast.expr, operator: type[ast.cmpop], right: ast.expr
) -> Test | None:
    """Decide `phase == "train"`, `phase is Phase.TRAIN`, where phase is known to be a constant."""
    if operator not in (ast.Eq, ast.NotEq, ast.Is, ast.IsNot):
        return None
    asked = right.value if isinstance(right, ast.Constant) else _kind(frame, right)
    if asked is None:
        return None
    value = frame.lookup(left.id) if isinstance(left, ast.Name) else None
    if isinstance(left, ast.Constant):
        value = Constant(left.value)
    if not isinstance(value, Constant) or not isinstance(value.value, str | int):
        return None
    return ALWAYS if (value.value == asked) is (operator in (ast.Eq, ast.Is)) else NEVER


def _kind(frame: Frame, node: ast.expr) -> object:
    """Return what `Phase.TRAIN` stands for, or None."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return None
    cls = frame.lookup(node.value.id)
    return cls.unit.kinds.get(node.attr) if isinstance(cls, Class) else None


def _asked_type(node: ast.expr) -> ast.expr | None:
    """Return x of `type(x)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type":
        return node.args[0] if len(node.args) == 1 else None
    return None


def _present(frame: Frame, node: ast.expr) -> Test:
    """`x is not None`: true of gradients and of what is trained; else like the truth of x."""
    if isinstance(node, ast.NamedExpr):
        node = node.value
    if isinstance(node, ast.Attribute) and node.attr == "grad":
        return ALWAYS
    if (
        isinstance(node, ast.Name)
        and node.id in frame.spellings
        and not frame.versions.get(node.id)
    ):
        value = frame.lookup(node.id)
        if type(value) is Tensor and value.deps and value.sure:
            return ALWAYS  # the caller has computed it, and hands it in
    return _truth(frame, node)


def _truth(frame: Frame, node: ast.expr) -> Test:
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = frame.program.evaluate(frame, node)
        if type(value) is Tested:
            return value.test
        if type(value) is Constant and not _is_turned(frame, node, value):
            return ALWAYS if value.value else NEVER
        if type(value) is Scaler and value.there is not None:
            return value.there
        if _is_trained(frame, value):
            return _companion(frame, node) or ALWAYS
        if type(node) is ast.Attribute and node.attr == "requires_grad" and _is_item(frame, node):
            return ALWAYS  # of some of them at least
        if type(node) is ast.Attribute and node.attr == "sync_gradients":
            return frame.program.sync_test()
        setting = setting_of(frame, node, value) if type(value) is Named else ""
        if setting:
            return Test("atom", setting)
    return _atom(frame, node, _text(frame, node))


def _is_item(frame: Frame, node: ast.Attribute) -> bool:
    """Is it asked of one parameter after another?"""
    owner = frame.program.evaluate(frame, node.value)
    if type(owner) is Named:
        return owner.path.endswith("[*]")
    return type(owner) is Params and owner.one


def _companion(frame: Frame, node: ast.Name | ast.Attribute) -> Test | None:
    """Return the condition whether something is there that is None exactly where `node` is."""
    for made, text in asked_with(frame.unit, node):
        frame.program.written.append(made)
        value = frame.program.evaluate(frame, made)
        if type(value) not in (Tested, Constant) and not _is_trained(frame, value):
            return _atom(frame, made, text)
    return None


def _is_turned(frame: Frame, node: ast.expr, value: Constant) -> bool:
    """Is it a flag of an object, which some method turns over, as an earlier round left it?"""
    if type(node) is not ast.Attribute or type(value.value) is not bool or frame.loop is None:
        return False
    function = frame.node
    if not frame.unit.changes_attribute(node.attr) or not isinstance(function, FunctionNode):
        return False
    return not any(
        isinstance(each, ast.Attribute) and each.attr == node.attr and each.lineno < node.lineno
        for each in targets(function.body)
    )


def _is_trained(frame: Frame, value: Value) -> bool:
    if isinstance(value, Named):
        return is_optimizer_name(value.path) or value.path in frame.program.trained
    if isinstance(value, Module) and "." in value.key:
        # an attribute of a network may be a part of it, or a switch that it keeps
        return frame.program.is_network(value.key)
    if isinstance(value, Several | Mapping):
        return any(_is_trained(frame, each) for each in leaves_of(value))  # else it may be empty
    return isinstance(value, _TRAINED)


def opaque_test(frame: Frame, node: ast.expr) -> Test:
    """Return the condition as one whose truth is not known, whatever is known of its names."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _atom(frame, node.operand, _text(frame, node.operand)).negated()
    return _atom(frame, node, _text(frame, node))


def _text(frame: Frame, node: ast.expr) -> str:
    return frame.unit.source.segment(node).replace(" ", "").strip("()")


def _atom(frame: Frame, node: ast.expr, text: str, *, settled: bool = False) -> Test:
    return Test("atom", atom_of(frame, node, text, settled=settled))
