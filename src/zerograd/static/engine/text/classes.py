"""One class of the project: its methods, and what they do to its attributes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.text.kinds import kinds_of
from zerograd.static.engine.text.refusals import refused
from zerograd.static.engine.text.stores import targets

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class ClassUnit:
    """A class: its methods by name and which method assigns which attribute."""

    __slots__ = (
        *("_assigners", "_flags", "_kinds", "_refused", "bases", "methods", "name", "node"),
        "unit",
    )

    def __init__(self, node: ast.ClassDef, unit: Unit) -> None:
        self.node = node
        self.unit = unit
        self.name = node.name
        self.bases = [_spelled(base) for base in node.bases]
        self.methods: dict[str, FunctionNode] = {
            _accessor(each): each for each in node.body if isinstance(each, FunctionNode)
        }
        self._assigners: dict[str, list[str]] | None = None
        self._flags: dict[str, bool] | None = None
        self._kinds: dict[str, object] | None = None
        self._refused: dict[str, set[str]] | None = None

    def close(self) -> None:
        """Let go of the tree and of the module."""
        del self.node, self.unit, self.methods

    def assigners(self, attribute: str) -> list[str]:
        """Return the methods that assign `self.attribute`, __init__ first."""
        return self.assigned().get(attribute, [])

    def assigned(self) -> dict[str, list[str]]:
        """Return every attribute that the methods assign, and which of them do."""
        if self._assigners is None:
            found: dict[str, list[str]] = {}
            for name, method in self.methods.items():
                for each in targets(method.body):
                    if isinstance(each, ast.Attribute):
                        names = found.setdefault(each.attr, [])
                        if name not in names:
                            names.append(name)
            for names in found.values():
                names.sort(key=lambda name: name != "__init__")
            self._assigners = found
        return self._assigners

    def is_handed_in(self, attribute: str) -> bool:
        """Is it what the constructor was given, and set nowhere else in the file?"""
        if self.assigners(attribute) != ["__init__"]:
            return False
        init = self.methods["__init__"]
        given = {each.arg for each in (*init.args.args, *init.args.kwonlyargs)}
        values = [
            value
            for each in init.body
            if isinstance(each, ast.Assign)
            for target, value in _pairs(each)
            if isinstance(target, ast.Attribute) and target.attr == attribute
        ]
        times = sum(getattr(each, "attr", "") == attribute for each in targets(init.body))
        handed = [each for each in values if isinstance(each, ast.Name) and each.id in given]
        if not times == len(handed) == 1:
            return False
        # It begins with the name, to which Python skips.
        set_outside = rf"\.{attribute}(?<!self\.{attribute})\s*=[^=]"
        return re.search(set_outside, self.unit.source.text) is None

    @property
    def flags(self) -> dict[str, bool]:
        """The truths that its body gives to names."""
        if self._flags is None:
            self._flags = {
                target.id: each.value.value
                for each in self.node.body
                if isinstance(each, ast.Assign | ast.AnnAssign)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, bool)
                for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
                if isinstance(target, ast.Name)
            }
        return self._flags

    @property
    def kinds(self) -> dict[str, object]:
        """What an enumeration tells apart: each name, and what is only its own."""
        if self._kinds is None:
            self._kinds = kinds_of(self.node)
        return self._kinds

    def refused(self) -> dict[str, set[str]]:
        """Return the attributes that its methods do not allow, and which of them do not."""
        if self._refused is None:
            self._refused = {}
            for name, method in self.methods.items():
                for each in refused(method.body):
                    self._refused.setdefault(each, set()).add(name)
        return self._refused


def _spelled(base: ast.expr) -> str:
    """Return a base class as it is written; most are a name, or one of a module."""
    names: list[str] = []
    inner = base
    while type(inner) is ast.Attribute:
        names.append(inner.attr)
        inner = inner.value
    if type(inner) is not ast.Name:
        return ast.unparse(base)
    return ".".join((inner.id, *reversed(names)))


def _accessor(method: FunctionNode) -> str:
    """Return a method's name; that of a property's setter tells so, and leaves the property."""
    for each in method.decorator_list:
        if isinstance(each, ast.Attribute) and each.attr in ("setter", "deleter"):
            return f"{method.name}.{each.attr}"
    return method.name


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is assigned to what: `a, b = x, y` is two of them."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value
