"""What a name was last given before a line, found in the text of one function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in

_DEEPEST = 6
_WITHOUT = ("no_grad", "inference_mode")


class Assignments:
    """The assignments of one function, or of a script outside its functions, in order of lines."""

    def __init__(self, tree: ast.Module, scope: tuple[int, int] | None) -> None:
        self._given: dict[str, list[tuple[int, ast.expr, bool]]] = {}
        self._cut_off: list[tuple[int, int]] = []  # lines that compute nothing to go back through
        self._branches: list[tuple[int, int]] = []
        self._choices: list[tuple[int, int, int]] = []  # where an `if`, and its `else`, begin; end
        self._turns: list[tuple[ast.For | ast.AsyncFor, str, str]] = []  # a loop, an item, of what
        self._tree = tree
        body: list[ast.stmt] = tree.body
        if scope is not None:
            body = [each for each in _functions(tree) if (each.lineno, each.end_lineno) == scope]
        for part in body:
            if scope is None and isinstance(part, ast.FunctionDef | ast.ClassDef):
                continue
            for node in statements_in([part]):
                self._read(node)

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._note(node.targets[0], node.value, False)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub):
            self._note(node.target, _placed(ast.UnaryOp(ast.USub(), node.value), node.value), True)
        elif isinstance(node, ast.AugAssign):
            self._note(node.target, node.value, True)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            filled = node.value.func
            if isinstance(filled, ast.Attribute) and filled.attr == "append" and node.value.args:
                self._note(filled.value, node.value.args[0], True)
            elif isinstance(filled, ast.Attribute) and filled.attr == "fill_":
                of_data = isinstance(filled.value, ast.Attribute) and filled.value.attr == "data"
                target = filled.value.value if of_data else filled.value  # type: ignore[attr-defined]
                self._note(target, node.value, False)
        elif isinstance(node, ast.With):
            text = [path_of(each.context_expr.func) for each in node.items if _is_call(each)]  # type: ignore[attr-defined]
            if any(each.endswith(_WITHOUT) for each in text):
                self._cut_off.append((node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.If):
            self._branches.append((node.lineno, node.end_lineno or node.lineno))
            if node.orelse:
                other = node.orelse[0].lineno
                self._choices.append((node.lineno, other, node.end_lineno or other))
        elif isinstance(node, ast.For | ast.AsyncFor):
            for item, of in items_of(node.target, node.iter):
                self._turns.append((node, item, of))

    def _note(self, target: ast.expr, value: ast.expr, adds: bool) -> None:
        if isinstance(target, ast.Tuple):
            for number, each in enumerate(target.elts):
                if isinstance(value, ast.Tuple):
                    if len(value.elts) == len(target.elts):
                        self._note(each, value.elts[number], adds)
                else:
                    index = ast.copy_location(ast.Constant(number), value)
                    self._note(each, _placed(ast.Subscript(value, index, ast.Load()), value), adds)
            return
        path = path_of(target)
        if path:
            self._given.setdefault(path, []).append((value.lineno, value, adds))

    def before(self, path: str, line: int) -> list[ast.expr]:
        """Return what `path` was given last before `line`, and what was added to it since."""
        found: list[ast.expr] = []
        for at, value, adds in sorted(self._given.get(path, ()), key=lambda each: each[0]):
            if at < line:
                found = [*found, value] if adds else [value]
        return found

    def on_any_way(self, path: str, line: int) -> list[ast.expr]:
        """Return the same, and what it was given in the other branch of an `if` before `line`."""
        last = self.before(path, line)
        earlier = [
            value
            for at, value, adds in self._given.get(path, ())
            if not adds
            and any(
                first <= at < other <= each.lineno <= end < line
                for first, other, end in self._choices
                for each in last[:1]
            )
        ]
        return [*earlier, *last]

    def always_before(self, path: str, line: int) -> list[ast.expr]:
        """Return the same, less what was added in a branch that `line` is not in."""
        found = self.before(path, line)
        aside = [each for each in self._branches if not each[0] <= line <= each[1]]
        added = [
            each
            for each in found[1:]
            if not any(first <= each.lineno <= last for first, last in aside)
        ]
        return [*found[:1], *added]

    def taken_from(self, path: str, line: int) -> str:
        """Return what the loop around `line` takes `path` from, as it takes one after the other."""
        for loop, item, of in reversed(self._turns):
            if item == path and loop.lineno < line <= (loop.end_lineno or 0):
                return of
        return ""

    def lasting(self, path: str) -> ast.expr | None:
        """Return the constant that the file gives `path`, if it is one and always the same."""
        given = [
            each.value
            for each in statements_in(self._tree.body)
            if isinstance(each, ast.Assign) and any(path_of(one) == path for one in each.targets)
        ]
        same = {each.value for each in given if isinstance(each, ast.Constant)}
        known = all(isinstance(each, ast.Constant) for each in given)
        return given[0] if known and len(same) == 1 else None

    def is_cut_off(self, node: ast.expr) -> bool:
        """Does it stand where no graph is built?"""
        return any(first <= node.lineno <= last for first, last in self._cut_off)

    def of_function(self, name: str) -> tuple[Assignments, list[ast.expr]] | None:
        """Return the assignments of the one function of that name, and what it returns."""
        named = [each for each in _functions(self._tree) if getattr(each, "name", "") == name]
        if len(named) != 1:
            return None
        inside = statements_in([named[0]])
        returned = [each.value for each in inside if isinstance(each, ast.Return) and each.value]
        return Assignments(self._tree, (named[0].lineno, named[0].end_lineno or 0)), returned

    def behind(self, node: ast.expr, depth: int = 0) -> Iterator[ast.AST]:
        """Yield `node`, and all that the names in it were computed from."""
        for each in parts_below(node):
            yield each
            if isinstance(each, ast.Name | ast.Attribute) and depth < _DEEPEST:
                for value in self.before(path_of(each), each.lineno):
                    yield from self.behind(value, depth + 1)


def assignments_around(event: Happening) -> Assignments:
    """Return the assignments of the function that an event stands in."""
    return Assignments(event.unit.source.tree, event.scope)


def loss_of(node: ast.AST) -> ast.expr | None:
    """Return what goes backward: `loss.backward()`, `scaler.scale(loss).backward()`, or handed."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.value
    return node.args[0] if node.args else None


def items_of(target: ast.expr, source: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the names that a loop gives its items, and what it takes each from."""
    called = path_of(source.func) if isinstance(source, ast.Call) else ""
    if isinstance(target, ast.Tuple) and isinstance(source, ast.Call):
        targets = target.elts[1:] if called == "enumerate" else target.elts
        if called in ("enumerate", "zip"):
            for one, of in zip(targets, source.args, strict=False):
                yield from items_of(one, of)
    elif path_of(target) and path_of(source):
        yield path_of(target), path_of(source)


def _functions(tree: ast.Module) -> Iterator[ast.stmt]:
    for each in statements_in(tree.body):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield each


def _is_call(item: ast.withitem) -> bool:
    return isinstance(item.context_expr, ast.Call)


def _placed(made: ast.expr, like: ast.expr) -> ast.expr:
    return ast.copy_location(made, like)
