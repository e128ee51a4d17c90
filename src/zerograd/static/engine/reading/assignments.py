"""Assignments: what variables come to hold, and gradients given or updated by hand."""

from __future__ import annotations

import ast
import re

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import (
    Haze,
    Made,
    Reset,
)
from zerograd.static.engine.identity.keepers import keep, take_parameters
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import (
    MADE,
    NOTHING,
    UNSEEN,
    Bound,
    Constant,
    Gradient,
    Leaf,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Successor,
    Tensor,
    Value,
    apart,
)
from zerograd.static.engine.reading.binding import bind
from zerograd.static.engine.reading.emit import emit, is_false
from zerograd.static.engine.reading.expressions import evaluate
from zerograd.static.engine.reading.given import assign_gradient, peek
from zerograd.static.engine.reading.gradients import holds_the_scale, touch
from zerograd.static.engine.reading.training import clear
from zerograd.static.engine.reading.updates import perturbs, put_back, uses_gradient
from zerograd.static.engine.text.words import (
    is_called_a_network,
    is_network_name,
    is_optimizer_name,
    words_of,
)

_COMPUTING = frozenset[type[ast.AST]]((ast.Call, ast.BinOp, ast.UnaryOp))


def assign(frame: Frame, node: ast.Assign) -> None:
    """`target = value`, with as many targets as there are."""
    value = evaluate(frame, node.value)
    if frame.no_grad and type(value) is Tensor and type(node.value) in _COMPUTING:
        value = Tensor()  # whatever it is computed from, nothing goes back through it
    if type(node.value) is not ast.Call:
        if _makes_networks(frame, node, value):
            value = MADE
        if type(node.value) is ast.Name:
            _become_part(frame, node.targets[0], node.value.id, value)
        for target in node.targets:
            _store(frame, node, target, value, node.value)
        return
    if _makes_a_network(frame, node, node.value, value):
        value = MADE
    unseen = value in UNSEEN
    if unseen or isinstance(value, Tensor):
        for target in node.targets:
            if not is_optimizer_name(path_of(target)):
                break  # most names
        else:
            value = _optimizer_over(frame, node.value) or value
            unseen = value in UNSEEN
    made = unseen or isinstance(value, Module)
    anew = _is_made_anew(frame, value, node.value)
    for target in node.targets:
        if not _stays(frame, target, value, node.value):
            before = _networks_of(frame, target) if anew else frozenset[str]()
            _store(frame, node, target, value, node.value)
            if made and (node.value.args or node.value.keywords) and path_of(target):
                _derive(frame, target, node.value)
            if anew:
                for key in _networks_of(frame, target):
                    frame.emit(Made(key, before=before | {key}, unit=frame.unit, node=node))


def _is_made_anew(frame: Frame, value: Value, made: ast.Call) -> bool:
    """Is it a network of its own that no other one is part of, made just here?"""
    program = frame.program
    if value is MADE:
        return path_of(made.func).rsplit(".", 1)[-1][:1].isupper()
    if isinstance(value, Instance) and not program.is_module(value.cls):
        return False
    return isinstance(value, Module | Instance) and program.is_new(value)


def _networks_of(frame: Frame, target: ast.expr) -> frozenset[str]:
    """Return the networks that a name or an attribute stands for now."""
    if isinstance(target, ast.Name) and target.id not in frame.locals:
        return frozenset()  # none yet: what has that name outside is another
    value = peek(frame, target) if isinstance(target, ast.Name | ast.Attribute) else NOTHING
    return keys_of(value) if isinstance(value, Named | Module | Instance) else frozenset()


def _become_part(frame: Frame, target: ast.expr, name: str, value: Value) -> None:
    """`self.net = net` where a network is made: from then on both are names of its part.

    Else an optimizer that is made here over `net.parameters()` would hold another one.
    """
    if type(target) is not ast.Attribute or not isinstance(value, Named | Module):
        return
    owner = peek(frame, target.value)
    if not isinstance(owner, Instance) or not frame.program.is_module(owner.cls):
        return
    if name in frame.unit.receivers.with_parameters:
        bind(frame, target, value)
        part = frame.program.attribute(frame, owner, target.attr)
        frame.locals[name] = part if isinstance(part, Module) else value


def _derive(frame: Frame, target: ast.expr, made: ast.Call) -> None:
    """`parallel = wrap(model)`: what an unseen call makes from a network may be that network."""
    given = peek(frame, target)
    if not isinstance(given, (Named, Module)):
        return
    if isinstance(given, Named):
        take_parameters(frame, given, made)
    things = [each for each in made.args if path_of(each)]
    words = [each.value for each in made.keywords if path_of(each.value)]
    if not things and not words:
        return  # made of nothing that has a name
    handed = [peek(frame, each) for each in things]
    if isinstance(given, Named):
        keep(frame, given, made, [*handed, *(peek(frame, each) for each in words)])
    networks = [each for each in handed if isinstance(each, (Named, Module, Instance))]
    keys = frozenset(
        key for each in networks for key in keys_of(each) if frame.program.is_network(key)
    )
    if keys:
        path = given.path if isinstance(given, Named) else given.key
        frame.program.derive(path, keys)


