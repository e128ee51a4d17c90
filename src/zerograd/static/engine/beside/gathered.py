"""ZG202: gradients of weights, or of an input, that are kept round by round, and cleared in none.

`fisher[name] += p.grad ** 2`, or `grads.append([p.grad.clone() for p in net.parameters()])`, behind
a backward in the same loop: from the second round on it is the sum of all losses so far. A function
of the project that gives them back, `rows.append(flat_gradients(net))`, is as good.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.definitions import Function
from zerograd.static.engine.identity.endings import leaves
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.shown import statement_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.places import has_row
from zerograd.static.engine.text.stores import statements_in, targets

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

Round = ast.For | ast.AsyncFor | ast.While
_ROUNDS = frozenset((ast.For, ast.AsyncFor, ast.While))

# whoever says one of these in the loop may clear, or has the gradients used by a step
_CLEARS = re.compile(
    r"zero|clear|reset|step\(|autograd|functional_call|\.grad\s*=[^=]|del \w+(?:\.\w+)*\.grad"
    r"|update\w*\([^)]*(?:model|net)|inputs="
)
_SIZE = re.compile(r"norm|item\(|mean|sum\(|max\(")
_GIVEN_BACK = "{call} gives the sum of all iterations so far, not this one's gradients"
_KEEPS = frozenset(("append", "extend", "appendleft", "put"))


class Kept(NamedTuple):
    """Gradients that a round keeps: where that is written, and whose they are."""

    at: ast.expr
    owner: str


def kept_while_growing(program: Program) -> Iterator[Finding]:
    """Yield where gradients of a network are kept in each round of a loop that clears none."""
    unit = program.main
    text = unit.source.text
    if "grad" not in text:
        return
    rows = unit.places.rows(".backward(")
    told: set[int] = set()
    loops = [each for each in unit.statements() if type(each) in _ROUNDS] if rows else []
    for loop in cast(list[Round], loops):
        if not has_row(rows, loop.lineno + 1, loop.end_lineno or 0):
            continue
        if _CLEARS.search(unit.text_of(loop)):
            continue  # most loops that go backward
        rounds = _Rounds(program, loop)
        for kept in rounds.kept():
            if kept.at.lineno not in told and not _is_measured(unit, loop, kept):
                told.add(kept.at.lineno)
                yield _finding(program, kept, rounds.loss)


class _Rounds:
    """A loop: what each of its rounds makes anew, and which gradients it keeps."""

    def __init__(self, program: Program, loop: Round) -> None:
        self._program = program
        self._loop = loop
        self._body = _always(loop.body)
        self.loss = next(filter(_goes_back, self._body), None)
        added = {
            id(each.target) for each in statements_in(self._body) if isinstance(each, ast.AugAssign)
        }
        self._anew = {path_of(each) for each in targets(loop.body) if id(each) not in added}
        if isinstance(loop, ast.For | ast.AsyncFor):
            self._anew.update(names_below(loop.target))
        self._named: dict[str, list[Kept]] = {}  # what a name of this round stands for
        self._rows: dict[str, str] = {}  # the list whose rows a name goes through

    def kept(self) -> Iterator[Kept]:
        """Yield the gradients that each round keeps after its own backward."""
        unit, loop = self._program.main, self._loop
        if self.loss is None or leaves(unit, loop.body):
            return
        for each in self._body[self._body.index(self.loss) + 1 :]:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                self._named[each.targets[0].id] = self._gradients(each.value, {})
            yield from self._kept_by(each, {})

    def _kept_by(self, each: ast.stmt, parameters: dict[str, str]) -> Iterator[Kept]:
        """Yield the gradients that a statement adds to what was there before the loop."""
        if isinstance(each, ast.For):
            inner = {**parameters, **_parameters(each.target, each.iter)}
            self._rows |= _rows(each.target, each.iter)
            for part in each.body:
                yield from self._kept_by(part, inner)
        elif isinstance(each, ast.If) and not each.orelse and self._chooses(each.test, parameters):
            for part in each.body:
                yield from self._kept_by(part, parameters)
        else:
            holder, value = _kept(each, self._anew - parameters.keys())
            root = path_of(holder).split("[", 1)[0] if holder is not None else ""
            root = self._rows.get(root, root)
            if value is None or not root or root in self._anew:
                return
            if root.split(".", 1)[0] in parameters:
                return
            yield from self._gradients(value, parameters)
            for name in parts_below(value):
                if isinstance(name, ast.Name):
                    yield from self._named.get(name.id, ())

    def _chooses(self, test: ast.expr, parameters: dict[str, str]) -> bool:
        """Is it a condition on the parameter, not on the round? Such as: it has a gradient."""
        names = set(names_below(test))
        if not names.isdisjoint(self._anew - parameters.keys()):
            return False
        return not names.isdisjoint(parameters) or ".grad" in ast.unparse(test)

    def _gradients(self, value: ast.expr, parameters: dict[str, str]) -> list[Kept]:
        """Return the gradients in an expression of a network that no round has anew."""
        for source in parts_below(value):
            if isinstance(source, ast.comprehension):
                parameters = parameters | _parameters(source.target, source.iter)
        found: list[Kept] = []
        apart = self._less_the_last(value)
        for used in parts_below(value):
            if id(used) in apart:
                continue
            if isinstance(used, ast.Call):
                network = self._given_back(used)
                owner = network
            elif isinstance(used, ast.Attribute) and used.attr == "grad":
                owner = network = path_of(used.value)
                if isinstance(used.value, ast.Name):
                    network = parameters.get(used.value.id) or self._leaf(used.value.id)
                elif not network.endswith((".weight", ".bias")):
                    continue
            else:
                continue
            if network and network.split(".", 1)[0] not in self._anew:
                found.append(Kept(used, owner))
        return found

    def _less_the_last(self, value: ast.expr) -> set[int]:
        """Return what the sum of the rounds before is taken off: of `x.grad - last`, `x.grad`."""
        kept = {
            name
            for each in statements_in(self._loop.body)
            if isinstance(each, ast.Assign) and ".grad" in ast.unparse(each.value)
            for target in each.targets
            for name in names_below(target)
        }
        return {
            id(part)
            for each in parts_below(value)
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub)
            if not kept.isdisjoint(names_below(each.right))
            for part in parts_below(each.left)
        }

    def _leaf(self, name: str) -> str:
        """Return the name of a tensor that is handed in, or is told to require a gradient.

        One that the round hands to a function may be cleared there: `wipe(x)`.
        """
        unit, line = self._program.main, self._loop.lineno
        calls = [
            each.value for each in statements_in(self._loop.body) if isinstance(each, ast.Expr)
        ]
        if any(
            isinstance(each, ast.Call) and any(path_of(given) == name for given in each.args)
            for each in calls
        ):
            return ""
        around = unit.functions_around(line)[-1:]
        parts = [part for each in around for part in ast.walk(each.args)]
        if any(isinstance(each, ast.arg) and each.arg == name for each in parts):
            return name
        told = rf"\b{name}\.requires_grad|\b{name} = .*requires_grad"
        text = unit.text_of(around[0]) if around else unit.source.text
        return name if re.search(told, text) else ""

    def _given_back(self, call: ast.Call) -> str:
        """Return the network whose gradients a function of the project gives back, all of them."""
        if not isinstance(call.func, ast.Name) or len(call.args) != 1 or call.keywords:
            return ""
        function = self._program.global_value(self._program.main, call.func.id)
        if not isinstance(function, Function) or not isinstance(function.node, FunctionNode):
            return ""
        text = function.unit.text_of(function.node)
        last = function.node.body[-1]
        if not isinstance(last, ast.Return) or ".grad" not in text or "parameters(" not in text:
            return ""
        return "" if _CLEARS.search(text) or _SIZE.search(text) else path_of(call.args[0])


def _is_measured(unit: Unit, loop: Round, kept: Kept) -> bool:
    """Is only its size asked, inside rounds that clear? Then it may be that of a window so far."""
    line = unit.source.lines[kept.at.lineno - 1]
    return _SIZE.search(line) is not None and any(
        isinstance(each, Round)
        and each.lineno < loop.lineno <= (each.end_lineno or 0)
        and _CLEARS.search(unit.text_of(each))
        for each in unit.statements()
    )


def _always(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return what is done in every round, without the `with` around it."""
    found: list[ast.stmt] = []
    for each in body:
        if isinstance(each, ast.With | ast.AsyncWith):
            found += _always(each.body)
        else:
            found.append(each)
    return found


