"""What statements assign, found without walking their expressions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

_BODIES = ("body", "orelse", "finalbody")
_PARTS = ("body", "handlers", "cases", "orelse", "finalbody")
# where statements stand in those that most files are made of; in others they are looked for
_INSIDE: dict[type[ast.AST], tuple[str, ...]] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), ("body",)),
    **dict.fromkeys((ast.With, ast.AsyncWith, ast.ExceptHandler), ("body",)),
    **dict.fromkeys((ast.If, ast.For, ast.AsyncFor, ast.While), ("body", "orelse")),
}
# statements with others inside, that are no scope of their own
COMPOUND: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match),
        getattr(ast, "TryStar", ast.Try),
    )
)
# statements with nothing inside
SIMPLE: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert),
        *(ast.Import, ast.ImportFrom, ast.Delete, ast.Pass, ast.Break, ast.Continue),
    )
)


def statements_in(body: Sequence[ast.AST]) -> list[ast.AST]:
    """Return these statements and those inside them, of functions and classes too.

    The outer ones come first, as with `ast.walk`; the handlers of a `try` and the cases of a
    `match` are among them.
    """
    found: list[ast.AST] = [*body]
    for node in found:  # it grows as it is read
        if type(node) not in SIMPLE:
            for name in _INSIDE.get(type(node), _PARTS):
                found += getattr(node, name, ())
    return found


def targets(statements: list[ast.stmt]) -> list[ast.expr]:
    """Return every target that these statements, and those inside them, assign."""
    found: list[ast.expr] = []
    _add_targets(statements, found)
    return found


def _add_targets(statements: list[ast.stmt], found: list[ast.expr]) -> None:
    for node in statements:
        kind = type(node)
        if kind is ast.Assign:
            for each in node.targets:  # type: ignore[attr-defined]
                _add_flat(each, found)
        elif kind is ast.AugAssign or kind is ast.AnnAssign:
            found.append(node.target)  # type: ignore[attr-defined]
        elif kind is ast.For or kind is ast.AsyncFor:
            _add_flat(node.target, found)  # type: ignore[attr-defined]
        elif kind is ast.With or kind is ast.AsyncWith:
            for item in node.items:  # type: ignore[attr-defined]
                if item.optional_vars is not None:
                    _add_flat(item.optional_vars, found)
        elif kind is ast.Delete:
            found += node.targets  # type: ignore[attr-defined]
        if kind not in COMPOUND:
            continue  # nothing stands inside, or it is another scope
        for name in _BODIES:
            inner = getattr(node, name, None)
            if inner:
                _add_targets(inner, found)
        if kind is ast.Try or hasattr(node, "handlers"):
            for handler in node.handlers:  # type: ignore[attr-defined]
                _add_targets(handler.body, found)
        elif hasattr(node, "cases"):
            for case in node.cases:
                _add_targets(case.body, found)


def _add_flat(target: ast.expr, found: list[ast.expr]) -> None:
    if type(target) is ast.Tuple or type(target) is ast.List:
        for each in target.elts:
            _add_flat(each, found)
    elif type(target) is ast.Starred:
        _add_flat(target.value, found)
    else:
        found.append(target)


def names_stored(statements: list[ast.stmt]) -> frozenset[str]:
    """Return the names, and the attributes as `.name`, that these statements assign."""
    found: set[str] = set()
    for target in targets(statements):
        while type(target) is ast.Subscript:
            target = target.value
        if type(target) is ast.Name:
            found.add(target.id)
        elif type(target) is ast.Attribute:
            found.add(f".{target.attr}")
    return frozenset(found)
