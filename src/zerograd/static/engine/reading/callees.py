"""Who is called, as far as the text of a call, and the name in it, tells."""

from __future__ import annotations

import ast

from zerograd.static.engine.identity.definitions import Function
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.values import Named, Scaler, Value
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.stores import targets
from zerograd.static.engine.text.words import (
    clears_by_name,
    fills_by_name,
    is_loss_name,
    is_optimizer_name,
    is_scaler_name,
)


def fills_further_in(function: Function, name: str) -> bool:
    """Does it fill, by its name, further in than could be followed: where it calls others?"""
    return fills_by_name(name) and any(
        type(each) is ast.Call for each in function.unit.parts_of(function.node)
    )


def only_computes(frame: Frame, method: Function) -> bool:
    """`self.backward_G()`, then `self.loss_G.backward()`: does its caller send its loss back?"""
    if frame.node is None or not isinstance(method.node, FunctionNode):
        return False
    text = frame.unit.text_of(frame.node)
    return any(
        isinstance(each, ast.Attribute) and f"self.{each.attr}.backward(" in text
        for each in targets(method.node.body)
    )


def is_scaler(value: Value) -> bool:
    return isinstance(value, Scaler) or (isinstance(value, Named) and is_scaler_name(value.path))


def may_construct(node: ast.Call) -> bool:
    """`getattr(optim, name)(params)` and `OPTIMIZERS[name](params)` make optimizers."""
    return "optim" in ast.dump(node.func).lower()


def is_variable(frame: Frame, node: ast.Call) -> bool:
    """Is it no class for all its capitals: `BCE_loss`, `MSELoss`, `D`, which were assigned here?"""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if len(name) > 2 and "_" not in name and not is_loss_name(name):
        return False
    return name in frame.locals or name in frame.closure or name in frame.globals


def is_imported_optimizer(dotted: str) -> bool:
    """Is it an optimizer that another module keeps: `config.optimizer`, where that is imported?"""
    return is_optimizer_name(dotted.rsplit(".", 1)[-1]) and not dotted.startswith("torch.")


def is_of_torch(name: str) -> bool:
    """Is it, whatever it was assigned, the name of something that trains?"""
    return name in ("backward", "step", "manual_backward", "optimizers") or clears_by_name(name)
