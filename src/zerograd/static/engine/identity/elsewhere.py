"""Who else may clear: other methods, the rest of the file, those who call from elsewhere."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.ir import Block, Branch, Happening, happens, walk
from zerograd.static.engine.identity.keys import keys_of, touches
from zerograd.static.engine.identity.taken import takes
from zerograd.static.engine.identity.values import (
    CONTAINERS,
    Module,
    Named,
    Optimizer,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.classes import ClassUnit, FunctionNode
from zerograd.static.engine.text.words import is_optimizer_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program


_CLEARING = re.compile(
    r"zero_grads?\s*\(|zero_grad\s*=\s*True|\.grad\s*=\s*None|\.grad\.zero_|\.grad\.data\.zero_"
)
_CLEARED = re.compile(r"(?<![\w.])([\w.]+)\.zero_grads?\s*\(")
_OWN_CLEAR = re.compile(r"(?<![\w.])self\.(\w+(?:\.\w+)?)(\[[^\]]*\])?\.zero_grads?\s*\(")
_MAY_CLEAR = re.compile(r"zero_|\.grad\b(?!\s+is\b)|set_to_none")
_OF_TORCH = frozenset(("torch", "torchvision", "torchaudio", "numpy"))
_TESTING = frozenset(("test", "eval", "evaluate", "validate", "validation", "valid", "predict"))
_COMMON = frozenset(("step", "update", "train", "forward", "run", "__call__"))


def clears(text: str) -> bool:
    """Is a clear written there?"""
    return _CLEARING.search(text) is not None


def others_clear(program: Program, function: Function, cls: ClassUnit | None, block: Block) -> bool:
    """May the class, the file around it or another file clear outside what is judged?"""
    unit = program.main
    optimizers = _stepped(block)
    assert isinstance(function.node, FunctionNode)
    own = unit.text_of(function.node)
    name = function.node.name
    # `.step(` is called on anything: there the class must be named as well
    owner = cls.name if cls is not None and name in _COMMON else ""
    if _other_files_clear(program, name, cls, owner):
        return True
    for each, method in _inherited(program, cls) if cls is not None else ():
        text = each.unit.text_of(method)
        if method is function.node or not _CLEARING.search(text):
            continue
        if not _TESTING.isdisjoint(words_of(method.name)):
            continue  # it runs when the training has paused, and not between two batches
        if id(method) in program.called and _is_called(own, each, method, block):
            continue  # called from here, so its clear has been seen
        if not _is_apart(text, name, optimizers) and not _is_of_others(
            program, function, text, block
        ):
            return True
    if cls is not None:
        spelled = rf"\b{cls.name}\b" + ("" if owner else rf"|\.{name}\s*\(")
        around: list[ast.AST] = [each.node for each in program.lineage(cls)]  # asked by now
    else:
        spelled = rf"(?<!def )\b{re.escape(name)}\b"
        around = [function.node]
    concerned = re.compile(spelled)
    handed_on = cls is None and _is_handed_on(unit.source.text, name)
    return any(
        _CLEARING.search(text)
        and (concerned.search(text) or (handed_on and ".backward(" not in text))
        for text in _texts_beside(program, around, name)
    )


def _other_files_clear(program: Program, name: str, cls: ClassUnit | None, owner: str) -> bool:
    """May another file clear: one that calls the function or method, or one that is handed it?"""
    if program.project is None:
        return False
    files, source = program.project.around, program.main.source
    if files.is_cleared_by_callers(source, name, owner):
        return True
    if cls is None:
        return files.is_cleared_by_takers(source, name)
    return files.is_cleared_by_users(source, name, given=name in _COMMON)


def _is_handed_on(text: str, name: str) -> bool:
    """Is a function put somewhere, in a table say, and called by its own name nowhere?"""
    written = re.findall(rf"(?<!def )(?<![\w.]){re.escape(name)}\b\s*(\()?", text)
    return bool(written) and "(" not in written


def clears_at_other_times(block: Block) -> bool:
    """Does a call either go back and step, or clear: an agent's end of an episode, or its start?

    Which of the two comes when, its caller knows. What trains as well clears for itself.
    """
    for each in walk(block):
        if isinstance(each, Branch):
            for one, other in ((each.then, each.otherwise), (each.otherwise, each.then)):
                clears_here = happens(one, EventKind.CLEAR)
                clears_there = happens(other, EventKind.CLEAR) and not _trains(other)
                if _trains(one) and not clears_here and clears_there:
                    return True
    return False


def _trains(block: Block) -> bool:
    return happens(block, EventKind.BACKWARD) and happens(block, EventKind.STEP)


def sisters_clear(program: Program, function: Function, cls: ClassUnit, block: Block) -> bool:
    """Does the method of that name of another class train the same, and clear for itself?

    Then whoever calls the one or the other, two hooks of a runner say, does not clear for them.
    """
    name = getattr(function.node, "name", "")
    stepped = [re.escape(each) for each in _stepped(block)]
    for each in program.main.classes.values():
        sister = each.methods.get(name)
        if sister is None or each is cls:
            continue
        text = program.main.text_of(sister)
        if ".backward(" in text and all(
            re.search(rf"(?<![\w.]){one}\.step\s*\(|\.step\(\s*{one}\b", text)
            and re.search(rf"(?<![\w.]){one}\.zero_grad\s*\(", text)
            for one in stepped
        ):
            return bool(stepped)
    return False


def _inherited(program: Program, cls: ClassUnit) -> Iterator[tuple[ClassUnit, FunctionNode]]:
    """Yield the methods that an object of a class has, each with the class that it is from."""
    found: dict[str, str] = {}  # what those have in them that stand in front
    for each in program.lineage(cls):
        for name, method in each.methods.items():
            if name not in found or asks_above(found[name], name):
                found[name] = each.unit.text_of(method)
                yield each, method


def _is_called(text: str, cls: ClassUnit, method: FunctionNode, block: Block) -> bool:
    """Is a method called in this text, or by another method that is: does anything of it happen?"""
    return bool(re.search(rf"\.{method.name}\s*\(", text)) or any(
        isinstance(node, Happening)
        and node.unit is cls.unit
        and method.lineno <= node.spot.line <= (method.end_lineno or 0)
        for node in walk(block)
    )


def asks_above(text: str, name: str) -> bool:
    """Does a method call the one that it hides: `super().step()`, `Base.step(self)`?"""
    return bool(re.search(rf"(?:super\([^()]*\)|\b[A-Z]\w*)\.{name}\s*\(", text))


def _stepped(block: Block) -> frozenset[str]:
    """Return the optimizers that step here, as the code names them.

    What was handed in, or made under another name, is known by that; here it is the object's own.
    """
    return frozenset(
        node.name if node.name.startswith("self.") else node.optimizer.key
        for node in _steps(block)
        if node.optimizer is not None
    )


def _steps(block: Block) -> list[Happening]:
    """Return the steps outside any loop; those in loops, if there are no others."""
    steps = [
        node for node in walk(block) if isinstance(node, Happening) and node.kind is EventKind.STEP
    ]
    return [node for node in steps if node.loop is None] or steps


def _is_apart(method: str, name: str, optimizers: frozenset[str]) -> bool:
    """Is another method's clear for itself: before its own backward and step, or for the last time?

    A method that makes these optimizers anew does not run between two batches either.
    """
    # every optimizer has a step(): there it must be the object's own
    asked = rf"\b(?:self|super\(\))\.{name}\s*\(" if name in _COMMON else rf"\.{name}\s*\("
    if re.search(asked, method):
        return False
    spelled = [re.escape(each) for each in optimizers]
    found = _CLEARED.findall(method)
    told = len(found) == len(_CLEARING.findall(method)) and not optimizers.isdisjoint(found)
    trains = ".backward(" in method and all(
        re.search(rf"(?<![\w.]){each}\.step\s*\(", method)
        for each in (map(re.escape, optimizers.intersection(found)) if told else spelled)
    )
    makes = all(re.search(rf"(?<![\w.]){each}\s*=[^=]", method) for each in spelled)
    apart = bool(spelled) and (trains or makes)
    return apart or _trains_others(method, optimizers) or _measures(method)


def _measures(method: str) -> bool:
    """Does it clear for a loss of its own, only to read what that fills, and leave it there?

    An estimate of what matters, of Fisher's kind: who goes on after it does not rely on its clear.
    """
    last = max((each.end() for each in _CLEARING.finditer(method)), default=0)
    return ".step(" not in method and method.rfind(".backward(") > last and takes(method)


def _trains_others(method: str, optimizers: frozenset[str]) -> bool:
    """Does it step all that it clears, on a loss of its own, and under names of its own?"""
    names = {each.rsplit(".", 1)[-1] for each in optimizers}
    found = _CLEARED.findall(method)
    cleared = [re.escape(each) for each in found]
    return (
        ".backward(" in method
        and names.isdisjoint(each.rsplit(".", 1)[-1] for each in found)
        and len(cleared) == len(_CLEARING.findall(method))
        and all(
            re.search(rf"(?<![\w.]){each}\.step\s*\(|\.step\(\s*{each}\b", method)
            for each in cleared
        )
    )


def _is_of_others(program: Program, function: Function, method: str, block: Block) -> bool:
    """Does another method clear things of the object alone that are none of what steps here?

    An agent's `update_critic` clears for its critic, and not for the actor of `update_actor`.
    """
    instance = function.bound
    paths = _OWN_CLEAR.findall(method)
    if not isinstance(instance, Instance) or len(paths) != len(_CLEARING.findall(method)):
        return False
    steps = _steps(block)
    mine = [each.optimizer for each in steps]
    kept = {path for path, item in paths if item}
    if any(_is_put_into(instance, path, each.name) for path in kept for each in steps):
        return False
    cleared = [
        each for path, item in paths for each in _own(program, instance, path, in_table=bool(item))
    ]
    return all(
        own is not None and each is not None and _are_apart(each, own)
        for each in cleared
        for own in mine
    )


def _is_put_into(instance: Instance, path: str, name: str) -> bool:
    """Is `self.opts[key] = self.opt`, or the like, written in the class?"""
    lines = instance.cls.unit.text_of(instance.cls.node).splitlines()
    named = re.compile(rf"{re.escape(name)}(?!\w)")
    return any(f"self.{path}" in line and named.search(line) for line in lines)


def _own(program: Program, instance: Instance, path: str, *, in_table: bool) -> list[Value | None]:
    """Return the optimizers and networks that an object has under `opt` or `parts.opt`.

    Args:
        in_table: those in a table that the object has there, if what is in it can be told.
    """
    frame = program.frame(program.main)
    value: Value = instance
    for name in path.split("."):
        value = program.attribute(frame, value, name)
    if in_table and type(value) not in CONTAINERS:
        return [None]
    found: list[Value | None] = []
    for each in leaves_of(value):
        if isinstance(each, Named) and is_optimizer_name(each.path):
            found.append(program.named_optimizer(each.path))
        else:
            network = isinstance(each, Named) and program.is_network(each.path)
            known = network or isinstance(each, Optimizer | Module | Instance)
            found.append(each if known else None)
    return found


def _are_apart(one: Value, other: Optimizer) -> bool:
    """Does neither hold what the other holds, as far as is known?"""
    if isinstance(one, Optimizer):
        keys = one.keys or frozenset()
        known = one.key != other.key
    else:
        keys = keys_of(one)
        known = other.keys is not None
    return known and not any(touches(key, held) for key in keys for held in other.keys or ())


def is_all(program: Program) -> bool:
    """Is the file a whole program, which runs itself, and clears nowhere?"""
    unit = program.main
    if _MAY_CLEAR.search(unit.source.text):
        return False
    outside = {dotted.split(".")[0] for dotted, _, _ in unit.imports.values()}
    if outside - sys.stdlib_module_names - _OF_TORCH:
        return False  # some trainer of theirs may
    return any(
        isinstance(node, ast.For | ast.While | ast.With)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.If) and "__main__" in unit.text_of(node))
        for node in unit.source.tree.body
    )


def is_cleared_outside(program: Program, maker: ast.AST | None) -> bool:
    """Does something beside clear for a loss that is not its own?"""
    return any(
        _CLEARING.search(text) and ".backward(" not in text
        for text in _texts_beside(program, (maker,), "")
    )


def is_cleared_by_takers(program: Program, maker: Function) -> bool:
    """May those who are given a function that `maker` makes clear around their calls of it?

    Under which name they call it is open: any clear beside, or in a file that names the maker.
    """
    project, unit = program.project, program.main
    name = getattr(maker.node, "name", "")
    if project is None or project.around.is_named_by_clearers(unit.source, name):
        return True
    return any(_CLEARING.search(text) for text in _texts_beside(program, (maker.node,), ""))


def _texts_beside(program: Program, own: Sequence[ast.AST | None], name: str) -> Iterator[str]:
    """Yield the text of each other function, class and statement that may call `name`."""
    unit = program.main
    for node in _at_the_top(unit.source.tree.body):
        if any(node is each for each in own):
            continue
        text = unit.text_of(node)
        for each in own:
            if each is not None and _stands_in(each, node):
                text = text.replace(unit.text_of(each), "")  # a class that a function makes
        if name and isinstance(node, ast.ClassDef) and f"def {name}(" in text:
            # It has its own: what it asks itself for, it does not ask of this one.
            text = text.replace(f"self.{name}(", "")
            if f".{name}(" not in text:
                continue
        yield text


def _stands_in(node: ast.AST, outer: ast.AST) -> bool:
    lines = (getattr(each, name, 0) for name in ("lineno", "end_lineno") for each in (outer, node))
    first, begin, last, end = lines
    return first < begin and end <= last


def _at_the_top(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements of a module, and those of its branches if these define anything."""
    for node in body:
        inner = [
            each
            for part in ("body", "orelse", "finalbody", "handlers")
            for each in getattr(node, part, ())
        ]
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler) and any(map(_defines, inner)):
            yield from _at_the_top(inner)
        else:
            yield node


def _defines(node: ast.AST) -> bool:
    if isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
        return any(map(_defines, (*node.body, *getattr(node, "orelse", ()))))
    return isinstance(node, ast.ClassDef | FunctionNode)
