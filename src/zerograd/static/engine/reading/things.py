"""Methods of networks, tensors, and things known by their path only."""

from __future__ import annotations

import ast
from functools import lru_cache

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import Haze
from zerograd.static.engine.identity.keepers import (
    ask,
    ask_for_gradients,
    ask_to_train,
    ask_trusted,
)
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.prepared import prepared
from zerograd.static.engine.identity.values import (
    NOTHING,
    UNSEEN,
    Constant,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
)
from zerograd.static.engine.reading.clips import clip
from zerograd.static.engine.reading.gradients import wipe_item, wipe_shared
from zerograd.static.engine.reading.handed import is_handed_a_loss
from zerograd.static.engine.reading.scalers import scaler_method
from zerograd.static.engine.reading.tensors import detached, require, tensor_method
from zerograd.static.engine.reading.training import (
    clear,
    fill,
    manual_backward,
    optimizer_method,
)
from zerograd.static.engine.reading.unseen import (
    clear_by_hook,
    forward,
    go_back_inside,
    hand_over,
    is_called_part,
    makes_optimizer,
    of_unseen_kind,
    unseen,
)
from zerograd.static.engine.text.doing import hands_gradients_on, is_emptying
from zerograd.static.engine.text.methods import (
    CUTS,
    LOOKUPS,
    OF_TENSORS,
    PARAMETERS,
    PARTS,
    SAME,
    SILENT,
    WRAPPERS,
    is_no_tensors,
)
from zerograd.static.engine.text.words import (
    CLIPS,
    clears_by_name,
    fills_by_name,
    is_environment_name,
    is_follower_name,
    is_loss_name,
    is_network_name,
    is_of_architecture,
    is_optimizer_name,
    is_pipeline_name,
    is_scaler_name,
    is_scheduler_name,
    words_of,
)

# all names that `thing_method` asks for: what is not here is passed by
_TELLING = frozenset(
    (
        *(*SAME, *WRAPPERS, *CUTS, *OF_TENSORS, *PARAMETERS, *SILENT),
        *("backward", "step", "manual_backward", "scale", "requires_grad", "load_state_dict"),
        *("scale_loss", "replay", "prepare", "setup", "initialize", "setup_optimizers"),
    )
)


@lru_cache(maxsize=16_384)
def _is_telling(name: str) -> bool:
    """Does the name of a method say what it does, whoever has it? Most names do not."""
    return name in _TELLING or name in CLIPS or clears_by_name(name) or fills_by_name(name)


