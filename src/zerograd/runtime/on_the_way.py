"""What lies on the way from one backward to the next: may it change weights without gradients?

A leaf of no optimizer's that has changed was updated by hand, or was loaded, clamped, averaged or
given noise. Nobody tells which of these lines ran. So where some of them change weights without
gradients, an update is only taken for one if it is sure to come along with each of these.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from zerograd.runtime import called_code
from zerograd.runtime.call_site import Site, kind_of_is_machinery
from zerograd.runtime.clears import code_of
from zerograd.runtime.hand_work import function_around, parsed
from zerograd.runtime.in_sight import optimizers_in
from zerograd.runtime.moves import Carried, changes, name_of, own_parts
from zerograd.runtime.names import variables_of

MOST_STATEMENTS = 20_000  # looked at for one answer
MOST_FRAMES = 16
_NO_GRADIENTS = re.compile(r"no_grad|inference_mode|set_grad_enabled\(False\)")
_ASKS_IF_THERE = re.compile(r"grad\b|requires_grad|isinstance")
_BY_CALLING = ("forward", "__call__")  # what a call of an object may run

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Guards = frozenset[tuple[ast.If, bool]]  # which branches lead there


@dataclass(frozen=True, slots=True)
class _Change:
    is_update: bool
    depth: int  # how many of the loops around the backward it is in
    guards: _Guards  # around it, and not around the backward

    def comes_with(self, other: _Change) -> bool:
        """Is it sure to be done wherever the other one is?"""
        return self.depth >= other.depth and self.guards <= other.guards


@dataclass(slots=True)
class _Way:
    """Where a walk has come to."""

    path: str
    names: dict[str, Any]
    depth: int
    guards: _Guards
    is_free: bool
    carried: Carried
    inside: tuple[ast.AST, ...] = ()  # the functions it is in
    between: tuple[int, int] | None = None  # the lines of this function that lie on the way


@dataclass(slots=True)
class _Walk:
    changes: list[_Change] = field(default_factory=list)
    left: int = 0
    files: dict[str, _File] = field(default_factory=dict)
    returning: set[str] = field(default_factory=set)
    seen: set[tuple[ast.AST, int, _Guards, bool]] = field(default_factory=set)

    def file(self, path: str) -> _File:
        found = self.files.get(path)
        if found is None:
            found = self.files[path] = _File(path, self.returning)
        return found


class _File:
    """One file as it is parsed, its functions by their names, and what they know of gradients."""

    def __init__(self, path: str, returning: set[str]) -> None:
        self._returning = returning
        self.tree = parsed(path)
        self.functions: dict[str, list[_Function]] = {}
        self.carried = Carried(ast.Module([], []), returning)
        self._own: dict[ast.AST, Carried] = {}
        known = optimizers_in(path)
        waiting: list[ast.AST] = [self.tree]
        for node in waiting:  # grows as it goes
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.setdefault(node.name, []).append(node)
            if not (isinstance(node, ast.ClassDef) and node.name in known):
                waiting += ast.iter_child_nodes(node)

    def carried_in(self, scope: ast.AST) -> Carried:
        found = self._own.get(scope)
        if found is None:
            found = self._own[scope] = Carried(scope, self._returning, self.carried)
            if isinstance(scope, ast.Module):
                found.names = self.carried.names
        return found


def is_moved_otherwise(site: Site, since: Site | None) -> bool:
    """May weights have changed without their gradients between a backward and `site`?

    Args:
        since: where the backward before was called.
    """
    walk = _Walk()
    for _ in range(2):  # what a function returns is known once it has been gone through
        walk.left = MOST_STATEMENTS
        walk.changes.clear()
        walk.seen.clear()
        _go(walk, site, since)
    updates = [each for each in walk.changes if each.is_update]
    others = [each for each in walk.changes if not each.is_update]
    return any(not any(each.comes_with(other) for each in updates) for other in others)


def _go(walk: _Walk, site: Site, since: Site | None) -> None:
    """Go through the functions that are running, and through what they call."""
    places = list(_places(site))
    scopes = [function_around(walk.file(path).tree, line) for path, line, _ in places]
    around = [list(_above(scope, place[1])) for scope, place in zip(scopes, places, strict=True)]
    loops = [[each for each in found if isinstance(each, _LOOPS)] for found in around]
    free = [
        any(map(_is_free, (scope, *found))) for scope, found in zip(scopes, around, strict=True)
    ]
    for number, (path, line, names) in enumerate(places):
        scope = scopes[number]
        depth = sum(map(len, loops[number + 1 :]))
        is_free = _is_free(scope) or any(free[number + 1 :])
        carried = walk.file(path).carried_in(scope)
        way = _Way(path, names, depth, frozenset(), is_free, carried, (scope,))
        if number == 0 and since is not None and since.path == path:
            way.between = _between(scope, since.line, line, loops[0])
        _through(walk, _body(scope), way, loops[number], _guards_at(scope, line))
    if any(loops):  # what is outside of all loops comes once
        walk.changes[:] = [each for each in walk.changes if each.depth]


def _between(
    scope: ast.AST, first: int, last: int, loops: Sequence[ast.AST]
) -> tuple[int, int] | None:
    """Return the lines between two places of the same turn, None if the way is a longer one."""
    start, end = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", last)
    if not start <= first < last <= end:
        return None
    inner = [each for each in _above(scope, first) if isinstance(each, _LOOPS)]
    return (first, last) if inner == loops else None


def _places(site: Site) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield file, line and variables of the code that is running, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != site.path:
        frame = frame.f_back
    if frame is None:
        yield site.path, site.line, {}
        return
    line: int | None = site.line
    number = 0
    while frame is not None and number < MOST_FRAMES:
        path = frame.f_code.co_filename
        if not kind_of_is_machinery(path):
            yield path, line if line is not None else frame.f_lineno, variables_of(frame)
            line, number = None, number + 1
        frame = frame.f_back


def _body(scope: ast.AST) -> list[ast.stmt]:
    return list(getattr(scope, "body", ()))


def _above(scope: ast.AST, line: int) -> Iterator[ast.AST]:
    """Yield the statements around a line, the outermost first."""
    for each in _body(scope):
        yield from _reaching(each, line)


def _reaching(statement: ast.AST, line: int) -> Iterator[ast.AST]:
    if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):  # type: ignore[attr-defined]
        return
    yield statement
    for each in ast.iter_child_nodes(statement):
        if isinstance(each, (ast.stmt, ast.excepthandler)):
            yield from _reaching(each, line)


def _guards_at(scope: ast.AST, line: int) -> _Guards:
    """Return the branches that lead to a line of a function."""
    found: set[tuple[ast.If, bool]] = set()
    body = _body(scope)
    while body:
        inside = None
        for each in body:
            if each.lineno <= line <= (each.end_lineno or each.lineno):
                inside = each
                break
            if each.lineno < line and _leaves(each):
                found.add((each, False))  # type: ignore[arg-type]
        if inside is None:
            break
        if isinstance(inside, ast.If):
            is_body = line <= (inside.body[-1].end_lineno or 0)
            found.add((inside, is_body))
            body = inside.body if is_body else inside.orelse
        else:
            body = [each for each in ast.iter_child_nodes(inside) if isinstance(each, ast.stmt)]
    return frozenset(found)


def _leaves(statement: ast.stmt) -> bool:
    """Does it leave the turn early on a condition that is not about a gradient's being there?"""
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], (ast.Continue, ast.Return))
        and not _ASKS_IF_THERE.search(ast.unparse(statement.test))
    )


