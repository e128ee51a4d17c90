"""Where reading begins: the module itself, and every function that nothing here calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.arguments import Arguments
from zerograd.static.engine.ir import Block, Happening, Haze, Loop, walk
from zerograd.static.engine.unit import ClassUnit, FunctionNode
from zerograd.static.engine.values import Function, Instance

if TYPE_CHECKING:
    from zerograd.static.engine.program import Program


class Root:
    """A skeleton to interpret.

    Attributes:
        hazy: it is entered with gradients that nobody here has seen.
        doubted: the loop around it is assumed, and somebody else may clear in it.
    """

    __slots__ = ("block", "doubted", "hazy")

    def __init__(self, block: Block, *, hazy: bool, doubted: bool = False) -> None:
        self.block = block
        self.hazy = hazy
        self.doubted = doubted


def roots(program: Program) -> Iterator[Root]:
    """Yield the roots of a program, the module first."""
    unit = program.main
    frame = program.frame(unit)
    frame.locals = frame.globals  # a module's locals are what its functions see
    block = program.read_root(frame, unit.source.tree.body)
    if block:
        yield Root(block, hazy=False)
    waiting = _candidates(program)
    for only_uncalled in (True, False):
        for function, cls in waiting:
            if id(function.node) in program.called:
                continue
            if only_uncalled and _is_called_by_name(program, function.node):
                continue
            root = _read(program, function, cls)
            program.called.add(id(function.node))
            if root is not None:
                yield root


def _candidates(program: Program) -> list[tuple[Function, ClassUnit | None]]:
    """Return the functions and methods with events, in the order of the file."""
    unit = program.main
    found: list[tuple[Function, ClassUnit | None]] = []
    for node in unit.functions.values():
        if unit.has_events(node):
            found.append((Function(node, unit), None))
    for cls in unit.classes.values():
        if not unit.has_events(cls.node) or program.is_optimizer(cls):
            continue
        instance = Instance(cls, "self")
        for method in cls.methods.values():
            if method.name != "__init__" and unit.has_events(method):
                found.append((Function(method, unit, bound=instance, owner=cls), cls))
    return found


def _is_called_by_name(program: Program, node: ast.AST) -> bool:
    assert isinstance(node, FunctionNode)
    text = program.main.source.text
    return len(re.findall(rf"\b{re.escape(node.name)}\s*\(", text)) > 1


def _read(program: Program, function: Function, cls: ClassUnit | None) -> Root | None:
    frame = program.frame(program.main)
    closures = len(program.closures)
    program.invoke(frame, function.node, function, Arguments.of_nobody())
    block = frame.out
    if not block:
        return None
    for closure, outer in program.closures[closures:]:
        if id(closure.node) not in program.called and program.main.has_events(closure.node):
            inner = program.frame(closure.unit, closure=outer.locals)
            program.invoke(inner, closure.node, closure, Arguments.of_nobody())
            if inner.out and not _is_returned(program, outer.node, closure.node):
                block = [*block, *_looped(inner.out)]
    name = getattr(function.node, "name", "")
    if not _steps_outside_loops(block) or name.startswith(("test", "setUp")):
        return Root(block, hazy=True)
    owned = cls is not None and _owns_its_optimizers(block) and not program.has_unseen_base(cls)
    whole = owned or _computes_its_loss(program, block)
    doubted = not whole or _others_clear(program, function, cls)
    return Root(_looped(block), hazy=True, doubted=doubted)


def _is_returned(program: Program, outer: ast.AST | None, inner: ast.AST) -> bool:
    """Does a function hand its inner function out, to callers that nobody here sees?"""
    assert isinstance(inner, FunctionNode)
    text = program.main.text_of(outer) if outer is not None else ""
    return bool(re.search(rf"return\b[^\n]*\b{re.escape(inner.name)}\b", text))


def _owns_its_optimizers(block: Block) -> bool:
    """Are all optimizers that step here those of the object itself?"""
    return all(
        node.optimizer is not None and node.optimizer.key.startswith("self.")
        for node in walk(block)
        if isinstance(node, Happening) and node.kind is EventKind.STEP and node.loop is None
    )


def _looped(block: Block) -> Block:
    """Return the block as a loop elsewhere would run it; between two runs much may happen."""
    loop = Loop(None, None)
    loop.pseudo = True
    loop.body = [Haze(None, whole=False), *block]
    for node in walk(block):
        if isinstance(node, Happening) and node.loop is None:
            node.loop = loop
    return [loop]


def _steps_outside_loops(block: Block) -> bool:
    return any(
        isinstance(node, Happening) and node.kind is EventKind.STEP and node.loop is None
        for node in walk(block)
    )


def _computes_its_loss(program: Program, block: Block) -> bool:
    """Does it run a network forward and back? What is only handed a loss is part of a step."""
    return any(
        isinstance(node, Happening)
        and node.kind is EventKind.BACKWARD
        and node.loop is None
        and not program.networks.isdisjoint(node.keys or ())
        for node in walk(block)
    )


def _others_clear(program: Program, function: Function, cls: ClassUnit | None) -> bool:
    """May the class, the file around it or another file clear outside what is judged?"""
    unit = program.main
    assert isinstance(function.node, FunctionNode)
    own = unit.text_of(function.node)
    if program.project is not None and program.project.is_cleared_by_callers(
        unit.source, function.node.name
    ):
        return True
    clearing = re.compile(r"zero_grad|\.grad\s*=\s*None|\.grad\.zero_|\.grad\.data\.zero_")
    for method in cls.methods.values() if cls is not None else ():
        if method is function.node or not clearing.search(unit.text_of(method)):
            continue
        if id(method) in program.called and re.search(rf"\.{method.name}\s*\(", own):
            continue  # called from here, so its clear has been seen
        return True
    if cls is not None:
        outside = unit.source.text.replace(unit.text_of(cls.node), "")
        return bool(clearing.search(outside))
    call = re.compile(rf"(?<!def )\b{re.escape(function.node.name)}\b")
    return any(
        other is not function.node
        and clearing.search(unit.text_of(other))
        and call.search(unit.text_of(other))
        for other in unit.functions.values()
    )
