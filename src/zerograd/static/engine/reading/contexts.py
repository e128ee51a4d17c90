"""`with`: what a context manager does before its block and after it.

A manager of the project is followed: a class by its `__enter__` and `__exit__`, a generator
under `@contextmanager` by what stands before and after its `yield`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import (
    PAUSE,
    RETURN,
    Attempt,
    Block,
    Branch,
    Haze,
    Loop,
    Node,
    Scope,
    has_effect,
    walk,
)
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import NOTHING, Several, Tensor, Value
from zerograd.static.engine.reading.binding import bind
from zerograd.static.engine.reading.emit import emit
from zerograd.static.engine.reading.expressions import evaluate
from zerograd.static.engine.reading.given import peek
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import words_of

# what a test puts around statements that must fail
_RAISING = frozenset(("raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp"))

Read = Callable[[Frame], Block]  # reads the statements of the block


def read_with(frame: Frame, node: ast.With | ast.AsyncWith, read: Read) -> None:
    no_grad, accumulating = frame.no_grad, frame.accumulating
    frame.out.extend(_opened(frame, node.items, read))
    frame.no_grad, frame.accumulating = no_grad, accumulating


def _opened(frame: Frame, items: list[ast.withitem], read: Read) -> Block:
    """Return the nodes of the managers that are left, around those of the block."""
    if not items:
        return read(frame)
    item, rest = items[0], items[1:]
    outer, frame.out = frame.out, []
    calls = [each for each in parts_below(item.context_expr) if type(each) is ast.Call]
    frame.program.opened.update(map(id, calls))
    value = evaluate(frame, item.context_expr)
    entered = _call(frame, item.context_expr, value, "__enter__")
    if not isinstance(value, Instance) and not any(each is PAUSE for each in walk(frame.out)):
        frame.out.extend(_handed(frame, item.context_expr))
    before, frame.out = frame.out, outer
    scale = scale_of(item.context_expr)
    if item.optional_vars is not None:
        value_inside = value if entered is NOTHING else entered
        if scale and isinstance(value, Tensor):
            value_inside = value.with_scaler(scale)
        bind(frame, item.optional_vars, value_inside)
    if _forgets(item.context_expr):
        _opened(frame, rest, read)  # for the names it binds and the methods it forgets to call
        return before
    if _name(item.context_expr) in _RAISING:
        inner = _opened(frame, rest, read)  # where in there it raises is not known
        return [*before, Haze(None, whole=True)] if has_effect(inner) else before
    _switch(frame, item.context_expr)
    inner = _opened(frame, rest, read)
    outer, frame.out = frame.out, []
    _call(frame, item.context_expr, value, "__exit__")
    if scale:
        emit(frame, EventKind.UNSCALE, item.context_expr, keys=None, scaler=scale)
    after, frame.out = frame.out, outer
    if after:
        inner = [Attempt(inner, [], [], after)]
    if any(each is PAUSE for each in walk(before)):
        return _filled(before, inner)
    return [*before, *inner]


def scale_of(node: ast.expr) -> str:
    """Return a key for the scale that apex's `scale_loss(loss, opt)` takes out at its end."""
    if _name(node) != "scale_loss" or not isinstance(node, ast.Call) or len(node.args) < 2:
        return ""
    # With `delay_unscale` the gradients of a window stay scaled until its last loss.
    return "" if node.keywords else f"{path_of(node.func)}(…)"


def _call(frame: Frame, node: ast.expr, value: Value, name: str) -> Value:
    """Follow a method that `with` calls, if the manager is an object of the project."""
    method = frame.program.method(value, name) if isinstance(value, Instance) else None
    if method is None:
        return NOTHING
    return frame.program.invoke(frame, node, method, Arguments.of_nobody())


def _handed(frame: Frame, node: ast.expr) -> Block:
    """A manager that is not seen, and is handed an optimizer, may clear as it is entered.

    apex is handed one for the scale of the loss.
    """
    if "scale" in words_of(_name(node)):
        return []
    given = [peek(frame, each) for each in node.args] if isinstance(node, ast.Call) else []
    optimizers = Arguments(given, {}).optimizers()
    if optimizers:
        return [Haze(keys_of(Several(optimizers)), whole=True)]
    acting = any(isinstance(each, Instance) and _may_clear(each) for each in given)
    return [Haze(None, whole=True)] if acting else []  # closing(Cleaner(optimizer))


def _may_clear(instance: Instance) -> bool:
    cls = instance.cls
    return cls.unit.mentions(cls.node, "zero_grad")


def _forgets(node: ast.expr) -> bool:
    """Distributed autograd keeps gradients in its context and forgets them at its end."""
    return _name(node) == "context" and "autograd" in ast.dump(node)


def _switch(frame: Frame, node: ast.expr) -> None:
    """What torch's and Accelerate's own managers mean for the statements inside."""
    name = _name(node)
    if name in ("no_grad", "inference_mode"):
        frame.no_grad = True
    elif name == "enable_grad":
        frame.no_grad = False
    elif name == "accumulate" and frame.program.accumulates(frame, node):
        frame.accumulating = True


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return path_of(node).rsplit(".", 1)[-1]


def _filled(block: Block, inner: Block) -> Block:
    """Return a generator's nodes with the block put where it pauses.

    What follows the pause is done however the block is left, short of an exception.
    """
    for place, node in enumerate(block):
        if node is PAUSE:
            after = block[place + 1 :]
            body: Block = [Attempt(inner, [], [], after)] if has_effect(after) else inner
            return [*block[:place], *body]
        if any(each is PAUSE for each in walk([node])):
            return [*block[:place], *_copied(node, inner), *block[place + 1 :]]
    return block


def _copied(node: Node, inner: Block) -> Block:
    """Return the node anew, since what was read of a function is shared by its callers."""
    if isinstance(node, Scope):
        body = _filled(node.body, inner)
        # A return of the block leaves the caller; one of the generator itself only the generator.
        return [Scope(body)] if any(each is RETURN for each in walk(node.body)) else body
    if isinstance(node, Branch):
        return [Branch(node.atom, _filled(node.then, inner), _filled(node.otherwise, inner))]
    if isinstance(node, Attempt):
        handlers = [_filled(each, inner) for each in node.handlers]
        body, otherwise = _filled(node.body, inner), _filled(node.otherwise, inner)
        return [Attempt(body, handlers, otherwise, _filled(node.finally_, inner))]
    if isinstance(node, Loop):
        return [*inner, node]  # a pause in a loop: which round hands over is not known
    return [node]
