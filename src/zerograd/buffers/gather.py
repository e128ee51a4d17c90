"""Gradients copied into one flat buffer when they are complete, for one norm over all of them.

Autograd hands over each fresh gradient without a kernel, while adding it to a buffer that
is there already takes one for every tensor. So inside a Step the gradients are made as
usual and gathered once at the end of the window, by one multi-tensor copy.
"""

from __future__ import annotations

import torch

from zerograd.buffers.arena import Block, group_parameters
from zerograd.errors import StepError


class Gather:
    """One flat buffer per device and dtype, filled on demand."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self._build(parameters)

    def _build(self, parameters: list[torch.Tensor]) -> None:
        self._parameters = parameters
        self._blocks = [Block(group) for group in group_parameters(parameters)]
        self._views = [
            [block.view(index) for index in range(len(block.parameters))] for block in self._blocks
        ]

    @property
    def nbytes(self) -> int:
        return sum(block.flat.numel() * block.flat.element_size() for block in self._blocks)

    def add(self, parameters: list[torch.Tensor]) -> None:
        known = {id(parameter) for parameter in self._parameters}
        fresh = [p for p in parameters if id(p) not in known]
        if fresh:
            self._build([*self._parameters, *fresh])

    def collect(self) -> list[torch.Tensor]:
        """Move every gradient into the buffer and return the buffers. None stays None."""
        for block in self._blocks:
            first, flat = block.parameters[0], block.flat
            if first.device != flat.device or first.dtype != flat.dtype:
                self._build(self._parameters)  # the model was moved
                break
        for block, views in zip(self._blocks, self._views, strict=True):
            grads = [parameter.grad for parameter in block.parameters]
            filled, places = [], []
            for grad, view in zip(grads, views, strict=True):
                if grad is None:
                    view.zero_()
                else:
                    filled.append(grad)
                    places.append(view)
            if not filled:
                continue
            try:
                torch._foreach_copy_(places, filled)
            except (RuntimeError, NotImplementedError) as error:
                if any(grad.layout is not torch.strided for grad in filled):
                    raise StepError(
                        "arena=True cannot hold sparse gradients, and a parameter of this Step "
                        "has one. Leave arena out, or give that parameter a Step of its own."
                    ) from error
                raise
            for parameter, grad, view in zip(block.parameters, grads, views, strict=True):
                if grad is not None:
                    parameter.grad = view
        return [block.flat for block in self._blocks]
