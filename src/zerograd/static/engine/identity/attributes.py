"""Attributes: what `value.name` stands for."""

from __future__ import annotations

from zerograd.static.engine.identity.choices import either
from zerograd.static.engine.identity.definitions import Class, Instance, Namespace, Super
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.groups import Groups
from zerograd.static.engine.identity.values import (
    NOTHING,
    Bound,
    Either,
    External,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Scaler,
    Tensor,
    Value,
)
from zerograd.static.engine.text.words import (
    is_data_name,
    is_optimizer_name,
    is_scaler_name,
    words_of,
)

CUTS = frozenset(
    ["data", "shape", "dtype", "device", "grad_fn", "is_leaf", "requires_grad", "ndim", "itemsize"]
)
_OF_SCALERS = frozenset(("scale", "step", "unscale_", "update"))
_OF_OPTIMIZERS = frozenset(("param_groups", "step", "zero_grad"))
# words of the attribute in which a wrapper keeps its one optimizer: `opt`, `_base_optimizer`
_WRAPPED = frozenset(("optimizer", "optim", "opt", "base", "inner", "wrapped"))


def attribute(frame: Frame, base: Value, name: str) -> Value:
    """Return the attribute `name` of a value."""
    if base is NOTHING:
        return NOTHING
    if type(base) is External:
        return frame.program.submodule(frame.unit, f"{base.dotted}.{name}")
    if type(base) is Named:
        if name == "optimizer":  # of a scheduler that was made from it
            known = frame.program.attached(base.path, name)
            if known is not None:
                return known
        if name in _OF_OPTIMIZERS and is_optimizer_name(base.path):
            return _optimizer_attribute(frame.program.named_optimizer(base.path), name)
        if name in _OF_SCALERS and is_scaler_name(base.path):
            return Bound(frame.program.named_scaler(base.path), name)
        if is_scaler_name(name) and is_optimizer_name(base.path):
            return _own_scaler(base.path, name)
        if name in ("backward", "zero_grad"):
            return Bound(base, name)
        return Gradient(base) if name == "grad" else Named(f"{base.path}.{name}")
    if type(base) is Instance:
        return frame.program.instance_attribute(base, name)
    if type(base) is Module:
        return _module_attribute(frame, base, name)
    if isinstance(base, (Params, Leaf, Tensor)):
        if name == "grad":
            return Gradient(base)
        if name == "backward" and not isinstance(base, Params):
            return Bound(base, name)
        if name in ("data", "detach") and not isinstance(base, Tensor):
            return base
        if name == "backward":
            return Bound(base, name)
        return Tensor() if name in CUTS else base
    if type(base) is Either:
        sides = [attribute(frame, each, name) for each in (base.then, base.otherwise)]
        return either(frame.program, base.test, *sides)
    if type(base) is Gradient:
        return base
    if type(base) is Optimizer:
        return _optimizer_attribute(base, name)
    if type(base) is Scaler:
        return Bound(base, name)
    if type(base) is Namespace:
        return frame.program.member(base.unit, name) or NOTHING
    if type(base) is Mapping:
        return base.items.get(name, NOTHING)
    if type(base) is Class:
        return frame.program.class_attribute(base, name)
    if type(base) is Super:
        return frame.program.super_attribute(base, name)
    return NOTHING


def _module_attribute(frame: Frame, base: Module, name: str) -> Value:
    known = frame.program.attached(base.key, name)
    if known is not None:
        return known
    if name == "module":  # DataParallel and its kin
        return base
    if name == "grad":  # then this part is a parameter
        return Gradient(base)
    if name == "zero_grad":
        return Bound(base, name)
    path = f"{base.key}.{name}"
    return Named(path) if is_optimizer_name(path) or is_data_name(path) else Module(path)


def _optimizer_attribute(base: Optimizer, name: str) -> Value:
    if name == "param_groups":
        keys = base.keys if base.keys is not None else frozenset((f"?{base.key}",))
        return Groups(Params(keys), base.groups)
    words = words_of(name)
    if words and _WRAPPED.issuperset(words):
        return base
    if is_scaler_name(name):
        return _own_scaler(base.key, name)
    return Bound(base, name) if name in _OF_OPTIMIZERS else NOTHING


def _own_scaler(optimizer: str, name: str) -> Scaler:
    """The scaler that an optimizer keeps: its own step takes the factor out."""
    return Scaler(f"{optimizer}.{name}", live=False)
