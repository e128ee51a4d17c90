"""What a Step saves, so that a run goes on in the middle of a window."""

from __future__ import annotations

from typing import Any

import torch

from zerograd.training.gradients import Gradients
from zerograd.training.normalise import DeviceLedger, HostLedger

VERSION = 1


def between_windows(scale: float) -> dict[str, Any]:
    """Return the state of a Step with no window open."""
    return {"version": VERSION, "scale": scale, "drawn": 0, "count": 0}


def check_state(state: object, parameters: list[torch.Tensor]) -> None:
    """Raise a ValueError unless this is a state that a Step over these parameters can take over."""
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise ValueError(f"this is not a state of zerograd.Step (version {VERSION})")
    grads = state.get("grads")
    if grads is not None:
        _check_grads(grads, parameters)


def put_back(
    state: dict[str, Any], gradients: Gradients, ledger: HostLedger | DeviceLedger, scaler: Any
) -> None:
    """Put the gradients and sums of the window back in their places."""
    gradients.put(state["grads"])
    if scaler is not None:  # it makes its scale at the first call, which may not come
        scaler.scale(torch.zeros((), device=gradients.parameters[0].device))
    ledger.restore(float(state["total"]), float(state["scale"]))


def _check_grads(grads: list[Any], parameters: list[torch.Tensor]) -> None:
    if len(grads) != len(parameters):
        raise ValueError(
            f"the state holds gradients of {len(grads)} parameters, but this Step owns "
            f"{len(parameters)}"
        )
    for index, (grad, parameter) in enumerate(zip(grads, parameters, strict=True)):
        if grad is not None and (grad.shape != parameter.shape or grad.dtype != parameter.dtype):
            raise ValueError(
                f"the state's gradient {index} has shape {tuple(grad.shape)} and {grad.dtype}, "
                f"but the parameter has {tuple(parameter.shape)} and {parameter.dtype}"
            )