def thing_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    """A method of a network, a tensor, or a thing known by its path only."""
    program = frame.program
    path = base.path if type(base) is Named else ""
    if path and is_scaler_name(path) and name != "backward":
        return scaler_method(frame, node, program.named_scaler(path), name, arguments)
    if not _is_telling(name):
        item = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in ("zero_", "fill_") and isinstance(item, ast.Subscript):
            wipe_item(frame, item)
        elif item is not None and frame.unit.mentions_gradient(item):
            wipe_shared(frame, node, name, arguments)
        if name == "zero_" and frame.unit.has_gradients_in_buffers():
            frame.emit(Haze(None, whole=True))  # it may be the memory of them
        if path and is_optimizer_name(path) and not is_scheduler_name(path):
            return optimizer_method(frame, node, program.named_optimizer(path), name, arguments)
        if isinstance(base, (Tensor, Leaf, Params)):
            if frame.bare and base is not NOTHING and is_no_tensors(name):
                frame.emit(Haze(None, whole=False))  # called for what it does: `loss.bakward()`
            return tensor_method(frame, node, base, name, arguments)
        return _unseen_method(frame, node, base, name, arguments)
    if name == "backward":
        return _backward(frame, node, base, arguments)
    if name == "step" or clears_by_name(name):
        receiver = path_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        optimizer = program.as_optimizer(frame, base) or program.spelled_optimizer(
            frame, base, receiver
        )
        if optimizer is not None:
            called = "step" if name == "step" else "zero_grad"
            return optimizer_method(frame, node, optimizer, called, arguments)
        if name == "step" and arguments.all() and is_pipeline_name(receiver or path):
            frame.emit(Haze(None, whole=False))  # the schedule of a pipeline goes back by itself
        is_several = isinstance(arguments.first(), Several) and is_handed_a_loss(arguments)
        if name == "step" and is_several and not is_environment_name(receiver or path):
            frame.emit(Haze(None, whole=True))  # it weighs the losses of tasks, and goes backward
        if name != "step" and isinstance(base, Named):
            ask(frame, base, name)
        elif isinstance(base, Named):
            ask_to_train(frame, base, name)
        if name != "step":
            # no tensor has it: then this is a network after all, and holds what it was made from
            target = base
            if isinstance(base, Tensor) and receiver:
                target = Several([Named(receiver), Params(base.deps)])
            clear(frame, node, target, arguments)
        return NOTHING
    if name in ("requires_grad_", "requires_grad"):  # no optimizer has it, whatever it is called
        return require(frame, node, base, arguments)
    if path and is_optimizer_name(path) and not is_scheduler_name(path):
        optimizer = program.named_optimizer(path)
        return optimizer_method(frame, node, optimizer, name, arguments)
    if name in CLIPS:
        return clip(frame, node, arguments, base)
    if name == "manual_backward":
        manual_backward(frame, node, arguments)
        return NOTHING
    if name == "scale" and path:
        return scaler_method(frame, node, program.named_scaler(path), name, arguments)
    if name == "scale_loss":
        return arguments.first()  # of apex, or of the handle that it once gave
    if name in PARAMETERS and not isinstance(base, Tensor):
        program.networks |= keys_of(base)
        return Params(keys_of(base))
    if name == "apply" and isinstance(arguments.first(), Function):
        each = arguments.first()
        if frame.unit.mentions(each.node, "grad"):  # type: ignore[attr-defined]
            frame.emit(Haze(keys_of(base), whole=True))  # to each part of it
        return base
    if name in PARTS and isinstance(base, Module | Instance | Named):
        return _parts(base, name)
    if name == "load_state_dict" and not isinstance(base, Optimizer):
        # Put back to where it was, it may step on the same gradients again.
        if not (isinstance(base, Named) and is_follower_name(path)):
            frame.emit(Haze(keys_of(base) or None, whole=True, spent=True))
        return NOTHING
    if name == "replay" and "CUDAGraph" in frame.unit.source.text:
        frame.emit(Haze(None, whole=True))  # what was captured fills anew, and may step
        return NOTHING
    if name in SILENT and not (name == "log" and isinstance(base, Tensor | Leaf)):
        return NOTHING
    if name in CUTS:
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "detach_" and isinstance(base, Tensor) and isinstance(holder, ast.Name):
            frame.locals[holder.id] = Tensor()  # cut off where it stands
        return detached(frame, base, name)
    if fills_by_name(name):
        fill(frame, node, NOTHING, Arguments.none())  # forward_backward_step and its kin
        handed = arguments.optimizers()
        if handed:  # who goes backward with an optimizer at hand may clear, scale and step
            keys = frozenset[str]().union(*map(keys_of, handed))
            frame.emit(Haze(keys, whole=True))
        return arguments.computed()
    if isinstance(base, (Tensor, Leaf, Params)):
        return tensor_method(frame, node, base, name, arguments)
    if name in WRAPPERS:
        return arguments.first() if arguments.positional else base
    if name in SAME:
        return base
    if name in OF_TENSORS:
        return Arguments([Tensor(keys_of(base)), *arguments.all()], {}).computed()
    # Fabric's setup_optimizers(opt) is handed them; who is handed none makes them.
    wraps = name == "setup_optimizers" and arguments.optimizers()
    if name in ("prepare", "setup", "initialize") or wraps:
        windowed = name == "prepare" and "accelerator" in words_of(path)
        return prepared(program, arguments, windowed=windowed)
    return _unseen_method(frame, node, base, name, arguments)


def _parts(base: Module | Instance | Named, name: str) -> Value:
    """Return the parts of a network, one that stands for all."""
    (key,) = keys_of(base)
    part: Value = Module(f"{key}.[*]")
    return Several([Several([NOTHING, part]) if name.startswith("named") else part], open=True)


def _backward(frame: Frame, node: ast.Call, base: Value, arguments: Arguments) -> Value:
    """`loss.backward()`, or an object that is handed the loss."""
    program = frame.program
    first = arguments.first()
    handed = bool(arguments.positional) and not isinstance(base, Tensor | Leaf)
    if handed and isinstance(first, Named) and "loss" not in words_of(first.path):
        handed = False  # `out.backward(gradient)`
    if handed and isinstance(first, Constant | Mapping):
        handed = False
    if handed and isinstance(first, Gradient):
        frame.emit(Haze(None, whole=False))  # the rest of the way back, through what is not seen
        return NOTHING
    if not handed:
        fill(frame, node, base, arguments)
        return NOTHING
    if program.is_engine(frame, base):
        return NOTHING
    optimizer = program.as_optimizer(frame, base)
    if optimizer is not None:
        return optimizer_method(frame, node, optimizer, "backward", arguments)
    held = program.held_by(base)
    if held:  # it may assign what it computes, and clear before
        frame.emit(Haze(held, whole=True))
        return NOTHING
    fill(frame, node, first, arguments)
    return NOTHING


