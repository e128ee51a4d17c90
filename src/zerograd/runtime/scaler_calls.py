"""Patches on loss scalers: torch's own, and classes made from it with methods of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch.amp.grad_scaler import GradScaler
from torch.optim.optimizer import Optimizer

from zerograd.runtime import traced_calls

Patch = Callable[[Any, str, Any], None]


def put_on(patch: Patch) -> None:
    """Patch the scalers that there are, and those whose class is made later.

    Their making is left alone: torch warns in it of a device that is not there, and names the line
    of who called it.
    """
    _put_on(GradScaler, patch)
    for kind in _made_from(GradScaler):
        _put_on(kind, patch)
    patch(GradScaler, "__init_subclass__", _deriving(patch))


def _made_from(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _made_from(each)


def _put_on(kind: type[Any], patch: Patch) -> None:
    for name, make in _WRAPPERS.items():
        method = vars(kind).get(name)
        code = getattr(method, "__code__", None)
        if code is None or vars(method).get("is_heard"):
            continue
        # One that hands on to the method it stands for is heard there.
        bases = {"super", *(each.__name__ for each in kind.__mro__[1:-1])}
        if kind is GradScaler or bases.isdisjoint((*code.co_names, *code.co_freevars)):
            wrapper = make(method)
            wrapper.is_heard = True
            patch(kind, name, wrapper)


def _deriving(patch: Patch) -> Any:
    def __init_subclass__(cls: type[Any], /, **options: Any) -> None:
        super(GradScaler, cls).__init_subclass__(**options)
        if traced_calls.listeners:
            _put_on(cls, patch)

    return classmethod(__init_subclass__)


def _scaling(original: Any) -> Any:
    @functools.wraps(original)
    def scale(self: GradScaler, outputs: Any) -> Any:
        __tracebackhide__ = True
        scaled = original(self, outputs)
        if self.is_enabled():
            for listener in traced_calls.listeners:
                listener.scales(self, scaled)
        return scaled

    return scale


def _unscaling(original: Any) -> Any:
    @functools.wraps(original)
    def unscale_(self: GradScaler, optimizer: Optimizer) -> None:
        __tracebackhide__ = True
        heard = traced_calls.listeners if self.is_enabled() else ()
        failed = True
        try:
            original(self, optimizer)
            failed = False
        finally:
            for listener in heard:
                listener.unscaled(self, optimizer, failed)

    return unscale_


def _stepping(original: Any) -> Any:
    @functools.wraps(original)
    def step(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        heard = traced_calls.listeners if self.is_enabled() else ()
        for listener in heard:
            listener.scaler_step_begins(self, optimizer)
        failed = True
        try:
            result = original(self, optimizer, *args, **kwargs)
            failed = False
        finally:
            for listener in heard:
                listener.scaler_step_ends(self, optimizer, failed)
        return result

    return step


def _updating(original: Any) -> Any:
    @functools.wraps(original)
    def update(self: GradScaler, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        if self.is_enabled():
            for listener in traced_calls.listeners:
                listener.scaler_updates(self)
        original(self, *args, **kwargs)

    return update


_WRAPPERS = {"scale": _scaling, "unscale_": _unscaling, "step": _stepping, "update": _updating}
