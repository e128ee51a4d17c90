"""Readings: the functions of a program, followed through its calls.

A call into the project is followed by reading the function once per way its
parameters are bound, and never deeper than needed.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.attributes import attribute
from zerograd.static.engine.identity.decorators import (
    hands_arguments,
    has_decorator,
    is_decorated_to_act,
    is_manager,
    with_decorators,
)
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame, plain_name
from zerograd.static.engine.identity.ir import Block, Happening, Haze, Scope, has_effect, walk
from zerograd.static.engine.identity.keys import joined, keys_of
from zerograd.static.engine.identity.lineage import Lineage
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    Leaf,
    Module,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
)
from zerograd.static.engine.reading.binding import bind
from zerograd.static.engine.reading.expressions import evaluate
from zerograd.static.engine.reading.parameters import bind_parameters, parameters_of
from zerograd.static.engine.reading.statements import read_block
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.leading import GRADIENT_WORDS
from zerograd.static.engine.text.words import clears_by_name, clips_by_name

if TYPE_CHECKING:
    from zerograd.static.project import Project
    from zerograd.static.settings import Wrappers
    from zerograd.static.source import Source

DEEPEST = 10  # calls followed into each other
FUEL_A_LINE = 12  # expressions read for each line of a file that is longer than most
MOST_READINGS = 500  # functions read from where one reading begins
_WRAPPED = ("step", "zero_grad")
_ACTS = re.compile(r"backward\(|\.step\(")
_TRAINS = re.compile(r"backward\(|zero_grad|\.grad\b|clip|scale")

Told = tuple[int, frozenset[tuple[str, str]]]


class Readings(Lineage):
    """What was read so far, and what is being read."""

    def __init__(self, source: Source, project: Project | None, wrappers: Wrappers) -> None:
        super().__init__(source, project)
        self.wrappers = wrappers
        self.wraps = bool(wrappers.backward or wrappers.step or wrappers.clear)
        self.fuel = max(self.fuel, FUEL_A_LINE * source.text.count("\n"))
        self._kept = self.fuel // 2  # fuel for the file's own functions
        self.unresolved = 0
        self.called: set[int] = set()  # ids of functions that a call was followed into
        # what a function gives, and whom it calls, by all that it was read with
        self._read: dict[tuple[object, ...], tuple[Scope | None, Value, set[int]]] = {}
        self._enough = MOST_READINGS  # functions, when no more are read
        self._reading: list[int] = []
        self._told: list[Told] = []  # the same, with the flags of each
        self._cut = DEEPEST  # the outermost of them that was come to again, and not read again
        self._stack: list[int] = []  # numbers of the frames being read, outermost first
        self._frames = 0
        self.entrances: dict[int, list[tuple[Unit, ast.AST]]] = {}  # frames: where they are called
        self.decorated: dict[tuple[int, str], Function] = {}

    evaluate = staticmethod(evaluate)

    def attribute(self, frame: Frame, base: Value, name: str) -> Value:
        return attribute(frame, base, name)

    def bind(self, frame: Frame, target: ast.expr, value: Value) -> None:
        bind(frame, target, value)

    def frame(self, unit: Unit, **how: object) -> Frame:
        self._frames += 1
        return Frame(self, unit, self._frames, **how)  # type: ignore[arg-type]

    def open_frames(self) -> frozenset[int]:
        """Return the numbers of the functions being read, one inside the other."""
        return frozenset(self._stack)

    def begin(self) -> None:
        """Begin with a function that nothing here calls, whatever was read for others."""
        self._enough = len(self._read) + MOST_READINGS

    def read_root(self, frame: Frame, body: list[ast.stmt]) -> Block:
        """Read a module or a function that nothing here calls."""
        self._stack.append(frame.number)
        self.frozen = frozenset()
        self.guarded = False
        block = read_block(frame, body)
        self._stack.pop()
        return block

    def invoke(
        self, frame: Frame, node: ast.AST, function: Function, arguments: Arguments
    ) -> Value:
        """Follow a call into a function of the project and return what it gives back."""
        given = function.node
        if isinstance(given, FunctionNode) and given.decorator_list:
            function = with_decorators(self, function)
            arguments.unknown |= hands_arguments(given)
        body = function.node
        new = {id(given), id(body)} - self.called
        self.called |= new
        arguments = arguments.after(function.given, function.named)
        if not self._is_worth_reading(function, arguments):
            return self._computed_by(arguments)
        told = _told(body, arguments)
        again = told in self._told
        if (
            len(self._reading) >= DEEPEST
            or again
            or len(self._read) >= self._enough
            or (self.fuel < self._kept and function.unit is not self.main)
        ):
            self.unresolved += 1
            if again:
                self._cut = min(self._cut, self._told.index(told))
            else:
                self.called -= new  # it is still to be read, for itself
            optimizers = arguments.optimizers()
            if optimizers:
                frame.emit(Haze(keys_of(Several(optimizers)), whole=True))
            elif function.unit.has_events(body):
                # It does something, nobody knows to whom: to gradients, or to who is to get any.
                frame.emit(Haze(None, whole=function.unit.has_events(body, GRADIENT_WORDS)))
            return self._computed_by(arguments)
        spelled = self._spelled(frame, function, arguments)
        site = frame.site
        asked_for = plain_name(node) if isinstance(node, ast.Call) else ""
        outermost = site is None and not isinstance(node, FunctionNode)
        if outermost and self._is_wrapper(function, asked_for):
            site = frame.unit, node  # where it is called; read for nobody, it is told inside
        key = (
            id(body),
            function.reader,
            tuple(value.ident for value in arguments.positional),
            tuple((name, value.ident) for name, value in arguments.named.items()),
            tuple(spelled.items()),
            (frame.no_grad, frame.accumulating, frame.inside, self.guarded, self.frozen),
            id(frame.loop.node) if frame.loop else 0,  # what comes again there, and how often
            self.handing,
            arguments.unknown,
            id(function.closure) if function.closure else 0,
            id(site[1]) if site is not None else 0,
        )
        known = self._read.get(key)
        if known is None:
            made, depth = self._made, len(self._reading)
            before, self.called = self.called, set()
            cut, self._cut = self._cut, DEEPEST
            known = (*self._read_function(frame, function, arguments, spelled, site), self.called)
            self.called = before
            whole = self._cut >= depth  # it came to none of those that are being read around it
            self._cut = cut if whole else min(cut, self._cut)
            if whole and (self._made == made or not self.is_lasting(known[1], deep=True)):
                self._read[key] = known  # else it gives back what it made, each call another
        scope, value, called = known
        self.called |= called  # also where it was first read for what it sets only
        if scope is None and function.unit.has_events(body):
            self.called -= new  # this call comes to none of what it does; others may
        if scope is not None:
            self.entrances.setdefault(scope.number, []).append((frame.unit, node))
            if is_decorated_to_act(self, function):
                frame.emit(Haze(None, whole=True))  # what it does around, nobody knows to whom
            if id(node) in self.opened or not is_manager(function.node):
                frame.emit(scope)
            else:
                frame.emit(Haze(None, whole=True))  # where it is entered, and left, is not known
        return value

    def _is_wrapper(self, function: Function, asked_for: str) -> bool:
        """Is it step() or zero_grad() of what stands for an optimizer, or a clear, or a clip?

        It may also be called so by the name of an attribute: `self.step = self.warmup_step`.
        """
        cls, name = function.owner, getattr(function.node, "name", "")
        if clears_by_name(name) or clips_by_name(name):
            return not _ACTS.search(function.unit.text_of(function.node))
        if cls is None or not {name, asked_for} & {*_WRAPPED}:
            return False
        known = {name for one in self.lineage(cls) for name in (*one.methods, *one.assigned())}
        if known.issuperset(_WRAPPED):
            return True
        return not _TRAINS.search(cls.unit.text_of(cls.node))  # all that it does is to step

    def _is_worth_reading(self, function: Function, arguments: Arguments) -> bool:
        if isinstance(function.node, ast.Lambda) or function.unit.has_events(function.node):
            return True
        if function.bound is not None and not isinstance(function.bound, Optimizer):
            return True
        if len(function.unit.text_of(function.node)) < 400:
            return True  # cheap, and it may compute with what it closes over
        interesting = (Module, Instance, Optimizer, Params, Leaf, Tensor, Function, Several)
        return any(isinstance(value, interesting) for value in arguments.all())

    def _computed_by(self, arguments: Arguments) -> Value:
        computed = arguments.computed()
        modules = [each for each in arguments.all() if isinstance(each, (Module, Instance))]
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
        names = parameters_of(function)
        once = frame.node is None and frame.loop is None  # main(parse()), at the top of a file
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
                below = frame.unit.parts_of(node)
                parts = [frame.spelling(each.id) for each in below if isinstance(each, ast.Name)]
                spelled[name] = (
                    f"{text}|{','.join(part[0] for part in parts)}",
                    frozenset().union(*(part[1] for part in parts)) if parts else frozenset(),
                    (not once and any(isinstance(each, ast.Call) for each in below))
                    or any(part[2] for part in parts),
                )
        return spelled

    def _read_function(
        self,
        caller: Frame,
        function: Function,
        arguments: Arguments,
        spelled: dict[str, tuple[str, frozenset[str], bool]],
        site: tuple[Unit, ast.AST] | None,
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
        frame.no_grad = caller.no_grad or has_decorator(node, "no_grad")
        frame.accumulating = caller.accumulating
        frame.inside = caller.inside or (
            function.owner is not None and self.is_optimizer(function.owner)
        )
        frame.is_manager = has_decorator(node, "contextmanager") or has_decorator(
            node, "asynccontextmanager"
        )
        frame.spellings = spelled
        frame.site = site
        bind_parameters(frame, function, arguments, outermost=not self._reading)
        self._reading.append(id(node))
        self._told.append(_told(node, arguments))
        self._stack.append(frame.number)
        if isinstance(node, ast.Lambda):
            value = evaluate(frame, node.body)
            block: Block = frame.out
        else:
            block = read_block(frame, node.body)
            value = _returned(frame.returned)
            if frame.yields and not _trains(block, frame.yields):
                block = []  # what it makes for itself, it makes between two items
        self._reading.pop()
        self._told.pop()
        self._stack.pop()
        scope = Scope(block, function.unit, frame.number) if has_effect(block) else None
        return scope, value

    def quietly(self, function: Function) -> Value:
        """Read a method for the attributes it sets, whatever its parameters; no event counts."""
        called = set(self.called)
        caller = self.frame(function.unit)
        frozen = self.frozen
        self.quiet += 1
        value = self.invoke(caller, function.node, function, Arguments.of_nobody())
        self.quiet -= 1
        self.called, self.frozen = called, frozen
        return value


def _told(function: ast.AST, arguments: Arguments) -> Told:
    """Return a function and the flags it is called with.

    One that trains may call itself to evaluate, `self.run(loader, train=False)`: that is another.
    """
    flags = [
        (str(place), value.ident)
        for place, value in (*enumerate(arguments.positional), *arguments.named.items())
        if isinstance(value, Constant) and isinstance(value.value, bool | str)
    ]
    return id(function), frozenset(flags)


def _trains(block: Block, yields: list[Haze]) -> bool:
    """Does anything happen in a generator but that others work on its items?"""
    return any(
        isinstance(each, Happening)
        or (isinstance(each, Haze) and not each.pauses and each not in yields)
        for each in walk(block)
    )


def _returned(values: list[Value]) -> Value:
    if not values:
        return NOTHING
    rows = [value for value in values if isinstance(value, Several)]
    if len(rows) == len(values) > 1 and len({len(row.items) for row in rows}) == 1:
        return Several(
            [joined(list(column)) for column in zip(*(r.items for r in rows), strict=True)]
        )
    return joined(values)
