"""The gradients a Step owns: apart in each parameter's `.grad`, or together in an arena."""

from __future__ import annotations

from typing import Any

import torch

from zerograd.buffers.arena import GradArena
from zerograd.buffers.gather import Gather


class Gradients:
    """The `.grad` of every parameter of a Step, looked at, cleared and saved as one."""

    __slots__ = ("_flat", "arena", "parameters")

    def __init__(self, parameters: list[torch.Tensor], flat: GradArena | Gather | None) -> None:
        self.parameters = parameters
        self._flat = flat
        self.arena = flat if isinstance(flat, GradArena) else None  # they live in it

    def are_filled(self) -> bool:
        """Whether any gradient is there; in an arena, whether any was written to."""
        if self.arena is not None:
            return not self.arena.is_untouched()
        for parameter in self.parameters:  # noqa: SIM110 - in every block, and any() is slower
            if parameter.grad is not None:
                return True
        return False

    def clear(self) -> None:
        if self.arena is not None:
            self.arena.zero_()
            return
        for parameter in self.parameters:
            parameter.grad = None

    def adopt(self, parameters: list[torch.Tensor]) -> None:
        """Own these from now on, more than before."""
        if self._flat is not None:
            self._flat.add(parameters)
        self.parameters = parameters

    def copies(self) -> list[torch.Tensor | None]:
        return [None if p.grad is None else p.grad.detach().clone() for p in self.parameters]

    def put(self, grads: list[Any]) -> None:
        """Put saved gradients in place."""
        for parameter, grad in zip(self.parameters, grads, strict=True):
            if grad is None:
                continue
            copied = grad.to(parameter.device, copy=True)
            if self.arena is not None and parameter.grad is not None:
                parameter.grad.copy_(copied)
            else:
                parameter.grad = copied