def _may_be_shared_out(frame: Frame, path: str) -> bool:
    """May several optimizers hold parts of a network: is a part asked for its parameters?

    What an optimizer that is handed in holds, nobody sees.
    """
    program = frame.program
    last = path.rsplit(".", 1)[-1].split("@", 1)[0]
    return program.has_several_optimizers and (
        bool(program.all_optimizers()) or last in frame.unit.receivers.with_parts
    )


def _unseen_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    if is_of_architecture(name) and isinstance(base, Module | Instance | Named):
        # beside the weights, and none of them: what else clears or steps these leaves the rest
        return Params(frozenset(f"{key}.{name}" for key in keys_of(base)))
    hand_over(frame, arguments)
    go_back_inside(frame, name, arguments)
    if isinstance(base, Named) or base in UNSEEN:
        ask_trusted(frame, base.path if isinstance(base, Named) else name, name)
    if makes_optimizer(name) and isinstance(base, Named | Module | Instance):
        # model.configure_optimizers(…), or self.get_optimizer(params, …)
        network = isinstance(base, Module) or (
            isinstance(base, Named) and is_network_name(base.path)
        )
        given = arguments.has_params() or not network
        source = Several(arguments.all()) if given else Params(keys_of(base))
        return of_unseen_kind(frame, source)
    if isinstance(base, Named):
        if name in ("values", "items"):
            inner = Named(f"{base.path}[*]")
            return Several([inner if name == "values" else Several([NOTHING, inner])], open=True)
        if frame.loop is not None:
            clear_by_hook(frame, f"{base.path}.{name}", arguments)
        if frame.program.keepers:
            ask(frame, base, name)
        ask_to_train(frame, base, name)
        ask_for_gradients(frame, base, name)
        if hands_gradients_on(name) and arguments.positional:
            frame.emit(Haze(None, whole=True))
        if is_emptying(name):
            last = base.path.rsplit(".", 1)[-1].split("@", 1)[0]
            if f"{last}.backward(" in frame.unit.source.text and not is_loss_name(last):
                frame.emit(Haze(None, whole=True))  # a tape: what goes back by it, it may clear
        if name in LOOKUPS and isinstance(arguments.first(), Constant):
            return Named(f"{base.path}[{arguments.first().value!r}]")  # type: ignore[attr-defined]
        if name in frame.unit.receivers.networks:  # ac.pi(obs), by ac.pi.parameters()
            return forward(frame, frozenset((f"{base.path}.{name}",)), arguments)
        if arguments.optimizers() or arguments.has_modules():
            return unseen(frame, name, arguments, base)
        computed = arguments.computed()
        if isinstance(computed, Tensor):
            # which part of it computes is not known
            return Arguments([Tensor(frozenset((base.path,)), sure=False), computed], {}).computed()
        if arguments.all() and is_network_name(base.path):
            value = forward(frame, frozenset((base.path,)), arguments)
            if isinstance(value, Tensor) and _may_be_shared_out(frame, base.path):
                value.sure = False  # which part of it computes is not known
            return value
        if arguments.all() and not frame.bare and frame.program.is_network(base.path):
            return Tensor(frozenset((base.path,)), sure=False)  # zs = flow.rsample(x)
        return NOTHING
    if isinstance(base, Instance) and not frame.program.is_module(base.cls):
        return arguments.computed()
    if isinstance(base, Module) and name in ("forward", "__call__"):
        return forward(frame, keys_of(base), arguments)
    if isinstance(base, Module | Instance) and is_called_part(name):
        return forward(frame, frozenset(f"{key}.{name}" for key in keys_of(base)), arguments)
    if isinstance(base, Module | Instance):
        # A method of a network computes with it; it hardly ever clears or steps.
        frame.emit(Haze(keys_of(base), whole=bool(arguments.optimizers())))
        value = forward(frame, keys_of(base), arguments)
        if isinstance(value, Tensor):
            value.sure = False  # which part of it computes is not known
        return value
    return arguments.computed()
