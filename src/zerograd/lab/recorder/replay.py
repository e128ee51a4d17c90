"""The same training with and without clearing, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.lab.recorder.numbers import short, shorts

Loss = Callable[[list[nn.Parameter], int], Tensor]
MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
MakeScaled = Callable[[list[nn.Parameter], float], torch.optim.Optimizer]


@dataclass(frozen=True)
class Task:
    """A training: its weights at the start, its loss at a step, and how it is described."""

    title: str
    about: str
    start: list[Tensor]
    loss: Loss
    steps: int
    rate: float
    adam: bool = False

    def optimizer(self, parameters: list[nn.Parameter], momentum: float) -> torch.optim.Optimizer:
        if self.adam:
            return torch.optim.Adam(parameters, lr=self.rate)
        return torch.optim.SGD(parameters, lr=self.rate, momentum=momentum)


def _bowl() -> Task:
    return Task(
        "A bowl",
        "loss = w\u00b2/2, one weight, SGD 0.1",
        [torch.ones(1)],
        lambda p, _: (p[0] ** 2).sum() / 2,
        steps=120,
        rate=0.1,
    )


def _linear() -> Task:
    torch.manual_seed(0)
    layer = nn.Linear(10, 2)
    inputs, target = torch.randn(1, 10), torch.tensor([[1.0, 0.0]])
    return Task(
        "One linear layer",
        "10 inputs, 2 outputs, one sample, SGD 0.01",
        [p.detach() for p in layer.parameters()],
        lambda p, _: nn.functional.mse_loss(nn.functional.linear(inputs, p[0], p[1]), target),
        steps=200,
        rate=0.01,
    )


def _regression() -> Task:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(128, 8, generator=generator)
    y = x @ torch.randn(8, 1, generator=generator) + 0.1 * torch.randn(128, 1, generator=generator)

    def loss(p: list[nn.Parameter], step: int) -> Tensor:
        rows = slice(None) if step < 0 else slice(step * 16 % 128, step * 16 % 128 + 16)
        return ((x[rows] @ p[0] - y[rows]) ** 2).mean()

    return Task(
        "Regression",
        "8 weights, batches of 16 out of 128 samples, SGD 0.1",
        [torch.zeros(8, 1)],
        loss,
        steps=150,
        rate=0.1,
    )


def two_moons(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return points on two half circles that reach into each other, and which circle each is on."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.rand(count, generator=generator) * torch.pi
    side = torch.arange(count) % 2
    x = torch.where(side == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(side == 0, angle.sin(), 0.5 - angle.sin())
    noise = 0.15 * torch.randn(count, 2, generator=generator)
    return torch.stack([x, y], dim=1) + noise, side


def _moons(rate: float, *, adam: bool) -> Task:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
    points, side = two_moons(256, 0)

    def loss(p: list[nn.Parameter], step: int) -> Tensor:
        rows = slice(None) if step < 0 else slice(step * 32 % 256, step * 32 % 256 + 32)
        hidden = torch.tanh(nn.functional.linear(points[rows], p[0], p[1]))
        return nn.functional.cross_entropy(nn.functional.linear(hidden, p[2], p[3]), side[rows])

    name = "Adam" if adam else "SGD"
    return Task(
        f"Two moons, {name}",
        f"a net with 24 hidden units, batches of 32, {name} {rate:g}",
        [p.detach() for p in net.parameters()],
        loss,
        steps=200,
        rate=rate,
        adam=adam,
    )


def _run(task: Task, *, clear: bool, momentum: float = 0.0) -> dict[str, Any]:
    parameters = [nn.Parameter(t.clone()) for t in task.start]
    optimizer = task.optimizer(parameters, momentum)
    losses, buckets, weights = [], [], []
    for step in range(task.steps):
        if clear:
            optimizer.zero_grad()
        loss = task.loss(parameters, step)
        loss.backward()
        with torch.no_grad():  # the curve shows all data, the step sees its batch
            losses.append(task.loss(parameters, -1))
        buckets.append(_norm([p.grad for p in parameters if p.grad is not None]))
        weights.append(parameters[0].detach().flatten()[0].clone())
        optimizer.step()
    return {
        "loss": shorts(losses),
        "bucket": shorts(buckets),
        "weight": shorts(weights),
        "_end": torch.cat([p.detach().flatten() for p in parameters]),
    }


def _norm(grads: list[Tensor]) -> Tensor:
    norm: Tensor = torch.cat([grad.flatten() for grad in grads]).norm()
    return norm


def replays() -> list[dict[str, Any]]:
    """Record each task cleared and forgotten, and for SGD with momentum 1.0 as well."""
    recorded = []
    for task in (
        _bowl(),
        _linear(),
        _regression(),
        _moons(0.1, adam=False),
        _moons(0.01, adam=True),
    ):
        runs = {"cleared": _run(task, clear=True), "forgotten": _run(task, clear=False)}
        gap = None
        if not task.adam:
            runs["momentum"] = _run(task, clear=True, momentum=1.0)
            gap = float((runs["momentum"]["_end"] - runs["forgotten"]["_end"]).abs().max())
        for run in runs.values():
            del run["_end"]
        recorded.append(
            {"title": task.title, "about": task.about, "momentum_gap": gap, "runs": runs}
        )
    return recorded


def three_steps(seeds: int = 200, steps: int = 200) -> dict[str, Any]:
    """Count over many seeds when the forgotten run of the linear layer is ahead.

    All seeds train at once, as slices of one tensor: plain SGD moves each number by
    its own gradient alone, so the slices do not disturb each other.
    """
    generator = torch.Generator().manual_seed(0)
    bound = 10**-0.5
    weight = (torch.rand(seeds, 2, 10, generator=generator) * 2 - 1) * bound
    bias = (torch.rand(seeds, 2, 1, generator=generator) * 2 - 1) * bound
    inputs = torch.randn(seeds, 10, 1, generator=generator)
    target = torch.tensor([[1.0], [0.0]])

    def losses(*, clear: bool) -> tuple[Tensor, Tensor]:
        w, b = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        optimizer = torch.optim.SGD([w, b], lr=0.01)
        history, norms = [], []
        for _ in range(steps + 1):
            if clear:
                optimizer.zero_grad()
            each = ((w @ inputs + b - target) ** 2).mean(dim=(1, 2))
            each.sum().backward()
            assert w.grad is not None
            norms.append(w.grad.flatten(1).norm(dim=1))
            history.append(each.detach())
            optimizer.step()
        return torch.stack(history), torch.stack(norms)

    (cleared, _), (forgotten, norms) = losses(clear=True), losses(clear=False)
    ahead = forgotten < cleared
    turns = (forgotten > cleared).int().argmax(dim=0)
    return {
        "seeds": seeds,
        "ahead_after_3": int(ahead[3].sum()),
        "ahead_after_200": int(ahead[steps].sum()),
        "turns_worse_median": int(turns.median()),
        "growth_at_3_median": short((norms[2] / norms[0]).median()),
        "peak_over_start_median": short((forgotten.max(dim=0).values / forgotten[0]).median()),
    }


# name -> an optimizer at `factor` times the step size the name says
OPTIMIZERS: dict[str, MakeScaled] = {
    "SGD 0.01": lambda p, factor: torch.optim.SGD(p, lr=0.01 * factor),
    "SGD 0.1": lambda p, factor: torch.optim.SGD(p, lr=0.1 * factor),
    "SGD 0.05, momentum 0.9": lambda p, factor: torch.optim.SGD(p, lr=0.05 * factor, momentum=0.9),
    "Adam 0.001": lambda p, factor: torch.optim.Adam(p, lr=1e-3 * factor),
    "AdamW 0.001": lambda p, factor: torch.optim.AdamW(p, lr=1e-3 * factor),
    "Adam 0.01": lambda p, factor: torch.optim.Adam(p, lr=1e-2 * factor),
}
_SEEDS = 20


def _many_lines() -> tuple[list[Tensor], Loss, int]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(_SEEDS, 128, 8, generator=generator)
    y = x @ torch.randn(_SEEDS, 8, 1, generator=generator)
    y = y + 0.1 * torch.randn(_SEEDS, 128, 1, generator=generator)

    def loss(p: list[nn.Parameter], step: int) -> Tensor:
        rows = slice(None) if step < 0 else slice(step * 16 % 128, step * 16 % 128 + 16)
        return ((x[:, rows] @ p[0] - y[:, rows]) ** 2).mean(dim=(1, 2))

    return [torch.zeros(_SEEDS, 8, 1)], loss, 300


def _many_logistic() -> tuple[list[Tensor], Loss, int]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(_SEEDS, 128, 2, generator=generator)
    side = (x.sum(dim=2, keepdim=True) > 0).float()
    x = x + 0.5 * torch.randn(_SEEDS, 128, 2, generator=generator)

    def loss(p: list[nn.Parameter], step: int) -> Tensor:
        rows = slice(None) if step < 0 else slice(step * 16 % 128, step * 16 % 128 + 16)
        each = nn.functional.binary_cross_entropy_with_logits(
            x[:, rows] @ p[0], side[:, rows], reduction="none"
        )
        return each.mean(dim=(1, 2))

    return [torch.zeros(_SEEDS, 2, 1)], loss, 300


def _many_moons() -> tuple[list[Tensor], Loss, int]:
    generator = torch.Generator().manual_seed(3)
    drawn = [two_moons(128, 100 + seed) for seed in range(_SEEDS)]
    x = torch.stack([points for points, _ in drawn])
    side = torch.stack([side for _, side in drawn]).float().unsqueeze(2)
    hidden = 16
    start = [
        torch.randn(_SEEDS, 2, hidden, generator=generator) * 0.7,
        torch.zeros(_SEEDS, 1, hidden),
        torch.randn(_SEEDS, hidden, 1, generator=generator) * 0.25,
    ]

    def loss(p: list[nn.Parameter], step: int) -> Tensor:
        rows = slice(None) if step < 0 else slice(step * 16 % 128, step * 16 % 128 + 16)
        out = torch.tanh(x[:, rows] @ p[0] + p[1]) @ p[2]
        each = nn.functional.binary_cross_entropy_with_logits(out, side[:, rows], reduction="none")
        return each.mean(dim=(1, 2))

    return start, loss, 600


def grid() -> dict[str, Any]:
    """Count how paired runs end: same seed, same data, with and without clearing."""
    tasks = {
        "linear regression": _many_lines(),
        "logistic regression": _many_logistic(),
        "two moons": _many_moons(),
    }
    rows: list[dict[str, Any]] = []
    ahead_after_10 = better_with_larger_rate = 0
    for (task, (start, loss, steps)), (name, make) in itertools.product(
        tasks.items(), OPTIMIZERS.items()
    ):
        plain, larger = partial(_at, make, 1.0), partial(_at, make, 10.0)
        begin, cleared, early_cleared = _final(start, loss, steps, plain, clear=True)
        _, forgotten, early_forgotten = _final(start, loss, steps, plain, clear=False)
        diverged = ~torch.isfinite(forgotten) | (forgotten > begin)
        worse = ~diverged & (forgotten > cleared * 1.1)
        better = ~diverged & (forgotten < cleared * 0.9)
        ahead_after_10 += int((early_forgotten < early_cleared).sum())
        if better.any():  # was it only that the steps were too small?
            _, bolder, _ = _final(start, loss, steps, larger, clear=True)
            better_with_larger_rate += int((better & (bolder < cleared * 0.9)).sum())
        counts = [int(kind.sum()) for kind in (diverged, worse, better)]
        rows.append(
            {
                "task": task,
                "optimizer": name,
                "diverged": counts[0],
                "worse": counts[1],
                "better": counts[2],
                "close": _SEEDS - sum(counts),
            }
        )
    total = {key: sum(row[key] for row in rows) for key in ("diverged", "worse", "better", "close")}
    return {
        "pairs": _SEEDS * len(rows),
        **total,
        "ahead_after_10": ahead_after_10,
        "better_with_larger_rate": better_with_larger_rate,
        "seeds": _SEEDS,
        "rows": rows,
    }


def _at(make: MakeScaled, factor: float, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return make(parameters, factor)


def _final(
    start: list[Tensor], loss: Loss, steps: int, make: MakeOptimizer, *, clear: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Train all seeds at once; return the loss over all data at the start, end and step 10."""
    parameters = [nn.Parameter(t.clone()) for t in start]
    optimizer = make(parameters)
    with torch.no_grad():
        begin = early = loss(parameters, -1)
    for step in range(steps):
        if clear:
            optimizer.zero_grad()
        loss(parameters, step).sum().backward()
        optimizer.step()
        if step == 9:
            with torch.no_grad():
                early = loss(parameters, -1)
    with torch.no_grad():
        return begin, loss(parameters, -1), early
