"""To whom an optimizer is given that might step it."""

from __future__ import annotations

import ast
import re
from enum import Enum
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.elsewhere import asks_above
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import is_scheduler_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.ir import Happening
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

# what can be done with an optimizer that does not step it
_HARMLESS = frozenset(
    ("zero_grad", "param_groups", "state_dict", "load_state_dict", "add_param_group", "scaler")
)
# methods that may be handed an optimizer, some of which give it back
_NO_STEP = frozenset(("unscale_", "unscale", "prepare", "setup_optimizers", "prepare_optimizer"))
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set)
# who loads, shows, or sets the rate of what is cleared and filled elsewhere does not step it
_BESIDE_STEPS = frozenset(
    ("load", "restore", "resume", "checkpoint", "ckpt", "print", "rate", "len", "type")
)
_TRAINS = frozenset(("train", "trainer", "training", "learner", "fit", "step", "update", "engine"))


class Handed(Enum):
    """To whom an optimizer is given that might step it."""

    TO_NOBODY = "nobody"
    TO_A_CLASS = "a class of this file"  # whose other methods may be called from elsewhere
    TO_A_LIST = "a list or dict"  # whose items may be stepped under another name
    AWAY = "something unknown"


def handed_on(program: Program, node: Happening, steps: list[Happening]) -> Handed:
    """To whom is the optimizer given?

    Functions of the project that a call was followed into have been read: they do not step it.
    """
    assert node.optimizer is not None
    tree = node.unit.source.tree
    stepped = {
        id(each.func) for step in steps for each in (step.node,) if isinstance(each, ast.Call)
    }
    statements = node.unit.statements()
    functions = node.unit.every_function()
    followed = {
        each.name
        for unit in program.units()
        for each in unit.every_function()
        if id(each) in program.called
    }
    classes = {each.name for each in statements if isinstance(each, ast.ClassDef)}
    at = getattr(node.node, "lineno", 0)
    around = [
        each
        for each in functions
        if each.lineno <= at <= (each.end_lineno or 0)
        and any(part is node.node for part in node.unit.parts_of(each))
    ]
    if around and _is_handled_elsewhere(node, around[-1], statements):
        return Handed.AWAY
    # where the clear calls it by another name
    parts_of = node.unit.parts_of
    places = [(node.name, parts_of(around[-1]) if around else _outside_functions(tree))]
    # else it is a parameter of that function, unless a function here hands it on to this one
    elsewhere = node.optimizer.keys is not None or len(node.frames) > 1
    if elsewhere and not (around and _binds(around[-1], node.name)):
        places.append((node.optimizer.key, parts_of(tree)))
    listed = {id(each.iter) for each in statements if isinstance(each, ast.For)}
    stepped |= _overridden(program, node, around[-1]) if around else set()
    stepped |= _given_back(node.unit, last_part(node.optimizer.key))
    settled = listed | stepped
    if around:
        followed |= _own_class(program, node, around[-1])
    for known, kinds, handed in (
        (followed, (), Handed.TO_NOBODY),
        (followed | classes, (), Handed.TO_A_CLASS),
        (followed | classes, _DISPLAYS, Handed.TO_A_LIST),
    ):
        if not any(
            id(each) not in settled
            and not isinstance(each, kinds)
            and is_used(each, {last_part(name)}, known, trained=True)
            for name, inside in places
            if name
            for each in inside
        ):
            return handed
    return Handed.AWAY


def _is_handled_elsewhere(node: Happening, function: FunctionNode, all_of: list[ast.AST]) -> bool:
    """Is it an item of a list, and does another loop over that list do something unknown with it?

    `for each in self.optimizers: each.zero_grad()` here, and `each.optimize()` in another method.
    """
    loops = [each for each in all_of if isinstance(each, ast.For)]
    own = [
        each
        for each in loops
        if each in statements_in(function.body) and path_of(each.target) == node.name
    ]
    lists = {path_of(each.iter) for each in own} - {""}
    return any(
        path_of(each.iter) in lists
        and any(
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr not in _HARMLESS
            and path_of(part.func.value) == path_of(each.target)
            for part in parts_below(each)
        )
        for each in loops
        if each not in own
    )


