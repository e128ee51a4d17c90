"""Loops: which are written out, which run many times, and what a round holds."""

from __future__ import annotations

import ast
from collections.abc import Callable

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.conditions import test_of
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame, path_of, plain_name
from zerograd.static.engine.identity.ir import (
    BREAK,
    RETURN,
    Block,
    Happening,
    Haze,
    Loop,
    Node,
    Reset,
    has_effect,
    walk,
)
from zerograd.static.engine.identity.items import items_of
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import (
    NOTHING,
    Bound,
    Constant,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
    leaves_of,
)
from zerograd.static.engine.reading.binding import bind
from zerograd.static.engine.reading.expressions import evaluate, evaluate_parts
from zerograd.static.engine.reading.given import peek
from zerograd.static.engine.reading.implied import implied
from zerograd.static.engine.reading.lending import ends_where_lent
from zerograd.static.engine.reading.tensors import require_each
from zerograd.static.engine.reading.turns import has_its_own_each_turn, stepped_in_each_turn
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import names_stored, statements_in, targets

_COUNTED = {"range": 1, "islice": 2}  # arguments of what goes round as often as its last one says
_TELLING = frozenset(("print", "append", "info", "log", "item", "write", "format", "round", "len"))
_PASSING_ON = frozenset(("enumerate", "zip", "tqdm", "trange", "iter", "reversed", "track"))
MOST_UNROLLED = 6  # items of a known list that a loop is written out for

Read = Callable[[Frame, list[ast.stmt]], Block]  # how the statements inside are read


def read_for(frame: Frame, node: ast.For | ast.AsyncFor, read: Read) -> None:
    """`for`: written out over a short list of things that train, else a loop."""
    if require_each(frame, node):
        return
    program = frame.program
    before = len(frame.out)
    handing = program.handing
    generated = isinstance(node.iter, ast.Call) and _is_generated(frame, node.iter)
    program.handing = handing or (generated and _works(node.body))
    source = evaluate(frame, node.iter)
    program.handing = handing
    # What it makes for itself, a meter or a network, is nothing to the loop.
    done = walk(frame.out[before:])
    acts = any(
        isinstance(each, Happening) or (isinstance(each, Haze) and not each.pauses) for each in done
    )
    if generated and not acts:
        frame.out[before:] = [each for each in done if isinstance(each, Reset)]
    items, open_ended = items_of(source)
    if frame.unit.mentions_gradient(node):  # of parameters, then, from who knows where
        items = [_without_outputs(item) for item in items]
    if not items and not open_ended and _stays_empty(frame, node):
        frame.out.extend(read(frame, node.orelse))
        return
    each_trains = bool(items) and frame.unit.mentions(node, ".backward(")
    if items and all(_is_one_param(item) for item in items) and not each_trains:
        # A loop over parameters does one thing to all of them.
        bind(frame, node.target, items[0])
        outside, program.outside = program.outside, program.conditional
        around, program.items = program.items, names_stored([node])
        picking = program.picking
        round_ = _rounds(frame, node.body, read)
        frame.out.extend(round_)
        program.outside, program.items, program.picking = outside, around, picking
        breaks = any(isinstance(each, ast.Break) for each in statements_in(node.body))
        breaks = breaks and not ends_where_lent(node.body)
        if breaks and any(map(_changes, walk(round_))):
            frame.emit(Haze(None, whole=True))  # at which of them it ends is not known
        return
    if len(items) > MOST_UNROLLED and all(isinstance(item, Leaf | Params) for item in items):
        # So does one over a long list of weights.
        bind(frame, node.target, Params(keys_of(Several(items)), one=True))
        frame.out.extend(read(frame, node.body))
        return
    if items and all(_is_group(item) for item in items):
        bind(frame, node.target, items[0])
        frame.out.extend(read(frame, node.body))
        return
    if _are_looked_up(frame, node.iter, items):
        frame.emit(Haze(None, whole=True))  # which of these are called for this key is not known
        return
    lasting = [item for item in items if type(item) is Bound or program.is_lasting(item, deep=True)]
    if len(items) > 1 and all(isinstance(item, Named) for item in items):
        works = frame.unit.has_events(node) or frame.unit.mentions(node, "parameters(")
        lasting = items if works else []  # one thing after another
    names = [item.value for item in items if isinstance(item, Constant)]
    alone = len(names) == 1 and isinstance(names[0], str)
    if items and len(names) == len(items) and (alone or _looks_up(frame, node)):
        lasting = items  # by each name in turn
    if lasting and not open_ended and len(items) <= MOST_UNROLLED:
        for item in items:
            bind(frame, node.target, item)
            frame.out.extend(_rounds(frame, node.body, read))
        return
    stored = names_stored([node])
    each_its_own = bool(lasting) and len(items) == 1
    shared = _shared(frame, node, stored) if each_its_own and open_ended else frozenset[str]()
    if (each_its_own and not shared) or has_its_own_each_turn(frame.unit, node, stored):
        # A list of unknown length: what is done to one is done to each.
        bind(frame, node.target, _typical(items))
        program.repeating += open_ended
        frame.out.extend(_rounds(frame, node.body, read))
        program.repeating -= open_ended
        return
    loop = Loop(node, frame.loop)
    loop.shared = shared
    program.note_loop(loop, frame, stored)
    frame.forget(stored)
    before = len(frame.out)
    _draw(frame, node.iter)
    bind(frame, node.target, _typical(items))
    loop.body, frame.out[before:] = frame.out[before:], []  # what each item brings with it
    _read_loop(frame, loop, node.body, node.orelse, read, once=_runs_once(frame, node.iter))
    if frame.out and frame.out[-1] is loop:  # else nothing comes of it
        loop.over = _written_out(frame, node.iter)
    if acts and _is_generated(frame, node.iter):
        loop.body.insert(0, Haze(None, whole=True))  # what it does between two items


