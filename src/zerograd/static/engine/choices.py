"""Chains of `elif` that choose between names."""

from __future__ import annotations

import ast


def last_choice(node: ast.If) -> list[ast.stmt]:
    """Return the else branch; the last `elif` of a choice between names is the remaining one.

    `if mode == "sgd": … elif mode == "adam": …` is not written for a third mode.
    """
    if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
        return node.orelse
    inner = node.orelse[0]
    subject = _subject(node.test)
    if inner.orelse or not subject or _subject(inner.test) != subject:
        return node.orelse
    return inner.body


def _subject(test: ast.expr) -> str:
    """Return what is compared with a name: a string, a class, a member of an enumeration."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    right = test.comparators[0]
    options = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
    if not isinstance(test.ops[0], ast.Eq | ast.Is | ast.In) or not all(map(_is_name, options)):
        return ""
    return ast.dump(test.left)


def _is_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    last = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return last[:1].isupper()