def _makes_a_network(frame: Frame, node: ast.Assign, made: ast.Call, value: Value) -> bool:
    """`net = resnet(…)`: what an unseen function gives, by its name or by what it is asked for."""
    if not isinstance(value, Tensor):
        return False
    called = path_of(made.func)
    if value.deps != {called} or value.leaves or not isinstance(peek(frame, made.func), Named):
        return False
    given = [path_of(target) for target in node.targets]
    if all(frame.asks_parameters_of(path) for path in given):
        return not frame.asks_parameters_of(called)
    return not is_network_name(called) and all(map(is_called_a_network, given))


def _makes_networks(frame: Frame, node: ast.Assign, value: Value) -> bool:
    """`nets = [make() for _ in range(5)]`: does an unseen function give each of them?"""
    made = node.value.elt if type(node.value) is ast.ListComp else None
    if type(made) is not ast.Call or not isinstance(value, Several) or not value.open:
        return False
    if len(value.items) == 1 and value.items[0] in UNSEEN:
        return all(is_called_a_network(path_of(target)) for target in node.targets)
    return len(value.items) == 1 and _makes_a_network(frame, node, made, value.items[0])


def _optimizer_over(frame: Frame, made: ast.Call) -> Optimizer | None:
    """`opt_d = instantiate(config, params=net_d.parameters())`: by its name, and what it holds."""
    handed = [*made.args, *(each.value for each in made.keywords)]
    held = [each for each in (peek(frame, one) for one in handed) if isinstance(each, Params)]
    return frame.program.new_optimizer(Several([*held])) if held else None


def _stays(frame: Frame, target: ast.expr, value: Value, right: ast.Call) -> bool:
    """`model = wrap(model)`: what an unseen call gives back for a network is that network.

    A function stays itself as well: `update = CudaGraphModule(update)` runs it.
    """
    if type(target) is ast.Tuple and not isinstance(value, Several):
        return all(_stays(frame, each, value, right) for each in target.elts)
    unseen = value in UNSEEN or (isinstance(value, Tensor) and not value.sure)
    path = path_of(target) if unseen and right.args else ""
    if not path or path not in map(path_of, right.args):
        return False
    current = peek(frame, target)
    if isinstance(current, Named):
        return not words_of(path) or "loss" not in words_of(path)
    return isinstance(current, Function) or frame.program.is_lasting(current)


def assign_annotated(frame: Frame, node: ast.AnnAssign) -> None:
    """`target: kind = value`."""
    if node.value is not None:
        _store(frame, node, node.target, evaluate(frame, node.value), node.value)


def _store(frame: Frame, node: ast.stmt, target: ast.expr, value: Value, right: ast.expr) -> None:
    if type(target) is ast.Attribute:
        if target.attr in ("grad", "_grad"):
            assign_gradient(frame, target, value, right)
            return
        if target.attr == "requires_grad":
            _assign_requirement(frame, target, value)
            return
        if target.attr == "step":
            _assign_step(frame, target, value)
        of_gradient = isinstance(target.value, ast.Attribute) and target.value.attr == "grad"
        if target.attr == "data" and not of_gradient:
            put_back(frame, peek(frame, target.value), target.value, [right])
            if _uses_gradient(frame, right, target.value):
                _update_by_hand(frame, node, target.value)
            return
        if target.attr == "data":
            if not frame.unit.mentions_gradient(right):
                assign_gradient(frame, target.value, value, right)
            return
    elif type(target) is ast.Name and frame.unit.mentions_gradient(right):
        current = frame.lookup(target.id)
        if isinstance(current, Leaf) and not isinstance(value, Leaf):
            # x = x + eps * x.grad: what comes out is a new tensor without a gradient
            frame.assign(target.id, _successor(frame, current, target.id))
            return
    bind(frame, target, value)


def _successor(frame: Frame, leaf: Leaf, name: str) -> Tensor:
    """Return the new tensor; nothing is said of one that is told to require a gradient itself."""
    if re.search(rf"\b{name}\.(?:requires_grad|retain_grad)", frame.unit.source.text):
        return Tensor()
    successor = Successor(f"{leaf.key}'")
    frame.emit(Reset(frozenset((leaf.key, successor.key))))  # the leaf itself is left behind
    return successor