def _goes_back(each: ast.stmt) -> bool:
    call = each.value if isinstance(each, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr == "backward"


def _kept(each: ast.stmt, anew: set[str]) -> tuple[ast.expr | None, ast.expr | None]:
    """Return what a statement adds to, and what it adds: at a place of its own for each round."""
    if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add):
        return _bare(each.target), each.value
    if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Subscript):
        place = {part.id for part in parts_below(each.targets[0]) if isinstance(part, ast.Name)}
        return (_bare(each.targets[0]), each.value) if place & anew else (None, None)
    call = each.value if isinstance(each, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None, None
    keeps = call.func.attr in _KEEPS and call.args
    return (_bare(call.func.value), call.args[0]) if keeps else (None, None)


def _bare(target: ast.expr) -> ast.expr:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _parameters(target: ast.expr, source: ast.expr) -> dict[str, str]:
    """Return the names that go through a network's parameters, with the network."""
    found: dict[str, str] = {}
    for part, gone_through in _pairs(target, source):
        calls = [
            each
            for each in parts_below(gone_through)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr in ("parameters", "named_parameters")
        ]
        if calls:
            assert isinstance(calls[0].func, ast.Attribute)
            owner = path_of(calls[0].func.value)
            names = names_below(part)
            found |= dict.fromkeys(names, owner) if owner else {}
    return found


def _rows(target: ast.expr, source: ast.expr) -> dict[str, str]:
    """Return the names that go through a list beside others, `zip(sums, …)`, with that list."""
    return {
        part.id: path_of(gone_through)
        for part, gone_through in _pairs(target, source)
        if part is not target and isinstance(part, ast.Name) and path_of(gone_through)
    }


def _pairs(target: ast.expr, source: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a loop's names go through, each part of a `zip` by itself."""
    if isinstance(source, ast.Call) and isinstance(target, ast.Tuple):
        called, parts = path_of(source.func), target.elts
        if called == "enumerate" and len(parts) == 2 and source.args:
            yield from _pairs(parts[1], source.args[0])
            return
        if called == "zip" and len(parts) == len(source.args):
            for part, each in zip(parts, source.args, strict=True):
                yield from _pairs(part, each)
            return
    yield target, source


def _finding(program: Program, kept: Kept, loss: ast.stmt | None) -> Finding:
    rule, source = BY_CODE["ZG202"], program.main.source
    stations = (
        (loss, "adds onto the gradients of the iterations before"),
        (statement_of(program.main, kept.at), "keeps the sum"),
    )
    # A network has no gradient of its own to be named.
    summary = _GIVEN_BACK if isinstance(kept.at, ast.Call) else rule.summary
    names = {"owner": kept.owner, "call": source.segment(kept.at)}
    return Finding(
        rule=rule,
        spot=source.spot(kept.at),
        message=summary.format_map(names),
        advice="clear the gradients in each iteration: zero_grad() before its backward()",
        owner=kept.owner,
        trail=tuple(
            TrailStep(source.spot(node), text, source.segment(node))
            for node, text in stations
            if node is not None
        ),
    )
