"""What statements assign, found without walking their expressions."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator

_BODIES = ("body", "orelse", "finalbody")
_PARTS = ("body", "handlers", "cases", "orelse", "finalbody")
_COMPOUND: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match),
        getattr(ast, "TryStar", ast.Try),
    )
)
_SIMPLE: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert),
        *(ast.Import, ast.ImportFrom, ast.Delete, ast.Pass, ast.Break, ast.Continue),
    )
)


def statements_in(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield these statements and those inside them, of functions and classes too.

    The outer ones come first, as with `ast.walk`; the handlers of a `try` and the cases of a
    `match` are among them.
    """
    waiting = deque[ast.AST](body)
    while waiting:
        node = waiting.popleft()
        yield node
        if type(node) not in _SIMPLE:
            for name in _PARTS:
                waiting.extend(getattr(node, name, ()))


def targets(statements: list[ast.stmt]) -> Iterator[ast.expr]:
    """Yield every target that these statements, and those inside them, assign."""
    for node in statements:
        kind = type(node)
        if kind is ast.Assign:
            for each in node.targets:  # type: ignore[attr-defined]
                yield from _flat(each)
        elif kind is ast.AugAssign or kind is ast.AnnAssign:
            yield node.target  # type: ignore[attr-defined]
        elif kind is ast.For or kind is ast.AsyncFor:
            yield from _flat(node.target)  # type: ignore[attr-defined]
        elif kind is ast.With or kind is ast.AsyncWith:
            for item in node.items:  # type: ignore[attr-defined]
                if item.optional_vars is not None:
                    yield from _flat(item.optional_vars)
        elif kind is ast.Delete:
            yield from node.targets  # type: ignore[attr-defined]
        if kind not in _COMPOUND:
            continue  # nothing stands inside, or it is another scope
        for name in _BODIES:
            inner = getattr(node, name, None)
            if inner:
                yield from targets(inner)
        if kind is ast.Try or hasattr(node, "handlers"):
            for handler in node.handlers:  # type: ignore[attr-defined]
                yield from targets(handler.body)
        elif hasattr(node, "cases"):
            for case in node.cases:
                yield from targets(case.body)


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _flat(each)
    elif isinstance(target, ast.Starred):
        yield from _flat(target.value)
    else:
        yield target


def names_stored(statements: list[ast.stmt]) -> frozenset[str]:
    """Return the names, and the attributes as `.name`, that these statements assign."""
    found: set[str] = set()
    for target in targets(statements):
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
        elif isinstance(target, ast.Attribute):
            found.add(f".{target.attr}")
    return frozenset(found)