def _shared(frame: Frame, loop: ast.For | ast.AsyncFor, stored: frozenset[str]) -> frozenset[str]:
    """Return the optimizers that step in each round, of a loop over others that have their own."""
    found = (peek(frame, each) for each in stepped_in_each_turn(frame.unit, loop, stored))
    return frozenset(each.key for each in found if isinstance(each, Optimizer))


def _without_outputs(item: Value) -> Value:
    """Return an item that is no output of a network, nor has one in it."""
    if type(item) is Several:
        return Several([_without_outputs(each) for each in item.items], item.open)
    return NOTHING if type(item) is Tensor and not item.copied else item


def _are_looked_up(frame: Frame, source: ast.expr, items: list[Value]) -> bool:
    """`for fn in hooks[event]: fn()`: functions that were kept under keys that cannot be told?"""
    called = [
        each
        for item in items
        for each in leaves_of(item)
        if isinstance(each, Bound)
        or (isinstance(each, Function) and each.unit.has_events(each.node))
    ]
    return len(called) > 1 and any(
        isinstance(each, ast.Subscript)
        and isinstance(kept := peek(frame, each.value), Several)
        and kept.open
        for each in frame.unit.parts_of(source)
    )


def _draw(frame: Frame, source: ast.expr) -> None:
    """Follow what a loop calls for each item, where it goes over an object of the project."""
    if isinstance(source, ast.Call):
        if isinstance(source.func, ast.Name) and source.func.id in _PASSING_ON:
            for each in source.args:
                _draw(frame, each)
        return
    owner = peek(frame, source)
    if type(owner) is not Instance:
        return
    if frame.program.implied(owner, "__iter__") is not None:
        frame.emit(Haze(None, whole=True))  # a generator: what it does between two items
    elif implied(frame, source, owner, "__next__") is None:
        implied(frame, source, owner, "__getitem__")


