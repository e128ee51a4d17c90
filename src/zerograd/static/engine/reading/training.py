"""Every spelling of backward, step and clear."""

from __future__ import annotations

import ast
from typing import Any

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.acting import COMMENTS
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.branches import branch
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import Block, Haze, Loop, happens
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.prepared import prepared
from zerograd.static.engine.identity.values import (
    NOTHING,
    Accelerator,
    Constant,
    Gradient,
    Leaf,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
    leaves_of,
    read_in,
)
from zerograd.static.engine.reading.applied import APPLIES
from zerograd.static.engine.reading.clips import clip
from zerograd.static.engine.reading.emit import emit, is_false, is_lacking, is_part
from zerograd.static.engine.reading.handed import (
    goes_back_itself,
    handed_scaler,
    is_context,
    is_handed_gradients,
    switch_of,
)
from zerograd.static.engine.reading.spared import outputs_around
from zerograd.static.engine.text.words import (
    CLIPS,
    clears_by_name,
    fills_by_name,
    is_half_a_step,
    is_only_a_scheduler,
    is_optimizer_name,
    is_step_name,
    words_of,
)

# words in the names of methods by which an optimizer takes gradients to keep them itself
_COLLECTING = frozenset(
    (
        "aggregate",
        "accumulate",
        "collect",
        "gather",
        "store",
        "save",
        "keep",
        "cache",
        "push",
        "add",
    )
)
_SHORT = 50
_BEGINNINGS = ("gradient", "grad_tensors")
_WEIGHTS = (Tensor, Leaf, Gradient, Several)
_CLEARABLE = (Optimizer, Module, Instance, Named, Params, Leaf, Gradient)


def fill(frame: Frame, node: ast.AST, loss: Value, arguments: Arguments) -> None:
    """A backward of `loss`."""
    deps: frozenset[str] = frozenset()
    sure, scaler, averaged = False, "", False
    losses = [each for each in leaves_of(loss) if isinstance(each, Tensor)]
    for each in losses:
        deps |= each.deps | each.leaves
        scaler = scaler or each.scaler
        averaged = averaged or each.averaged
    if frame.no_grad and losses and not deps:
        frame.emit(Haze(None, whole=True))  # made where nothing is recorded: torch refuses it
        return
    if losses and deps:  # what comes from nothing that is known has not been understood
        sure = all(each.sure for each in losses)
    averaged = averaged or _has_weights(loss, arguments)
    for given in leaves_of(arguments.first()):  # features.backward(scaler.scale(gradient))
        scaler = scaler or (given.scaler if isinstance(given, Tensor) else "")
    if isinstance(loss, Leaf):
        deps = frozenset((loss.key,))
    inputs = arguments.named.get("inputs")
    if inputs is not None:  # whatever the loss comes from, it goes to these alone
        keys = keys_of(inputs)
        losses = [each.only_to(keys) for each in losses]
        deps, sure = keys, True
    read = read_in(losses)
    _go_back(frame, node, losses, deps, sure=sure, scaler=scaler, averaged=averaged, read=read)


def _has_weights(loss: Value, arguments: Arguments) -> bool:
    """Is it told what gradient to begin with: `out.backward(gradient)`, `backward(outs, grads)`?"""
    named = [arguments.named[each] for each in _BEGINNINGS if each in arguments.named]
    return any(
        each is not loss and (each is NOTHING or isinstance(each, _WEIGHTS))
        for each in (*arguments.positional, *named)
    )


def manual_backward(frame: Frame, node: ast.Call, arguments: Arguments) -> None:
    """Lightning's; where it is told the optimizer (before 1.2), that one clears as it steps."""
    for each in arguments.optimizers():
        optimizer = frame.program.as_optimizer(frame, each)
        if optimizer is not None:
            optimizer.clears_itself = optimizer.clears_itself or None
    fill(frame, node, arguments.first(), arguments)


