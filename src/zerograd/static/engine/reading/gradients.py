"""Gradients by hand: what is done to some `.grad` itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import Haze
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import (
    Constant,
    Gradient,
    Leaf,
    Named,
    Params,
    Successor,
    Tensor,
    Value,
)
from zerograd.static.engine.reading.emit import emit, is_false, is_lacking, is_part
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in

_CLEARED = re.compile(r"\.grad = None|zero_grad\(")
_OVERWRITES = frozenset(("copy_", "fill_", "normal_", "random_", "set_", "uniform_"))
_SHARES = frozenset(("detach", "numpy", "view", "flatten", "ravel"))  # the same memory


def gradient_method(
    frame: Frame, node: ast.Call, gradient: Gradient, name: str, arguments: Arguments
) -> Value:
    """A method of some `.grad`."""
    wipes = name == "zero_" or (name in ("fill_", "mul_") and is_false(arguments.first()))
    adds = name.startswith("add")
    inside_torch = isinstance(gradient.of, Named) and not frame.program.is_trained(gradient.of)
    if inside_torch and not wipes:
        if adds or name in _OVERWRITES:  # given by hand to somebody
            emit(frame, EventKind.ASSIGN, node, keys=keys_of(gradient.of))
        return gradient
    touch(frame, node, gradient)
    if name == "copy_" and node.args and is_made_of_itself(frame, gradient.of, node.args[0]):
        frame.emit(Haze(keys_of(gradient.of), whole=True, spent=True, empty=True))
    elif name in _OVERWRITES and not wipes:
        emit(frame, EventKind.ASSIGN, node, keys=keys_of(gradient.of))
    elif adds:
        # Filled by hand: what a backward has put there, and no step has used, is there still.
        frame.emit(Haze(keys_of(gradient.of), whole=False, spent=True, empty=True))
    elif name in ("mul_", "div_") and not wipes:
        by_hand = any(holds_the_scale(frame, each) for each in node.args)
        frame.emit(Haze(keys_of(gradient.of), whole=True, spent=not by_hand))
    elif name in ("clamp_", "clip_") and isinstance(gradient.of, Params):
        emit(frame, EventKind.CLIP, node, keys=keys_of(gradient.of))
    if wipes:
        written = path_of(node.func)
        _wipe(frame, node, gradient, written.rsplit(".", 2)[0] if written else "")
    if name in ("clone", "detach", "item", "cpu", "numpy") or name.startswith("new"):
        return Tensor()  # p.grad.new(8).zero_() wipes what is made like it
    return gradient


def wipe_shared(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> None:
    """`p.grad.detach().zero_()`, `p.grad.numpy().fill(0)`: what shares its memory is wiped."""
    made = node.func.value if isinstance(node.func, ast.Attribute) else None
    wipes = name == "zero_" or (name in ("fill_", "fill", "mul_") and is_false(arguments.first()))
    if not wipes or not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return
    gradient = _peeked(frame, made.func.value) if made.func.attr in _SHARES else None
    if isinstance(gradient, Gradient):
        _wipe(frame, node, gradient, path_of(made.func.value).rsplit(".", 1)[0])


def wipe_handed(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> bool:
    """`torch.zero_(p.grad)`, `nn.init.constant_(p.grad, 0)`: a function wipes what it is handed."""
    given = arguments.first()
    to = arguments.get("val", 1)
    wipes = name in ("zero_", "zeros_") or (name in ("constant_", "fill_") and to and is_false(to))
    if not wipes or not isinstance(given, Gradient) or not node.args:
        return False
    touch(frame, node, given)
    _wipe(frame, node, given, path_of(node.args[0]).rsplit(".", 1)[0])
    return True


def _wipe(frame: Frame, node: ast.AST, gradient: Gradient, name: str) -> None:
    if isinstance(gradient.of, Tensor) and gradient.of.copied:
        return  # of a copy of parameters, which has none
    wipe_unknown(frame, gradient.of)
    emit(
        frame,
        EventKind.CLEAR,
        node,
        keys=keys_of(gradient.of),
        some=is_part(gradient),
        lacks=is_lacking(gradient),
        name=name,
        to_none=False,
    )


def write_into(frame: Frame, target: ast.Subscript, gradient: Gradient, value: Value) -> None:
    """`x.grad[:] = 0` clears, `x.grad[:] = g` gives it by hand; what is in a part of it stays."""
    if not _is_whole(target.slice):
        if is_false(value):
            _wipe_part(frame, gradient)
    elif is_false(value):
        _wipe(frame, target, gradient, path_of(target.value).split(".grad", 1)[0])
    else:
        frame.emit(Haze(keys_of(gradient.of), whole=True))


def wipe_item(frame: Frame, item: ast.Subscript) -> None:
    """`x.grad.data[:, :i].fill_(0)`: a part of it is wiped by a method."""
    gradient = _peeked(frame, item.value)
    if isinstance(gradient, Gradient):
        _wipe_part(frame, gradient)


def _peeked(frame: Frame, node: ast.expr) -> Value:
    program = frame.program
    before, program.peeking = program.peeking, True
    value = program.evaluate(frame, node)
    program.peeking = before
    return value


def _wipe_part(frame: Frame, gradient: Gradient) -> None:
    """What is left of an input's gradient may be this round's alone."""
    if isinstance(gradient.of, Leaf):
        frame.emit(Haze(keys_of(gradient.of), whole=True))


def _is_whole(index: ast.expr) -> bool:
    """Is it `[:]` or `[...]`?"""
    if isinstance(index, ast.Slice):
        return index.lower is None and index.upper is None and index.step is None
    return isinstance(index, ast.Constant) and index.value is ...


def holds_the_scale(frame: Frame, node: ast.expr | ast.keyword) -> bool:
    """Is a scaler's factor in it, `scaler.get_scale()`, or a name that was given one?"""
    if "get_scale" not in frame.unit.source.text:
        return False  # most files
    parts = parts_below(node)
    if any(isinstance(each, ast.Attribute) and each.attr == "get_scale" for each in parts):
        return True
    names = {each.id for each in parts if isinstance(each, ast.Name)}
    body = frame.node.body if isinstance(frame.node, FunctionNode) else frame.unit.source.tree.body
    return any(
        isinstance(each, ast.Assign)
        and any(isinstance(to, ast.Name) and to.id in names for to in each.targets)
        and "get_scale" in frame.unit.text_of(each)
        for each in statements_in(body)
    )


