"""What users hand to a Step, looked at before anything is done with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from zerograd.buffers.arena import GradArena
from zerograd.buffers.gather import Gather
from zerograd.errors import StepError


def list_models(models: nn.Module | Iterable[nn.Module]) -> list[nn.Module]:
    if isinstance(models, nn.Module):
        return [models]
    listed = list(models)
    for model in listed:
        if not isinstance(model, nn.Module):
            raise TypeError(f"models are torch modules, but one is a {type(model).__name__}")
    return listed


def check_clip(clip: Any, clip_value: Any, norm_type: Any) -> None:
    if clip is not None and clip_value is not None:
        raise ValueError("clip by norm (clip=) or by value (clip_value=), not by both")
    for name, value in (("clip", clip), ("clip_value", clip_value)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is a number, not {type(value).__name__}")
        if math.isnan(value) or value <= 0:
            raise ValueError(f"{name} must be above 0, but is {value}")
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)):
        raise TypeError(f"norm_type is a number, not {type(norm_type).__name__}")


def find_scaler(scaler: Any, optimizers: Sequence[object]) -> Any:
    """The scaler to use: the one given, or what Accelerate prepared; None where it is off."""
    if scaler is None:
        scaler = getattr(optimizers[0], "scaler", None)
    return scaler if scaler is not None and scaler.is_enabled() else None


def make_arena(
    arena: bool | GradArena,
    parameters: list[torch.Tensor],
    models: list[nn.Module],
    optimizers: list[Optimizer],
) -> GradArena | Gather | None:
    if arena is False or arena is None:
        return None
    for optimizer in optimizers:
        if isinstance(optimizer, torch.optim.SparseAdam):
            raise StepError(
                "SparseAdam wants sparse gradients, which a GradArena cannot hold. "
                "Leave arena out of this Step."
            )
    for model in models:
        for module in model.modules():
            if getattr(module, "gradient_as_bucket_view", False):
                raise StepError(
                    "DDP with gradient_as_bucket_view=True keeps the gradients in its own "
                    "buckets, so a GradArena cannot hold them. Use one or the other."
                )
    if isinstance(arena, GradArena):
        arena.add(parameters)
        return arena
    if arena is not True:
        raise TypeError(f"arena is True, False or a GradArena, not {type(arena).__name__}")
    if any(hasattr(parameter, "device_mesh") for parameter in parameters):
        raise StepError(
            "arena=True cannot hold sharded gradients: fully_shard keeps its own flat buffers. "
            "Leave arena out of this Step."
        )
    return Gather(parameters)


def refuse_loss(loss: torch.Tensor) -> None:
    """Say why this loss cannot be sent backward."""
    if loss.numel() != 1:
        raise StepError(
            f"step.backward() takes a loss of one number, but this one has shape "
            f"{tuple(loss.shape)}. Reduce it to a mean first, for example loss.mean()."
        )
    raise StepError(
        "This loss does not require a gradient, so there is nothing to send backward. It was "
        "computed under torch.no_grad(), detached, or from a model whose parameters are frozen."
    )


def evaluate(loss: object) -> torch.Tensor:
    """The loss that a function returns."""
    if not callable(loss):
        raise TypeError(
            f"step.backward() takes a loss (a tensor of one number) or a function that returns "
            f"one, not {type(loss).__name__}"
        )
    value = loss()
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"the function must return the loss, but returned {type(value).__name__}")
    return value


def shared_device(weight: Any, loss: torch.Tensor) -> torch.device:
    """The device to count on, for a weight that lies on one."""
    device: torch.device = weight.device
    if loss.device.type == "cpu":
        raise StepError(
            f"The weight is on {device} and the loss on the CPU, so every backward would wait "
            "for the device. Give the weight as a Python number, or move it with weight.cpu()."
        )
    return device
