"""What watching costs on a GPU, by the wall clock: GPT-2 124M in bf16, and a tiny model.

    PYTHONPATH=src python -m benchmarks.watch_gpu --output benchmarks/results/watch_gpu.json

Needs torch alone. How it is measured: see `pairs.py`; each block begins and ends with a
synchronisation. A second part runs the watched loops with torch's synchronisation
check set to "error". It takes about seven minutes.

The engine runs a backward on a thread of its own for the device, and where each backward
wakes another core, a step takes half as long again. So the tiny model is measured twice:
as the system lets it run, and with all threads on one core, where the same cost weighs more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import zerograd
from benchmarks.pairs import DeviceClock, Plan, Step, measure, pin, told, verdict


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (
            each.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for each in (q, k, v)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        shifted: Tensor = self.down(F.gelu(self.up(self.norm2(x))))
        return x + shifted


class GPT(nn.Module):
    """GPT-2's shape: 124 million parameters with the defaults."""

    def __init__(
        self, vocabulary: int = 50304, length: int = 1024, width: int = 768, layers: int = 12
    ) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, width // 64) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(
            logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1)
        )


def gpt2(device: str, batch: int) -> Step:
    torch.manual_seed(0)
    model = GPT().to(device=device, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, 50304, (batch, 1024), device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def tiny(device: str) -> Step:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    model = nn.Sequential(model, nn.Linear(128, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    x = torch.randn(64, 64, device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def no_synchronisation(name: str, step: Step, count: int) -> dict[str, Any]:
    """Run the watched loop where torch raises at every synchronisation."""
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with zerograd.watch(policy="collect") as watch:
            for _ in range(count):
                step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    looks = watch.metrics()["zerograd/looks"]
    failure = [text for text in watch.not_checked if text.startswith("zerograd:")]
    print(f"{name}: {count} steps without a synchronisation, {looks:.0f} looks", flush=True)
    return {"name": name, "steps": count, "looks": looks, "failures": failure}


def faults_are_found(device: str) -> dict[str, list[str]]:
    """Return what a few loops on the device yield, faulty ones and right ones."""
    found: dict[str, list[str]] = {}
    for name, to_none in (("never cleared", None), ("to none", True), ("to zero", False)):
        for options in ({"foreach": True}, {"fused": True}):
            model = nn.Linear(16, 4).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, **options)
            with zerograd.watch(policy="collect") as watch:
                for _ in range(20):
                    model(torch.randn(8, 16, device=device)).pow(2).mean().backward()
                    optimizer.step()
                    if to_none is not None:
                        optimizer.zero_grad(set_to_none=to_none)
            found[f"{name}, {next(iter(options))}"] = [each.rule.code for each in watch.findings]
    print(found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2_400, help="of the tiny model")
    parser.add_argument("--tiny", action="store_true", help="only the tiny model, on any core")
    options = parser.parse_args()
    start = time.monotonic()
    device, clock = "cuda", DeviceClock()
    small, big = tiny(device), gpt2(device, options.batch)
    warm_up(small, big)
    rounds = max(options.rounds, 8)
    host_bound = Plan(rounds, 16, 2, 128, 10_000, 1.01)
    rows = [measure("tiny model", small, host_bound, clock=clock)]
    if not options.tiny:
        plan = Plan(max(rounds // 24, 8), 6, 2, 24, 1_000, 1.01)
        rows.append(measure("GPT-2 124M, bf16", big, plan, clock=clock))
        pin()
        rows.append(measure("tiny model, one core", small, host_bound, clock=clock))
    quiet = [
        no_synchronisation("tiny model", small, 300),
        no_synchronisation("GPT-2 124M, bf16", big, 70),
    ]
    result = {
        "machine": {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "load": os.getloadavg(),
        },
        "rows": rows,
        "no_synchronisation": quiet,
        "faults": faults_are_found(device),
    }
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\nafter {time.monotonic() - start:.0f} s:")
    for row in rows:
        print(told(row))
    for row in rows:
        verdict(row)


def warm_up(*steps: Step) -> None:
    """Let the device reach its clocks and torch choose its kernels."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for step in steps:
            step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
