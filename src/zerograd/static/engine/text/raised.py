"""Calls of a loss scaler at which torch raises, told from the text of one function.

`update()` asks that some optimizer was unscaled or stepped since the last one, and between two of
them each optimizer is unscaled once, before its step, and stepped once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import inner_of, parts_below
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.source import Source

_MAKES = re.compile(r"GradScaler$")
_ACTS = frozenset(("step", "unscale_", "update"))
_LOOPS = ast.For | ast.AsyncFor | ast.While
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
_SCOPES = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda))
_MOST_STATES = 32

Text = Callable[[ast.AST], str]  # what is written for a node


class _Records(NamedTuple):
    """What a scaler has noted since its last update; None where that is not known."""

    unscaled: frozenset[str] | None = None
    stepped: frozenset[str] = frozenset()


_UNKNOWN = _Records()
_NONE = _Records(frozenset())
_States = frozenset[_Records]
_NOWHERE: _States = frozenset()


@dataclass(frozen=True, slots=True)
class Raised:
    """A call at which torch raises, on every path to it or on some."""

    call: ast.Call
    always: bool


def raised_in(function: FunctionNode | ast.Module, source: Source) -> Iterator[Raised]:
    """Yield the calls of a function, or of a module's own statements, at which torch raises."""
    for scaler in _scalers(function.body, source.segment):
        reader = _Reader(scaler, source.segment, frozenset(_those_that_know(scaler, source)))
        yield from reader.raised(function.body)


def _those_that_know(scaler: str, source: Source) -> Iterator[str]:
    """Yield the functions that speak of a scaler, and so need not be handed it."""
    for each in statements_in(source.tree.body):
        if isinstance(each, FunctionNode):
            lines = source.lines[each.lineno - 1 : each.end_lineno]
            if any(scaler in line for line in lines):
                yield each.name


def _scalers(body: list[ast.stmt], text: Text) -> list[str]:
    """Return the scalers that are called twice at least, by what they are called."""
    found = [
        text(each.func.value)
        for each in _calls(body)
        if isinstance(each.func, ast.Attribute) and each.func.attr in _ACTS
    ]
    return [each for each in dict.fromkeys(found) if is_scaler_name(each) and found.count(each) > 1]


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """Yield the calls in the order in which they stand, those of inner functions left out."""
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if type(node) in _SCOPES:
            continue
        waiting += reversed(inner_of(node))
        if type(node) is ast.Call:
            yield node


class _Reader:
    """Follows one scaler through a body, over all that it may have noted."""

    def __init__(self, scaler: str, text: Text, knowing: frozenset[str]) -> None:
        self._scaler = scaler
        self._text = text
        self._knowing = knowing
        self._found: dict[ast.Call, bool] = {}
        self._breaks: list[_States] = []
        self._continues: list[_States] = []

    def raised(self, body: list[ast.stmt]) -> Iterator[Raised]:
        self._block(body, frozenset((_UNKNOWN,)))
        for call, always in self._found.items():
            yield Raised(call, always)

    def _block(self, body: list[ast.stmt], states: _States) -> _States:
        for each in body:
            if not states:
                return _NOWHERE
            states = self._statement(each, states)
        return states

    def _statement(self, node: ast.stmt, states: _States) -> _States:
        if isinstance(node, FunctionNode | ast.ClassDef):
            return states
        if isinstance(node, ast.If):
            states = self._expression(node.test, states)
            return self._block(node.body, states) | self._block(node.orelse, states)
        if isinstance(node, _LOOPS):
            return self._loop(node, states)
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                states = self._expression(item.context_expr, states)
            return self._block(node.body, states)
        if isinstance(node, _TRIES):
            after = self._block(node.orelse, self._block(node.body, states))
            caught = states | after | {_UNKNOWN}
            for handler in node.handlers:
                after |= self._block(handler.body, caught)
            return self._block(node.finalbody, after or caught)
        if isinstance(node, ast.Match):
            states = self._expression(node.subject, states)
            return states.union(*(self._block(case.body, states) for case in node.cases))
        states = self._expression(node, states)
        if isinstance(node, ast.Return | ast.Raise):
            return _NOWHERE
        if isinstance(node, ast.Break | ast.Continue):
            ends = self._breaks if isinstance(node, ast.Break) else self._continues
            if ends:
                ends[-1] |= states
            return _NOWHERE
        if isinstance(node, ast.Assign | ast.AnnAssign):
            given = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(self._text(each) == self._scaler for each in given):
                new = isinstance(node.value, ast.Call) and _MAKES.search(
                    self._text(node.value.func)
                )
                return frozenset((_NONE if new else _UNKNOWN,))
        return states

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, states: _States) -> _States:
        """Follow a loop, which is taken to run once at least: it may go over all optimizers."""
        head = node.test if isinstance(node, ast.While) else node.iter
        start = self._expression(head, states)
        while True:
            self._breaks.append(_NOWHERE)
            self._continues.append(_NOWHERE)
            end = self._block(node.body, start)
            left, end = self._breaks.pop(), end | self._continues.pop()
            if end <= start or len(start | end) > _MOST_STATES:
                break
            start |= end
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        return left | (_NOWHERE if endless else self._block(node.orelse, end))

    def _expression(self, node: ast.AST, states: _States) -> _States:
        if not any(isinstance(each, ast.Call) for each in parts_below(node)):
            return states
        for call in reversed(list(_calls([node]))):  # type: ignore[list-item]
            states = self._call(call, states)
        return states

    def _call(self, call: ast.Call, states: _States) -> _States:
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else ""
        owner = self._text(func.value) if isinstance(func, ast.Attribute) else ""
        if owner == self._scaler and name in _ACTS:
            return self._act(call, name, states)
        if owner != self._scaler and not self._may_reach(call, owner):
            return states
        harmless = owner == self._scaler and name in ("scale", "get_scale", "is_enabled")
        return states if harmless else frozenset((_UNKNOWN,))

    def _act(self, call: ast.Call, name: str, states: _States) -> _States:
        if name == "update":
            if not call.args and not call.keywords:
                self._note(call, [each.unscaled is not None and not _any(each) for each in states])
            return frozenset((_NONE,))
        whose = self._text(call.args[0]) if call.args else "?"
        if name == "unscale_":
            self._note(
                call, [whose in (each.unscaled or ()) or whose in each.stepped for each in states]
            )
        else:
            self._note(call, [whose in each.stepped for each in states])
        return frozenset(self._noted(each, name, whose) for each in states)

    def _noted(self, before: _Records, name: str, whose: str) -> _Records:
        unscaled = before.unscaled or frozenset()
        if name == "unscale_":
            return _Records(unscaled | {whose}, before.stepped)
        return _Records(unscaled, before.stepped | {whose})

    def _note(self, call: ast.Call, raises: list[bool]) -> None:
        if any(raises):
            self._found[call] = all(raises)
        else:
            self._found.pop(call, None)

    def _may_reach(self, call: ast.Call, owner: str) -> bool:
        """May what is called get at the scaler: by an argument, or as a method of who holds it?"""
        given = [*call.args, *(each.value for each in call.keywords)]
        if any(self._text(each).lstrip("*") == self._scaler for each in given):
            return True
        holder = self._scaler.rpartition(".")[0]
        if not holder:
            return isinstance(call.func, ast.Name) and call.func.id in self._knowing
        return owner == holder or holder in map(self._text, given)


def _any(records: _Records) -> bool:
    return bool(records.unscaled or records.stepped)
