"""Who owns a parameter: which Step, by which optimizer, and who else is about.

One parameter belongs to one Step. The Steps that are alive know of each other, so each
can keep its backward out of the others' gradients.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from zerograd.errors import StepError


class Guard:
    """Stands at the optimizers' own `step()`: inside a block, only the Step may call it.

    It also sees what a step carries. `stepped` counts the steps that really ran (a scaler
    leaves one out), `found_inf` keeps what a fused optimizer decides by on the device.
    """

    __slots__ = (
        "__weakref__",
        "found_inf",
        "handles",
        "is_open",
        "is_stepping",
        "owned",
        "scaler",
        "stepped",
    )

    def __init__(self, optimizers: Iterable[Optimizer], scaler: Any) -> None:
        self.is_open = False
        self.is_stepping = False
        self.stepped = 0
        self.found_inf: list[torch.Tensor] = []
        self.owned: dict[int, torch.Tensor] = {}
        self.scaler = scaler
        self.handles = [
            optimizer.register_step_pre_hook(self.before_step) for optimizer in optimizers
        ]

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.is_stepping:
            self.stepped += 1
            found_inf = getattr(optimizer, "found_inf", None)
            if found_inf is not None:
                self.found_inf.append(found_inf)
        elif self.is_open:
            raise StepError(
                f"{type(optimizer).__name__}.step() was called inside the block of a Step. "
                "Remove the call: the block steps once, when it ends."
            )

    def release(self) -> None:
        for handle in self.handles:
            handle.remove()
        # The garbage collector may call this while others go through the guards, so the set is
        # left as it is: who owns nothing is in nobody's way, and leaves it when it is gone.
        self.owned = {}
        self.scaler = None
        self.is_open = False


_GUARDS: weakref.WeakSet[Guard] = weakref.WeakSet()


class Registry:
    """Counts the claims made, so that each Step notices when its neighbours changed."""

    changes = 0


def claim(guard: Guard, parameters: list[torch.Tensor]) -> None:
    """Make `guard` the owner of these parameters, or raise StepError."""
    new = {id(parameter): parameter for parameter in parameters}
    for other in _GUARDS:
        if other is guard:
            continue
        shared = sum(1 for key in other.owned if key in new)
        if shared:
            guard.release()
            raise StepError(
                f"{shared} of these parameters belong to another Step already, and two owners "
                "would clear each other's gradients. Give both optimizers to one Step, "
                "Step(first, second), or call close() on the old Step before you make a new one."
            )
    guard.owned = new
    _GUARDS.add(guard)
    Registry.changes += 1


def neighbours(guard: Guard, models: Iterable[nn.Module]) -> list[torch.Tensor]:
    """Parameters that are not ours but that our losses may reach."""
    found: dict[int, torch.Tensor] = {}
    for model in models:
        # between forward and backward FSDP2 shows whole parameters in place of its shards:
        # these are ours under another name, and hold what is not exchanged yet
        is_sharded = any(hasattr(m, "set_requires_gradient_sync") for m in model.modules())
        for parameter in model.parameters():
            if not is_sharded or hasattr(parameter, "device_mesh"):
                found[id(parameter)] = parameter
    for other in _GUARDS:
        found.update(other.owned)
    return [parameter for key, parameter in found.items() if key not in guard.owned]


def shares_open_scaler(guard: Guard) -> bool:
    """Whether another block is open whose gradients carry the same scaler's factor."""
    return guard.scaler is not None and any(
        other.is_open and other.scaler is guard.scaler for other in _GUARDS if other is not guard
    )


def unwrap(optimizer: object) -> Optimizer:
    """The torch optimizer itself, out of what Accelerate or Fabric put round it."""
    seen = 0
    inner: Any = optimizer
    while isinstance(getattr(inner, "optimizer", None), Optimizer) and seen < 4:
        inner, seen = inner.optimizer, seen + 1
    if not isinstance(inner, Optimizer):
        raise TypeError(
            f"Step() takes optimizers, but got {type(optimizer).__name__}. "
            "Write Step(optimizer, models=[model])."
        )
    return inner


def count_parameters(optimizers: Iterable[Optimizer]) -> int:
    """How many the groups hold; it grows where a group is added."""
    count = 0
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            count += len(group["params"])
    return count


def parameters_of(optimizers: Iterable[Optimizer]) -> list[torch.Tensor]:
    """Every parameter once, over all groups of all optimizers."""
    found: dict[int, torch.Tensor] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                found[id(parameter)] = parameter
    return list(found.values())