def _overridden(program: Program, node: Happening, method: FunctionNode) -> set[int]:
    """Return what stands in the methods above this one that it takes the place of: none is run."""
    owners = [each for each in node.unit.classes.values() if method in each.methods.values()]
    if not owners or asks_above(node.unit.text_of(method), method.name):
        return set()
    above = [each.methods.get(method.name) for each in program.lineage(owners[0])[1:]]
    return {id(part) for each in above if each is not None for part in parts_below(each)}


def _own_class(program: Program, clear: Happening, method: FunctionNode) -> set[str]:
    """Return the class of a clear, if no other file that clears may reach into its objects.

    Whoever hands it an optimizer has it cleared and filled in the rounds of a loop that is seen:
    the step is to be there as well.
    """
    unit, name = clear.unit, last_part(clear.name)
    project = program.project
    if clear.loop is None or clear.loop.pseudo:
        return set()
    if project is not None and project.around.is_named_by_clearers(unit.source, name):
        return set()
    return {each.node.name for each in unit.classes.values() if method in each.methods.values()}


def _given_back(unit: Unit, name: str) -> set[int]:
    """Return what functions give back with an optimizer that their callers call the same.

    `return net, optimizer`, and `net, optimizer = build()`: there it is asked about as well.
    """
    found: set[int] = set()
    for function in unit.functions_saying("return "):
        given = [
            each.value
            for each in statements_in(function.body)
            if isinstance(each, ast.Return) and isinstance(each.value, ast.Tuple)
        ]
        called = rf"(?m)^[^=\n]*\b{name}\b[^=\n]*= *(?:\w+\.)*{function.name}\("
        if given and re.search(called, unit.source.text):
            found |= set(map(id, given))
    return found


def _binds(function: FunctionNode, name: str) -> bool:
    """Is it a variable of the function's own? One of that name elsewhere is another."""
    return any(
        isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
        for each in statements_in(function.body)
    )


def _outside_functions(tree: ast.Module) -> list[ast.AST]:
    """Return what stands in no function: inside one the same name is another thing."""
    found: list[ast.AST] = [tree]
    for each in found:
        if not isinstance(each, FunctionNode):
            found.extend(ast.iter_child_nodes(each))
    return found


def last_part(name: str) -> str:
    """Return the last word of a path, without what tells objects of that name apart."""
    return name.rsplit(".", 1)[-1].split("@", 1)[0]


def is_used(parent: ast.AST, words: set[str], followed: set[str], *, trained: bool = False) -> bool:
    """Does this node do something unknown with the optimizer directly inside it?

    Args:
        trained: it is cleared and filled, so what is loaded into it is there to be stepped on.
    """
    if isinstance(parent, ast.keyword):
        return False  # seen with its call
    kept = trained and isinstance(parent, ast.Assign)
    if kept and all(_ends_in(each, words) for each in parent.targets):  # type: ignore[attr-defined]
        return False  # `self.optimizer = optimizer`: asked about under the same word
    named = [each for each in ast.iter_child_nodes(parent) if _is_named(each, words)]
    if isinstance(parent, ast.Call):
        named += [each.value for each in parent.keywords if _is_named(each.value, words)]
    if not named:
        return False
    if isinstance(parent, ast.Attribute):
        return parent.attr not in _HARMLESS and not _is_named(parent, words)
    if isinstance(parent, ast.Call) and parent.func not in named:
        return not _is_harmless(parent.func, followed, trained)
    return True


def _ends_in(target: ast.expr, words: set[str]) -> bool:
    return path_of(target).rsplit(".", 1)[-1] in words


def _is_named(node: ast.AST, words: set[str]) -> bool:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    loads = isinstance(getattr(node, "ctx", None), ast.Load)
    return loads and name in words and path_of(node) != "torch.optim"  # a name like a package's


def _is_harmless(called: ast.expr, followed: set[str], trained: bool) -> bool:
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    if name in followed or name in _NO_STEP or name.endswith("LR"):
        return True
    words = words_of(name)
    if is_scheduler_name(name) or "save" in words:
        return True
    return trained and not _BESIDE_STEPS.isdisjoint(words) and _TRAINS.isdisjoint(words)
