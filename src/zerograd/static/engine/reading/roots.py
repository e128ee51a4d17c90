"""Where reading begins: the module itself, and every function that nothing here calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.choices import made_elsewhere
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.elsewhere import (
    clears_at_other_times,
    is_all,
    is_cleared_by_takers,
    is_cleared_outside,
    others_clear,
    sisters_clear,
)
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import (
    FILLS,
    Block,
    Branch,
    Doubt,
    Happening,
    Haze,
    Loop,
    Reset,
    walk,
)
from zerograd.static.engine.identity.keys import frame_of
from zerograd.static.engine.identity.lacking import OF_SCALERS, lacks_its_scaler
from zerograd.static.engine.identity.templates import OF_INHERITED, inherited_loops
from zerograd.static.engine.reading.candidates import (
    candidates,
    is_called_by_name,
    methods_with_events,
    spawned_in,
)
from zerograd.static.engine.reading.counters import steps_once
from zerograd.static.engine.reading.unbound import bind_unbound
from zerograd.static.engine.text.classes import ClassUnit, FunctionNode
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.stores import names_stored

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.reading.program import Program


class Root:
    """A skeleton to interpret.

    Attributes:
        hazy: it is entered with gradients that nobody here has seen.
        doubted: the loop around it is assumed, and somebody else may clear in it.
        too_long: it was given up, in part or whole, so what it calls is still to be judged.
        codes: the only rules that it is read for; none: all of them.
    """

    __slots__ = ("block", "codes", "doubted", "hazy", "too_long")

    def __init__(self, block: Block, *, hazy: bool, doubted: bool = False) -> None:
        self.block = block
        self.hazy = hazy
        self.doubted = doubted
        self.too_long = False
        self.codes: frozenset[str] = frozenset()


def roots(program: Program) -> Iterator[Root]:
    """Yield the roots of a program, the module first."""
    unit = program.main
    frame = program.frame(unit)
    frame.locals = frame.globals  # a module's locals are what its functions see
    bind_unbound(frame)
    block = program.read_root(frame, unit.source.tree.body)
    cut_out = unit.source.cut_out or _counts_what_others_count(program, block)
    if block and cut_out and _steps_outside_loops(block):
        # a few lines out of some loop: what they do, they do again and again
        whole = _computes_its_loss(program, unit.source.tree, block)
        yield Root([*frame.out, *_looped(block)], hazy=True, doubted=not whole)
    elif block:
        whole_module = Root([*frame.out, *block], hazy=False)
        yield whole_module
        if whole_module.too_long:
            program.called.clear()  # each function on its own may be short enough
    for function, cls in inherited_loops(program):
        called = set(program.called)
        for root in _read(program, function, cls):
            root.codes = OF_INHERITED
            yield root
        program.called = called  # whatever they come to is judged on its own as well
    waiting = candidates(program)
    # A process of many sees other arguments than the one call that stands in the code.
    begun = spawned_in(program.main)
    spawned = {id(each.node) for each, _ in waiting if getattr(each.node, "name", "") in begun}
    alone: set[int] = set()  # those that were read for no caller of theirs
    for only_uncalled in (True, False):
        for function, cls in waiting:
            here = id(function.node)
            if here in program.called and (here in alone or here not in spawned):
                continue
            if only_uncalled and is_called_by_name(program, function.node):
                continue
            called = set(program.called)
            for root in _read(program, function, cls):
                yield root
                if root.too_long:
                    program.called = set(called)  # what it calls may be short enough
            program.called.add(id(function.node))
            alone.add(id(function.node))
    for cls in program.inner_classes:
        for function, _ in methods_with_events(program, cls):
            if id(function.node) not in program.called:
                yield from _read(program, function, cls)
                program.called.add(id(function.node))
    yield from _left_over(program)
    for function, cls in waiting:
        if id(function.node) not in alone and lacks_its_scaler(program, function):
            for root in _read(program, function, cls):
                root.codes = OF_SCALERS
                yield root


def _left_over(program: Program) -> Iterator[Root]:
    """Yield the functions made inside functions that nothing here calls."""
    for closure, outer in _from(program.closures, 0):
        unit, node = closure.unit, closure.node
        if unit is not program.main or id(node) in program.called or not unit.has_events(node):
            continue
        inner = program.frame(unit, closure=outer.locals)
        program.invoke(inner, node, closure, Arguments.of_nobody())
        block = inner.out
        once = not _goes_back(block) or _makes_its_optimizers(block)
        if block and (once or not _steps_outside_loops(block)):
            yield Root(block, hazy=True)
        elif block:  # who calls it may clear
            known = is_all(program) or _is_whole_round(program, closure, outer, block)
            yield Root(_looped(block), hazy=True, doubted=not known)


def _counts_what_others_count(program: Program, block: Block) -> bool:
    """Does a step stand under the counter of a loop that is not here?"""
    unit = program.main
    if any(isinstance(node, Loop) for node in walk(block)):
        return False
    here = names_stored(unit.source.tree.body) | set(unit.imports) | set(unit.functions)
    for node in walk(block):
        if not isinstance(node, Branch):
            continue
        atom = program.atoms.get(node.atom)
        if atom is None or atom.node is None or "%" not in atom.text:
            continue
        names = names_below(atom.node)
        if _steps_outside_loops(node.then) and names and here.isdisjoint(names):
            return True
    return False


def _read(program: Program, function: Function, cls: ClassUnit | None) -> Iterator[Root]:
    program.begin()
    if isinstance(function.bound, Instance):
        made_elsewhere(program, function.bound, {})
    frame = program.frame(program.main)
    closures = len(program.closures)
    program.invoke(frame, function.node, function, Arguments.of_nobody())
    block = frame.out
    for closure, outer in _from(program.closures, closures):
        if id(closure.node) not in program.called and program.main.has_events(closure.node):
            inner = program.frame(closure.unit, closure=outer.locals)
            program.invoke(inner, closure.node, closure, Arguments.of_nobody())
            if inner.out and (
                not _is_returned(program, outer.node, closure.node)
                or _is_whole_round(program, closure, outer, inner.out)
            ):
                block = [*_before(block), *_looped(inner.out)]
            elif inner.out:  # who calls it may clear
                whole = _computes_its_loss(program, closure.node, inner.out)
                apart = not whole or is_cleared_by_takers(program, function)
                yield Root(_looped(inner.out), hazy=True, doubted=apart and not is_all(program))
    name = getattr(function.node, "name", "")
    if not block:
        return
    once = not _goes_back(block) or _makes_its_optimizers(block)
    if once or not _steps_outside_loops(block) or name.startswith(("test", "setUp")):
        again = cls is not None and _steps_once(program, block, cls)
        again = again and not others_clear(program, function, cls, block)
        yield Root(_looped(block) if again else block, hazy=True)
        return
    owned = cls is not None and _owns_its_optimizers(block) and not program.has_unseen_base(cls)
    whole = owned or _computes_its_loss(program, function.node, block)
    whole = whole or (cls is not None and sisters_clear(program, function, cls, block))
    apart = not whole or clears_at_other_times(block)
    apart = apart or others_clear(program, function, cls, block)
    doubted = apart and not is_all(program)
    yield Root(_looped(block), hazy=True, doubted=doubted)


def _before(block: Block) -> Block:
    """Return what a function does before an engine runs what it is handed: that is no event."""
    done = walk(block)
    if any(isinstance(each, Happening | Loop) for each in done):
        return block
    return [each for each in done if isinstance(each, Reset)]


def _from(found: list[tuple[Function, Frame]], start: int) -> Iterator[tuple[Function, Frame]]:
    """Go through a list that grows on the way: functions are made inside functions."""
    while start < len(found):
        yield found[start]
        start += 1


def _is_returned(program: Program, outer: ast.AST | None, inner: ast.AST) -> bool:
    """Does a function hand its inner function out, to callers that nobody here sees?"""
    assert isinstance(inner, FunctionNode)
    text = program.main.text_of(outer) if outer is not None else ""
    return bool(re.search(rf"return\b[^\n]*\b{re.escape(inner.name)}\b", text))


def _is_whole_round(program: Program, closure: Function, outer: Frame, block: Block) -> bool:
    """Is it what an engine calls once a batch, and does nobody else clear for it?"""
    return (
        _is_for_an_engine(closure.node)
        and _computes_its_loss(program, closure.node, block)
        and not is_cleared_outside(program, outer.node)
    )


def _is_for_an_engine(function: ast.AST) -> bool:
    """Is it `update(engine, batch)`? Ignite's engines call that once a batch, and clear nothing."""
    assert isinstance(function, FunctionNode | ast.Lambda)
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return len(names) == 2 and names[0] in ("engine", "trainer")


