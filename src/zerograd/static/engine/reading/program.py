"""The program being read: its modules, objects and calls, shared by all frames.

Nothing is imported or executed.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Spot
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.atoms import Atom, is_counted
from zerograd.static.engine.identity.branches import Test
from zerograd.static.engine.identity.choices import chosen_before, made_elsewhere
from zerograd.static.engine.identity.conditions import SYNC
from zerograd.static.engine.identity.decorators import has_decorator
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.ir import Loop
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.identity.values import (
    Accelerator,
    Constant,
    Engine,
    Mapping,
    Module,
    Named,
    Optimizer,
    Several,
    Value,
    leaves_of,
)
from zerograd.static.engine.reading.construct import torch_scaler
from zerograd.static.engine.reading.expressions import evaluate
from zerograd.static.engine.reading.readings import Readings
from zerograd.static.engine.text.classes import ClassUnit
from zerograd.static.engine.text.used_up import UsedUp
from zerograd.static.engine.text.words import is_data_name, is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.project import Project
    from zerograd.static.settings import Wrappers
    from zerograd.static.source import Source

_DROPS = re.compile(  # what was used: an optimizer that does so in its step clears by itself
    r"zero_grad\(|\.grad = None|\bdel \w+\.grad\b|setattr\(\w+, [\"']grad[\"'], None\)"
)
_STEPS = re.compile(r"step\w*\(")  # of an optimizer inside, `step_fn()` for one of several


class Program(Readings):
    """All that is known while one file is read."""

    def __init__(self, source: Source, project: Project | None, wrappers: Wrappers) -> None:
        super().__init__(source, project, wrappers)
        self.uncalled: list[tuple[Unit, ast.Attribute]] = []
        self.passed: dict[Spot, bool] = {}  # scalers' steps: does any path come to them?
        self.told_of: set[Spot] = set()  # clears of unused optimizers that another finding tells of
        self.atoms: dict[str, Atom] = {}
        # a loop -> the names it assigns, and the frames that were open around it
        self.loops: dict[Loop, tuple[frozenset[str], frozenset[int]]] = {}
        self.closures: list[tuple[Function, Frame]] = []
        self._has_own_parameters: bool | None = None  # does a class here say what these are?
        self.inner_classes: list[ClassUnit] = []  # classes made inside functions

    def close(self) -> None:
        """Let go of all that was read: frames, loops and classes point at each other in circles.

        So trees are freed at once, and not when Python next looks for such circles.
        """
        for function, frame in self.closures:
            frame.locals = {}
            function.closure = None
        for loop in self.loops:
            loop.node = loop.unit = None
            loop.body = loop.otherwise = []
        for unit in self._units.values():
            unit.close()
        self.__dict__.clear()

    def instantiate(
        self, frame: Frame, node: ast.AST, cls: ClassUnit, arguments: Arguments
    ) -> Value:
        """Return a new object of a class of the project."""
        # One written out by hand is read with its parameters; of layers it is taken whole.
        by_hand = self.is_written_out(cls)
        if self.is_optimizer(cls) or by_hand:
            optimizer = self.new_optimizer(arguments.held())
            optimizer.vague = self.vague_methods(cls)
            text = self.text_of_step(cls)
            if _DROPS.search(text):
                own = cls.unit.text_of(cls.methods["step"]) if "step" in cls.methods else ""
                optimizer.clears_itself = True if _DROPS.search(own) else None
            elif self.keeps_in_gradients(cls):
                optimizer.clears_itself = None
            own_step = "step" in cls.methods
            if own_step and not _STEPS.search(text) and not cls.unit.mentions_gradient(cls.node):
                return Engine()  # a projection, say: its step uses no gradients
            return optimizer
        if self.is_scaler(cls):
            return torch_scaler(frame, "", arguments)
        instance = self.new_instance(cls)
        instance.held = frozenset(
            each.key
            for value in arguments.all()
            for each in leaves_of(value)
            if isinstance(each, Module | Instance)
        )
        if self.is_module(cls):
            if self.holds(arguments):
                self._holders.add(instance.key)
        else:
            self._holders.add(instance.key)
            method = self.method(instance, "__init__")
            if method is not None:
                instance.primed.add("__init__")
                self.invoke(frame, node, method, arguments)
        return instance

    def instance_attribute(self, instance: Instance, name: str) -> Value:
        value = instance.attributes.get(name)
        if not isinstance(value, (Optimizer, Module)) and self.refuses(instance, name):
            return Constant(None)
        unset = _is_unset(value)
        if value is not None and not unset:
            return self._part(instance, name, value)
        method = None if unset else self.method(instance, name)
        if method is not None:
            if has_decorator(method.node, "property"):
                return self.quietly(method)
            return method
        for cls in self.lineage(instance.cls):
            for assigner in cls.assigners(name) or _handed_up(cls, name):
                owner = self.foremost(instance, cls, assigner)
                if id(owner.methods[assigner]) in self._reading:
                    owner = cls
                mark = f"{owner.name}.{assigner}"
                node = owner.methods[assigner]
                if mark in instance.primed or id(node) in self._reading:
                    continue
                if assigner == "__init__" and "__init__" in instance.primed:
                    continue
                instance.primed.add(mark)
                known = dict(instance.attributes)
                self.quietly(Function(node, owner.unit, bound=instance, owner=owner))
                made_elsewhere(self, instance, known)
                found = instance.attributes.get(name)
                # What was seen to be set stays: here the method is read for nobody's arguments.
                instance.attributes.update(
                    (each, value) for each, value in known.items() if not _is_unset(value)
                )
                unset = _is_unset(found)
                if found is not None and not unset:
                    return self._part(instance, name, found)
        set_again = any(cls.assigners(name)[1:] for cls in self.lineage(instance.cls))
        if unset and not set_again:
            handed = any(cls.is_handed_in(name) for cls in self.lineage(instance.cls))
            if handed or not is_optimizer_name(name):
                return Constant(None)  # and nothing here ever gives it another value
        path = f"{instance.key}.{name}"
        flag = self.overridden(instance, name)
        if flag is not None:
            return flag
        attached = self.attached(instance.key, name)
        if attached is not None:
            return attached
        if self.is_module(instance.cls) and not (is_optimizer_name(name) or is_data_name(name)):
            return Module(path)
        return Named(path)

    def wrapped_optimizer(self, instance: Instance) -> Optimizer | None:
        cls = instance.cls
        if self.method(instance, "step") is None or self.is_module(cls) or self.is_scheduler(cls):
            return None
        names = {
            *instance.attributes,
            *(name for each in self.lineage(cls) for name in each.assigned()),
        }
        found: list[Optimizer] = []
        for name in sorted(name for name in names if is_optimizer_name(name)):
            value = self.instance_attribute(instance, name)
            if isinstance(value, Named) and is_optimizer_name(value.path):
                value = self.named_optimizer(value.path)
            if isinstance(value, Optimizer) and value not in found:
                found.append(value)
        return found[0] if len(found) == 1 else None

    def _part(self, instance: Instance, name: str, value: Value) -> Value:
        """A network's part is cleared with it, whatever it was called before it became one.

        A number that is counted elsewhere, by another method, is not the one it began with.
        """
        if type(value) is Constant and type(value.value) in (int, float):
            lasts = self.is_set_once(instance, name) and not is_counted(name)
            return value if lasts else Named(f"{instance.key}.{name}")
        part = isinstance(value, (Module, Named)) and not is_optimizer_name(name)
        part = part and not is_data_name(name)
        return Module(f"{instance.key}.{name}") if part and self.is_module(instance.cls) else value

    def used_up(self, unit: Unit, node: ast.AST) -> UsedUp | None:
        """Return what had gone through the iterator of a clip or a loop before it, if any had."""
        used = unit.used_up.get(id(node))
        if used is None or not used.is_plain:
            return used
        if self._has_own_parameters is None:
            source = self.main.source
            self._has_own_parameters = "def parameters(" in source.text or (
                self.project is not None and self.project.around.defines(source, "parameters")
            )
        return None if self._has_own_parameters else used

    def note_atom(self, key: str, atom: Atom) -> None:
        self.atoms.setdefault(key, atom)

    def note_opaque(self, key: str, text: str) -> None:
        self.atoms.setdefault(key, Atom(None, text, frozenset(), True, False))

    def sync_test(self) -> Test:
        self.atoms.setdefault(SYNC, Atom(None, "sync_gradients", frozenset(), True, True))
        return Test("atom", SYNC)

    def note_loop(self, loop: Loop, frame: Frame, stored: frozenset[str]) -> None:
        """Remember which names a loop assigns: conditions on them vary in it."""
        loop.unit = frame.unit
        marks = set(stored)
        marks.update(f"{name}#{frame.number}" for name in stored if name[0] != ".")
        self.loops[loop] = frozenset(marks), frozenset((*self._stack, frame.number))
        for value in frame.locals.values():
            chosen_before(self, value)

    def is_open_at(self, loop: Loop, frame: Frame) -> bool:
        _, open_frames = self.loops.get(loop, (frozenset[str](), frozenset[int]()))
        return frame.number in open_frames

    def is_stored(self, loop: Loop, name: str) -> bool:
        return name in self.loops.get(loop, (frozenset[str](),))[0]

    def varies(self, loop: Loop, key: str) -> bool:
        """May the truth of an atom change from one iteration of `loop` to the next?"""
        atom = self.atoms.get(key)
        if atom is None or atom.volatile:
            return True
        if atom.lasts:
            return False
        stored, open_frames = self.loops.get(loop, (frozenset[str](), frozenset[int]()))
        for name in atom.names:
            if name in stored:
                return True
            base, mark, number = name.partition("#")
            if base == "self":
                continue  # the same object in every call; its attributes have names of their own
            known = loop.entered if loop.pseudo else open_frames
            if mark and (int(number) in known) is loop.pseudo:
                return True  # a local of a function that is called anew each time
        return False

    def note_closure(self, function: Function, frame: Frame) -> None:
        self.closures.append((function, frame))

    def note_uncalled(self, frame: Frame, node: ast.Attribute) -> None:
        if all(each is not node for _, each in self.uncalled):
            self.uncalled.append((frame.unit, node))

    def accumulates(self, frame: Frame, node: ast.expr) -> bool:
        """Is `with accelerator.accumulate(…)` a window of possibly more than one?"""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = evaluate(frame, node.func.value)
            if isinstance(base, Accelerator):
                return base.window
            return isinstance(base, Named)
        return False

    def lightning_optimizers(self, instance: Instance) -> Value:
        """Return what `self.optimizers()` gives: what configure_optimizers returned."""
        method = self.method(instance, "configure_optimizers")
        if method is None:
            return Named(f"{instance.key}.optimizers()")
        value = self.quietly(method)
        items = value.items if isinstance(value, Several) else [value]
        if len(items) == 2 and isinstance(items[0], Several):
            items = items[0].items
        items = [
            each.items.get("optimizer", each) if isinstance(each, Mapping) else each
            for each in items
        ]
        optimizers = [each for each in items if isinstance(each, Optimizer)]
        if not optimizers or len(optimizers) != len(items):
            return Named(f"{instance.key}.optimizers()")
        return optimizers[0] if len(optimizers) == 1 else Several(list(optimizers))


def _handed_up(cls: ClassUnit, name: str) -> list[str]:
    """Return the constructor, if it hands an optimizer of that name to one that is not seen."""
    made = cls.methods.get("__init__")
    if made is None or not is_optimizer_name(name) or not cls.unit.mentions(made, name):
        return []
    return ["__init__"] if cls.unit.mentions(made, "super") else []


def _is_unset(value: Value | None) -> bool:
    return isinstance(value, Constant) and value.value is None