def _looks_up(frame: Frame, loop: ast.For | ast.AsyncFor) -> bool:
    """`for name in names: opts[name].zero_grad()`: are optimizers or networks asked for by it?"""
    if not isinstance(loop.target, ast.Name) or not frame.unit.has_events(loop):
        return False
    return any(
        isinstance(each, ast.Subscript)
        and isinstance(each.slice, ast.Name)
        and each.slice.id == loop.target.id
        and isinstance(kept := peek(frame, each.value), Mapping)
        and any(isinstance(one, Optimizer | Module | Instance) for one in kept.items.values())
        for each in frame.unit.parts_of(loop)
    )


def _stays_empty(frame: Frame, loop: ast.For | ast.AsyncFor) -> bool:
    """Is it a list that is made empty, and that nothing else is done with than to loop over it?

    One that stands for data which is not there, in an example, is not meant to be empty.
    """
    over = loop.iter
    if not isinstance(over, ast.Name) or frame.unit.mentions(loop, "backward"):
        return False
    around = frame.node if isinstance(frame.node, FunctionNode) else frame.unit.source.tree
    parts = frame.unit.parts_of(around)
    made = [
        each
        for each in parts
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.List)
        and path_of(each.targets[0]) == over.id
    ]
    looped = [id(each.iter) for each in parts if isinstance(each, ast.For)]
    named = [each for each in parts if isinstance(each, ast.Name) and each.id == over.id]
    others = [each for each in named if id(each) not in looped]
    return len(made) == 1 and others == made[0].targets


def _written_out(frame: Frame, over: ast.expr) -> ast.expr:
    """Return what a name stands for, if it is given nothing else: `bar = tqdm(enumerate(data))`."""
    if type(over) is not ast.Name:
        return over
    around = frame.node if isinstance(frame.node, FunctionNode) else frame.unit.source.tree
    body = around.body
    stored = [each for each in targets(body) if isinstance(each, ast.Name) and each.id == over.id]
    given = [
        each.value
        for each in statements_in(body)
        if isinstance(each, ast.Assign) and any(one in stored for one in each.targets)
    ]
    same = {ast.dump(each) for each in given}
    return given[0] if len(same) == 1 and len(given) == len(stored) else over


def _typical(items: list[Value]) -> Value:
    """Return the item that a loop is read for: of its phases training, of other constants none."""
    if not items:
        return NOTHING
    training = next((item for item in items if _names_training(item)), None)
    if training is not None:
        return training
    if all(isinstance(item, Several) for item in items):
        rows = [item.items for item in items if isinstance(item, Several)]
        if len({len(row) for row in rows}) == 1:
            return Several([_typical(list(column)) for column in zip(*rows, strict=True)])
    differ = len(items) > 1 and any(item.ident != items[0].ident for item in items[1:])
    return NOTHING if differ and isinstance(items[0], Constant) else items[0]


def _names_training(item: Value) -> bool:
    if isinstance(item, Several):
        return any(map(_names_training, item.items))
    return isinstance(item, Constant) and isinstance(item.value, str) and "train" in item.value


def _changes(node: Node) -> bool:
    """Is a gradient filled, used or cleared there, and not only looked at?"""
    if isinstance(node, Happening):
        return node.kind is not EventKind.TOUCH
    return isinstance(node, Haze | Reset)


def _is_generated(frame: Frame, source: ast.expr) -> bool:
    """Do the items come from a generator of the project?"""
    parts = frame.unit.parts_of(source)
    made = (peek(frame, each.func) for each in parts if type(each) is ast.Call)
    return any(
        isinstance(each, Function)
        and each.unit.mentions(each.node, "yield")
        and any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in parts_below(each.node))
        for each in made
    )


def _works(body: list[ast.stmt]) -> bool:
    """Is more done with each item than to tell of it?"""
    calls = [each.func for part in body for each in parts_below(part) if isinstance(each, ast.Call)]
    return not all(path_of(each).rsplit(".", 1)[-1] in _TELLING for each in calls)


def _is_group(item: Value) -> bool:
    """Is it one of an optimizer's groups? A loop over them does one thing to all parameters."""
    return isinstance(item, Mapping) and isinstance(item.items.get("params"), Params)