def _go_back(
    frame: Frame, node: ast.AST, losses: list[Tensor], deps: frozenset[str], **what: Any
) -> None:
    """Add the backward; one of two losses goes its own way where the test held that chose it."""
    choice = losses[0].choice if len(losses) == 1 else None
    if choice is None:
        frozen = frame.program.frozen
        emit(frame, EventKind.BACKWARD, node, keys=deps - frozen, through=deps, **what)
        return
    test, *either = choice
    blocks: list[Block] = []
    for each in either:
        outer, frame.out = frame.out, []
        own = {**what, "sure": each.sure, "scaler": each.scaler, "read": each.read}
        _go_back(frame, node, [each], each.deps | each.leaves, **own)
        blocks.append(frame.out)
        frame.out = outer
    frame.out.extend(branch(test, *blocks))


def _is_known(frame: Frame, value: Value) -> bool:
    """Is it told what is cleared? An item of some unknown collection may be anything."""
    if isinstance(value, Named) and "[*]" in value.path:
        return frame.program.is_network(value.path) or is_optimizer_name(value.path)
    return isinstance(value, _CLEARABLE)


def clear(frame: Frame, node: ast.AST, target: Value, arguments: Arguments) -> None:
    """A clear of optimizers, networks or parameters."""
    to_none = not is_false(arguments.get("set_to_none", 1))
    known = False
    for each in leaves_of(target):
        known = known or _is_known(frame, each)
        optimizer = frame.program.as_optimizer(frame, each)
        if optimizer is not None:
            emit(
                frame,
                EventKind.CLEAR,
                node,
                optimizer=optimizer,
                name=_receiver(node),
                to_none=to_none,
            )
        elif isinstance(each, Module) and each.key.endswith(".[*]"):
            # each part of a network, as a loop meets them: then all of it
            frame.emit(Haze(frozenset((each.key.removesuffix(".[*]"),)), whole=True))
        elif isinstance(each, _CLEARABLE):
            keys = keys_of(each) | frame.program.behind(each)
            emit(
                frame,
                EventKind.CLEAR,
                node,
                keys=keys | frame.program.joined_to(keys),
                some=is_part(each),
                lacks=is_lacking(each),
                name=_receiver(node),
                to_none=to_none,
                spares=outputs_around(frame, node) if isinstance(each, Module) else (),
            )
    if not known:
        frame.emit(Haze(None, whole=True))  # somebody's gradients are gone, nobody knows whose


def step(
    frame: Frame,
    node: ast.AST,
    target: Value,
    arguments: Arguments,
    named_at: ast.AST,
    scaler: str = "",
) -> None:
    """A step of an optimizer; a closure's every return to it is the step."""
    optimizer = frame.program.as_optimizer(frame, target) or frame.program.spelled_optimizer(
        frame, target, path_of(named_at)
    )
    if optimizer is None:
        return
    handed = (each for value in arguments.all() for each in leaves_of(value))
    closure = next((each for each in handed if isinstance(each, Function)), None)
    if closure is not None and _is_told(closure):
        frame.emit(Haze(keys_of(optimizer), whole=True))  # and what it is told, nobody knows
        return
    name = path_of(named_at) or _spelled(frame, named_at) or optimizer.key
    loop = Loop(None, frame.loop) if closure is not None and optimizer.repeats else None
    outer = frame.out, frame.loop
    if loop is not None:  # what the closure does not clear itself, its next call adds to
        frame.program.note_loop(loop, frame, frozenset())
        frame.out, frame.loop = loop.body, loop
    if closure is not None and isinstance(node, ast.Call):
        if closure.maker is frame and closure.closure is not None:
            closure.closure.update(frame.locals)  # names are looked up when it is called
        before = len(frame.out)
        frame.program.invoke(frame, node, closure, Arguments.none())
        written = COMMENTS.sub("", closure.unit.text_of(closure.node))
        goes_back = "backward" in written or happens(frame.out[before:], EventKind.BACKWARD)
        if not goes_back and (optimizer.repeats or not optimizer.of_torch):
            frame.out, frame.loop = outer
            frame.emit(Haze(keys_of(optimizer), whole=True))  # it goes backward by itself
            return
    emit(frame, EventKind.STEP, node, optimizer=optimizer, name=name, scaler=scaler)
    if loop is not None:
        frame.out, frame.loop = outer
        frame.emit(loop)
    if optimizer.clears_itself:
        emit(frame, EventKind.CLEAR, node, optimizer=optimizer, name=name)
    elif optimizer.clears_itself is None:
        frame.emit(Haze(keys_of(optimizer), whole=True))


