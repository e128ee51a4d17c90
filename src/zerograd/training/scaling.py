"""`GradScaler` inside a Step: unscale, step and update, each once and in this order.

All optimizers of a Step take the step, or none does: one block is one update. The scaler
keeps "an infinity was found" an optimizer, so the flags are joined. This module is the
only place that knows where the scaler keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.optim import Optimizer


def is_fused(optimizer: Optimizer) -> bool:
    """Whether the optimizer itself leaves the step out on the device."""
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False))


def unscale(scaler: Any, optimizers: Iterable[Optimizer]) -> None:
    for optimizer in optimizers:
        scaler.unscale_(optimizer)


def join_flags(
    scaler: Any, optimizers: list[Optimizer], invalid: torch.Tensor | None = None
) -> None:
    """Make "an infinity was found" true for all of them if it is for one, on the device."""
    flags = [
        flag
        for optimizer in optimizers
        for flag in scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values()
    ]
    if not flags or (len(flags) == 1 and invalid is None):
        return
    home = flags[0].device
    joined = torch.stack([flag.to(home).reshape(()) for flag in flags]).amax()
    if invalid is not None:
        joined = torch.maximum(joined, invalid.to(home, joined.dtype))
    for flag in flags:
        flag.copy_(joined.to(flag.device))


def forget(scaler: Any, optimizers: Iterable[Optimizer]) -> None:
    """Undo an unscale whose step will not come, so that the next window starts clean."""
    for optimizer in optimizers:
        scaler._per_optimizer_states.pop(id(optimizer), None)


class Skip:
    """Whether a step was left out, where only the device knows: copied, not waited for."""

    __slots__ = ("_event", "_host")

    def __init__(self, flags: list[torch.Tensor]) -> None:
        home = flags[0].device
        flag = torch.stack([f.detach().to(home).reshape(()).float() for f in flags]).amax()
        self._event: Any = None
        if home.type == "cuda":
            self._host = torch.empty((), dtype=torch.float32, pin_memory=True)
            self._host.copy_(flag, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()
        else:
            self._host = flag

    @property
    def is_known(self) -> bool:
        """Whether reading it waits for nothing, now and always."""
        return self._event is None

    def read(self) -> bool:
        """Wait until the device has decided; this is the only place that waits."""
        if self._event is not None:
            self._event.synchronize()
        return bool(self._host.item())
