"""Patches on torch: put on when the first listener comes, all taken off when the last one goes.

What runs inside a graph that torch.compile traces lives in `traced_calls`; all
else here is kept out of graphs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as module_hooks
from torch.nn.utils import clip_grad
from torch.optim import optimizer as optimizer_module
from torch.optim.optimizer import Optimizer

from zerograd.runtime import fsdp_facts, graph_calls, scaler_calls, torch_facts, traced_calls
from zerograd.runtime.closures import heard as heard_closure
from zerograd.runtime.engine import EngineLog, engine_patches
from zerograd.runtime.forks import new_lock
from zerograd.runtime.listener import Listener
from zerograd.runtime.ride import CLEAR, STANDSTILL, STEP, Ride, Standstill

_ABSENT = object()  # of what a class has from another one
_KEPT_OUT = (
    *(
        "announce",
        "aside",
        "backwards",
        "buckets",
        "call_site",
        "called_code",
        "callers",
        "care",
        "clears",
        "closures",
        "confirm",
        "decorated",
        "engine",
        "exchanges",
        "feeding",
        "fsdp_facts",
        "graph_calls",
        "graphs",
        "guard",
        "in_sight",
    ),
    *(
        "hand_work",
        "hooks",
        "laps",
        "leaves",
        "ledger",
        "measuring",
        "memo",
        "moves",
        "names",
        "near",
        "on_the_way",
        "owners",
        "recorder",
    ),
    *(
        "replicas",
        "ride",
        "rounds",
        "sanitizer",
        "scaler_calls",
        "scaling",
        "steps",
        "torch_facts",
        "unseen",
        "vacant",
        "written",
    ),
)


_listeners: tuple[Listener, ...] = ()
_lock = new_lock()
_undo: list[Callable[[], object]] = []
_kept_out = False
_models_clip = False
_ride: Ride | None = None
_engine_log: EngineLog | None = None


def add(listener: Listener) -> None:
    """Let `listener` hear of every call from now on."""
    global _listeners
    _end_ride()  # only one listener can ride
    with _lock:
        _listeners = (*_listeners, listener)
        traced_calls.listeners = _listeners
        if not _undo:
            try:
                _put_on()
            except BaseException:
                _take_off()
                _listeners = traced_calls.listeners = ()
                raise


def remove(listener: Listener) -> None:
    """Let `listener` hear no more; with the last one, every patch comes off."""
    global _listeners
    _end_ride()
    with _lock:
        _listeners = tuple(each for each in _listeners if each is not listener)
        traced_calls.listeners = _listeners
        if not _listeners:
            _take_off()


def _end_ride() -> None:
    going = _ride
    if going is not None:
        going.end()  # takes the listener's own lock, so never under ours


def set_ride(ride: Ride | None) -> bool:
    """Tick calls off on this ride from now on, if there is one listener; None: no more."""
    global _ride
    if ride is not None and len(_listeners) != 1:
        return False
    _ride = traced_calls.ride = ride
    _ride_on(STANDSTILL if ride is None else ride)
    if _engine_log is not None:
        _engine_log.ride_on(ride)
    return True


def is_patched() -> bool:
    """Is any patch of ours on torch?"""
    return bool(_undo)


def _put_on() -> None:
    global _engine_log
    for place, name, value in engine_patches(_backward_begins):
        _patch(place, name, value)
        if isinstance(value, EngineLog):
            _engine_log = value
    handles = (
        optimizer_module.register_optimizer_step_pre_hook(_step_begins),
        optimizer_module.register_optimizer_step_post_hook(_step_ends),
        module_hooks.register_module_module_registration_hook(_registers),
        module_hooks.register_module_parameter_registration_hook(_registers),
    )
    _undo.extend(handle.remove for handle in handles)
    for owner, name, make in (
        (Optimizer, "zero_grad", _clearing),
        (Optimizer, "add_param_group", _holding),
    ):
        _patch(owner, name, make(getattr(owner, name)))
    scaler_calls.put_on(_patch)
    graph_calls.put_on(_patch)
    module = torch.nn.Module
    _patch(module, "zero_grad", traced_calls.module_clearing(module.zero_grad))
    inner = traced_calls.clipping(clip_grad._clip_grads_with_norm_)
    by_value = traced_calls.clipping(clip_grad.clip_grad_value_)
    _patch(clip_grad, "_clip_grads_with_norm_", inner)
    _patch(clip_grad, "clip_grad_value_", by_value)
    _patch(torch.nn.utils, "clip_grads_with_norm_", inner)
    _patch(torch.nn.utils, "clip_grad_value_", by_value)
    replica = torch.nn.parallel.DistributedDataParallel
    _patch(replica, "_post_forward", traced_calls.forwarding(replica._post_forward))
    _hear_models_clip()
    _keep_out_of_graphs()


def _keep_out_of_graphs() -> None:
    """Do so as soon as torch.compile is there, which the first optimizer sees to."""
    global _kept_out
    if _kept_out:
        return
    undo = torch_facts.keep_out_of_graphs(*(f"zerograd.runtime.{name}" for name in _KEPT_OUT))
    if undo is not None:
        _kept_out = True
        _undo.append(undo)


def _hear_models_clip() -> None:
    """Do so as soon as FSDP is there, whose models clip by themselves."""
    global _models_clip
    kind = None if _models_clip else fsdp_facts.wrapper()
    if kind is not None:
        _models_clip = True
        name = "clip_grad_norm_"
        _patch(kind, name, traced_calls.clipping(vars(kind)[name], is_models=True))


def _patch(place: Any, name: str, value: Any) -> None:
    before = vars(place).get(name, _ABSENT)
    setattr(place, name, value)

    def take_off() -> None:
        # Someone may have wrapped ours since: then it stays below theirs, and only hands on.
        if vars(place).get(name) is not value:
            return
        if before is _ABSENT:
            delattr(place, name)
        else:
            setattr(place, name, before)

    _undo.append(take_off)


def _take_off() -> None:
    global _kept_out, _models_clip
    while _undo:
        _undo.pop()()
    _kept_out = _models_clip = False


def _ticking() -> tuple[Any, Any, Any, Callable[[Ride | Standstill], None]]:
    """Return the hooks of step and clear, and what tells them on which ride they are.

    In a loop that is a habit, these are what watching costs. Between two of them torch
    fills the processor's caches with its own work, so each object touched on the way is
    fetched anew: hence one cell for all of them, and no name of a module looked up. An
    attribute is read before it is called: as a method, the interpreter would look for it in
    the class each time.
    """
    ride: Ride | Standstill = STANDSTILL

    def ride_on(new: Ride | Standstill) -> None:
        nonlocal ride
        ride = new

    def step_begins(
        optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        going = ride  # which may end at the turn
        leg = going.leg
        whose = leg.stepped
        if whose() is optimizer:
            canary = leg.canary
            parameter = canary()
            if parameter is not None and parameter.grad is not None:
                note = leg.note
                if note is not None:
                    note()
                turn = leg.turn
                if turn is None:
                    going.leg = leg.next
                elif left := going.left:
                    going.left = left - 1
                    going.leg = leg.next
                else:
                    turn()
                return None
        if isinstance(going, Ride) and going.ticks(id(optimizer) * 4 + STEP):
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if isinstance(closure, torch.nn.Module):
            closure = None  # one that asks for the model, and not for a loss
        for listener in _listeners:
            listener.step_begins(optimizer, closure)
        if closure is None or not callable(closure):
            return None
        if torch_facts.steps_around(id(optimizer)) > 1:
            return None  # the step around this one hears what it was given
        instead = _heard_closure(optimizer, closure)
        if len(args) > 1:
            return (args[0], instead, *args[2:]), kwargs
        return args, {**kwargs, "closure": instead}

    def step_ends(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not ride.is_going:
            for listener in _listeners:
                listener.step_ends(optimizer)

    def clearing(original: Any) -> Any:
        plain = getattr(original, "__wrapped__", original)
        through = original  # how torch's own wrapper calls the plain one, once that is known

        def heard(self: Optimizer, set_to_none: bool) -> Any:
            __tracebackhide__ = True
            nonlocal through
            going = ride
            if isinstance(going, Ride) and going.ticks(id(self) * 4 + CLEAR):
                return plain(self, set_to_none)
            for listener in _listeners:
                listener.clear_begins(self, set_to_none)
            plain(self, set_to_none)
            through = torch_facts.as_disabled(plain) or original
            for listener in _listeners:
                listener.clear_ends(self, set_to_none)
            return None

        aside = heard if plain is original else torch._disable_dynamo(heard)

        @functools.wraps(plain)
        def zero_grad(self: Optimizer, set_to_none: bool = True) -> Any:
            __tracebackhide__ = True
            going = ride
            leg = going.leg
            whose = leg.cleared
            if whose() is self:
                note = leg.note
                if note is not None:
                    note()
                turn = leg.turn
                if turn is None:
                    going.leg = leg.next
                elif left := going.left:
                    going.left = left - 1
                    going.leg = leg.next
                else:
                    turn()
                return through(self, set_to_none)
            return aside(self, set_to_none)

        # A call from compiled code leaves the graph where it always did, and nowhere else.
        if plain is not original:
            torch_facts.disable(zero_grad)
        return zero_grad

    return step_begins, step_ends, clearing, ride_on


_step_begins, _step_ends, _clearing, _ride_on = _ticking()


def _backward_begins(roots: Any) -> Callable[[], None]:
    heard = _listeners
    for listener in heard:
        listener.backward_begins(roots)
    return _backward_ends


def _backward_ends() -> None:
    for listener in _listeners:
        listener.backward_ends()


def _heard_closure(optimizer: Optimizer, closure: Callable[..., Any]) -> Callable[..., Any]:
    def begins() -> None:
        for listener in _listeners:
            listener.closure_begins(optimizer)

    def returns(loss: Any) -> None:
        for listener in _listeners:
            listener.closure_returns(optimizer, loss)

    return heard_closure(closure, begins, returns)


def _registers(module: torch.nn.Module, name: str, part: Any) -> None:
    if _listeners and not _models_clip:
        _hear_models_clip()
    for listener in _listeners:
        listener.registers(module, name, part)


def _holding(original: Any) -> Any:
    plain = getattr(original, "__wrapped__", original)

    @functools.wraps(plain)
    def add_param_group(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        plain(self, *args, **kwargs)
        if _listeners and not _kept_out:
            _keep_out_of_graphs()
        for listener in _listeners:
            listener.holds(self)

    return _as_torch_has_it(add_param_group, is_plain=plain is original)


def _as_torch_has_it(wrapper: Any, *, is_plain: bool) -> Any:
    """Return the wrapper disabled for torch.compile, if the original is.

    A call from compiled code then leaves the graph where it always did, and nowhere else.
    """
    # torch caches the disabled original on the function, and `wraps` has copied that.
    vars(wrapper).pop("__dynamo_disable", None)
    return wrapper if is_plain else torch._disable_dynamo(wrapper)