def _is_one_param(item: Value) -> bool:
    if isinstance(item, Several) and item.items:
        return any(isinstance(each, Params) and each.one for each in item.items)
    return isinstance(item, Params) and item.one


def _rounds(frame: Frame, body: list[ast.stmt], read: Read) -> Block:
    """Return one written-out round of a loop; its break and continue end that round only."""
    block = read(frame, body)
    if not block or not _jumps(body):
        return block
    loop = Loop(None, frame.loop)
    loop.body = [*block, BREAK]
    loop.endless = loop.once = True
    return [loop]


def _jumps(body: list[ast.stmt]) -> bool:
    return any(isinstance(each, (ast.Break, ast.Continue)) for each in statements_in(body))


def _runs_once(frame: Frame, source: ast.expr) -> bool:
    """Is it `range(1)`, or in another loop `range(D_STEPS)` with a constant that is 1?

    A method that trains on one batch is called in a loop; what it counts to is a setting of its
    object. Epochs are no such setting: who tries a script out counts to one.
    """
    if isinstance(source, ast.List | ast.Tuple):  # `for batch in [batches[0]]:`
        return len(source.elts) == 1 and not isinstance(source.elts[0], ast.Starred)
    if not isinstance(source, ast.Call) or _COUNTED.get(plain_name(source)) != len(source.args):
        return False
    times = source.args[-1]
    if isinstance(times, ast.Constant):
        return times.value == 1
    setting = isinstance(times, ast.Attribute) and "epoch" not in times.attr.lower()
    inside = frame.loop is not None or (setting and frame.self_value is not None)
    known = peek(frame, times) if inside else NOTHING
    return isinstance(known, Constant) and known.value == 1 and known.value is not True


def _read_loop(
    frame: Frame,
    loop: Loop,
    body: list[ast.stmt],
    orelse: list[ast.stmt],
    read: Read,
    once: bool = False,
) -> None:
    outer = frame.loop
    frame.loop = outer if once else loop
    frame.program.repeating += not once
    before = dict(frame.locals)
    held = Leaf in set(map(type, before.values()))
    leaves = [(name, each) for name, each in before.items() if type(each) is Leaf] if held else []
    values = before.values() if leaves else ()
    lists = [(each, list(each.items)) for each in values if isinstance(each, Several)]
    block = read(frame, body)
    carried = {name for name, leaf in leaves if _is_carried(leaf, frame.locals[name])}
    if carried:
        for kept, items in lists:
            kept.items[:] = items
        frame.go_on_with({**before, **dict.fromkeys(carried, NOTHING)})
        block = read(frame, body)
    loop.body.extend(block)
    frame.loop = outer
    frame.program.repeating -= not once
    for name in [name for name, value in frame.locals.items() if value is NOTHING]:
        if name in before:
            frame.locals[name] = before[name]
    loop.otherwise = read(frame, orelse)
    if once:
        loop.body.append(BREAK)
        loop.endless = loop.once = True
    if has_effect([loop]) or any(node is RETURN for node in walk([loop])):
        frame.emit(loop)


def _is_carried(first: Leaf, after: Value) -> bool:
    """`w = w - net(w)`: is it a leaf in the first round only, and computed in all others?"""
    return type(after) is Tensor and bool(after.deps - {first.key})


def read_while(frame: Frame, node: ast.While, read: Read) -> None:
    """`while`."""
    loop = Loop(node, frame.loop)
    stored = names_stored(node.body)
    frame.program.note_loop(loop, frame, stored)
    frame.forget(stored)
    test = test_of(frame, node.test)
    if test.kind == "never" and isinstance(node.test, ast.Constant):
        frame.out.extend(read(frame, node.orelse))
        return
    # `while not env.done`: whatever it is now, a method called in the loop may change it
    asked = parts_below(node.test)
    loop.endless = test.kind == "always" and not any(isinstance(e, ast.Attribute) for e in asked)
    if frame.unit.mentions(node.test, "("):
        evaluate_parts(frame, node.test)
    _read_loop(frame, loop, node.body, node.orelse, read)
