"""The frame of a function being read: its names, its values, and where its events go."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.ir import Block, Haze, Loop, Node
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.identity.values import (
    NOTHING,
    External,
    Mapping,
    Named,
    Value,
)
from zerograd.static.engine.text.classes import ClassUnit
from zerograd.static.engine.text.words import WELL_KNOWN

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program


class Frame:
    """One reading of one function (or module) with its parameters bound."""

    __slots__ = (
        "accumulating",
        "bare",
        "closure",
        "globals",
        "inside",
        "is_manager",
        "locals",
        "loop",
        "no_grad",
        "node",
        "number",
        "out",
        "outer",
        "owner",
        "program",
        "returned",
        "self_value",
        "shared",
        "site",
        "spellings",
        "unit",
        "versions",
        "yields",
    )

    def __init__(
        self,
        program: Program,
        unit: Unit,
        number: int,
        *,
        closure: dict[str, Value] | None = None,
        self_value: Value | None = None,
        owner: ClassUnit | None = None,
        loop: Loop | None = None,
    ) -> None:
        self.program = program
        self.unit = unit
        self.node: ast.AST | None = None  # the function, or None for a module
        self.number = number
        self.locals: dict[str, Value] = {}
        self.closure = closure or {}
        self.globals = program.globals_of(unit)
        self.self_value = self_value
        self.owner = owner  # the class whose method this is
        self.outer: Frame | None = None  # the frame that defined it, for an inner function
        self.out: Block = []
        self.loop = loop
        self.shared: set[str] = set()  # names that it says are the module's: `global optimizer`
        self.returned: list[Value] = []
        self.yields: list[Haze] = []  # where others work on what a generator gives them
        self.no_grad = False
        self.bare = False  # inside a statement that uses no value
        self.accumulating = False  # inside `with accelerator.accumulate(…)`
        self.inside = False  # inside a method of an optimizer
        self.is_manager = False  # a generator under @contextmanager
        self.site: tuple[Unit, ast.AST] | None = None  # where a wrapper's method is called from
        self.versions: dict[str, int] = {}
        # a parameter -> how the caller spells it, and whether that may change between calls
        self.spellings: dict[str, tuple[str, frozenset[str], bool]] = {}

    def emit(self, node: Node) -> None:
        self.out.append(node)

    def is_cleared(self) -> bool:
        """Does the module, or the one that is judged, clear by itself?"""
        return self.unit.clears() or self.program.main.clears()

    def asks_parameters_of(self, path: str) -> bool:
        """Is it asked for its parameters, which no tensor has?"""
        return bool(path) and f"{path}.parameters(" in self.unit.source.text

    def lookup(self, name: str) -> Value:
        """Return what a name stands for here."""
        value = self.locals.get(name) or self.closure.get(name) or self.globals.get(name)
        if value is not None:
            return value
        missing = name in self.unit.missing  # most often the name of a builtin
        found = None if missing else self.program.global_value(self.unit, name)
        if found is None and name in WELL_KNOWN and not self.unit.trains(name):
            return External(WELL_KNOWN[name])  # posted without its imports, or under a star
        return found if found is not None else Named(name)

    def assign(self, name: str, value: Value) -> None:
        self.locals[name] = value
        if name in self.shared:
            self.globals[name] = value
        self.versions[name] = self.versions.get(name, 0) + 1

    def go_on_with(self, values: dict[str, Value]) -> None:
        """Let the names stand for these from now on; a module's are what its functions see."""
        if self.locals is self.globals:
            self.globals = values
            self.program.renew_globals(self.unit, values)
        for name in self.shared & values.keys():
            self.globals[name] = values[name]
        self.locals = values

    def forget(self, names: frozenset[str]) -> None:
        """Names that a loop assigns hold nothing certain at its head."""
        for name in names:
            value = self.locals.get(name)
            if value is not None:
                self.versions[name] = self.versions.get(name, 0) + 1
                network = isinstance(value, Named) and self.program.is_network(value.path)
                filled = isinstance(value, Mapping) and not value.items  # which the loop does
                if not network and not filled and not self.program.is_lasting(value):
                    self.locals[name] = NOTHING

    def spelling(self, name: str) -> tuple[str, frozenset[str], bool]:
        """Return a name as the atoms of conditions know it: text, names behind it, volatile."""
        known = self.spellings.get(name)
        if known is not None and not self.versions.get(name):
            return known
        if name in self.locals:
            mark = f"{name}#{self.number}"
            value = self.locals[name]
            if isinstance(value, Instance) and not self.versions.get(name):
                # the same object in all its methods
                return f"{value.cls.name}:{value.key}", frozenset((mark,)), False
            kept = self._kept(value)
            if kept:
                return f"{value.ident}.{kept}", frozenset((f".{kept}",)), False
            return f"{mark}.{self.versions.get(name, 0)}", frozenset((mark,)), False
        if self.outer is not None and name in self.outer.locals:
            return self.outer.spelling(name)
        return name, frozenset((name,)), False

    def _kept(self, value: Value) -> str:
        """Return the attribute that holds it for good: `args = self.args` names the same again."""
        owner = self.self_value
        if not isinstance(value, Named) or not isinstance(owner, Instance):
            return ""
        for name, each in owner.attributes.items():
            same = type(each) is Named and each.path == value.path
            if same and self.program.is_set_once(owner, name):
                return name
        return ""


def path_of(node: ast.AST) -> str:
    """Return the dotted text of a name or attribute, with subscripts, or an empty string.

    >>> path_of(ast.parse("self.opts[0].x", mode="eval").body)
    'self.opts[0].x'
    """
    if type(node) is ast.Name:
        return node.id
    if type(node) is ast.Attribute:
        base = path_of(node.value)
        return f"{base}.{node.attr}" if base else ""
    if type(node) is ast.Subscript:
        base = path_of(node.value)
        if not base:
            return ""
        if isinstance(node.slice, ast.Constant):
            return f"{base}[{node.slice.value!r}]"
        stem = stem_of(node.slice)
        return f"{base}[{stem!r}][*]" if stem else f"{base}[*]"
    return ""


def stem_of(key: ast.expr) -> str:
    """Return what a key that is put together begins with, or an empty string.

    >>> stem_of(ast.parse("f'opt_{n}'", mode="eval").body)
    'opt_'
    """
    while True:
        if isinstance(key, ast.BinOp) and isinstance(key.op, ast.Add | ast.Mod):
            key = key.left  # "opt_" + str(n), "opt_%d" % n
        elif isinstance(key, ast.JoinedStr) and key.values:
            key = key.values[0]
        elif isinstance(key, ast.Call) and plain_name(key) == "format":
            key = key.func.value  # type: ignore[attr-defined]
        else:
            text = key.value if isinstance(key, ast.Constant) else ""
            return text.split("%", 1)[0].split("{", 1)[0] if isinstance(text, str) else ""


def plain_name(call: ast.Call) -> str:
    """Return the last name of what is called: `clip` for `nn.utils.clip(net)`."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""
