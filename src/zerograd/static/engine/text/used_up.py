"""Iterators over parameters that are used up: who goes over them once more finds nothing.

params = filter(lambda p: p.requires_grad, net.parameters())
optimizer = Adam(params)  # goes over them
clip_grad_norm_(params, 1.0)  # and clips none
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in, targets
from zerograd.static.engine.text.words import CLIPS, is_optimizer_class, is_optimizer_name

_ITERATOR = re.compile(  # only a file that says so has any
    r"=\s*\(?\s*(?:[\w.]+\.parameters\(\)|(?:\w+\.)*(?:filter|map|chain|from_iterable)\(|\w+ for )"
)
_TARGET = re.compile(r"(?:^|[:;])\s*[\w.]+\s*$")  # and no argument of a call
_MAKERS = frozenset(("filter", "map", "chain", "from_iterable"))
_EXHAUSTING = frozenset(("list", "tuple", "set", "sorted", "sum", "max", "min"))
_PASSED = ("enumerate", "zip", "tqdm")  # a loop over what they give goes over what they are given


class UsedUp(NamedTuple):
    """A clip of, or a loop over, what another use has gone over before."""

    made: ast.Assign
    by: ast.AST  # that other use; itself, if it is only its first time that finds anything

    @property
    def is_plain(self) -> bool:
        """Is it what `net.parameters()` gave, which a class of the project may make a list?"""
        ways = [self.made.value]
        for each in ways:  # grows as it goes
            if isinstance(each, ast.IfExp):
                ways += [each.body, each.orelse]
        return any(isinstance(each, ast.Call) and _called(each) == "parameters" for each in ways)


def makes_iterators(text: str) -> bool:
    """May this file assign an iterator over parameters to a name? Most only hand one on."""
    return any(
        _TARGET.search(text[text.rfind("\n", 0, found.start()) + 1 : found.start()])
        for found in _ITERATOR.finditer(text)
    )


def used_up(tree: ast.Module, statements: Sequence[ast.AST]) -> dict[int, UsedUp]:
    """Return by their ids the clips and loops of a file that find nothing.

    Args:
        tree: the file.
        statements: all of it, as `statements_in` returns them.
    """
    found: dict[int, UsedUp] = {}
    makers = [each for each in statements if isinstance(each, ast.Assign) and _makers(each)]
    functions = [each for each in statements if isinstance(each, FunctionNode)] if makers else []
    scopes: dict[int, ast.Module | FunctionNode] = {}
    for made in makers:
        around = [each for each in functions if each.lineno < made.lineno <= (each.end_lineno or 0)]
        scope = around[-1] if around else tree  # the outer ones come first
        scopes[id(scope)] = scope
    for scope in scopes.values():
        stored = Counter(map(_path, targets(scope.body)))
        for block in _blocks(scope.body):
            for place, each in enumerate(block):
                made_here = _makers(each)
                for made in made_here:
                    path = _path(made.targets[0])
                    if stored[path] == sum(_path(one.targets[0]) == path for one in made_here):
                        reader = _Reader(path, made, found)
                        reader.read(block[place + 1 :], repeats=False)
                        _read_elsewhere(statements, scope, reader)
    return found


def _path(node: ast.AST) -> str:
    """Return `params` or `self.params`, as it is written; nothing else is followed."""
    if isinstance(node, ast.Name):
        return node.id
    of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    if of_self and node.value.id == "self":  # type: ignore[attr-defined]
        return f"self.{node.attr}"  # type: ignore[attr-defined]
    return ""


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield a block and those inside it, but for other scopes'."""
    yield body
    for each in body:
        if isinstance(each, FunctionNode | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(each, name, None)
            if inner:
                yield from _blocks(inner)
        for handler in getattr(each, "handlers", ()):
            yield from _blocks(handler.body)


def _makers(statement: ast.stmt) -> list[ast.Assign]:
    """Return the assignments of an iterator; of an `if`, one in each of its branches."""
    if isinstance(statement, ast.Assign):
        simple = len(statement.targets) == 1 and _path(statement.targets[0])
        return [statement] if simple and _is_iterator(statement.value) else []
    if not isinstance(statement, ast.If) or not statement.orelse:
        return []
    then = [made for each in statement.body for made in _makers(each)]
    otherwise = [made for each in statement.orelse for made in _makers(each)]
    names = {_path(each.targets[0]) for each in then} & {
        _path(each.targets[0]) for each in otherwise
    }
    return [each for each in (*then, *otherwise) if _path(each.targets[0]) in names]


def _is_iterator(value: ast.expr) -> bool:
    """Is it one that gives each parameter of a network once, and is no list?"""
    if isinstance(value, ast.IfExp):
        return _is_iterator(value.body) and _is_iterator(value.orelse)
    if isinstance(value, ast.GeneratorExp):
        return _is_iterator(value.generators[0].iter) and len(value.generators) == 1
    if not isinstance(value, ast.Call):
        return False
    name = _called(value)
    if name == "parameters":
        return isinstance(value.func, ast.Attribute)
    return name in _MAKERS and any(
        isinstance(each, ast.Call) and _called(each) == "parameters" for each in parts_below(value)
    )


def _called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _read_elsewhere(
    statements: Sequence[ast.AST], scope: ast.Module | FunctionNode, reader: _Reader
) -> None:
    """What other functions do with it comes later: those inside, or of the same object."""
    if reader.by is None:
        return  # perhaps they are the first
    inside: Sequence[ast.AST] = scope.body if isinstance(scope, FunctionNode) else statements
    if reader.path.startswith("self."):
        classes = (each for each in statements if isinstance(each, ast.ClassDef))
        inside = next((each.body for each in classes if scope in each.body), [])
        methods = [each for each in inside if isinstance(each, FunctionNode)]
        stored = [target for each in methods for target in targets(each.body)]
        made_once = sum(_path(each) == reader.path for each in stored) == 1
        if not made_once or getattr(scope, "name", "") != "__init__":
            return
    for each in statements_in(inside) if inside is not statements else statements:
        if not isinstance(each, FunctionNode) or each is scope:
            continue
        if reader.path not in _own_names(each):
            reader.read(each.body, repeats=False)


def _own_names(function: FunctionNode) -> set[str]:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {each.arg for each in given} | set(map(_path, targets(function.body)))


class _Reader:
    """Follows one iterator from where it is made, statement by statement."""

    def __init__(self, path: str, made: ast.Assign, found: dict[int, UsedUp]) -> None:
        self.path = path
        self.by: ast.AST | None = None  # what has surely gone over it
        self._made = made
        self._found = found

    def read(self, block: Sequence[ast.stmt], repeats: bool) -> None:
        """Go through a block; in one that `repeats` a use comes again, and finds nothing then."""
        for place, each in enumerate(block):
            if isinstance(each, FunctionNode | ast.ClassDef):
                continue
            if isinstance(each, ast.Assign) and self._is_it(each.value):
                self._under_other_name(each, block[place + 1 :], repeats)
            elif isinstance(each, ast.For | ast.AsyncFor):
                self._expression(each.iter, repeats, each)
                self._rounds(each.body, repeats)
                self.read(each.orelse, repeats)
            elif isinstance(each, ast.While):
                self._expression(each.test, True, each)
                self._rounds(each.body, repeats)
                self.read(each.orelse, repeats)
            elif isinstance(each, ast.If):
                self._expression(each.test, repeats, each)
                self._either(each.body, each.orelse, repeats)
            elif isinstance(each, ast.With | ast.AsyncWith):
                for item in each.items:
                    self._expression(item.context_expr, repeats, each)
                self.read(each.body, repeats)
            elif isinstance(each, ast.Try):
                before = self.by
                self.read(each.body, repeats)
                self.by = before  # it may have left before that
                for handler in each.handlers:
                    self.read(handler.body, repeats)
                self.by = before
                self.read([*each.orelse, *each.finalbody], repeats)
            else:
                self._expression(each, repeats, each)

    def _under_other_name(self, given: ast.Assign, rest: Sequence[ast.stmt], repeats: bool) -> None:
        """`to_clip = params`: until the block ends it is the same iterator."""
        path = _path(given.targets[0])
        if not path or len(given.targets) > 1 or path in map(_path, targets(list(rest))):
            return
        other = _Reader(path, self._made, self._found)
        other.by = self.by
        other.read(rest, repeats)
        self.by = other.by

    def _rounds(self, body: list[ast.stmt], repeats: bool) -> None:
        once = any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in body)
        self.read(body, repeats or not once)

    def _either(self, then: list[ast.stmt], otherwise: list[ast.stmt], repeats: bool) -> None:
        before = self.by
        self.read(then, repeats)
        after, self.by = self.by, before
        self.read(otherwise, repeats)
        if after is None or self.by is None:
            self.by = before

    def _expression(self, node: ast.AST, repeats: bool, statement: ast.stmt) -> None:
        """Note the uses in an expression, or in a statement that holds no others."""
        is_loop = isinstance(statement, ast.For | ast.AsyncFor)
        if is_loop and self._is_it(_taken(statement.iter)):  # type: ignore[attr-defined]
            self._use(statement, repeats, finds=True)
            return
        for each in parts_below(node):
            if isinstance(each, ast.comprehension) and self._is_it(_taken(each.iter)):
                self._use(statement, repeats, finds=False)
            elif isinstance(each, ast.Call):
                handed = [*each.args, *(word.value for word in each.keywords)]
                if any(self._is_it(_bare(one)) for one in handed):
                    self._hand(each, statement, repeats)
                elif _makes_optimizer(each, statement) and any(
                    self._is_it(part) for one in handed for part in parts_below(one)
                ):
                    self._use(each, repeats, finds=False)  # in groups

    def _hand(self, call: ast.Call, statement: ast.stmt, repeats: bool) -> None:
        name = _called(call)
        if name in CLIPS:
            named = [word.value for word in call.keywords if word.arg == "parameters"]
            self._use(call, repeats, finds=any(map(self._is_it, (*call.args[:1], *named))))
        elif name in _EXHAUSTING or _makes_optimizer(call, statement):
            self._use(call, repeats, finds=False)

    def _use(self, node: ast.AST, repeats: bool, *, finds: bool) -> None:
        """Take in one use; `finds`: it is one of those that somebody must know to be in vain."""
        if finds and (self.by is not None or repeats):
            self._found[id(node)] = UsedUp(self._made, self.by or node)
        self.by = self.by or node

    def _is_it(self, node: ast.AST) -> bool:
        return _path(node) == self.path


def _bare(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _taken(node: ast.expr) -> ast.expr:
    """Return what a loop goes over, behind `enumerate(…)` and its kin."""
    if isinstance(node, ast.Call) and _called(node) in _PASSED and node.args:
        return node.args[0]
    return node


def _makes_optimizer(call: ast.Call, statement: ast.stmt) -> bool:
    """Does the call make an optimizer, by its own name or by the one that it is given?"""
    if is_optimizer_class(_called(call)):
        return True
    given = statement.targets if isinstance(statement, ast.Assign) else []
    return call is getattr(statement, "value", None) and any(
        isinstance(each, ast.Name | ast.Attribute) and is_optimizer_name(ast.unparse(each))
        for each in given
    )