def _owns_its_optimizers(block: Block) -> bool:
    """Are all optimizers that step here those of the object itself?"""
    return all(
        node.optimizer is not None
        and (
            node.optimizer.key.startswith("self.")
            # made under another name: `opt = Adam(…)`, then `self.opt = opt`
            or (node.optimizer.made and node.name.startswith("self."))
        )
        for node in walk(block)
        if isinstance(node, Happening) and node.kind is EventKind.STEP and node.loop is None
    )


def _goes_back(block: Block) -> bool:
    """Is a gradient filled in there? What only steps is a part of somebody's iteration."""
    return any(isinstance(node, Happening) and node.kind in FILLS for node in walk(block))


def _makes_its_optimizers(block: Block) -> bool:
    """Are all optimizers that step here made here? Then each call is a training of its own."""
    return all(
        node.optimizer is not None
        and not node.optimizer.lasting
        and not (isinstance(node.node, ast.Call) and node.node.args)  # closures are called again
        and frame_of(node.optimizer.key) in node.frames
        for node in walk(block)
        if isinstance(node, Happening) and node.kind is EventKind.STEP and node.loop is None
    )


def _looped(block: Block) -> Block:
    """Return the block as a loop elsewhere would run it; between two runs much may happen."""
    loop = Loop(None, None)
    loop.pseudo = True
    loop.body = [Haze(None, whole=False, doubt=Doubt.BETWEEN), *block]
    for node in walk(block):
        if isinstance(node, Happening):
            loop.entered |= node.frames
            if node.loop is None:
                node.loop = loop
    return [loop]


