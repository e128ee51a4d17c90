"""ZG401: a loss that is made anew as a tensor of its own, cut off from the network.

`loss = Variable(loss, requires_grad=True)` silences the error that a loss needs no gradient, and
no more: its backward() ends at the new tensor, and the step after it finds nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.stores import COMPOUND, names_stored, statements_in
from zerograd.static.engine.text.words import is_optimizer_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_MADE_ANEW = "{loss} is made anew here, cut off from the network, so its backward() fills nothing"
_ASKED_LATE = "{loss} was computed without a graph, so its backward() fills nothing"
_KEEP_IT = "call backward() on the loss as the network and the criterion give it"
_WITH_GRAPH = "compute {loss} from what the network gives, without no_grad(), detach() or argmax()"
_ASKED = re.compile(r"requires_grad(_\((?!\s*False)|\s*=\s*True)")
_COPIES = frozenset(("Variable", "tensor", "as_tensor", "FloatTensor", "Tensor", "Parameter"))
_APART = frozenset(("detach", "data", "item", "numpy", "tolist"))
_WANTED = frozenset(("y", "target", "targets", "label", "labels", "gt", "truth", "wanted", "true"))
_LOSSES = frozenset(("loss", "losses", "cost", "err", "error", "objective"))


def backward_of_a_copy(program: Program) -> Iterator[Finding]:
    """Yield the losses of this file that are cut off before they go backward."""
    unit = program.main
    if ".step(" not in unit.source.text or not _ASKED.search(unit.source.text):
        return
    scopes = [
        each for each in unit.functions_saying("backward") if _ASKED.search(unit.text_of(each))
    ]
    for scope in (unit.source.tree, *scopes):
        found = _own(scope.body)
        backwards = [each for each in found if _called(each, "backward")]
        if len(backwards) != 1 or not isinstance(backwards[0], ast.Expr):
            continue
        steps = [each for each in found if _called(each, "step")]
        steps = [each for each in steps if is_optimizer_name(_receiver(each))]
        if len(steps) == 1 and steps[0].lineno > backwards[0].lineno:
            yield from _Scope(program, backwards[0], steps[0]).read(scope.body)


class _Scope:
    """A function, or a module, with one backward and one step."""

    def __init__(self, program: Program, backward: ast.stmt, step: ast.stmt) -> None:
        self._program = program
        self._backward = backward
        self._step = step
        self._cut: dict[str, ast.stmt] = {}  # by name, what was made anew and where
        self._apart: dict[str, ast.stmt] = {}  # losses without their graph, not yet asked for any
        self._blind: set[str] = set()  # names given a value where no graph is made
        self._others: set[str] = set()  # names given one elsewhere, perhaps by a network

    def read(self, body: list[ast.stmt], blind: bool = False) -> Iterator[Finding]:
        """Go through a block in the order of its lines."""
        for each in body:
            if each is self._backward:
                cut = self._cut.get(_receiver(each))
                if cut is not None:
                    yield self._finding(_receiver(each), cut)
            elif isinstance(each, ast.With | ast.AsyncWith):
                yield from self.read(each.body, blind or _makes_no_graph(each))
            elif isinstance(each, ast.For | ast.AsyncFor | ast.While):
                self._forget(each)
                yield from self.read(each.body, blind)
            elif isinstance(each, ast.Assign) and len(each.targets) == 1:
                self._assign(each, each.targets[0], blind)
            elif isinstance(each, ast.Expr) and _is_asked_for(each):
                self._ask(each, _receiver(each))
            elif not isinstance(each, FunctionNode | ast.ClassDef):
                inside = [inner for inner in statements_in([each]) if inner is self._backward]
                self._forget(each)
                if inside and isinstance(each, ast.If | ast.Try):
                    yield from self.read(each.body, blind)

    def _forget(self, statement: ast.stmt) -> None:
        for name in names_stored([statement]):
            self._cut.pop(name, None)
            self._apart.pop(name, None)
            self._blind.discard(name)

    def _assign(self, node: ast.Assign, target: ast.expr, blind: bool) -> None:
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            if isinstance(node.value, ast.Constant) and node.value.value is True:
                self._ask(node, path_of(target.value))
            return
        self._forget(node)
        name = target.id if isinstance(target, ast.Name) else ""
        loses = _loses_its_graph(node.value)
        if not (blind or loses):
            self._others |= names_stored([node])
        if not name:
            return
        if _LOSSES.isdisjoint(words_of(name)):
            if loses or (blind and isinstance(node.value, ast.Call)):
                self._blind.add(name)
                self._others.discard(name)
        elif _is_copy(node.value):
            self._cut[name] = node
        elif _is_apart(node.value):
            self._apart[name] = node
        elif blind or self._is_of_blind(_bare(node.value)):
            self._blind.add(name)
        elif (asked := _asked_for(node.value)) is not None and self._is_of_blind(_bare(asked)):
            self._blind.add(name)
            self._cut[name] = node

    def _is_of_blind(self, value: ast.expr) -> bool:
        """Is it computed by one call from what was made without a graph, and from no network?"""
        if not isinstance(value, ast.Call):
            return False
        handed = [*value.args, *(each.value for each in value.keywords)]
        names = {name for one in handed for name in names_below(one)}
        calls = any(isinstance(each, ast.Call) for one in handed for each in parts_below(one))
        told = all(not _WANTED.isdisjoint(words_of(name)) for name in names - self._blind)
        return bool(names & self._blind) and not calls and told and names.isdisjoint(self._others)

    def _ask(self, node: ast.stmt, name: str) -> None:
        """`loss.requires_grad = True`: of a loss with a graph that changes nothing."""
        if name in self._apart:
            self._cut[name] = self._apart[name]
        elif name in self._blind and not _LOSSES.isdisjoint(words_of(name)):
            self._cut[name] = node

    def _finding(self, loss: str, cut: ast.stmt) -> Finding:
        source = self._program.main.source
        owner = _receiver(self._step)
        late = loss in self._blind
        stations = (
            (cut, "asks for gradients too late" if late else "makes it a tensor of its own"),
            (self._backward, "goes back to it and no further"),
            (self._step, "steps on nothing"),
        )
        return Finding(
            rule=BY_CODE["ZG401"],
            spot=source.spot(cut),
            message=(_ASKED_LATE if late else _MADE_ANEW).format(loss=loss),
            advice=(_WITH_GRAPH if late else _KEEP_IT).format(loss=loss),
            owner=owner,
            trail=tuple(TrailStep(source.spot(n), text, source.segment(n)) for n, text in stations),
        )


def _own(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a scope, but for those of functions and classes inside it."""
    found = [*body]
    for each in found:  # it grows as it is read
        if type(each) in COMPOUND:
            for name in ("body", "orelse", "finalbody"):
                found += getattr(each, name, ())
            for handler in getattr(each, "handlers", ()):
                found += handler.body
    return found


