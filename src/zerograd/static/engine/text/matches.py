"""`match` over values, read as the chain of `if` that it is."""

from __future__ import annotations

import ast

from zerograd.static.engine.text.parts import parts_below

_APART = ast.Constant(None)  # a case that takes its subject apart


def as_choice(node: ast.Match) -> ast.If | None:
    """Return the same choice written with `if`, or None where a case takes its subject apart."""
    made: list[ast.stmt] = []
    for case in reversed(node.cases):
        test = _test(node.subject, case)
        if test is _APART:
            return None
        if test is None:
            made = list(case.body)
            continue
        choice = ast.If(test, case.body, made)
        ast.copy_location(choice, case.pattern)
        choice.end_lineno = case.body[-1].end_lineno
        choice.end_col_offset = case.body[-1].end_col_offset
        made = [choice]
    first = made[0] if len(made) == 1 else None
    return first if isinstance(first, ast.If) and _is_read_again(node.subject) else None


def _is_read_again(subject: ast.expr) -> bool:
    """May the subject be evaluated once for each case?"""
    return not any(isinstance(each, ast.Call | ast.NamedExpr) for each in parts_below(subject))


def _test(subject: ast.expr, case: ast.match_case) -> ast.expr | None:
    """Return the condition of a case; None for one that always holds."""
    pattern = case.pattern
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
        return case.guard
    options = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    tests = [_same(subject, each) for each in options]
    known = [each for each in tests if each is not None]
    if len(known) != len(tests):
        return _APART
    test = known[0] if len(known) == 1 else _both(ast.Or(), known, pattern)
    return test if case.guard is None else _both(ast.And(), [test, case.guard], pattern)


def _both(operator: ast.boolop, parts: list[ast.expr], place: ast.pattern) -> ast.expr:
    return ast.copy_location(ast.BoolOp(operator, parts), place)


def _same(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    if isinstance(pattern, ast.MatchValue):
        value, operator = pattern.value, ast.Eq()
        return ast.copy_location(ast.Compare(subject, [operator], [value]), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        constant = ast.copy_location(ast.Constant(pattern.value), pattern)
        return ast.copy_location(ast.Compare(subject, [ast.Is()], [constant]), pattern)
    return None
