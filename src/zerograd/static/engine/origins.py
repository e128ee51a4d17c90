"""What a name was last given before a line, found in the text of one function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from zerograd.static.engine.frame import path_of
from zerograd.static.engine.ir import Happening
from zerograd.static.engine.stores import statements_in

_DEEPEST = 6


class Assignments:
    """The assignments of one function, or of a script outside its functions, in order of lines."""

    def __init__(self, tree: ast.Module, scope: tuple[int, int] | None) -> None:
        self._given: dict[str, list[tuple[int, ast.expr, bool]]] = {}
        body: list[ast.stmt] = tree.body
        if scope is not None:
            body = [each for each in _functions(tree) if (each.lineno, each.end_lineno) == scope]
        for part in body:
            if scope is None and isinstance(part, ast.FunctionDef | ast.ClassDef):
                continue
            for node in statements_in([part]):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    self._note(node.targets[0], node.value, False)
                elif isinstance(node, ast.AugAssign):
                    self._note(node.target, node.value, True)

    def _note(self, target: ast.expr, value: ast.expr, adds: bool) -> None:
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

    def behind(self, node: ast.expr, depth: int = 0) -> Iterator[ast.AST]:
        """Yield `node`, and all that the names in it were computed from."""
        for each in ast.walk(node):
            yield each
            if isinstance(each, ast.Name | ast.Attribute) and depth < _DEEPEST:
                for value in self.before(path_of(each), each.lineno):
                    yield from self.behind(value, depth + 1)


def assignments_around(event: Happening) -> Assignments:
    """Return the assignments of the function that an event stands in."""
    return Assignments(event.unit.source.tree, event.scope)


def _functions(tree: ast.Module) -> Iterator[ast.stmt]:
    for each in statements_in(tree.body):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each