def _called(statement: ast.stmt, name: str) -> bool:
    """Is it a statement that calls a method of this name, or one that mentions it otherwise?"""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        return isinstance(call.func, ast.Attribute) and call.func.attr == name
    return False


def _receiver(statement: ast.stmt) -> str:
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    func = statement.value.func
    return path_of(func.value) if isinstance(func, ast.Attribute) else ""


def _is_asked_for(statement: ast.Expr) -> bool:
    call = statement.value
    return _called(statement, "requires_grad_") and not any(
        isinstance(each, ast.Constant) and each.value is False
        for each in call.args  # type: ignore[attr-defined]
    )


def _makes_no_graph(block: ast.With | ast.AsyncWith) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call)
        and path_of(item.context_expr.func).rsplit(".", 1)[-1] in ("no_grad", "inference_mode")
        for item in block.items
    )


def _is_copy(value: ast.expr) -> bool:
    """Is it a tensor made of the values of another one, for which gradients are asked?"""
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        inner = value.func.value
        parts = {each.attr for each in parts_below(inner) if isinstance(each, ast.Attribute)}
        return _is_computed(inner) and (not _APART.isdisjoint(parts) or _is_made(inner))
    asked = any(
        each.arg == "requires_grad"
        and isinstance(each.value, ast.Constant)
        and each.value.value is True
        for each in value.keywords
    )
    return asked and _is_made(value) and bool(value.args) and _is_computed(value.args[0])


def _is_apart(value: ast.expr) -> bool:
    """Is it only the values of another: `loss.detach()`, `loss.data`, `torch.tensor(losses)`?"""
    last = value.func if isinstance(value, ast.Call) else value
    bare = isinstance(last, ast.Attribute) and last.attr in ("detach", "data")
    return _is_computed(value) and (bare or _is_made(value))


def _loses_its_graph(value: ast.expr) -> bool:
    """Is it an output without the graph that made it: detached, or the number of a class?"""
    last = value.func if isinstance(value, ast.Call) else value
    if not isinstance(last, ast.Attribute) or not _is_computed(value):
        return False
    taken = last.attr == "argmax" or (last.attr == "detach" and isinstance(value, ast.Call))
    return taken or (last.attr == "data" and isinstance(last.value, ast.Call))


def _bare(value: ast.expr) -> ast.expr:
    """Return a call with `preds` where `preds.float()` is handed to it."""
    if not isinstance(value, ast.Call):
        return value
    return ast.Call(value.func, [*map(_receiver_of, value.args)], value.keywords)


def _receiver_of(value: ast.expr) -> ast.expr:
    func = value.func if isinstance(value, ast.Call) and not value.args else None
    named = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
    return func.value if named and isinstance(func, ast.Attribute) else value


def _asked_for(value: ast.expr) -> ast.expr | None:
    """Return what gradients are asked of on the way: of `criterion(y, t).requires_grad_()`."""
    func = value.func if isinstance(value, ast.Call) else None
    asked = isinstance(func, ast.Attribute) and func.attr == "requires_grad_"
    return func.value if asked and isinstance(func, ast.Attribute) else None


def _is_made(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and path_of(value.func).rsplit(".", 1)[-1] in _COPIES


def _is_computed(value: ast.expr) -> bool:
    """Is there anything in it but numbers written out?"""
    return any(isinstance(each, ast.Name | ast.Call) for each in parts_below(value))
