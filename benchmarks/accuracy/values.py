"""Values of the brute-force interpreter: plain Python ones, or a `Thing` for the rest.

A `Thing` stands for anything that is not computed (a tensor, a network, an argument).
It has an identity, parts that stay the same each time they are asked for, and it knows
which networks went into it, so that a backward finds the parameters it fills.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

_births = itertools.count()


class Thing:
    """An object whose value is not known but whose identity is."""

    def __init__(
        self,
        name: str,
        parent: Thing | None = None,
        made_of: frozenset[Thing] = frozenset(),
        holds: tuple[Thing, ...] = (),
    ) -> None:
        self.name = name
        self.parent = parent
        self.made_of = made_of  # the networks whose calls produced it
        self.holds = holds  # the networks whose parameters it contains
        self.parts: dict[Any, Any] = {}
        self.cls: ClassValue | None = None
        self.scaler: Thing | None = None
        self.imported: bool = parent is not None and parent.imported
        self.is_network = False  # it was asked for its parameters, or put in a mode
        # A part is as old as the whole: `self.opt` was there before it was first named.
        self.born: int = parent.born if parent is not None else next(_births)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def part(self, key: Any, label: str) -> Any:
        """Return the attribute or item `key`, the same one every time."""
        if key not in self.parts:
            made = Thing(f"{self.name}{label}", self, self.made_of, self.holds)
            made.scaler = self.scaler
            self.parts[key] = made
        return self.parts[key]

    def ancestors(self) -> Iterator[Thing]:
        node: Thing | None = self
        while node is not None:
            yield node
            node = node.parent


class FunctionValue:
    """A function of the program, with the scope it was defined in and its `self`."""

    def __init__(self, node: Any, scope: Scope, bound: Any = None) -> None:
        self.node = node  # FunctionDef or Lambda
        self.scope = scope
        self.bound = bound


class ClassValue:
    """A class of the program."""

    def __init__(self, node: ast.ClassDef, scope: Scope) -> None:
        self.node = node
        self.scope = scope
        self.methods = {
            item.name: item
            for item in node.body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        }

    def method(self, name: str, depth: int = 0) -> tuple[ClassValue, Any] | None:
        """Find a method here or in a base class of the same program."""
        if name in self.methods:
            return self, self.methods[name]
        for base in self.node.bases:
            found = self.scope.get(ast.unparse(base))
            if isinstance(found, ClassValue) and found is not self and depth < 8:
                inherited = found.method(name, depth + 1)
                if inherited is not None:
                    return inherited
        return None


class Scope:
    """Names of one function call, inside the names of the program around it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.outer = outer
        self.elsewhere: dict[str, Scope] = {}  # names declared global or nonlocal

    def get(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def has(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True
            scope = scope.outer
        return False

    def set(self, name: str, value: Any) -> None:
        self.elsewhere.get(name, self).names[name] = value

    @property
    def top(self) -> Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope


def things_in(value: Any, depth: int = 0) -> Iterator[Thing]:
    """Yield each Thing inside a value made of lists, tuples and dicts."""
    if isinstance(value, Thing):
        yield value
    elif depth < 4 and isinstance(value, list | tuple | set):
        for item in value:
            yield from things_in(item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for item in value.values():
            yield from things_in(item, depth + 1)


def made_of(values: Any) -> frozenset[Thing]:
    """Return the networks that went into any of the values."""
    return frozenset().union(*(thing.made_of for thing in things_in(values)))


def held_by(values: Any) -> tuple[Thing, ...]:
    """Return the networks whose parameters are among the values."""
    found: dict[Thing, None] = {}
    for thing in things_in(values):
        found.update(dict.fromkeys(thing.holds))
    return tuple(found)


def related(one: Thing, bucket: Thing) -> bool:
    """Tell whether a thing is this network, a part or wrapper of it, or computed from it."""
    if bucket in one.made_of or (one.is_network and one in bucket.made_of):
        return True
    return any(node is bucket for node in one.ancestors()) or any(
        node is one for node in bucket.ancestors()
    )


def now() -> int:
    """Return a number that every thing made from here on is younger than."""
    return next(_births)
