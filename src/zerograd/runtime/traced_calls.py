"""Wrappers that torch.compile may trace: each hands over to the original while it does.

torch.compile sees through these functions, so a graph that it makes holds the
original calls alone, with no break more than without us.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from zerograd.runtime import fsdp_facts
from zerograd.runtime.ride import CLEAR as _CLEAR
from zerograd.runtime.ride import CLIP as _CLIP

listeners: tuple[Any, ...] = ()
ride: Any = None
CLIP_CODE: Any = None  # of every clip that tells of itself


def module_clearing(original: Any) -> Any:
    """Return `Module.zero_grad` that tells of itself."""

    @functools.wraps(original)
    def zero_grad(self: torch.nn.Module, set_to_none: bool = True) -> None:
        if torch.compiler.is_compiling():
            return original(self, set_to_none)  # type: ignore[no-any-return]
        __tracebackhide__ = True
        if ride is not None and ride.ticks(id(self) * 4 + _CLEAR):
            return original(self, set_to_none)  # type: ignore[no-any-return]
        for listener in listeners:
            listener.clear_begins(self, set_to_none)
        original(self, set_to_none)
        for listener in listeners:
            listener.clear_ends(self, set_to_none)
        return None

    return zero_grad


def forwarding(original: Any) -> Any:
    """Return the end of a DDP forward that tells of itself."""

    @functools.wraps(original)
    def post_forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if torch.compiler.is_compiling():
            return result
        if torch.is_grad_enabled():
            for listener in listeners:
                listener.forwarded(self, bool(self.require_backward_grad_sync))
        return result

    return post_forward


def clipping(original: Any, *, is_models: bool = False) -> Any:
    """Return a clip that tells of itself, unless its bound is infinite: that only measures.

    Args:
        original: the clip.
        is_models: it is a method of a model, FSDP's.
    """
    read = _arguments_of_a_model if is_models else _arguments

    @functools.wraps(original)
    def clip(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        __tracebackhide__ = True
        parameters, bound, args, kwargs = read(args, kwargs)
        if not listeners or parameters is None:
            return original(*args, **kwargs)
        norm = kwargs.get("total_norm", args[2] if len(args) > 2 else None)
        if bound == float("inf"):
            for listener in listeners:
                listener.measured(parameters, norm)
            result = original(*args, **kwargs)
            if ride is None:  # multiplied by one: nothing has changed but the version
                for listener in listeners:
                    listener.clipped(parameters)
            return result
        if ride is not None and ride.ticks(_CLIP):
            return original(*args, **kwargs)
        for listener in listeners:
            listener.clips(parameters, norm)
        result = original(*args, **kwargs)
        for listener in listeners:
            listener.clipped(parameters)
        return result

    global CLIP_CODE
    CLIP_CODE = getattr(clip, "__code__", None)
    return clip


def _arguments_of_a_model(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]]:
    """Return the same for a model's own clip, the model in the place of its parameters.

    None instead, if it leaves the work to torch's, which is heard.
    """
    bound = args[1] if len(args) > 1 else kwargs.get("max_norm")
    return args[0] if fsdp_facts.clips_itself(args[0]) else None, bound, args, kwargs


def _arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]]:
    """Return the parameters, the bound, and arguments for the original that hold no iterator.

    A generator would be empty for the original once we had looked.
    """
    bound = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
    parameters = args[0] if args else kwargs.get("parameters", ())
    if isinstance(parameters, (torch.Tensor, list, tuple)):
        return parameters, bound, args, kwargs
    parameters = list(parameters)
    if args:
        return parameters, bound, (parameters, *args[1:]), kwargs
    return parameters, bound, args, {**kwargs, "parameters": parameters}
