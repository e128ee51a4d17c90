"""A tally, tried out: in which rounds of its loop is a line reached?

A loop that counts by hand is run over a few windows of a few sizes, all of it left out but what
the tally and its tests do. Where anything else decides what is counted, nothing is told.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.guards import SIZES, Table, Unknown, value_of
from zerograd.static.engine.text.stores import targets

_TRIED = 4  # windows of each size


class Beginning(NamedTuple):
    """What a tally is before its loop, and whether each run of the loop begins with it."""

    value: ast.expr | None
    anew: bool


def rounds_reaching(
    loop: ast.For | ast.While, name: str, size: ast.expr, start: ast.expr | None, line: int
) -> Table:
    """Return for each size in which rounds the line is reached; nothing where that is not known.

    A tally that begins elsewhere is taken to begin at nothing, which its first window shows.
    """
    given = size.value if isinstance(size, ast.Constant) else None
    found: Table = {}
    try:
        for tried in (given,) if isinstance(given, int) and given > 0 else SIZES:
            played = _Loop(name, line, {} if given is not None else {ast.dump(size): tried})
            played.count = 0 if start is None else played.worth(start)
            found[tried] = [played.reaches(loop.body) for _ in range(_TRIED * tried)]
    except (Unknown, ZeroDivisionError):
        return {}
    return found


def begins(around: Sequence[ast.stmt], loop: ast.For | ast.While, name: str) -> Beginning:
    """Return what `name` is given last before a loop, in the function of these statements."""
    found: ast.expr | None = None
    anew = known = False
    block = around
    while True:
        inner = next((each for each in block if _holds(each, loop)), None)
        for each in block:
            if each is inner:
                break
            if name in map(path_of, targets([each])):
                found, anew = _given(each, name), True
                known = True
        if inner is None or inner is loop:
            return Beginning(found, anew and known)
        if isinstance(inner, ast.For | ast.AsyncFor | ast.While):
            anew = False  # given before the loop around, it runs on from one to the next
        block = [
            each
            for part in _blocks(inner)
            if any(_holds(one, loop) for one in part)
            for each in part
        ]


def _holds(statement: ast.stmt, loop: ast.stmt) -> bool:
    return statement.lineno <= loop.lineno <= (statement.end_lineno or 0)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a statement."""
    handlers = [each.body for each in getattr(statement, "handlers", ())]
    named = [getattr(statement, each, []) for each in ("body", "orelse", "finalbody")]
    return [*named, *handlers]


def _given(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement gives to a name, if it always gives it that."""
    if isinstance(statement, ast.AnnAssign) and path_of(statement.target) == name:
        return statement.value
    if not isinstance(statement, ast.Assign):
        return None
    for target in statement.targets:
        if path_of(target) == name:
            return statement.value
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = zip(target.elts, statement.value.elts, strict=False)
            return next((value for to, value in pairs if path_of(to) == name), None)
    return None


class _Loop:
    """What is known while the rounds are gone through."""

    def __init__(self, name: str, line: int, known: dict[str, int]) -> None:
        self._name = name
        self._line = line
        self._known = known  # the size of a window, by how it is written
        self._flags: dict[str, bool] = {}  # tests kept under a name
        self.count = 0

    def worth(self, node: ast.expr) -> int:
        """Return the number that an expression stands for."""
        spelled: dict[ast.AST, int] = {
            each: self._known[text]
            for each in ast.walk(node)
            if isinstance(each, ast.expr) and (text := ast.dump(each)) in self._known
        }
        counted = {each: self.count for each in ast.walk(node) if self._is_it(each)}
        return int(value_of(node, {**spelled, **counted}))

    def reaches(self, body: Sequence[ast.stmt]) -> bool:
        """Go through one round. Does it come to the line?"""
        self._flags.clear()
        reached: list[bool] = []
        self._run(body, reached)
        return bool(reached)

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name | ast.Attribute) and path_of(node) == self._name

    def _run(self, body: Sequence[ast.stmt], reached: list[bool]) -> bool:
        """Go through a block; tell whether the round goes on after it."""
        for each in body:
            if isinstance(each, ast.Continue):
                return False
            if isinstance(each, ast.Break | ast.Return | ast.Raise):
                raise Unknown
            if isinstance(each, ast.If):
                if not self._choose(each, reached):
                    return False
            elif isinstance(each, ast.With | ast.AsyncWith):
                if not self._run(each.body, reached):
                    return False
            elif isinstance(each, ast.Try):
                if not self._run([*each.body, *each.orelse, *each.finalbody], reached):
                    return False
            else:
                self._do(each, reached)
        return True

    def _do(self, statement: ast.stmt, reached: list[bool]) -> None:
        """Follow what a statement does to the tally, or to a flag that asks for it."""
        if statement.lineno <= self._line <= (statement.end_lineno or 0):
            reached.append(True)
        if isinstance(statement, ast.AugAssign) and self._is_it(statement.target):
            self.count = self.worth(
                ast.BinOp(ast.Constant(self.count), statement.op, statement.value)
            )
        elif self._name in map(path_of, targets([statement])):
            value = _given(statement, self._name)
            if value is None:
                raise Unknown
            self.count = self.worth(value)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            truth = self._truth(statement.value)
            if truth is not None:
                self._flags[statement.targets[0].id] = truth

    def _choose(self, choice: ast.If, reached: list[bool]) -> bool:
        truth = self._truth(choice.test)
        if truth is not None:
            return self._run(choice.body if truth else choice.orelse, reached)
        if any(self._is_it(each) for each in targets([choice])):
            raise Unknown  # something else decides what is counted
        if choice.lineno <= self._line <= (choice.end_lineno or 0):
            reached.append(True)  # in some of these rounds at least
        return True

    def _truth(self, test: ast.expr) -> bool | None:
        """Return the truth of a test of the tally; None where it asks for something else."""
        if isinstance(test, ast.Name) and test.id in self._flags:
            return self._flags[test.id]
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._truth(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            # What else is asked is taken to hold, or not to be the reason.
            known = [each for part in test.values if (each := self._truth(part)) is not None]
            if not known:
                return None
            return all(known) if isinstance(test.op, ast.And) else any(known)
        if not any(self._is_it(each) for each in ast.walk(test)):
            return None
        return bool(self.worth(test))
