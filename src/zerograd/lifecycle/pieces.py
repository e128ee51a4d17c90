"""Which loops cut a batch into micro-batches, as far as their source tells.

A loop over tasks or heads runs through one backward once for each of them, and their sum
is meant. A loop that only counts, or that goes over the pieces of a batch, makes
micro-batches. Both witnesses ask this of a loop inside the one that steps.
"""

from __future__ import annotations

import ast

_CUTS = frozenset({"chunk", "split", "tensor_split", "batch", "batched"})


def makes_pieces(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Does the loop only count, or go over the pieces of a batch?

    >>> makes_pieces(ast.parse("for _ in range(4): loss(next(batches)).backward()").body[0])
    True
    >>> makes_pieces(ast.parse("for task in range(4): losses[task].backward()").body[0])
    False
    >>> makes_pieces(ast.parse("while n < 4: loss(next(batches)).backward(); n += 1").body[0])
    True
    """
    if isinstance(loop, ast.While):
        numbers = _counted(loop)
        return bool(numbers) and not _is_told_apart(loop, numbers)
    calls = [node for node in ast.walk(loop.iter) if isinstance(node, ast.Call)]
    names = {
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for call in calls
    }
    if names & _CUTS:
        return True
    numbers = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    return "range" in names and not _is_told_apart(loop, numbers)


def _counted(loop: ast.While) -> set[str]:
    """Return the numbers that the loop compares, and counts up or down in each turn."""
    if not isinstance(loop.test, ast.Compare):
        return set()
    asked = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
    return asked & {
        statement.target.id
        for statement in loop.body
        if isinstance(statement, ast.AugAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(statement.value, ast.Constant)
    }


def _is_told_apart(loop: ast.For | ast.AsyncFor | ast.While, numbers: set[str]) -> bool:
    """Is the number of a turn given to a call or used as an index: is each turn its own case?"""
    given = [
        part
        for statement in loop.body
        for node in ast.walk(statement)
        for part in (
            (*node.args, *node.keywords)
            if isinstance(node, ast.Call)
            else (node.slice,)
            if isinstance(node, ast.Subscript)
            else ()
        )
    ]
    return any(
        isinstance(node, ast.Name) and node.id in numbers
        for part in given
        for node in ast.walk(part)
    )
