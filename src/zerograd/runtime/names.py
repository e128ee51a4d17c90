"""What the user's program calls things: asked only when there is something to tell.

Names are a courtesy. All objects alive are looked at, those of classes nobody here has seen among
them, so none of their own code is asked where it can be avoided, and what fails has no name.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

from torch import Tensor
from torch.nn import Module

MOST_NAMES = 64
# What torch's wrappers, Fabric's and those of checkpoints call the module inside.
_WRAPPERS = frozenset(
    {
        *("module", "_orig_mod", "_forward_module"),
        *("_fsdp_wrapped_module", "_checkpoint_wrapped_module"),
    }
)


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
    for name, parameter in _parameters_of(model):
        if id(parameter) in wanted:
            name = ".".join(part for part in name.split(".") if part not in _WRAPPERS)
            # Of two modules that hold it, the outer one has the longer name for it.
            if len(name) > len(found.get(id(parameter), "")):
                found[id(parameter)] = name


def _parameters_of(model: Module) -> Iterator[tuple[str, Tensor]]:
    try:
        yield from Module.named_parameters(model)
    except Exception:  # not made to its end, or a part of it walks in a way of its own
        return


def _outermost_modules() -> list[Module]:
    modules = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), Module) and not _is_made_by_compiler(each)
    ]
    inner = {id(child) for module in modules for child in list(_own(module, "_modules").values())}
    return [module for module in modules if id(module) not in inner]


def _is_made_by_compiler(module: Module) -> bool:
    """Is it a graph of torch.compile's, which has names of its own for all that it takes in?"""
    return "dynamo_compile_id" in _own(module, "meta")


def _own(module: Module, name: str) -> dict[str, Any]:
    """Return what stands in the module itself under this name, if that is a dictionary."""
    found = object.__getattribute__(module, "__dict__").get(name)
    return found if hasattr(type(found), "values") and hasattr(type(found), "keys") else {}


def has_networks() -> bool:
    """Is any module alive that has parameters? Takes a moment, too."""
    return any(next(_parameters_of(module), None) is not None for module in _outermost_modules())


def name_in_frames(thing: Any, *, within: bool = False, known_as: str = "") -> str:
    """Return the variable that holds `thing` in the nearest frame that has one, or "".

    Of several it is the first: `for opt in (opt_g, opt_d)` has one name for both of them.

    Args:
        within: look into the variables too: `self.opt`, `opts["g"]`.
        known_as: only where this variable holds it as well.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        try:
            name = _name_in(frame, thing, within, known_as)
        except Exception:  # a variable's own code failed, or another thread changed what it holds
            name = ""
        if name:
            return name
        frame = frame.f_back
    return ""


def _name_in(frame: FrameType, thing: Any, within: bool, known_as: str) -> str:
    if frame.f_globals.get("__name__", "").startswith(("zerograd.", "torch.")):
        return ""
    variables = frame.f_locals
    try:
        if known_as and variables.get(known_as) is not thing:
            return ""
        for name, value in variables.items():
            if value is thing:
                return name
        for name, value in variables.items() if within else ():
            part = _part_of(value, thing)
            if part:
                return f"{name}{part}"
        return ""
    finally:
        _let_go(frame, variables)


def variables_of(frame: FrameType) -> dict[str, Any]:
    """Return what the names in a frame stand for, its own before those of its module."""
    variables = frame.f_locals
    try:
        return frame.f_globals | variables
    finally:
        if variables is not frame.f_globals:
            _let_go(frame, variables)


def _let_go(frame: FrameType, variables: Any) -> None:
    """Empty the copy of a function's variables: it would keep the user's tensors alive."""
    is_copy = frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13)
    if is_copy and sys.gettrace() is None:
        variables.clear()


def _part_of(holder: Any, thing: Any) -> str:
    """Return `.opt` or `[0]`: how `thing` is reached from a plain object, list or dictionary."""
    kind = type(holder)
    if kind is dict:
        keys = (key for key, value in holder.items() if value is thing)
        return next((f"[{key!r}]" for key in keys if type(key) in (str, int)), "")
    if kind in (list, tuple):
        return next((f"[{n}]" for n, value in enumerate(holder[:MOST_NAMES]) if value is thing), "")
    if kind is ModuleType or issubclass(kind, type):
        return ""
    try:  # the object's own, whatever its class does on being asked
        held = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return ""
    return next((f".{name}" for name, value in held.items() if value is thing), "")
