"""Calls: who is called, and what that does to gradients."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.choices import on_both_ways
from zerograd.static.engine.identity.definitions import Class, Function, Instance, Namespace, Super
from zerograd.static.engine.identity.endings import is_empty
from zerograd.static.engine.identity.frame import Frame, path_of, plain_name
from zerograd.static.engine.identity.groups import Groups
from zerograd.static.engine.identity.ir import Haze, has_effect
from zerograd.static.engine.identity.items import items_by, mapped
from zerograd.static.engine.identity.keepers import (
    ask_by_name,
    ask_made,
    hand_trainer,
    kept_above,
    tell,
)
from zerograd.static.engine.identity.keys import comes_from, keys_of
from zerograd.static.engine.identity.prepared import engine_method
from zerograd.static.engine.identity.values import (
    NOTHING,
    UNSEEN,
    Accelerator,
    Bound,
    Constant,
    Either,
    Engine,
    External,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Scaler,
    Several,
    Tensor,
    Value,
)
from zerograd.static.engine.reading.callees import (
    fills_further_in,
    is_imported_optimizer,
    is_of_torch,
    is_scaler,
    is_variable,
    may_construct,
    only_computes,
)
from zerograd.static.engine.reading.clips import clip, clip_by_name
from zerograd.static.engine.reading.construct import external_call
from zerograd.static.engine.reading.forwards import as_read, cuts, hands_networks
from zerograd.static.engine.reading.gradients import (
    gradient_method,
    set_gradient,
    sets_gradient,
    wipe_handed,
)
from zerograd.static.engine.reading.implied import handed_through
from zerograd.static.engine.reading.scalers import hand_scaler, run_scaler, scaler_method
from zerograd.static.engine.reading.tensors import weighed
from zerograd.static.engine.reading.things import thing_method
from zerograd.static.engine.reading.training import (
    accelerator_method,
    clear,
    fill,
    manual_backward,
    optimizer_method,
    step,
)
from zerograd.static.engine.reading.unseen import forward, inherited, unseen
from zerograd.static.engine.reading.wrappers import by_wrapper
from zerograd.static.engine.text.doing import is_emptying
from zerograd.static.engine.text.methods import OF_MODULES
from zerograd.static.engine.text.words import (
    CLIPS,
    clears_by_name,
    clips_by_name,
    fills_by_name,
    is_optimizer_class,
    is_scaler_name,
    is_scheduler_name,
    resets_neurons,
    words_of,
)

_MAKING = frozenset(("build", "create", "make", "get", "load", "init", "setup", "parse", "new"))
_MAKERS = frozenset(("builder", "factory", "maker", "constructor", "creator", "cls"))


def call(frame: Frame, node: ast.Call) -> Value:
    """Return what a call gives; the events it sets off go to the frame."""
    function = node.func
    if type(function) is ast.Attribute:
        base = frame.program.evaluate(frame, function.value)
        return _method(frame, node, base, function.attr)
    callee = frame.program.evaluate(frame, function)
    return _call_value(frame, node, callee)


def _call_value(frame: Frame, node: ast.Call, callee: Value) -> Value:
    if type(callee) is Either:
        return on_both_ways(frame, callee, lambda each: _call_value(frame, node, each))
    arguments = Arguments.of(frame, node)
    if type(callee) is Function:
        name = plain_name(node)
        if frame.program.wraps and by_wrapper(frame, node, name, None, arguments):
            return NOTHING
        before = len(frame.out)
        returned = frame.program.invoke(frame, node, callee, arguments)
        clip_by_name(frame, node, name, arguments, frame.out[before:])
        if fills_further_in(callee, name) and not has_effect(frame.out[before:]):
            fill(frame, node, NOTHING, Arguments.none())
        return returned
    if type(callee) is Class:
        return frame.program.instantiate(frame, node, callee.unit, arguments)
    if type(callee) is External:
        return _external(frame, node, callee.dotted, arguments)
    if type(callee) is Bound and callee.of is NOTHING:  # of whatever it is handed
        callee = Bound(arguments.first(), callee.name)
        arguments = Arguments(arguments.positional[1:], arguments.named)
    if type(callee) is Bound:
        read = _METHODS.get(type(callee.of), thing_method)
        return read(frame, node, callee.of, callee.name, arguments)
    if type(callee) is Scaler:
        return run_scaler(frame, node, arguments)
    if type(callee) is Instance:
        return _call_instance(frame, node, callee, arguments)
    if type(callee) is Module:
        return forward(frame, frozenset((callee.key,)), arguments)
    if type(callee) is Several and keys_of(callee):  # no list is called: a chain of networks
        return forward(frame, keys_of(callee), arguments)
    if isinstance(node.func, ast.Call) and fills_by_name(plain_name(node.func)):
        fill(frame, node, arguments.first(), Arguments.none())  # ScaledBackward(scaler)(loss)
        return NOTHING
    before = len(frame.out)
    hand_trainer(frame, node, arguments)
    returned = _unknown(frame, node, callee, arguments)
    name = plain_name(node)
    if clips_by_name(name) and not any(map(is_scaler, arguments.leaves())):  # it may unscale
        clip_by_name(frame, node, name, arguments, frame.out[before:])
    return returned


def _unknown(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    """A call of what is known by its path only, or not even by that."""
    if type(callee) is Named:
        return _named(frame, node, callee.path, arguments)
    if isinstance(callee, Tensor):  # none is called: an unseen function made another one
        name = plain_name(node) if arguments.optimizers() else ""
        return unseen(frame, name if is_scheduler_name(name) else "", arguments, callee)
    if isinstance(callee, (Leaf, Params, Optimizer)):
        return NOTHING
    if arguments.has_params() and may_construct(node):
        return frame.program.new_optimizer(arguments.first())
    ask_by_name(frame, node, arguments)
    return unseen(frame, "", arguments, NOTHING)


def _external(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments) -> Value:
    name = dotted.rsplit(".", 1)[-1]
    if frame.program.wraps and by_wrapper(frame, node, name, None, arguments):
        return NOTHING
    if name in CLIPS:
        return clip(frame, node, arguments)
    if name == "backward" and "dist" not in dotted:
        fill(frame, node, arguments.first(), arguments)
        return NOTHING
    if name == "optimizer_step":  # torch_xla
        step(frame, node, arguments.first(), arguments, node.args[0] if node.args else node)
        return NOTHING
    runs = is_scaler_name(name) and not name[:1].isupper()  # else it makes one
    if runs and arguments.optimizers() and "step" not in words_of(name):
        return run_scaler(frame, node, arguments)
    if name == "_foreach_zero_":
        to_zero = Arguments([NOTHING, Constant(False)], {})
        clear(frame, node, Several(arguments.gradients()), to_zero)
        return NOTHING
    if name[-1:] == "_" and wipe_handed(frame, node, name, arguments):
        return NOTHING
    made = external_call(frame, dotted, arguments)
    if made is not None:
        return made
    if clears_by_name(name):
        clear(frame, node, Several(arguments.positional), arguments)
        return NOTHING
    computes = dotted.startswith(("torch.", "math.", "numpy.", "os.", "time."))
    if computes or resets_neurons(dotted):
        return weighed(arguments.computed(), name)
    between = frame.program.has_several_optimizers and hands_networks(frame, arguments)
    if between or arguments.optimizers():
        function = frame.program.plain_function(frame.unit, node.func)
        if function is not None:  # whose network does the loss come from, and who else steps?
            return frame.program.invoke(frame, node, function, arguments)
    tell(frame, dotted, arguments)
    hand_trainer(frame, node, arguments)
    hand_scaler(frame, node, name, arguments)
    return unseen(frame, name, arguments, NOTHING)


def _named(frame: Frame, node: ast.Call, path: str, arguments: Arguments) -> Value:
    """A callable known by its path only: a builtin, a network, a loss, an unseen function."""
    if frame.program.wraps and by_wrapper(frame, node, path, None, arguments):
        return NOTHING
    if path == "exec" or (path == "eval" and frame.bare):
        frame.emit(Haze(None, whole=True))  # code that is made elsewhere may do all
        return NOTHING
    if path == "super" and isinstance(frame.self_value, Instance) and frame.owner is not None:
        return Super(frame.self_value, frame.owner)
    function, *columns = arguments.positional or [NOTHING]
    if path == "map" and isinstance(function, Function | Instance | Module):
        return mapped(lambda given: _call_one(frame, node, function, given), columns)
    if path == "setattr" and sets_gradient(arguments):
        set_gradient(frame, node, arguments)
        return NOTHING
    if path in _BUILTINS:
        made = external_call(frame, f"builtins.{path}", arguments)
        return made if made is not None else arguments.computed()
    if is_scaler_name(path) and arguments.positional:
        return run_scaler(frame, node, arguments)
    # what was taken out of something else is told by the name that it was given
    name = (plain_name(node) if path.endswith("]") else "") or path.rsplit(".", 1)[-1]
    if name in CLIPS:
        return clip(frame, node, arguments)
    if clears_by_name(name) and arguments.positional:
        clear(frame, node, Several(arguments.positional), arguments)
        return NOTHING
    if is_optimizer_class(name) and arguments.positional and name[:1].isupper():
        return frame.program.new_optimizer(arguments.held())
    words = words_of(name)
    if frame.bare and not arguments.all() and is_emptying(name) and name in frame.locals:
        frame.emit(Haze(None, whole=True))  # a function that was handed in: clear()
    # `G(z)` and `new_net(z)` make one, unless they were seen to be one: G.parameters()
    known = path in frame.program.networks
    a_class = name[:1].isupper() and not known
    if a_class and is_variable(frame, node):
        a_class, name = False, name.lower()
    handed = arguments.all() or (arguments.unknown and frame.program.is_network(path))
    makes = not handed or a_class or (not known and not _MAKING.isdisjoint(words[:1]))
    makes = makes or (not _MAKERS.isdisjoint(words) and not frame.asks_parameters_of(path))
    if makes or arguments.optimizers() or arguments.has_modules() or is_emptying(name):
        hand_scaler(frame, node, name, arguments)
        return unseen(frame, name, arguments, Named(path))
    return forward(frame, frozenset((path,)), arguments)


_BUILTINS = frozenset(
    (
        *("print", "len", "range", "enumerate", "zip", "list", "tuple", "set", "dict", "filter"),
        *("map", "sorted", "reversed", "iter", "next", "sum", "min", "max", "abs", "float"),
        *("int", "str", "bool", "isinstance", "hasattr", "getattr", "setattr", "type", "super"),
        *("id", "repr", "open", "vars", "any", "all", "round", "callable", "input", "format"),
    )
)


def _call_one(
    frame: Frame, node: ast.Call, callee: Function | Instance | Module, arguments: Arguments
) -> Value:
    if isinstance(callee, Function):
        return frame.program.invoke(frame, node, callee, arguments)
    if isinstance(callee, Instance):
        return _call_instance(frame, node, callee, arguments)
    return forward(frame, keys_of(callee), arguments)


def _call_instance(frame: Frame, node: ast.Call, callee: Instance, arguments: Arguments) -> Value:
    program = frame.program
    if program.is_module(callee.cls):
        method = program.method(callee, "forward")
        if method is not None and method.unit.has_events(method.node):
            given = program.invoke(frame, node, method, arguments)  # a loss that goes back itself
            if program.has_several_optimizers:
                return as_read(forward(frame, keys_of(callee), arguments), given, callee)
        elif method is not None and program.has_several_optimizers and cuts(method, arguments):
            given = program.invoke(frame, node, method, arguments)
            return as_read(forward(frame, keys_of(callee), arguments), given, callee)
        return forward(frame, keys_of(callee), arguments)
    method = program.method(callee, "__call__")
    if method is not None:
        return program.invoke(frame, node, method, arguments)
    return unseen(frame, callee.cls.name, arguments, callee)


def _method(frame: Frame, node: ast.Call, base: Value, name: str) -> Value:
    program = frame.program
    if type(base) is Either:
        return on_both_ways(frame, base, lambda each: _method(frame, node, each, name))
    if type(base) in _SCOPES:
        callee = program.attribute(frame, base, name)
        if callee is NOTHING and type(base) is Super:
            if name == "__init__":
                kept_above(frame, node, base.of)
                return NOTHING
            return _framework_method(frame, node, base.of, name, Arguments.of(frame, node))
        return _call_value(frame, node, callee)
    if type(base) is External:
        if name in ("step", "zero_grad") and is_imported_optimizer(base.dotted) and not node.args:
            optimizer = program.named_optimizer(base.dotted)
            return optimizer_method(frame, node, optimizer, name, Arguments.of(frame, node))
        return _external(frame, node, f"{base.dotted}.{name}", Arguments.of(frame, node))
    arguments = Arguments.of(frame, node)
    if frame.program.wraps and by_wrapper(frame, node, name, base, arguments):
        return NOTHING
    if base in UNSEEN and isinstance(node.func.value, ast.Call):  # type: ignore[attr-defined]
        ask_made(frame, node.func.value, name)  # type: ignore[attr-defined]
    read = _METHODS.get(type(base), thing_method)
    return read(frame, node, base, name, arguments)


def _instance_method(
    frame: Frame, node: ast.Call, base: Instance, name: str, arguments: Arguments
) -> Value:
    program = frame.program
    method = program.method(base, name)
    if method is not None:
        before = len(frame.out)
        returned = program.invoke(frame, node, method, arguments)
        clip_by_name(frame, node, name, arguments, frame.out[before:])
        if is_empty(method.node):
            inherited(frame, name, arguments)
        if program.is_cleared_below(base, method):
            frame.emit(Haze(None, whole=True))
        if fills_by_name(name) and not has_effect(frame.out[before:]):
            if is_empty(method.node):  # another class does it, and what else nobody knows
                frame.emit(Haze(None, whole=True))
            elif fills_further_in(method, name) and not only_computes(frame, method):
                fill(frame, node, NOTHING, Arguments.none())
        if not frame.bare and program.is_module(base.cls) and not comes_from(returned, base.key):
            program.asked.add(base.key)
        return returned
    value = program.instance_attribute(base, name) if program.has_attribute(base, name) else None
    if isinstance(value, Named) and name[:1].isupper() and arguments.all():
        return forward(frame, frozenset((value.path,)), arguments)  # self.BCE_loss: no class
    if value is not None and not (isinstance(value, Named) and is_of_torch(name)):
        return _call_value(frame, node, value)
    if value is None and frame.asks_parameters_of(path_of(node.func)):
        return forward(frame, frozenset((f"{base.key}.{name}",)), arguments)  # a base class made it
    inner = handed_through(frame, base)
    if isinstance(inner, Optimizer | Module | Instance):
        return _method(frame, node, inner, name)
    return _framework_method(frame, node, base, name, arguments)


def _framework_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    """A method that a class of the project inherits from outside it."""
    runs = name in ("forward", "__call__") and isinstance(base, Instance)
    if runs and frame.program.is_module(base.cls):  # type: ignore[attr-defined]
        return forward(frame, keys_of(base), arguments)
    if name == "manual_backward":
        manual_backward(frame, node, arguments)
        return NOTHING
    if name == "optimizers" and isinstance(base, Instance):
        return frame.program.lightning_optimizers(base)
    if isinstance(base, Instance) and base.cls.bases and not frame.program.is_module(base.cls):
        inherited(frame, name, arguments)
    return thing_method(frame, node, base, name, arguments)


def _container_method(
    frame: Frame, node: ast.Call, base: Several | Mapping, name: str, arguments: Arguments
) -> Value:
    if isinstance(base, Several):
        if name in ("step", "zero_grad"):
            for each in base.items:
                _method(frame, node, each, name)
            return NOTHING
        if name == "backward":  # no list has it: this is some loss that was not understood
            fill(frame, node, NOTHING, Arguments.none())
            return NOTHING
        whole = name in OF_MODULES or name == "load_state_dict"
        if whole and not base.open and keys_of(base):  # of a ModuleList
            return thing_method(frame, node, base, name, arguments)
    elif name in base.items and not hasattr(dict, name):  # a namespace
        return _call_value(frame, node, base.items[name])
    return items_by(frame, base, name, arguments)


_SCOPES = frozenset[type[Value]]((Namespace, Class, Super))
_METHODS: dict[type[Value], Callable[[Frame, ast.Call, Any, str, Arguments], Value]] = {
    Instance: _instance_method,
    Optimizer: optimizer_method,
    Scaler: scaler_method,
    Engine: engine_method,
    Accelerator: accelerator_method,
    Gradient: gradient_method,
    Several: _container_method,
    Groups: _container_method,
    Mapping: _container_method,
}
