"""Small gradients copied into one flat buffer when they are complete, for norm and clip.

What a norm over thousands of tensors costs is the tensors, not their bytes. So the small
ones are gathered by one multi-tensor copy and treated as one; the large ones, where a copy
would cost more than it saves, stay where they are. Gathering at the end of a window is
cheaper than keeping gradients in a buffer: autograd hands over each fresh gradient without
a kernel, while adding it to a buffer that is there already takes one for every tensor.
"""

from __future__ import annotations

import torch

from zerograd.buffers.arena import Block, group_parameters
from zerograd.errors import StepError

LARGE = 128 * 1024  # bytes from which on a gradient is left where it is


class Gather:
    """One flat buffer per device and dtype for the small gradients, filled on demand."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self._build(parameters)

    def _build(self, parameters: list[torch.Tensor]) -> None:
        self._parameters = parameters
        small = [p for p in parameters if p.numel() * p.element_size() < LARGE]
        self._large = [p for p in parameters if p.numel() * p.element_size() >= LARGE]
        self._blocks = [Block(group) for group in group_parameters(small)]
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
        """All gradients as few dense tensors. A gradient that is None stays None."""
        for block in self._blocks:
            first, flat = block.parameters[0], block.flat
            if first.device != flat.device or first.dtype != flat.dtype:
                self._build(self._parameters)  # the model was moved
                break
        parts = []
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
            if any(grad.layout is not torch.strided for grad in filled):
                _refuse_sparse()
            torch._foreach_copy_(places, filled)
            for parameter, grad, view in zip(block.parameters, grads, views, strict=True):
                if grad is not None:
                    parameter.grad = view
            parts.append(block.flat)
        for parameter in self._large:
            grad = parameter.grad
            if grad is not None:
                if grad.layout is not torch.strided:
                    _refuse_sparse()
                parts.append(grad)
        return parts


def _refuse_sparse() -> None:
    raise StepError(
        "arena=True cannot hold sparse gradients, and a parameter of this Step has one. "
        "Leave arena out, or give that parameter a Step of its own."
    )