def _is_free(node: ast.AST) -> bool:
    """Does a function, or a `with`, turn gradients off for what is in it?"""
    items = [each.context_expr for each in getattr(node, "items", ())]
    said = [*getattr(node, "decorator_list", ()), *items]
    return any(_NO_GRADIENTS.search(ast.unparse(each)) for each in said)


def _through(
    walk: _Walk, body: list[ast.stmt], way: _Way, loops: Sequence[ast.AST], at: _Guards
) -> None:
    """Go through statements one after the other, and through what they call.

    Args:
        loops: those around the backward in this function.
        at: the branches that lead to the backward in it.
    """
    guards = way.guards
    for each in body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        walk.left -= 1
        if walk.left < 0:
            return
        _look(walk, each, way, guards)
        inner = replace(way, guards=guards)
        if isinstance(each, ast.If):
            _branch(walk, each, inner, loops, at)
        else:
            if each in loops:
                inner.depth += 1
            inner.is_free = inner.is_free or _is_free(each)
            for block in _blocks(each):
                _through(walk, block, inner, loops, at)
        if _leaves(each) and (each, False) not in at:
            guards |= {(each, False)}  # type: ignore[arg-type]


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def _branch(walk: _Walk, node: ast.If, way: _Way, loops: Sequence[ast.AST], at: _Guards) -> None:
    """Go through both branches: what both of them do, no condition decides."""
    is_asked = not _ASKS_IF_THERE.search(ast.unparse(node.test))
    found = []
    for block, is_body in ((node.body, True), (node.orelse, False)):
        start = len(walk.changes)
        is_guard = is_asked and (node, is_body) not in at
        guards = way.guards | {(node, is_body)} if is_guard else way.guards
        _through(walk, block, replace(way, guards=guards), loops, at)
        found.append([each for each in walk.changes[start:] if each.is_update])
    if all(found):
        walk.changes += [
            _Change(True, each.depth, each.guards - {(node, True)}) for each in found[0]
        ]


