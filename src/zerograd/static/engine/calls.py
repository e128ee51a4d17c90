"""Calls: who is called, and what that does to gradients."""

from __future__ import annotations

import ast

from zerograd.static.engine.arguments import Arguments
from zerograd.static.engine.construct import external_call
from zerograd.static.engine.emit import is_false
from zerograd.static.engine.frame import Frame
from zerograd.static.engine.ir import Haze
from zerograd.static.engine.keys import keys_of
from zerograd.static.engine.training import (
    accelerator_method,
    by_wrapper,
    clear,
    clip,
    fill,
    gradient_method,
    optimizer_method,
    run_scaler,
    scaler_method,
    step,
)
from zerograd.static.engine.values import (
    MADE,
    NOTHING,
    WRAPPED,
    Accelerator,
    Class,
    Constant,
    Engine,
    External,
    Function,
    Gradient,
    Instance,
    Leaf,
    Mapping,
    Module,
    Named,
    Namespace,
    Optimizer,
    Params,
    Scaler,
    Several,
    Super,
    Tensor,
    Value,
    leaves_of,
)
from zerograd.static.engine.words import (
    CLIPS,
    clears_by_name,
    is_network_name,
    is_optimizer_class,
    is_optimizer_name,
    is_scaler_name,
    is_scheduler_name,
    words_of,
)

_SAME = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "float",
        "half",
        "double",
        "bfloat16",
        "train",
        "eval",
        "apply",
        "share_memory",
        "type",
        "contiguous",
        "requires_grad_",
        "prepare_model",
        "unwrap_model",
        "compile",
    ]
)
_CUTS = frozenset(["detach", "item", "tolist", "numpy", "detach_", "clone_detached", "new_tensor"])
_PARAMETERS = frozenset(
    ["parameters", "named_parameters", "trainable_parameters", "get_parameters"]
)
_SILENT = frozenset(
    [
        "state_dict",
        "load_state_dict",
        "named_modules",
        "modules",
        "children",
        "named_children",
        "buffers",
        "named_buffers",
        "register_forward_hook",
        "register_hook",
        "register_buffer",
        "add_module",
        "size",
        "dim",
    ]
)
_MAKING = frozenset(("build", "create", "make", "get", "load", "init", "setup", "parse", "new"))
_NETWORKS = frozenset(("model", "net", "network", "resnet", "backbone"))
_LOSSES = frozenset(("loss", "losses", "criterion", "crit", "objective", "mse", "bce", "ce"))
# words in the name of an unseen function that mark it as one that trains
_ACTING = frozenset(
    [
        "train",
        "trainer",
        "training",
        "fit",
        "step",
        "optimize",
        "optimise",
        "backward",
        "epoch",
        "run",
        "update",
        "learn",
        "batch",
        "iteration",
        "loop",
        "closure",
    ]
)


def call(frame: Frame, node: ast.Call) -> Value:
    """Return what a call gives; the events it sets off go to the frame."""
    function = node.func
    if isinstance(function, ast.Attribute):
        program = frame.program
        base = program.evaluate(frame, function.value)
        return _method(frame, node, base, function.attr)
    callee = frame.program.evaluate(frame, function)
    return _call_value(frame, node, callee)


def _call_value(frame: Frame, node: ast.Call, callee: Value) -> Value:
    arguments = Arguments.of(frame, node)
    if isinstance(callee, Function):
        if by_wrapper(frame, node, _plain_name(node), None, arguments):
            return NOTHING
        return frame.program.invoke(frame, node, callee, arguments)
    if isinstance(callee, Class):
        return frame.program.instantiate(frame, node, callee.unit, arguments)
    if isinstance(callee, External):
        return _external(frame, node, callee.dotted, arguments)
    if isinstance(callee, Scaler):
        return run_scaler(frame, node, arguments, _plain_name(node))
    if isinstance(callee, Instance):
        return _call_instance(frame, node, callee, arguments)
    if isinstance(callee, Module):
        return forward(frame, frozenset((callee.key,)), arguments)
    if isinstance(callee, Named):
        return _named(frame, node, callee.path, arguments)
    if isinstance(callee, Tensor):
        return _unseen(frame, "", arguments, callee)
    if isinstance(callee, Leaf | Params | Optimizer):
        return NOTHING
    if arguments.has_params() and _may_construct(node):
        return frame.program.new_optimizer(arguments.first())
    return _unseen(frame, "", arguments, NOTHING)


def _may_construct(node: ast.Call) -> bool:
    """`getattr(optim, name)(params)` and `OPTIMIZERS[name](params)` make optimizers."""
    text = ast.dump(node.func)
    return "optim" in text.lower()