def _is_told(closure: Function) -> bool:
    """Does it take a switch, `def closure(backward=False)`? Who calls it may tell it either.

    Torch's own optimizers give it nothing; a closure like this is not written for them.
    """
    taken = closure.node.args
    switches = (*taken.defaults, *(each for each in taken.kw_defaults if each is not None))
    return any(isinstance(each, ast.Constant) and type(each.value) is bool for each in switches)


def _spelled(frame: Frame, node: ast.AST) -> str:
    """Return how the code writes it, if that is short: `net.get_optimizer()`."""
    text = frame.unit.source.segment(node) if isinstance(node, ast.Call) else ""
    return text if len(text) <= _SHORT and "\n" not in text and not text.endswith("step()") else ""


def _receiver(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return path_of(node.func.value)
        return path_of(node.args[0]) if node.args else ""
    return ""


def optimizer_method(
    frame: Frame, node: ast.Call, optimizer: Optimizer, name: str, arguments: Arguments
) -> Value:
    """A method of an optimizer, or of a wrapper that is known by its name only."""
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else node
    if is_only_a_scheduler(path_of(receiver)):
        return NOTHING  # made from an optimizer, which is all that is known of it
    if name in optimizer.vague:
        frame.emit(Haze(keys_of(optimizer), whole=True))
        return NOTHING
    told = arguments.positional[0] if arguments.positional else arguments.named.get("key")
    if name in ("step", "zero_grad") and isinstance(told, Constant) and isinstance(told.value, str):
        _one_of_several(frame, node, optimizer, told.value, arguments)
        return NOTHING
    if name == "step":
        if is_handed_gradients(node):
            frame.emit(Haze(keys_of(optimizer), whole=True))  # those, and not what .grad holds
        elif goes_back_itself(frame, node, optimizer, arguments):
            # A closure that is not seen, or losses: then it goes back, and perhaps clears, itself,
            # and what the losses reach may be more than it holds.
            frame.emit(Haze(None, whole=True))
        elif not is_context(arguments):
            scaler = handed_scaler(arguments)
            step(frame, node, optimizer, arguments, receiver, scaler=scaler)
            _update_with_it(frame, node, scaler)
    elif clears_by_name(name):
        clear(frame, node, optimizer, arguments)
    elif name == "backward":
        fill(frame, node, arguments.first(), arguments)
        # One that goes backward itself, and that nobody here ever clears, clears itself. Where
        # a plain loss goes backward as well, the same loop is right with a plain optimizer.
        alone = not frame.unit.clears() and not frame.unit.goes_backward_plainly()
        optimizer.clears_itself = optimizer.clears_itself or alone
    elif name in CLIPS:
        clip(frame, node, arguments, optimizer)
    elif name.startswith("register_step_"):
        text = frame.unit.source.segment(node)
        hook = arguments.first()
        text += hook.unit.text_of(hook.node) if isinstance(hook, Function) else ""
        optimizer.clears_itself = optimizer.clears_itself or "zero_grad" in text
    elif name in APPLIES:
        _apply(frame, node, optimizer, arguments, receiver)
    elif name == "add_param_group":
        if optimizer.keys is not None:
            optimizer.keys |= keys_of(arguments.first())
        optimizer.groups += bool(optimizer.groups)
    elif is_step_name(name):
        _step_through(frame, node, optimizer, arguments, receiver)
        wipes = arguments.named.get("zero_grad")
        if wipes is not None and not is_false(wipes):
            clear(frame, node, optimizer, Arguments.none())
    elif is_half_a_step(name):  # SAM climbs here; the gradients it throws away were used
        frame.emit(Haze(keys_of(optimizer), whole=True))
    elif "zero" in name:
        clear(frame, node, optimizer, Arguments.none())
    elif "grad" in name and not _COLLECTING.isdisjoint(words_of(name)):
        frame.emit(Haze(keys_of(optimizer), whole=True))  # it keeps them itself, for its step
    elif fills_by_name(name):  # pc_backward: it puts together what it steps on
        frame.emit(Haze(keys_of(optimizer), whole=True))
    elif name in ("prepare", "setup"):
        return optimizer
    return NOTHING


def _one_of_several(
    frame: Frame, node: ast.Call, optimizer: Optimizer, told: str, arguments: Arguments
) -> None:
    """`optimizers.step("generator")`: the one behind an object that is told by its name."""
    assert isinstance(node.func, ast.Attribute)
    receiver = node.func.value
    if optimizer.keys is not None or _may_clear_as_it_steps(frame, path_of(receiver)):
        frame.emit(Haze(keys_of(optimizer), whole=True))
        return
    one = frame.program.named_optimizer(f"{optimizer.key}[{told!r}]")
    if node.func.attr == "zero_grad":
        clear(frame, node, one, Arguments.none())
        return
    scaler = handed_scaler(arguments)
    step(frame, node, one, Arguments.none(), receiver, scaler=scaler)
    _update_with_it(frame, node, scaler)


def _step_through(
    frame: Frame, node: ast.Call, optimizer: Optimizer, arguments: Arguments, receiver: ast.AST
) -> None:
    """`optimizer.step_and_update_lr(scaler)`: through the scaler, where that is switched on."""
    scaler, on = handed_scaler(arguments), switch_of(arguments)
    blocks: list[Block] = []
    for each in (scaler, "") if on is not None else (scaler,):
        outer, frame.out = frame.out, []
        step(frame, node, optimizer, arguments, receiver, scaler=each)
        blocks.append(frame.out)
        frame.out = outer
    frame.out.extend(branch(on, *blocks) if on is not None else blocks[0])


def _update_with_it(frame: Frame, node: ast.Call, scaler: str) -> None:
    """`optimizers.step(scaler=scaler)`: who is handed the scaler updates it, too."""
    if scaler:
        emit(frame, EventKind.SCALER_UPDATE, node, scaler=scaler, keys=None)


def _may_clear_as_it_steps(frame: Frame, path: str) -> bool:
    """May an object that keeps optimizers, and is not seen, clear them as it steps?

    Not one that the file clears itself, nor where no step of the project does such a thing.
    """
    if f"{path.rpartition('.')[2]}.zero_grad(" in frame.unit.source.text:
        return False
    project = frame.program.project
    return project is None or project.around.is_cleared_in(frame.unit.source, "step")


def _apply(
    frame: Frame, node: ast.Call, optimizer: Optimizer, arguments: Arguments, receiver: ast.AST
) -> None:
    """`optimizer.apply(gradients, weights)` of Keras steps on what it is handed.

    That is what the weights' own `.grad` holds, or else nothing that is known here.
    """
    handed = [each for value in arguments.all() for each in leaves_of(value)]
    if any(isinstance(each, Gradient) for each in handed):
        step(frame, node, optimizer, Arguments.none(), receiver)
    else:
        frame.emit(Haze(keys_of(optimizer), whole=True))


def accelerator_method(
    frame: Frame, node: ast.Call, accelerator: Accelerator, name: str, arguments: Arguments
) -> Value:
    """A method of Accelerate's object, or of Fabric."""
    if name == "backward":
        fill(frame, node, arguments.first(), arguments)
    elif name in ("prepare", "setup", "setup_optimizers", "prepare_optimizer"):
        return prepared(frame.program, arguments, windowed=True)
    elif name in ("setup_module", "prepare_model", "unwrap_model", "setup_dataloaders"):
        return arguments.first()
    elif name in CLIPS:
        return clip(frame, node, arguments)  # it unscales by itself
    return NOTHING