def _look(walk: _Walk, statement: ast.stmt, way: _Way, guards: _Guards) -> None:
    """Take down what a statement changes, and go through the functions that it calls."""
    way.carried.follow(statement)
    if way.between is not None and not any(_blocks(statement)):
        first, last = way.between
        if not first <= statement.lineno <= last:
            return
    if isinstance(statement, ast.Return) and statement.value is not None:
        function = way.inside[-1]
        if isinstance(
            function, (ast.FunctionDef, ast.AsyncFunctionDef)
        ) and way.carried.is_made_of_gradients(statement.value):
            way.carried.returning.add(function.name)
    for is_update in changes(statement, way.carried, is_free=way.is_free):
        walk.changes.append(_Change(is_update, way.depth, guards))
    for part in own_parts(statement):
        for node in ast.walk(part):
            if isinstance(node, ast.Call):
                _into(walk, node, replace(way, guards=guards))


def _into(walk: _Walk, call: ast.Call, way: _Way) -> None:
    """Go through the functions that a call may run."""
    if len(way.inside) > MOST_FRAMES:
        return
    for path, function, names in _called(walk, call, way):
        key = (function, way.depth, way.guards, way.is_free)
        if function in way.inside or key in walk.seen:
            continue
        walk.seen.add(key)
        carried = walk.file(path).carried_in(function)
        given = [each.arg for each in function.args.args]
        if given[:1] in (["self"], ["cls"]):
            del given[0]
        pairs = [*zip(given, call.args, strict=False)]
        pairs += [(each.arg, each.value) for each in call.keywords if each.arg]
        carried.names |= {name for name, value in pairs if way.carried.is_made_of_gradients(value)}
        inner = _Way(
            path,
            names,
            way.depth,
            way.guards,
            way.is_free or _is_free(function),
            carried,
            (*way.inside, function),
        )
        _through(walk, function.body, inner, [], frozenset())


def _called(
    walk: _Walk, call: ast.Call, way: _Way
) -> Iterator[tuple[str, _Function, dict[str, Any]]]:
    """Yield the functions that a call runs: the one that its names stand for, if they are known.

    Else those of the file that are called so, and for an object's call its `forward`.
    """
    value = called_code.resolved(call.func, way.names)
    code = code_of(value) if value is not None else None
    if code is not None:
        path = code.co_filename
        if not kind_of_is_machinery(path):
            for each in walk.file(path).functions.get(code.co_name, ()):
                first = min(part.lineno for part in (each, *each.decorator_list))
                if first == code.co_firstlineno:
                    yield path, each, getattr(inspect.unwrap(value), "__globals__", {})
        return
    if isinstance(value, type):
        return
    names: tuple[str, ...] = (name_of(call.func),)
    functions = walk.file(way.path).functions
    if isinstance(call.func, (ast.Name, ast.Attribute)) and names[0] not in functions:
        names = _BY_CALLING
    for name in names:
        for each in functions.get(name, ()):
            yield way.path, each, {}