def _plain_name(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _external(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments) -> Value:
    name = dotted.rsplit(".", 1)[-1]
    if by_wrapper(frame, node, name, None, arguments):
        return NOTHING
    if name in CLIPS:
        return clip(frame, node, arguments)
    if name == "backward" and "dist" not in dotted:
        fill(frame, node, arguments.first(), arguments)
        return NOTHING
    if name == "optimizer_step":  # torch_xla
        step(frame, node, arguments.first(), arguments, node.args[0] if node.args else node)
        return NOTHING
    if is_scaler_name(name) and arguments.optimizers():
        return run_scaler(frame, node, arguments, name)
    made = external_call(frame, dotted, arguments)
    if made is not None:
        return made
    if dotted.startswith(("torch.", "math.", "numpy.", "os.", "time.")):
        return arguments.computed()
    if clears_by_name(name):
        clear(frame, node, Several(arguments.positional), arguments)
        return NOTHING
    return _unseen(frame, name, arguments, NOTHING)


def _named(frame: Frame, node: ast.Call, path: str, arguments: Arguments) -> Value:
    """A callable known by its path only: a builtin, a network, a loss, an unseen function."""
    if by_wrapper(frame, node, path, None, arguments):
        return NOTHING
    if path in _BUILTINS:
        made = external_call(frame, f"builtins.{path}", arguments)
        return made if made is not None else arguments.computed()
    if is_scaler_name(path) and arguments.positional:
        return run_scaler(frame, node, arguments, path)
    name = path.rsplit(".", 1)[-1]
    if name in CLIPS:
        return clip(frame, node, arguments)
    if clears_by_name(name) and arguments.positional:
        clear(frame, node, Several(arguments.positional), arguments)
        return NOTHING
    if is_optimizer_class(name) and arguments.positional and name[:1].isupper():
        return frame.program.new_optimizer(Several(arguments.all()))
    makes = not arguments.all() or name[:1].isupper() or words_of(name)[0] in _MAKING
    if makes or arguments.optimizers() or arguments.has_modules():
        return _unseen(frame, name, arguments, Named(path))
    return forward(frame, frozenset((path,)), arguments)


_BUILTINS = frozenset(
    [
        "print",
        "len",
        "range",
        "enumerate",
        "zip",
        "list",
        "tuple",
        "set",
        "dict",
        "filter",
        "map",
        "sorted",
        "reversed",
        "iter",
        "next",
        "sum",
        "min",
        "max",
        "abs",
        "float",
        "int",
        "str",
        "bool",
        "isinstance",
        "hasattr",
        "getattr",
        "setattr",
        "type",
        "super",
        "id",
        "repr",
        "open",
        "vars",
        "any",
        "all",
        "round",
        "callable",
        "input",
        "format",
    ]
)


def _call_instance(frame: Frame, node: ast.Call, callee: Instance, arguments: Arguments) -> Value:
    program = frame.program
    if program.is_module(callee.cls):
        return forward(frame, frozenset((callee.key,)), arguments)
    method = program.method(callee, "__call__")
    if method is not None:
        return program.invoke(frame, node, method, arguments)
    return _unseen(frame, callee.cls.name, arguments, callee)


def forward(frame: Frame, keys: frozenset[str], arguments: Arguments) -> Value:
    """Return the output of a network: it depends on the network and on the inputs."""
    computed = arguments.computed()
    if frame.no_grad:
        return Tensor()
    frame.program.networks |= {key for key in keys if _LOSSES.isdisjoint(words_of(key))}
    # Networks handed to a network are part of what it computes.
    handed = [each for value in arguments.all() for each in leaves_of(value)]
    deps = keys | keys_of(Several([each for each in handed if _is_network(frame, each)]))
    sure, scaler = True, ""
    averaged, leaves = False, frozenset[str]()
    if isinstance(computed, Tensor):
        deps, sure, scaler = deps | computed.deps, computed.sure, computed.scaler
        averaged, leaves = computed.averaged, computed.leaves
    return Tensor(deps, sure=sure, scaler=scaler, averaged=averaged, leaves=leaves)


def _is_network(frame: Frame, value: Value) -> bool:
    if isinstance(value, Named):
        return frame.program.is_network(value.path)
    return isinstance(value, Module | Instance)


def _method(frame: Frame, node: ast.Call, base: Value, name: str) -> Value:
    program = frame.program
    if isinstance(base, Namespace | Class | Super):
        callee = program.attribute(frame, base, name)
        if callee is NOTHING and isinstance(base, Super):
            return _framework_method(frame, node, base.of, name, Arguments.of(frame, node))
        return _call_value(frame, node, callee)
    if isinstance(base, External):
        return _external(frame, node, f"{base.dotted}.{name}", Arguments.of(frame, node))
    arguments = Arguments.of(frame, node)
    if by_wrapper(frame, node, name, base, arguments):
        return NOTHING
    if isinstance(base, Instance):
        return _instance_method(frame, node, base, name, arguments)
    if isinstance(base, Optimizer):
        return optimizer_method(frame, node, base, name, arguments)
    if isinstance(base, Scaler):
        return scaler_method(frame, node, base, name, arguments)
    if isinstance(base, Engine):
        return NOTHING
    if isinstance(base, Accelerator):
        return accelerator_method(frame, node, base, name, arguments)
    if isinstance(base, Gradient):
        return gradient_method(frame, node, base, name, arguments)
    if isinstance(base, Several | Mapping):
        return _container_method(frame, node, base, name, arguments)
    return _thing_method(frame, node, base, name, arguments)


def _instance_method(
    frame: Frame, node: ast.Call, base: Instance, name: str, arguments: Arguments
) -> Value:
    program = frame.program
    method = program.method(base, name)
    if method is not None:
        return program.invoke(frame, node, method, arguments)
    value = program.instance_attribute(base, name) if program.has_attribute(base, name) else None
    if value is not None and not isinstance(value, Named):
        return _call_value(frame, node, value)
    return _framework_method(frame, node, base, name, arguments)


def _framework_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    """A method that a class of the project inherits from outside it."""
    if name == "manual_backward":
        fill(frame, node, arguments.first(), arguments)
        return NOTHING
    if name == "optimizers" and isinstance(base, Instance):
        return frame.program.lightning_optimizers(base)
    return _thing_method(frame, node, base, name, arguments)


def _thing_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    """A method of a network, a tensor, or a thing known by its path only."""
    program = frame.program
    path = base.path if isinstance(base, Named) else ""
    if path and is_scaler_name(path) and name != "backward":
        return scaler_method(frame, node, program.named_scaler(path), name, arguments)
    if name == "backward":
        return _backward(frame, node, base, arguments)
    if name == "step":
        optimizer = program.as_optimizer(frame, base, node)
        if optimizer is not None:
            return optimizer_method(frame, node, optimizer, name, arguments)
        return NOTHING
    if clears_by_name(name) and not isinstance(base, Tensor):
        optimizer = program.as_optimizer(frame, base, node)
        if optimizer is not None:
            return optimizer_method(frame, node, optimizer, "zero_grad", arguments)
        clear(frame, node, base, arguments)
        return NOTHING
    if path and is_optimizer_name(path) and not is_scheduler_name(path):
        optimizer = program.named_optimizer(path)
        return optimizer_method(frame, node, optimizer, name, arguments)
    if name in CLIPS:
        return clip(frame, node, arguments, base)
    if name in ("manual_backward", "scale") and path:
        return scaler_method(frame, node, program.named_scaler(path), name, arguments)
    if name in _PARAMETERS and not isinstance(base, Tensor):
        program.networks |= keys_of(base)
        return Params(keys_of(base))
    if name in ("requires_grad_", "requires_grad"):
        return _require(frame, node, base, arguments)
    if name in _SILENT:
        return NOTHING
    if name in _CUTS:
        return Tensor()
    if isinstance(base, Tensor | Leaf | Params):
        return _tensor_method(frame, node, base, name, arguments)
    if name in _SAME:
        return base
    if name in ("prepare", "setup", "initialize"):
        return program.prepared(arguments)
    return _unseen_method(frame, node, base, name, arguments)


def _backward(frame: Frame, node: ast.Call, base: Value, arguments: Arguments) -> Value:
    """`loss.backward()`, or an object that is handed the loss."""
    program = frame.program
    first = arguments.first()
    handed = bool(arguments.positional) and not isinstance(base, Tensor | Leaf)
    if handed and isinstance(first, Named) and "loss" not in words_of(first.path):
        handed = False  # `out.backward(gradient)`
    if handed and isinstance(first, Constant | Mapping):
        handed = False
    if not handed:
        fill(frame, node, base, arguments)
        return NOTHING
    if program.is_engine(frame, base):
        return NOTHING
    fill(frame, node, first, arguments)
    return NOTHING


def _require(frame: Frame, node: ast.Call, base: Value, arguments: Arguments) -> Value:
    wanted = arguments.first()
    program = frame.program
    if isinstance(base, Module | Params | Instance):
        program.freeze(keys_of(base), is_false(wanted))
        return base
    if is_false(wanted):
        return Tensor()
    return program.new_leaf(frame)


def _tensor_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    if isinstance(base, Params | Leaf) and name in ("sub_", "add_", "addcdiv_", "copy_", "mul_"):
        if any(frame.unit.mentions_gradient(each) for each in node.args):
            by_hand = frame.program.by_hand(keys_of(base))
            step(frame, node, by_hand, Arguments.none(), node.func)
        return base
    if isinstance(base, Params):
        return base
    return Arguments([base, *arguments.all()], {}).computed()


def _container_method(
    frame: Frame, node: ast.Call, base: Several | Mapping, name: str, arguments: Arguments
) -> Value:
    if isinstance(base, Several):
        if name == "append" and arguments.positional:
            base.items.append(arguments.first())
        elif name == "extend" and arguments.positional:
            base.items.extend(
                arguments.first().items  # type: ignore[attr-defined]
                if isinstance(arguments.first(), Several)
                else [arguments.first()]
            )
        elif name in ("step", "zero_grad"):
            for each in base.items:
                _method(frame, node, each, name)
        elif name == "values":  # of a dict whose keys are not known
            return base
        elif name == "items":
            return Several([Several([NOTHING, each]) for each in base.items], base.open)
        return NOTHING
    if name == "values":
        return Several(list(base.items.values()))
    if name == "items":
        return Several([Several([Constant(key), item]) for key, item in base.items.items()])
    if name in ("get", "pop") and isinstance(arguments.first(), Constant):
        return base.items.get(arguments.first().value, NOTHING)  # type: ignore[attr-defined]
    if name == "update" and isinstance(arguments.first(), Mapping):
        base.items.update(arguments.first().items)  # type: ignore[attr-defined]
    return NOTHING


def _unseen_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    if "backward" in name.lower():
        fill(frame, node, NOTHING, Arguments.none())  # forward_backward_step and its kin
        return arguments.computed()
    if isinstance(base, Named):
        if name in ("values", "items"):
            inner = Named(f"{base.path}[*]")
            return Several([inner if name == "values" else Several([NOTHING, inner])], open=True)
        if arguments.optimizers() or arguments.has_modules():
            return _unseen(frame, name, arguments, base)
        computed = arguments.computed()
        if isinstance(computed, Tensor):
            return Arguments([Tensor(frozenset((base.path,))), computed], {}).computed()
        if arguments.all() and is_network_name(base.path):
            return forward(frame, frozenset((base.path,)), arguments)
        return NOTHING
    if isinstance(base, Instance) and not frame.program.is_module(base.cls):
        return arguments.computed()
    if isinstance(base, Module | Instance):
        # A method of a network computes with it; it hardly ever clears or steps.
        frame.emit(Haze(keys_of(base), whole=bool(arguments.optimizers())))
        return forward(frame, keys_of(base), arguments)
    return arguments.computed()


def _unseen(frame: Frame, name: str, arguments: Arguments, base: Value) -> Value:
    """A call that cannot be followed: it may do anything to what it is handed."""
    optimizers = arguments.optimizers()
    words = words_of(name)
    if is_optimizer_class(name) or (name[:1].isupper() and "optim" in name.lower()):
        if optimizers:
            return optimizers[0]  # a wrapper around the optimizer
        if arguments.has_params():
            return frame.program.new_optimizer(Several(arguments.all()))
    if is_scheduler_name(name):
        return NOTHING
    if not optimizers and is_optimizer_name(name) and _ACTING.isdisjoint(words):
        return frame.program.new_optimizer(Several(arguments.all()))  # get_optimizer(model, …)
    if optimizers and not name[:1].isupper() and not _ACTING.isdisjoint(words):
        frame.program.unresolved += 1
        keys = frozenset[str]().union(*(keys_of(each) for each in optimizers))
        frame.emit(Haze(keys, whole=True))
    elif arguments.has_modules() and not name[:1].isupper():
        modules: list[Value] = [
            each for each in arguments.all() if isinstance(each, Module | Instance | Named)
        ]
        frame.emit(Haze(keys_of(Several(modules)), whole=False))
    modules_called = keys_of(
        Several([each for each in leaves_of(Several(arguments.all())) if isinstance(each, Module)])
    )
    makes = name[:1].isupper() or not _NETWORKS.isdisjoint(words)
    computed = arguments.computed()
    if makes:
        return WRAPPED if computed is not NOTHING or frame.program.holds(arguments) else MADE
    if isinstance(computed, Tensor):
        return Tensor(
            computed.deps | modules_called,
            sure=False,
            scaler=computed.scaler,
            averaged=computed.averaged,
            leaves=computed.leaves,
        )
    return Tensor(modules_called, sure=False) if modules_called else NOTHING