def _assign_step(frame: Frame, target: ast.Attribute, value: Value) -> None:
    """`opt.step = own_step`: what stands in for a step may clear as well, if it is not seen."""
    optimizer = peek(frame, target.value)
    if isinstance(optimizer, Named) and is_optimizer_name(optimizer.path):
        optimizer = frame.program.named_optimizer(optimizer.path)
    seen = isinstance(value, Function) and not value.unit.mentions(value.node, "grad")
    itself = isinstance(value, Bound) and value.of is optimizer  # torch.compile(opt.step)
    if isinstance(optimizer, Optimizer) and not seen and not itself:
        optimizer.clears_itself = True


def _assign_requirement(frame: Frame, target: ast.Attribute, value: Value) -> None:
    """`x.requires_grad = True` makes a leaf; on parameters it thaws or freezes."""
    owner = evaluate(frame, target.value)
    if isinstance(owner, Params | Module | Instance):
        frame.program.freeze(owner, is_false(value))
    elif isinstance(target.value, ast.Name) and not is_false(value) and not isinstance(owner, Leaf):
        frame.program.required(frame, target.value.id)
    elif isinstance(owner, Tensor) and not is_false(value):  # `self.log_alpha.requires_grad = True`
        bind(frame, target.value, frame.program.new_leaf())


def assign_augmented(frame: Frame, node: ast.AugAssign) -> None:
    """`target += value` and its kin."""
    target = node.target
    owner = _whose_gradient(frame, target)
    if owner is not None:
        value = evaluate(frame, node.value)
        touch(frame, target, Gradient(owner))
        if isinstance(node.op, ast.Add):
            # Filled by hand: what a backward has put there, and no step has used, is there still.
            frame.emit(Haze(keys_of(owner), whole=False, spent=True, empty=True))
        if isinstance(node.op, ast.Mult | ast.Div) and not is_false(value):
            by_hand = holds_the_scale(frame, node.value)
            frame.emit(Haze(keys_of(owner), whole=True, spent=not by_hand))
        if isinstance(node.op, ast.Mult) and is_false(value):
            clear(frame, target, owner, Arguments([NOTHING, Constant(False)], {}))
        return
    holder = target.value if isinstance(target, ast.Attribute) else target
    if _uses_gradient(frame, node.value, holder):
        named = isinstance(target, ast.Attribute) and target.attr != "data"
        if named and isinstance(peek(frame, holder), Module):
            holder = target  # `layer.weight -= …` updates that part and no more
        if _update_by_hand(frame, node, holder):
            return
    value = evaluate(frame, node.value)
    if isinstance(target, ast.Name):
        current = frame.lookup(target.id)
        if isinstance(current, Several) and isinstance(node.op, ast.Add):
            more = value.items if isinstance(value, Several) else [value]
            current.items.extend([apart(each, current) for each in more])
            return
        if isinstance(current, Params) and isinstance(node.op, ast.Add):
            frame.assign(target.id, Params(current.keys | keys_of(value)))
            return
        if isinstance(node.op, ast.Div | ast.Mult) and isinstance(current, Tensor):
            divided = Arguments([current], {}).computed()
            assert isinstance(divided, Tensor)
            divided.averaged = True
            frame.assign(target.id, divided)
            return
        if isinstance(current, Leaf):
            return  # in place: still the same leaf
        result = Arguments([current, value], {}).computed()
        frame.assign(target.id, result if isinstance(result, Tensor) else NOTHING)
        if result is NOTHING and isinstance(current, Named | Optimizer | Module):
            frame.assign(target.id, current)


def _whose_gradient(frame: Frame, target: ast.expr) -> Value | None:
    """Return whose gradient is changed in place: `p.grad`, `p.grad.data`, `p.grad[rows]`, `g`."""
    while isinstance(target, ast.Subscript) or (
        isinstance(target, ast.Attribute) and target.attr == "data"
    ):
        target = target.value
    if isinstance(target, ast.Attribute) and target.attr == "grad":
        return peek(frame, target.value)
    held = frame.lookup(target.id) if isinstance(target, ast.Name) else None
    return held.of if isinstance(held, Gradient) else None


def _uses_gradient(frame: Frame, right: ast.expr, holder: ast.expr) -> bool:
    return uses_gradient(frame, right, holder, peek(frame, holder))


def _update_by_hand(frame: Frame, node: ast.stmt, holder: ast.expr) -> bool:
    """`w -= lr * w.grad`: the update of weights that no optimizer holds."""
    owner = peek(frame, holder)
    if isinstance(owner, Gradient):
        owner = owner.of
    if not isinstance(owner, Params | Module | Leaf):
        return False
    if not isinstance(owner, Module):
        touch(frame, node, Gradient(owner), path_of(holder))
    if perturbs(frame, node, owner):
        return True
    emit(
        frame,
        EventKind.STEP,
        node,
        optimizer=frame.program.by_hand(keys_of(owner)),
        name=path_of(holder),
        leaf=isinstance(owner, Leaf),
    )
    return True
