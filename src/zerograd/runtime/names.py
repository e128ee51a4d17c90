"""What the user's program calls things: asked only when there is something to tell."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from torch import Tensor
from torch.nn import Module

MOST_NAMES = 64
_WRAPPERS = ("_orig_mod.", "module.", "_fsdp_wrapped_module.")


def parameter_names(parameters: Sequence[Tensor], models: Iterable[Module] = ()) -> list[str]:
    """Return the name that each parameter has in its outermost module.

    Modules that nobody showed us are searched among all objects alive, which
    takes a moment; findings are rare.
    """
    wanted = {id(parameter) for parameter in parameters}
    found: dict[int, str] = {}
    for model in models:
        _name(model, wanted, found)
    if len(found) < len(wanted):
        for model in _outermost_modules():
            _name(model, wanted, found)
    return list(found.values())[:MOST_NAMES]  # in the order of the modules


def _name(model: Module, wanted: set[int], found: dict[int, str]) -> None:
    for name, parameter in model.named_parameters():
        if id(parameter) in wanted:
            for wrapper in _WRAPPERS:
                name = name.replace(wrapper, "")
            # Of two modules that hold it, the outer one has the longer name for it.
            if len(name) > len(found.get(id(parameter), "")):
                found[id(parameter)] = name


def _outermost_modules() -> list[Module]:
    modules = [each for each in gc.get_objects() if issubclass(type(each), Module)]
    inner = {id(child) for module in modules for child in module._modules.values()}
    return [module for module in modules if id(module) not in inner]


def name_in_frames(thing: Any) -> str:
    """Return the variable that holds `thing` in the nearest frame that has one, or ""."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = _name_in(frame, thing)
        if name:
            return name
        frame = frame.f_back
    return ""


def _name_in(frame: FrameType, thing: Any) -> str:
    if frame.f_globals.get("__name__", "").startswith(("zerograd.", "torch.")):
        return ""
    variables = frame.f_locals
    try:
        return next((name for name, value in variables.items() if value is thing), "")
    finally:
        is_copy = frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13)
        if is_copy and sys.gettrace() is None:
            variables.clear()  # or the copy would keep the user's tensors alive
