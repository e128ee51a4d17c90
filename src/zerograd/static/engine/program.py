"""The program being read: its modules, objects and calls, shared by all frames.

Nothing is imported or executed. A call into the project is followed by reading
the function once per way its parameters are bound, and never deeper than needed.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.arguments import Arguments
from zerograd.static.engine.conditions import SYNC, Atom, Test
from zerograd.static.engine.expressions import attribute, evaluate
from zerograd.static.engine.frame import Frame, path_of
from zerograd.static.engine.ir import Block, Haze, Loop, Scope, has_effect
from zerograd.static.engine.keys import joined, keys_of
from zerograd.static.engine.objects import Objects
from zerograd.static.engine.statements import bind, read_block
from zerograd.static.engine.unit import ClassUnit, FunctionNode, Unit
from zerograd.static.engine.values import (
    NOTHING,
    Accelerator,
    Class,
    Constant,
    External,
    Function,
    Instance,
    Mapping,
    Module,
    Named,
    Namespace,
    Optimizer,
    Several,
    Super,
    Tensor,
    Value,
)
from zerograd.static.engine.words import is_optimizer_class, is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.project import Project
    from zerograd.static.settings import Wrappers
    from zerograd.static.source import Source

DEEPEST = 10  # calls followed into each other
MOST_READINGS = 400  # functions read for one file
_MODULE_BASE = re.compile(r"(Module|Model|Net|Network|PreTrainedModel|nn\.\w+)$")


class Program(Objects):
    """All that is known while one file is read."""

    def __init__(self, source: Source, project: Project | None, wrappers: Wrappers) -> None:
        super().__init__()
        self.project = project
        self.wrappers = wrappers
        self.unresolved = 0
        self.uncalled: list[tuple[Unit, ast.Attribute]] = []
        self.atoms: dict[str, Atom] = {}
        # id of a loop -> the names it assigns, and the frames that were open around it
        self.loops: dict[int, tuple[frozenset[str], frozenset[int]]] = {}
        self.closures: list[tuple[Function, Frame]] = []
        self.called: set[int] = set()  # ids of functions that a call was followed into
        self._units: dict[str, Unit] = {}
        self._globals: dict[str, dict[str, Value]] = {}
        self._read: dict[tuple[object, ...], tuple[Scope | None, Value]] = {}
        self._reading: list[int] = []
        self._stack: list[int] = []  # numbers of the frames being read, outermost first
        self._frames = 0
        self._modules: dict[int, bool] = {}
        self.main = self.unit(source)

    # -- modules and names ------------------------------------------------------------

    def unit(self, source: Source) -> Unit:
        found = self._units.get(source.path)
        if found is None:
            found = self._units[source.path] = Unit(source)
        return found

    def globals_of(self, unit: Unit) -> dict[str, Value]:
        return self._globals.setdefault(unit.source.path, {})

    def global_value(self, unit: Unit, name: str) -> Value | None:
        """Return what a module's name stands for, or None where it has no such name."""
        known = self.globals_of(unit).get(name)
        if known is not None:
            return known
        value = self._find_global(unit, name)
        if value is not None:
            self.globals_of(unit)[name] = value
        return value

    def _find_global(self, unit: Unit, name: str) -> Value | None:
        if name in unit.functions:
            return Function(unit.functions[name], unit)
        if name in unit.classes:
            return Class(unit.classes[name])
        if name in unit.imports:
            return self._imported(unit, name)
        for module, level in unit.stars:
            other = self._other_unit(unit, module, level)
            if other is not None and other is not unit:
                value = self.global_value(other, name)
                if value is not None:
                    return value
        if unit is not self.main:
            return self._assigned_global(unit, name)
        return None

    def _assigned_global(self, unit: Unit, name: str) -> Value | None:
        """Return a constant that another module assigns at its top."""
        for node in unit.source.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id == name:
                        return Constant(node.value.value)
        return None

    def _imported(self, unit: Unit, name: str) -> Value:
        module, level, inner = unit.imports[name]
        if self.project is not None and not module.startswith("torch"):
            if inner:
                sub = self._other_unit(unit, f"{module}.{inner}".lstrip("."), level)
                if sub is not None:
                    return Namespace(sub)
            other = self._other_unit(unit, module, level)
            if other is not None and other is not unit:
                if not inner:
                    return Namespace(other)
                value = self.global_value(other, inner)
                return value if value is not None else Named(name)
        return unit.external(name)

    def _other_unit(self, unit: Unit, module: str, level: int) -> Unit | None:
        if self.project is None:
            return None
        source = self.project.find(unit.source, module, level)
        return self.unit(source) if source is not None else None

    # -- evaluation, as other modules of the engine reach it --------------------------

    def evaluate(self, frame: Frame, node: ast.AST) -> Value:
        return evaluate(frame, node)

    def attribute(self, frame: Frame, base: Value, name: str) -> Value:
        if isinstance(base, Class):
            method = base.unit.methods.get(name)
            return Function(method, base.unit.unit, owner=base.unit) if method else NOTHING
        return attribute(frame, base, name)

    def bind(self, frame: Frame, target: ast.expr, value: Value) -> None:
        bind(frame, target, value)

    # -- calls ------------------------------------------------------------------------

    def read_root(self, frame: Frame, body: list[ast.stmt]) -> Block:
        """Read a module or a function that nothing here calls."""
        self._stack.append(frame.number)
        self.frozen = frozenset()
        self.guarded = False
        block = read_block(frame, body)
        self._stack.pop()
        return block

    def frame(self, unit: Unit, **how: object) -> Frame:
        self._frames += 1
        return Frame(self, unit, self._frames, **how)  # type: ignore[arg-type]

    def invoke(
        self, frame: Frame, node: ast.AST, function: Function, arguments: Arguments
    ) -> Value:
        """Follow a call into a function of the project and return what it gives back."""
        body = function.node
        self.called.add(id(body))
        if not self._is_worth_reading(function, arguments):
            return self._computed_by(arguments)
        if (
            len(self._reading) >= DEEPEST
            or id(body) in self._reading
            or len(self._read) >= MOST_READINGS
        ):
            self.unresolved += 1
            optimizers = arguments.optimizers()
            if optimizers:
                frame.emit(Haze(keys_of(Several(optimizers)), whole=True))
            return self._computed_by(arguments)
        spelled = self._spelled(frame, function, arguments)
        key = (
            id(body),
            function.bound.ident if function.bound else "",
            tuple(value.ident for value in arguments.positional),
            tuple((name, value.ident) for name, value in arguments.named.items()),
            tuple(spelled.items()),
            (frame.no_grad, frame.accumulating, frame.inside, self.guarded, self.frozen),
            arguments.unknown,
            id(function.closure) if function.closure else 0,
        )
        known = self._read.get(key)
        if known is None:
            known = self._read[key] = self._read_function(frame, function, arguments, spelled)
        scope, value = known
        if scope is not None:
            frame.emit(scope)
        return value

    def _is_worth_reading(self, function: Function, arguments: Arguments) -> bool:
        if isinstance(function.node, ast.Lambda) or function.unit.has_events(function.node):
            return True
        if function.bound is not None and not isinstance(function.bound, Optimizer):
            return True
        if len(function.unit.text_of(function.node)) < 400:
            return True  # cheap, and it may compute with what it closes over
        interesting = (Module, Instance, Optimizer, Tensor, Function, Several)
        return any(isinstance(value, interesting) for value in arguments.all())

    def _computed_by(self, arguments: Arguments) -> Value:
        computed = arguments.computed()
        modules = [each for each in arguments.all() if isinstance(each, Module | Instance)]
        if not modules:
            return computed
        deps = keys_of(Several(list(modules)))
        return Tensor(
            deps | (computed.deps if isinstance(computed, Tensor) else frozenset()), sure=False
        )

    def _spelled(
        self, frame: Frame, function: Function, arguments: Arguments
    ) -> dict[str, tuple[str, frozenset[str], bool]]:
        """Return how the caller spells each parameter, so that conditions on it are the same."""
        names = _parameters(function)
        spelled: dict[str, tuple[str, frozenset[str], bool]] = {}
        for place, node in arguments.nodes.items():
            name = place if isinstance(place, str) else names[place] if place < len(names) else ""
            if not name:
                continue
            if isinstance(node, ast.Name):
                spelled[name] = frame.spelling(node.id)
            elif isinstance(node, ast.Constant):
                spelled[name] = (repr(node.value), frozenset(), False)
            else:
                text = frame.unit.source.segment(node)
                parts = [
                    frame.spelling(each.id) for each in ast.walk(node) if isinstance(each, ast.Name)
                ]
                spelled[name] = (
                    f"{text}|{','.join(part[0] for part in parts)}",
                    frozenset().union(*(part[1] for part in parts)) if parts else frozenset(),
                    any(isinstance(each, ast.Call) for each in ast.walk(node))
                    or any(part[2] for part in parts),
                )
        return spelled

    def _read_function(
        self,
        caller: Frame,
        function: Function,
        arguments: Arguments,
        spelled: dict[str, tuple[str, frozenset[str], bool]],
    ) -> tuple[Scope | None, Value]:
        node = function.node
        frame = self.frame(
            function.unit,
            closure=function.closure,
            self_value=function.bound,
            owner=function.owner,
            loop=caller.loop,
        )
        frame.node = node
        frame.outer = function.maker
        frame.no_grad = caller.no_grad or _has_decorator(node, "no_grad")
        frame.accumulating = caller.accumulating
        frame.inside = caller.inside or (
            function.owner is not None and self.is_optimizer(function.owner)
        )
        frame.spellings = spelled
        self._bind_parameters(frame, function, arguments)
        self._reading.append(id(node))
        self._stack.append(frame.number)
        if isinstance(node, ast.Lambda):
            value = evaluate(frame, node.body)
            block: Block = frame.out
        else:
            block = read_block(frame, node.body)
            value = _returned(frame.returned)
        self._reading.pop()
        self._stack.pop()
        return (Scope(block) if has_effect(block) else None), value

    def _bind_parameters(self, frame: Frame, function: Function, arguments: Arguments) -> None:
        parameters = function.node.args
        names = _parameters(function)
        values = arguments.positional
        if function.bound is not None and not _has_decorator(function.node, "staticmethod"):
            first = [*parameters.posonlyargs, *parameters.args][:1]
            if first:
                frame.locals[first[0].arg] = function.bound
        for number, name in enumerate(names):
            value = values[number] if number < len(values) else arguments.named.get(name)
            self._bind_parameter(frame, function, name, value, arguments.unknown)
        if parameters.vararg is not None:
            frame.locals[parameters.vararg.arg] = Several(list(values[len(names) :]))
        if parameters.kwarg is not None:
            known = {*names, *(each.arg for each in parameters.kwonlyargs)}
            extra = {name: value for name, value in arguments.named.items() if name not in known}
            name = parameters.kwarg.arg
            frame.locals[name] = Named(name) if arguments.unknown else Mapping(dict(extra.items()))
        for each in parameters.kwonlyargs:
            given = arguments.named.get(each.arg)
            self._bind_parameter(frame, function, each.arg, given, arguments.unknown)

    def _bind_parameter(
        self, frame: Frame, function: Function, name: str, value: Value | None, unknown: bool
    ) -> None:
        if value is None:
            default = _default(function.node.args, name)
            if isinstance(default, ast.Constant) and not unknown:
                frame.locals[name] = Constant(default.value)
                return
            value = self._annotated(function, name)
        if value is NOTHING or value is None:
            value = Named(name if len(self._reading) == 0 else f"{name}@{frame.number}")
        frame.locals[name] = value

    def _annotated(self, function: Function, name: str) -> Value | None:
        """Return an instance for a parameter that is annotated with a class of the project."""
        parameters = function.node.args
        for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
            if each.arg != name or each.annotation is None:
                continue
            annotation = each.annotation
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                found = self.global_value(function.unit, annotation.value)
            elif isinstance(annotation, ast.Name):
                found = self.global_value(function.unit, annotation.id)
            else:
                found = None
            if isinstance(found, Class):
                if self.is_optimizer(found.unit):
                    return self.named_optimizer(name)
                return Instance(found.unit, name)
            text = path_of(annotation)
            if isinstance(found, External) or text:
                dotted = found.dotted if isinstance(found, External) else text
                if dotted.rsplit(".", 1)[-1] in ("Optimizer", "GradScaler"):
                    if dotted.endswith("Optimizer"):
                        return self.named_optimizer(name)
                    return self.named_scaler(name)
                if dotted.endswith("nn.Module"):
                    return Module(name)
        return None

    # -- classes ----------------------------------------------------------------------

    def instantiate(
        self, frame: Frame, node: ast.AST, cls: ClassUnit, arguments: Arguments
    ) -> Value:
        """Return a new object of a class of the project."""
        if self.is_optimizer(cls):
            optimizer = self.new_optimizer(Several(arguments.all()))
            own_step = cls.methods.get("step")
            text = cls.unit.text_of(own_step) if own_step is not None else ""
            optimizer.clears_itself = "zero_grad(" in text or ".grad = None" in text
            return optimizer
        instance = self.new_instance(cls)
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

    def method(self, instance: Instance, name: str) -> Function | None:
        """Return a method of the instance's class or of a class above it in the project."""
        for cls in self._lineage(instance.cls):
            node = cls.methods.get(name)
            if node is not None:
                return Function(node, cls.unit, bound=instance, owner=cls)
        return None

    def _lineage(self, cls: ClassUnit) -> list[ClassUnit]:
        found, waiting = [cls], [cls]
        while waiting and len(found) < 8:
            current = waiting.pop(0)
            for base in current.bases:
                value = self.global_value(current.unit, base.split("[", 1)[0])
                if isinstance(value, Class) and value.unit not in found:
                    found.append(value.unit)
                    waiting.append(value.unit)
        return found

    def has_unseen_base(self, cls: ClassUnit) -> bool:
        """Does the class inherit from one that cannot be read, and that may act by itself?"""
        for each in self._lineage(cls):
            for base in each.bases:
                last = base.rsplit(".", 1)[-1].split("[", 1)[0]
                if last in ("object", "ABC", "Module", "LightningModule", "Protocol", "Generic"):
                    continue
                found = self.global_value(each.unit, base.split("[", 1)[0])
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
                _MODULE_BASE.search(base) for each in self._lineage(cls) for base in each.bases
            )
        return known

    def is_optimizer(self, cls: ClassUnit) -> bool:
        """Is it a class of optimizers?"""
        return any(
            base.rsplit(".", 1)[-1] == "Optimizer"
            or (is_optimizer_class(base) and not self._is_of_project(each, base))
            for each in self._lineage(cls)
            for base in each.bases
        )

    def _is_of_project(self, cls: ClassUnit, base: str) -> bool:
        return isinstance(self.global_value(cls.unit, base), Class)

    def has_attribute(self, instance: Instance, name: str) -> bool:
        """Does the class, as far as it can be read, assign such an attribute?"""
        return name in instance.attributes or any(
            cls.assigners(name) for cls in self._lineage(instance.cls)
        )

    def instance_attribute(self, instance: Instance, name: str) -> Value:
        value = instance.attributes.get(name)
        if value is not None:
            return self._part(instance, name, value)
        method = self.method(instance, name)
        if method is not None:
            if _has_decorator(method.node, "property"):
                return self._quietly(method)
            return method
        for cls in self._lineage(instance.cls):
            for assigner in cls.assigners(name):
                mark = f"{cls.name}.{assigner}"
                node = cls.methods[assigner]
                if mark in instance.primed or id(node) in self._reading:
                    continue
                if assigner == "__init__" and "__init__" in instance.primed:
                    continue
                instance.primed.add(mark)
                self._quietly(Function(node, cls.unit, bound=instance, owner=cls))
                if name in instance.attributes:
                    return self._part(instance, name, instance.attributes[name])
        path = f"{instance.key}.{name}"
        attached = self.attached(instance.key, name)
        if attached is not None:
            return attached
        if self.is_module(instance.cls) and not is_optimizer_name(name):
            return Module(path)
        return Named(path)

    def _part(self, instance: Instance, name: str, value: Value) -> Value:
        """A network's part is cleared with it, whatever it was called before it became one."""
        part = isinstance(value, Module | Named) and not is_optimizer_name(name)
        return Module(f"{instance.key}.{name}") if part and self.is_module(instance.cls) else value

    def _quietly(self, function: Function) -> Value:
        """Read a method for the attributes it sets, whatever its parameters; no event counts."""
        called = set(self.called)
        caller = self.frame(function.unit)
        frozen = self.frozen
        value = self.invoke(caller, function.node, function, Arguments.of_nobody())
        self.called, self.frozen = called, frozen
        return value

    def super_attribute(self, base: Super, name: str) -> Value:
        for cls in self._lineage(base.owner)[1:]:
            node = cls.methods.get(name)
            if node is not None:
                return Function(node, cls.unit, bound=base.of, owner=cls)
        return NOTHING

    # -- what the frames note ---------------------------------------------------------

    def note_atom(self, key: str, atom: Atom) -> None:
        self.atoms.setdefault(key, atom)

    def note_opaque(self, key: str, text: str) -> None:
        self.atoms.setdefault(key, Atom(None, text, frozenset(), True, False))

    def sync_test(self) -> Test:
        self.atoms.setdefault(SYNC, Atom(None, "sync_gradients", frozenset(), True, True))
        return Test("atom", SYNC)

    def note_loop(self, loop: Loop, frame: Frame, stored: frozenset[str]) -> None:
        """Remember which names a loop assigns: conditions on them vary in it."""
        marks = set(stored)
        marks.update(f"{name}#{frame.number}" for name in stored if name[0] != ".")
        self.loops[id(loop)] = frozenset(marks), frozenset((*self._stack, frame.number))

    def varies(self, loop: Loop, key: str) -> bool:
        """May the truth of an atom change from one iteration of `loop` to the next?"""
        atom = self.atoms.get(key)
        if atom is None or atom.volatile:
            return True
        stored, open_frames = self.loops.get(id(loop), (frozenset[str](), frozenset[int]()))
        for name in atom.names:
            if name in stored:
                return True
            _, mark, number = name.partition("#")
            if mark and (loop.pseudo or int(number) not in open_frames):
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
        value = self._quietly(method)
        items = value.items if isinstance(value, Several) else [value]
        if len(items) == 2 and isinstance(items[0], Several):
            items = items[0].items
        optimizers = [each for each in items if isinstance(each, Optimizer)]
        if not optimizers or len(optimizers) != len(items):
            return Named(f"{instance.key}.optimizers()")
        return optimizers[0] if len(optimizers) == 1 else Several(list(optimizers))


def _parameters(function: Function) -> list[str]:
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    if function.bound is not None and not _has_decorator(function.node, "staticmethod"):
        return names[1:]
    return names


def _default(parameters: ast.arguments, name: str) -> ast.expr | None:
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    given = dict(zip(reversed(names), reversed(parameters.defaults), strict=False))
    for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if default is not None:
            given[each.arg] = default
    return given.get(name)


def _has_decorator(node: ast.AST, name: str) -> bool:
    if not isinstance(node, FunctionNode):
        return False
    for each in node.decorator_list:
        target = each.func if isinstance(each, ast.Call) else each
        if path_of(target).rsplit(".", 1)[-1] == name:
            return True
    return False


def _returned(values: list[Value]) -> Value:
    if not values:
        return NOTHING
    rows = [value for value in values if isinstance(value, Several)]
    if len(rows) == len(values) > 1 and len({len(row.items) for row in rows}) == 1:
        return Several(
            [joined(list(column)) for column in zip(*(r.items for r in rows), strict=True)]
        )
    return joined(values)
