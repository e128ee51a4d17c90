"""Normalising and clipping in as few passes over memory as there can be.

The window's factor and the clip's coefficient are numbers, so both go into one
multiplication. The norm is taken on the gradients as they are and multiplied as well.
Nothing here reads a value on the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch.nn.utils import get_total_norm

from zerograd.buffers.multiply import is_worth_a_look, multiply_
from zerograd.training.normalise import Factor

FEW = 8  # tensors up to which a launch for each costs less than a pass over their memory


def dense_parts(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The gradients as dense tensors to work on in place.

    Of a sparse gradient these are its values, once duplicate rows are summed up.
    """
    parts = []
    for parameter in parameters:
        grad = parameter.grad
        if grad is None:
            continue
        if grad.layout is torch.sparse_coo:
            if not grad.is_coalesced():
                grad = parameter.grad = grad.coalesce()
            grad = grad._values()
        parts.append(grad)
    return parts


def scale_parts(parts: list[torch.Tensor], factor: float | torch.Tensor) -> None:
    """Multiply each part in place."""
    if not parts:
        return
    if isinstance(factor, float):
        torch._foreach_mul_(parts, factor)
        return
    for device, group in _by_device(parts).items():
        number = factor.to(device)
        large = [part for part in group if is_worth_a_look(part)]
        if 0 < len(large) <= FEW:
            for part in large:
                multiply_(part, number)
            group = [part for part in group if not is_worth_a_look(part)]
        if group:
            torch._foreach_mul_(group, number)


def total_norm(parts: list[torch.Tensor], norm_type: float) -> torch.Tensor:
    """The norm of all parts as one vector."""
    norm = get_total_norm(parts, norm_type)
    if hasattr(norm, "full_tensor"):  # a DTensor: the ranks' shares are added up here
        return norm.full_tensor()  # type: ignore[no-any-return]
    return norm


def clip_parts_by_norm(
    parts: list[torch.Tensor], norm: torch.Tensor, max_norm: float, factor: Factor
) -> torch.Tensor:
    """Multiply by `factor` and clip the whole to `max_norm`, given its norm before either.

    Returns the norm between the two: that of the window's mean gradient, not yet clipped.
    """
    if factor is not None:
        norm = norm * (factor if isinstance(factor, float) else factor.to(norm.device))
    if max_norm == math.inf:  # a measurement, not a clip
        if factor is not None:
            scale_parts(parts, factor)
        return norm
    # the arithmetic of torch.nn.utils.clip_grad_norm_, bit for bit where factor is None
    coefficient = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    if factor is not None:
        coefficient = coefficient * (
            factor if isinstance(factor, float) else factor.to(coefficient.device)
        )
    scale_parts(parts, coefficient)
    return norm


def clip_parts_by_value(parts: list[torch.Tensor], limit: float) -> None:
    """Cut each element to [-limit, limit]."""
    if parts:
        torch._foreach_clamp_min_(parts, -limit)
        torch._foreach_clamp_max_(parts, limit)


def _by_device(parts: list[torch.Tensor]) -> dict[torch.device, list[torch.Tensor]]:
    groups: dict[torch.device, list[torch.Tensor]] = {}
    for part in parts:
        groups.setdefault(part.device, []).append(part)
    return groups