def _steps_outside_loops(block: Block) -> bool:
    return any(
        isinstance(node, Happening) and node.kind is EventKind.STEP and node.loop is None
        for node in walk(block)
    )


def _steps_once(program: Program, block: Block, cls: ClassUnit) -> bool:
    """Does an object of known classes step in one round of a loop only, as each call does?"""
    loops = [each for each in walk(block) if isinstance(each, Loop) and each.node is not None]
    steps = [step for loop in loops for step in steps_once(loop, program)]
    owned = any(step.optimizer and step.optimizer.key.startswith("self.") for step in steps)
    return owned and not program.has_unseen_base(cls)


def _computes_its_loss(program: Program, function: ast.AST, block: Block) -> bool:
    """Does it run a network forward and back? What is only handed a loss is part of a step."""
    own = _computed_in(function)
    return any(
        isinstance(node, Happening)
        and node.kind is EventKind.BACKWARD
        and node.loop is None
        and (
            not program.networks.isdisjoint(node.keys or ())
            or _is_loss_of(node, own)
            or _is_loss_of(node, _computed_around(node))
        )
        for node in walk(block)
    )


def _computed_around(node: Happening) -> frozenset[str]:
    """Return the names that the function around an event gives a value and is not handed."""
    line = node.spot.line
    around = [
        each for each in node.unit.every_function() if each.lineno <= line <= (each.end_lineno or 0)
    ]
    return _computed_in(max(around, key=lambda each: each.lineno)) if around else frozenset()


def _computed_in(function: ast.AST) -> frozenset[str]:
    """Return the names that a function, or a module, gives a value and is not handed."""
    if isinstance(function, ast.Module):
        return names_stored(function.body)
    assert isinstance(function, FunctionNode)
    parameters = function.args
    handed = {
        each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
    }
    if any("loss" in name.lower() for name in handed):
        return frozenset()  # what it computes is the loss it is handed, scaled perhaps
    return names_stored(function.body) - handed


def _is_loss_of(backward: Happening, own: frozenset[str]) -> bool:
    """Is all that a backward starts from computed where it stands?"""
    call = backward.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    for loss in (call.func.value, *call.args[:1]):  # or it is handed the loss
        parts = parts_below(loss)
        names = {each.id for each in parts if isinstance(each, ast.Name)}
        if names & own and names - own <= {"self", "torch"}:
            return True
        # `agent.actor(state).mean().backward()`: whatever it is handed, it runs something forward
        if any(isinstance(each, ast.Call) and each.args and _root(each) in own for each in parts):
            return True
    return False


def _root(call: ast.Call) -> str:
    """Return the name of which something is called: `agent` in `agent.actor(x)`."""
    return path_of(call.func).split(".", 1)[0]
