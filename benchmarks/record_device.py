"""Time the clears on a GPU, and measure the peak of a whole step; the lab page shows the result.

    python benchmarks/record_device.py

Writes src/zerograd/lab/device.json with the machine's name. Seconds are medians of many
calls, measured by the device's own clock. The tests do not repeat this: they have no GPU.
"""

from __future__ import annotations

import gc
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from zerograd.buffers.arena import GradArena

RESULTS = Path(__file__).parent.parent / "src" / "zerograd" / "lab" / "device.json"
DEVICE = "cuda"


def transformer() -> tuple[nn.Module, torch.Tensor]:
    """A stack of encoder layers about as large as GPT-2 small without its vocabulary."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    return model.to(DEVICE), torch.randn(8, 512, 768, device=DEVICE)


def many_small() -> tuple[nn.Module, torch.Tensor]:
    """Ten thousand tensors of 64 numbers: what a clear of many parts costs."""

    class Bits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bits = nn.ParameterList([torch.zeros(64) for _ in range(10_000)])

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return torch.stack(list(self.bits)) * inputs

    return Bits().to(DEVICE), torch.randn(10_000, 64, device=DEVICE)


def milliseconds(clear: Callable[[], object], fill: Callable[[], object], rounds: int) -> float:
    """Return the median time of `clear`, from the first launch until the device is done."""
    times: list[float] = []
    for round_ in range(rounds + 3):
        fill()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        clear()
        end.record()
        torch.cuda.synchronize()
        if round_ >= 3:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def measure(make: Callable[[], tuple[nn.Module, torch.Tensor]], rounds: int) -> dict[str, Any]:
    """Measure each way to clear on a model of its own."""
    ways: dict[str, Any] = {}
    tensors = count = 0
    for way in ("none", "zero", "arena"):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.manual_seed(0)
        model, inputs = make()
        parameters = list(model.parameters())
        tensors, count = len(parameters), sum(p.numel() for p in parameters)
        optimizer = torch.optim.SGD(parameters, lr=1e-4)
        if way == "arena":
            clear: Callable[[], object] = GradArena(parameters).zero_
        elif way == "zero":
            clear = partial(optimizer.zero_grad, set_to_none=False)
        else:
            clear = optimizer.zero_grad

        def step(model=model, inputs=inputs, optimizer=optimizer, clear=clear) -> None:  # type: ignore[no-untyped-def]
            clear()
            model(inputs).square().mean().backward()
            optimizer.step()

        for _ in range(3):
            step()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
        ways[way] = {"clear_ms": milliseconds(clear, step, rounds), "peak_bytes": peak}
        ways[way]["clear_ms"] = float(f"{ways[way]['clear_ms']:.3g}")
        del model, inputs, parameters, optimizer, clear, step
    return {"tensors": tensors, "parameters": count, "ways": ways}


def main() -> None:
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__.split("+")[0],
        "models": {
            "12 transformer layers, width 768": measure(transformer, rounds=60),
            "10,000 tensors of 64": measure(many_small, rounds=15),
        },
    }
    text = json.dumps(result, indent=1) + "\n"
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
