"""The classes of a program: what they inherit, and what kind of thing that makes them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.away import names_leading_away
from zerograd.static.engine.identity.decorators import has_decorator
from zerograd.static.engine.identity.definitions import Class, Function, Instance, Super
from zerograd.static.engine.identity.elsewhere import asks_above, clears
from zerograd.static.engine.identity.endings import is_empty
from zerograd.static.engine.identity.names import Names
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.identity.values import NOTHING, Constant, Value
from zerograd.static.engine.text.classes import ClassUnit, FunctionNode
from zerograd.static.engine.text.words import is_only_a_scheduler, is_optimizer_class, is_step_name

if TYPE_CHECKING:
    from zerograd.static.project import Project
    from zerograd.static.source import Source

_MODULE_BASE = re.compile(r"(Module|Model|Net|Network|PreTrainedModel|nn\.\w+)$")

_MOST_CALLED = 8  # methods of an optimizer that are looked into
_STEPS = re.compile(r"step\(")
_CLEARS = re.compile(r"zero_grad\(|\.\w*grad\b")
_EMPTIES = re.compile(r"zero_grad\(|\.grad(?:\.data)?(?:\s*=[^=]|\.zero_)")
_OF = re.compile(r"(\w+)\.grad\b")
_GRADIENT = re.compile(r"(?m)^\s*(\w+)\s*=\s*(\w+)\.grad(?:\.data)?\s*(?:#.*)?$")
_MOVES = r"\b{weight}(?:\.data)?(?:\.(?!data)\w+_\(|\s*[-+]?=[^=])"
_ON_ITSELF = re.compile(r"\bself\.(\w+)\(|(?<![\w.])(\w+)\(\s*self\b")

_IMPLIED = frozenset(("__getitem__", "__iter__", "__next__"))  # not written as calls
# the special methods that are followed wherever they are called
_FOLLOWED = frozenset(
    ("__init__", "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__del__")
)


class Lineage(Names):
    """The classes, each with those above it in the project."""

    def __init__(self, source: Source, project: Project | None) -> None:
        super().__init__(source, project)
        self.main.away = lambda: names_leading_away(self)
        self._modules: dict[int, bool] = {}
        self._implied: dict[int, frozenset[str]] = {}
        self._unasked: dict[int, bool] = {}  # of each file, whether it clears where none is seen
        # by the modules that are imported whole, and with what the first names of bases stood for
        self._lineages: dict[tuple[ClassUnit, int], tuple[list[ClassUnit], dict[str, object]]] = {}

    def lineage(self, cls: ClassUnit) -> list[ClassUnit]:
        """Return a class and those above it; in this file a name may still become a class."""
        if not cls.bases:
            return [cls]
        named, modules = self.globals_of(self.main), len(self.main.submodules)
        known = self._lineages.get((cls, modules))
        if known is not None and all(named.get(name) is value for name, value in known[1].items()):
            return known[0]
        found, waiting = [cls], [cls]
        asked: dict[str, object] = {}
        while waiting and len(found) < 8:
            current = waiting.pop(0)
            for base in current.bases:
                value = self.base_value(current.unit, base)
                if current.unit is self.main is cls.unit:
                    first = base.split("[", 1)[0].split(".", 1)[0]
                    asked[first] = named.get(first, cls)  # which it is not, if there is none yet
                if isinstance(value, Class) and value.unit not in found:
                    found.append(value.unit)
                    waiting.append(value.unit)
        self._lineages[cls, modules] = found, asked
        return found

    def refuses(self, instance: Instance, name: str) -> bool:
        """Does its class raise where it finds `self.name` set, in the one method that sets it?"""
        classes = self.lineage(instance.cls)
        if not any(name in cls.refused() for cls in classes):
            return False  # most names
        raising = {each for cls in classes for each in cls.refused().get(name, ())}
        setting = {each for cls in classes for each in cls.assigners(name)}
        return bool(setting) and (setting == raising or setting - {"__init__"} == raising)

    def method(self, instance: Instance, name: str) -> Function | None:
        """Return a method of the instance's class or of a class above it in the project."""
        for cls in self.lineage(instance.cls):
            node = cls.methods.get(name)
            if node is not None:
                return Function(node, cls.unit, bound=instance, owner=cls)
        return None

    def implied(self, instance: Instance, name: str) -> Function | None:
        """Return a method that Python calls by itself, if it does something to gradients."""
        known = self._implied.get(id(instance.cls))
        if known is None:
            known = self._implied[id(instance.cls)] = frozenset(
                each
                for cls in self.lineage(instance.cls)
                for each, node in cls.methods.items()
                if (each in _IMPLIED or each.endswith(".setter") or has_decorator(node, "property"))
                and cls.unit.has_events(node)
            )
        return self.method(instance, name) if name in known else None

    def class_attribute(self, base: Class, name: str) -> Value:
        """Return what `Trainer.name` is: something it was given, or a method of its own."""
        known = self.attached(base.ident, name)
        if known is not None:
            return known
        for cls in self.lineage(base.unit):
            method = cls.methods.get(name)
            if method is not None:
                bound = base if has_decorator(method, "classmethod") else None
                return Function(method, cls.unit, bound=bound, owner=cls)
        kinds = base.unit.kinds
        return Constant(kinds[name]) if name in kinds else NOTHING

    def overridden(self, instance: Instance, name: str) -> Constant | None:
        """Return a flag that a class sets in its body otherwise than the classes above it.

        Such a one is the way of the class, and not a setting that anyone may change.
        """
        above = self.lineage(instance.cls)
        found = [each.flags[name] for each in above if name in each.flags]
        if len(set(found)) < 2 or any(each.assigners(name) for each in above):
            return None
        return Constant(found[0])

    def is_cleared_unasked(self) -> bool:
        """Does a class clear in a method that Python calls where nothing shows it?

        `__setattr__`, `__get__` of a descriptor, `__iadd__`, a metaclass' `__new__`.
        """
        return any(map(self._clears_unasked, self.units()))

    def _clears_unasked(self, unit: Unit) -> bool:
        known = self._unasked.get(id(unit))
        if known is None:
            known = self._unasked[id(unit)] = unit.clears() and any(
                name[:2] == "__" == name[-2:]
                and name not in _FOLLOWED
                and _EMPTIES.search(unit.text_of(node)) is not None
                for cls in unit.classes.values()
                for name, node in cls.methods.items()
            )
        return known

    def super_attribute(self, base: Super, name: str) -> Value:
        order = self.lineage(base.of.cls)  # its own bases may stand between those of its classes
        if base.owner not in order:
            order = self.lineage(base.owner)
        for cls in order[order.index(base.owner) + 1 :]:
            node = cls.methods.get(name)
            if node is not None:
                return Function(node, cls.unit, bound=base.of, owner=cls)
        return NOTHING

    def foremost(self, instance: Instance, cls: ClassUnit, name: str) -> ClassUnit:
        """Return the class whose method of that name runs, and asks the one of `cls` by super()."""
        for each in self.lineage(instance.cls):
            node = each.methods.get(name)
            if each is cls or (node is not None and asks_above(each.unit.text_of(node), name)):
                return each
        return cls

    def is_cleared_below(self, instance: Instance, method: Function) -> bool:
        """Is there a class made from this one whose own method of that name clears?

        A base that trains is read by itself; what runs there is the method of such a class.
        """
        if instance.key != "self" or not isinstance(method.node, FunctionNode):
            return False
        own, name = instance.cls, method.node.name
        if (
            is_empty(method.node)
            and self.project is not None
            and self.project.around.is_cleared_in(self.main.source, name)
        ):
            return True  # written for others to write it, and one did
        text = method.unit.text_of(method.node)
        whole = ".backward(" in text and ".step(" in text  # who hides it clears for himself
        return any(
            each is not own
            and name in each.methods
            and own in self.lineage(each)
            and clears(below := each.unit.text_of(each.methods[name]))
            and (not whole or asks_above(below, name))
            for each in own.unit.classes.values()
        )

    def has_attribute(self, instance: Instance, name: str) -> bool:
        """Does the class, as far as it can be read, assign such an attribute?"""
        return name in instance.attributes or any(
            cls.assigners(name) for cls in self.lineage(instance.cls)
        )

    def is_set_once(self, instance: Instance, name: str) -> bool:
        """Is the attribute assigned in constructors that can be read, and nowhere else?"""
        methods = [each for cls in self.lineage(instance.cls) for each in cls.assigners(name)]
        return bool(methods) and all(each == "__init__" for each in methods)

    def has_unseen_base(self, cls: ClassUnit) -> bool:
        """Does the class inherit from one that cannot be read, and that may act by itself?"""
        for each in self.lineage(cls):
            for base in each.bases:
                last = base.rsplit(".", 1)[-1].split("[", 1)[0]
                if last in ("object", "ABC", "Module", "LightningModule", "Protocol", "Generic"):
                    continue
                found = self.base_value(each.unit, base)
                if not isinstance(found, Class) and not self._is_inert(each.unit, base):
                    return True
        return False

    def _is_inert(self, unit: Unit, base: str) -> bool:
        """Is a base class of the project's, in a module where nothing touches gradients?"""
        module, level, _ = unit.imports.get(base.split(".")[0], ("", 0, ""))
        return (
            bool(module)
            and self.project is not None
            and self.project.has(unit.source, module, level)
        )

    def is_module(self, cls: ClassUnit) -> bool:
        """Is it a class of networks?"""
        known = self._modules.get(id(cls))
        if known is None:
            self._modules[id(cls)] = False
            known = self._modules[id(cls)] = any(
                _MODULE_BASE.search(base) for each in self.lineage(cls) for base in each.bases
            )
        return known

    def is_optimizer(self, cls: ClassUnit) -> bool:
        """Is it a class of optimizers?"""
        lineage = self.lineage(cls)
        # One of the project's own, which has no step, is an optimizer in name only.
        steps = any("step" in each.methods for each in lineage)
        return any(
            (base.rsplit(".", 1)[-1] == "Optimizer" and steps)
            or (is_optimizer_class(base) and not self._is_of_project(each, base))
            for each in lineage
            for base in each.bases
        )

    def is_scaler(self, cls: ClassUnit) -> bool:
        """Is it made from torch's scaler, and are its own methods for that one alone to call?"""
        lineage = self.lineage(cls)
        if not any(base.endswith("GradScaler") for each in lineage for base in each.bases):
            return False
        return all(
            name.startswith("_")
            and not name.startswith("__")
            and not _EMPTIES.search(text := each.unit.text_of(method))
            and "update(" not in text
            for each in lineage
            for name, method in each.methods.items()
        )

    def is_written_out(self, cls: ClassUnit) -> bool:
        """Is it an optimizer of nobody's make: its step updates by hand?

        It has a clear of its own, or moves what it reads the gradients of.
        """
        methods = {name for each in self.lineage(cls) for name in each.methods}
        if "step" not in methods:
            return False
        text = self.text_of_step(cls)
        by_hand = ".grad" in text and not _STEPS.search(text) and not _EMPTIES.search(text)
        return by_hand and ("zero_grad" in methods or _moves(text))

    def is_scheduler(self, cls: ClassUnit) -> bool:
        """Is it made from a scheduler of torch, whose step() moves the learning rate only?"""
        return any(
            is_only_a_scheduler(base) and not self._is_of_project(each, base)
            for each in self.lineage(cls)
            for base in each.bases
        )

    def text_of_step(self, cls: ClassUnit) -> str:
        """Return the text of an optimizer's own step, and of what it calls on itself."""
        classes = self.lineage(cls)
        texts: list[str] = []
        waiting, known = ["step"], {"step"}
        while waiting and len(texts) < _MOST_CALLED:
            name = waiting.pop(0)
            owner = next((each for each in classes if name in each.methods), None)
            unit = owner.unit if owner is not None else classes[0].unit
            node = owner.methods[name] if owner is not None else unit.functions.get(name)
            # who is told whether to clear does so for its callers
            if node is None or any(each.arg == "zero_grad" for each in node.args.args):
                continue
            texts.append(unit.text_of(node).partition(":")[2])
            called = {one or other for one, other in _ON_ITSELF.findall(texts[-1])}
            waiting += sorted(called - known)
            known |= called
        return "\n".join(texts)

    def keeps_in_gradients(self, cls: ClassUnit) -> bool:
        """Does its step change the gradients once the weights are moved, for the step to come?

        A momentum may live there: `p.data.add_(p.grad, alpha=-lr); p.grad.mul_(momentum)`.
        """
        text = self.text_of_step(cls)
        for weight in dict.fromkeys(_OF.findall(text)):
            held = [name for name, of in _GRADIENT.findall(text) if of == weight]
            gradient = "|".join((rf"{weight}\.grad(?:\.data)?", *held))
            moves = re.finditer(_MOVES.format(weight=weight), text)
            moved = max((each.end() for each in moves), default=len(text))
            if re.search(rf"\b(?:{gradient})(?:\.\w+_\(|\s*[*/]=)", text[moved:]):
                return True
        return False

    def vague_methods(self, cls: ClassUnit) -> frozenset[str]:
        """Return the methods of a class of optimizers that by their names step or clear.

        What they are seen to do is something else: to add up the gradients of one sample, say,
        or to empty where those are kept.
        """
        found: set[str] = set()
        known = {"step"}
        for each in self.lineage(cls):
            for name in each.methods.keys() - known:
                known.add(name)
                does = _STEPS if is_step_name(name) else _CLEARS if "zero" in name else None
                body = each.methods[name].body
                said = ast.get_docstring(each.methods[name], clean=False) is not None
                code = "\n".join(each.unit.text_of(part) for part in body[said:])
                if does is not None and not does.search(code):
                    found.add(name)
        return frozenset(found)

    def _is_of_project(self, cls: ClassUnit, base: str) -> bool:
        return isinstance(self.global_value(cls.unit, base), Class)


def _moves(text: str) -> bool:
    """Is something moved in place of which the gradient is read?"""
    moved = r"\b{weight}(?:\.data)?(?:\.(?:add|sub|addcdiv|addcmul|copy)_\(|\s*[-+]=)"
    return any(re.search(moved.format(weight=each), text) for each in set(_OF.findall(text)))
