"""The modules of a program, and what the names at their top stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Class, Function, Namespace
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.objects import Objects
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.identity.values import Constant, External, Named, Value

if TYPE_CHECKING:
    from zerograd.static.project import Project
    from zerograd.static.source import Source

# packages whose objects are understood by name, also while their own examples are read
_UNDERSTOOD = frozenset(("accelerate", "apex.amp", "deepspeed", "lightning", "pytorch_lightning"))


class Names(Objects):
    """The files that were read, the main one first, and their global names."""

    def __init__(self, source: Source, project: Project | None) -> None:
        super().__init__()
        self.project = project
        self._units: dict[str, Unit] = {}
        self._globals: dict[str, dict[str, Value]] = {}
        self._looking_for: set[tuple[str, str]] = set()
        self.main = self.unit(source)

    def unit(self, source: Source) -> Unit:
        found = self._units.get(source.path)
        if found is None:
            found = self._units[source.path] = Unit(source)
        return found

    def units(self) -> list[Unit]:
        """Return the files that have been read so far: the one that is checked, and imports."""
        return list(self._units.values())

    def globals_of(self, unit: Unit) -> dict[str, Value]:
        return self._globals.setdefault(unit.source.path, {})

    def renew_globals(self, unit: Unit, values: dict[str, Value]) -> None:
        self._globals[unit.source.path] = values

    def global_value(self, unit: Unit, name: str) -> Value | None:
        """Return what a module's name stands for, or None where it has no such name."""
        known = self.globals_of(unit).get(name)
        if known is not None:
            return known
        if name in unit.missing:
            return None
        wanted = (unit.source.path, name)
        if wanted in self._looking_for:
            return None  # modules that import it from each other: none of them has it
        self._looking_for.add(wanted)
        value = self._find_global(unit, name)
        self._looking_for.remove(wanted)
        if value is not None:
            self.globals_of(unit)[name] = value
        elif not unit.stars:
            unit.missing.add(name)
        return value

    def base_value(self, unit: Unit, base: str) -> Value | None:
        """Return what a base class is, as a module writes it: `Trainer`, `trainers.Trainer[T]`."""
        first, *rest = base.split("[", 1)[0].split(".")
        value = self.global_value(unit, first)
        for name in rest:
            if isinstance(value, External):
                value = self.submodule(unit, f"{value.dotted}.{name}")
            else:
                value = self.member(value.unit, name) if isinstance(value, Namespace) else None
        return value

    def member(self, unit: Unit, name: str) -> Value | None:
        """Return what a module has under a name: one of its own, or a module of the package."""
        value = self.global_value(unit, name)
        if value is None and unit.source.path.endswith("__init__.py"):
            inner = self._other_unit(unit, name, 1)
            return Namespace(inner) if inner is not None else None
        return value

    def submodule(self, unit: Unit, dotted: str) -> Value:
        """Return a module of the project that was imported by its whole name, or a stranger."""
        found = self._other_unit(unit, dotted, 0) if dotted in unit.submodules else None
        return Namespace(found) if found is not None else External(dotted)

    def _find_global(self, unit: Unit, name: str) -> Value | None:
        if name in unit.functions:
            return Function(unit.functions[name], unit)
        if name in unit.classes:
            return Class(unit.classes[name])
        if name in unit.imports:
            return self.imported(unit, name)
        for module, level in unit.stars:
            other = self._other_unit(unit, module, level, giving=name)
            if other is not None and other is not unit:
                value = self.global_value(other, name)
                if value is not None:
                    return value
        if unit is not self.main:
            return self._assigned_global(unit, name)
        return None

    def starred(self, unit: Unit) -> Iterator[Namespace]:
        """Yield the modules of the project all of whose names a module imports."""
        for module, level in unit.stars:
            other = self._other_unit(unit, module, level)
            if other is not None and other is not unit:
                yield Namespace(other)

    def _assigned_global(self, unit: Unit, name: str) -> Value | None:
        """Return a constant that another module assigns at its top."""
        for node in unit.source.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id == name:
                        return Constant(node.value.value)
        return None

    def may_be_of_project(self, unit: Unit, name: str) -> bool:
        """May a name be imported from the project? Of most that are, no file is there to ask."""
        module, level, inner = unit.imports[name]
        project = self.project
        if project is None or _is_known(module, level, inner):
            return False
        whole = f"{module}.{inner}".lstrip(".")
        return project.has(unit.source, module, level) or (
            bool(inner) and project.has(unit.source, whole, level)
        )

    def imported(self, unit: Unit, name: str) -> Value:
        """Return what a module imports under a name."""
        module, level, inner = unit.imports[name]
        if self.project is not None and not _is_known(module, level, inner):
            if inner:
                sub = self._other_unit(unit, f"{module}.{inner}".lstrip("."), level)
                if sub is not None:
                    return Namespace(sub)
            # Of the base of a class that steps the loop around it may be all that there is.
            other = self._other_unit(unit, module, level, plain=name in unit.bases_of_training)
            if other is not None and other is not unit:
                if not inner:
                    return Namespace(other)
                value = self.global_value(other, inner)
                return value if value is not None else Named(name)
        return unit.external(name)

    def plain_function(self, unit: Unit, called: ast.expr) -> Function | None:
        """Return a function of the project from a module where nothing touches gradients.

        Such modules are not read with the others; that of a loss is, once it is handed a
        network: `losses.adversarial(D, fake)`; and that of a loop, once it is handed an optimizer.
        """
        found = self._in_plain_module(unit, path_of(called))
        if found is None or found[1] not in found[0].functions:
            return None
        other, name = found
        return Function(other.functions[name], other)

    def plain_class(self, unit: Unit, path: str) -> Class | None:
        """Return a class of the project from such a module: of a network, say."""
        found = self._in_plain_module(unit, path)
        if found is None or found[1] not in found[0].classes:
            return None
        other, name = found
        return Class(other.classes[name])

    def _in_plain_module(self, unit: Unit, called: str) -> tuple[Unit, str] | None:
        """Return the module that something is imported from, and its name there."""
        path = called.split(".")
        if path[0] not in unit.imports or self.project is None:
            return None
        module, level, inner = unit.imports[path[0]]
        if _is_known(module, level, inner):
            return None
        *parts, name = (each for each in (*module.split("."), inner, *path[1:]) if each)
        other = self._other_unit(unit, ".".join(parts), level, plain=True)
        return (other, name) if other is not None else None

    def _other_unit(
        self, unit: Unit, module: str, level: int, *, plain: bool = False, giving: str = ""
    ) -> Unit | None:
        if self.project is None:
            return None
        source = self.project.find(unit.source, module, level, plain=plain, giving=giving)
        return self.unit(source) if source is not None else None


@lru_cache(maxsize=16_384)
def _is_known(module: str, level: int, inner: str) -> bool:
    """Is it torch, or what is understood as well as torch, so that no file of it is read?"""
    return module.startswith("torch") or (not level and _is_understood(f"{module}.{inner}"))


def _is_understood(dotted: str) -> bool:
    """Is it one of these packages, or something in it?

    >>> _is_understood("apex.amp"), _is_understood("apex.optimizers")
    (True, False)
    """
    parts = dotted.split(".")
    return parts[0] in _UNDERSTOOD or ".".join(parts[:2]) in _UNDERSTOOD