def is_made_of_itself(frame: Frame, owner: Value, right: ast.expr) -> bool:
    """`p.grad = p.grad / n`: is the new gradient computed from the old one?"""
    own = keys_of(owner)
    program = frame.program
    before, program.peeking = program.peeking, True
    found = False
    for each in _computed_from(frame, owner, right):
        if isinstance(each, ast.Name):
            value = frame.lookup(each.id)
        elif isinstance(each, ast.Attribute) and each.attr == "grad":
            value = program.evaluate(frame, each)
        else:
            continue
        if isinstance(value, Gradient) and not own.isdisjoint(keys_of(value)):
            found = True
            break
    program.peeking = before
    return found


def _computed_from(frame: Frame, owner: Value, right: ast.expr) -> Iterator[ast.AST]:
    """Yield the parts of an expression, and of what its names were given for this parameter."""
    found = [right]
    known: set[str] = set()
    for expression in found:  # it grows as it is read
        for each in parts_below(expression):
            yield each
            if isinstance(each, ast.Name) and each.id not in known:
                known.add(each.id)
                if isinstance(owner, Params) and owner.one:
                    found += _given(frame, each.id, right.lineno)


def _given(frame: Frame, name: str, line: int) -> list[ast.expr]:
    """Return what a loop over parameters gives a name before a line, for each of them anew."""
    around = [
        each
        for each in frame.unit.statements()
        if isinstance(each, ast.For) and each.lineno < line <= (each.end_lineno or 0)
    ]
    loop = max(around, key=lambda each: each.lineno, default=None)
    return [
        each.value
        for each in statements_in(loop.body if loop is not None else [])
        if isinstance(each, ast.Assign)
        and each.lineno < line
        and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
    ]


def sets_gradient(arguments: Arguments) -> bool:
    """Are these the arguments of `setattr(p, "grad", …)`?"""
    name = arguments.positional[1] if len(arguments.positional) == 3 else None
    return isinstance(name, Constant) and name.value == "grad"


def set_gradient(frame: Frame, node: ast.Call, arguments: Arguments) -> None:
    """`setattr(p, "grad", …)`: None clears, all else is given by hand."""
    owner, given = arguments.first(), arguments.positional[2]
    if isinstance(given, Constant) and given.value is None:
        wipe_unknown(frame, owner)
        emit(frame, EventKind.CLEAR, node, keys=keys_of(owner), to_none=True)
    else:
        frame.emit(Haze(keys_of(owner) or None, whole=True))


def wipe_unknown(frame: Frame, owner: Value) -> None:
    """A clear by hand of something that only has a name: it may be part of anything."""
    if isinstance(owner, Named) and not frame.program.is_network(owner.path):
        frame.emit(Haze(None, whole=True))


def touch(frame: Frame, node: ast.AST, gradient: Gradient, name: str = "") -> None:
    """`.grad` used as a tensor: it must be there."""
    program = frame.program
    owner = gradient.of
    known = isinstance(owner, Params | Leaf | Instance | Successor)
    if program.guarded or program.peeking or not known:
        return
    if isinstance(owner, Params) and owner.filled:
        return
    if isinstance(owner, Instance) and program.has_attribute(owner, "grad"):
        return  # an object that keeps a gradient of its own making
    written = path_of(node.func if isinstance(node, ast.Call) else node)
    taken = "" if name or ".grad" in written else written.split(".", 1)[0]
    if taken and not _is_taken_as_it_is(frame, taken):
        return
    name = name or taken or written.split(".grad", 1)[0]
    keys = frozenset((owner.key,)) if isinstance(owner, Successor) else keys_of(owner)
    emit(frame, EventKind.TOUCH, node, keys=keys, name=name)


def _is_taken_as_it_is(frame: Frame, name: str) -> bool:
    """Is a name given some `.grad` in this function, which nothing clears after that?

    It keeps what its place has lost, and one of several was there when it was taken out.
    """
    unit = frame.unit
    text = unit.text_of(frame.node) if frame.node is not None else unit.source.text
    found = re.search(rf"\b{re.escape(name)} = [\w.]+\.grad$", text, re.M)
    return found is not None and not _CLEARED.search(text, found.end())
