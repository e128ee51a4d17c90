"""What a clear costs: peak memory of a step, and what the call itself touches."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

_LAYERS, _WIDTH = 6, 256


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    pairs = [(nn.Linear(_WIDTH, _WIDTH), nn.ReLU()) for _ in range(_LAYERS)]
    return nn.Sequential(*(layer for pair in pairs for layer in pair))


def _peak(batch: int, clear: str, *, adam: bool) -> int:
    """Return the largest number of bytes alive during the fourth step.

    Counting begins before the model exists. A meter switched on later does not see
    the frees of what was there already, and can show the opposite of the truth.
    """
    steps = 4
    inputs = torch.ones(batch, _WIDTH)
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        model = _model()
        parameters = list(model.parameters())
        optimizer: torch.optim.Optimizer
        optimizer = (
            torch.optim.Adam(parameters, lr=1e-3) if adam else torch.optim.SGD(parameters, lr=1e-3)
        )
        empty = _clearer(clear, parameters, optimizer)
        for step in range(steps):
            if step == steps - 1:
                torch.ones(1, dtype=torch.int8).bitwise_not_()  # a mark the log can be cut at
            if clear in ("zero", "none", "arena"):
                empty()
            loss = model(inputs).square().mean()
            if clear == "none before backward":
                empty()
            loss.backward()
            optimizer.step()
            if clear == "none after step":
                empty()
            del loss
    return _largest_after_mark(seen)


def _clearer(
    clear: str, parameters: list[nn.Parameter], optimizer: torch.optim.Optimizer
) -> Callable[[], object]:
    if clear == "arena":
        from zerograd.buffers.arena import GradArena

        return GradArena(parameters).zero_
    if clear == "zero":
        return lambda: optimizer.zero_grad(set_to_none=False)
    return optimizer.zero_grad


def _largest_after_mark(seen: Any) -> int:
    alive = peak = 0
    marked = False
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "aten::bitwise_not_":
            marked = True
            peak = alive
        elif event.name() == "[memory]":
            alive += event.nbytes()
            if marked:
                peak = max(peak, alive)
    return peak


def _ways() -> list[str]:
    ways = ["zero", "none", "none after step", "none before backward"]
    try:
        import zerograd.buffers.arena  # noqa: F401
    except ImportError:
        return ways
    return [*ways, "arena"]


def peaks() -> dict[str, Any]:
    """Record the peak of one step for each way to clear, batch size and optimizer."""
    weights = sum(p.numel() * 4 for p in _model().parameters())
    rows = [
        {
            "batch": batch,
            "optimizer": "Adam" if adam else "SGD",
            "peaks": {way: _peak(batch, way, adam=adam) for way in _ways()},
        }
        for batch in (16, 256, 1024)
        for adam in (False, True)
    ]
    return {"layers": _LAYERS, "width": _WIDTH, "parameter_bytes": weights, "rows": rows}


def clear_cost() -> dict[str, Any]:
    """Record what each clear allocates, frees and writes, as counts and not as seconds."""
    costs: dict[str, Any] = {}
    for way in _ways():
        if way not in ("zero", "none", "arena"):
            continue  # where the call stands does not change the call
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            model = _model()
            parameters = list(model.parameters())
            optimizer = torch.optim.SGD(parameters, lr=0.1)
            empty = _clearer(way, parameters, optimizer)
            model(torch.ones(4, _WIDTH)).sum().backward()
            torch.ones(1, dtype=torch.int8).bitwise_not_()
            empty()
            torch.ones(1, dtype=torch.int8).bitwise_not_()
        costs[way] = _between_marks(seen)
    return costs


def _between_marks(seen: Any) -> dict[str, int]:
    marks = allocated = freed = fills = 0
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "aten::bitwise_not_":
            marks += 1
        elif marks != 1:
            continue
        elif event.name() == "[memory]":
            # the mark's own byte comes and goes as well
            size = event.nbytes() if abs(event.nbytes()) > 64 else 0
            allocated += max(size, 0)
            freed += max(-size, 0)
        elif event.name() in ("aten::zero_", "aten::fill_"):
            fills += event.name() == "aten::zero_"
    return {"allocated": allocated, "freed": freed, "fills": fills}
