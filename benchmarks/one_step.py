"""The training loop that several run-time checks watch in turn, each in a process of its own.

    python benchmarks/one_step.py TOOL [WIDTH [BATCH]]     (the tools: see put_on)

Each line on stdin is a number of steps to run; the answer is the process seconds of one.
It is an ordinary script with the model in a variable of its own, so that tools that
rewrite the source (TrainCheck) can be put on it as they are.
"""

import sys
import time

import torch
from torch import nn
from torch.optim import Optimizer


def train(model: nn.Module, optimizer: Optimizer, x: torch.Tensor, count: int) -> None:
    for _ in range(count):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()


def timed(model: nn.Module, optimizer: Optimizer, x: torch.Tensor, count: int) -> None:
    start = time.process_time()
    train(model, optimizer, x, count)
    print("seconds", (time.process_time() - start) / count, flush=True)


def put_on(tool: str, model: nn.Module, optimizer: Optimizer) -> object:
    """Turn one check on for the rest of the process; return it, so that it stays alive."""
    if tool == "zerograd":
        import zerograd

        watch = zerograd.watch(policy="collect")
        watch.start()
        return watch
    if tool == "anomaly":
        return torch.autograd.set_detect_anomaly(True)
    if tool.startswith("torch-audit"):
        from torch_audit import autopatch  # type: ignore[import-not-found]

        return autopatch(model, optimizer=optimizer, every_n_steps=1 if "each" in tool else 1000)
    return None


torch.set_num_threads(1)
torch.manual_seed(0)
tool, width, batch = [*sys.argv[1:], *("plain", "64", "16")[len(sys.argv) - 1 :]]
n = int(width)
model = nn.Sequential(nn.Linear(32, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(int(batch), 32)
kept = put_on(tool, model, optimizer)
while line := sys.stdin.readline():
    timed(model, optimizer, x, int(line))
