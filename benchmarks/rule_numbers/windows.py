"""What faults in windows of several micro-batches do."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import mse_loss

from benchmarks.rule_numbers.tasks import (
    SEEDS,
    Figures,
    batches,
    flat_grad,
    median,
    ruined,
    task,
    window,
)


def window_cleared_early() -> Figures:
    def errors(seed: int) -> float:
        model, inputs, targets = task(seed)
        parts = list(batches(inputs, targets, 4))
        grads = []
        for x, y in parts:
            model.zero_grad()
            mse_loss(model(x), y).backward()
            grads.append(flat_grad(model).clone())
        whole = torch.stack(grads).mean(0)
        return float((grads[-1] / 4 - whole).norm() / whole.norm())

    def body(early: bool) -> Callable[..., None]:
        def run(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor],
                number: int) -> None:  # fmt: skip
            if early:
                opt.zero_grad()
            (mse_loss(model(batch[0]), batch[1]) / 4).backward()
            if number % 4 == 3:
                opt.step()
                opt.zero_grad()

        return run

    right = [window(s, body(False)) for s in SEEDS]
    wrong = [window(s, body(True)) for s in SEEDS]
    return {
        "backwards that the steps see": f"{400 // 4} of 400",
        "median error of the update": f"{100 * median([errors(s) for s in SEEDS]):.0f} %",
        "median final loss, whole windows": f"{median(right):.3f}",
        "median final loss, cleared early": f"{median(wrong):.3f}",
    }


def tail_lost() -> Figures:
    def last_batch_weight(leak: bool) -> tuple[float, float]:
        model, inputs, targets = task(0)
        norms: list[float] = []
        full: list[float] = []
        for _ in range(20):
            if not leak:
                model.zero_grad()
            for number, (x, y) in enumerate(batches(inputs, targets, 10)):
                (mse_loss(model(x), y) / 4).backward()
                if number % 4 == 3:
                    (norms if number == 3 else full).append(flat_grad(model).norm().item())
                    model.zero_grad()
        return median(norms[1:]), median(full)

    first, others = last_batch_weight(True)
    return {
        "batches never used, of 10 with windows of 4": "2 of 10",
        "norm of the first update of an epoch, over the others": f"{first / others:.2f}",
    }


def window_not_averaged() -> Figures:
    def body(divide: int) -> Callable[..., None]:
        def run(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor],
                number: int) -> None:  # fmt: skip
            (mse_loss(model(batch[0]), batch[1]) / divide).backward()
            if number % 8 == 7:
                opt.step()
                opt.zero_grad()

        return run

    model, inputs, targets = task(0)
    mse_loss(model(inputs), targets).backward()
    one = flat_grad(model).norm().item()
    for _ in range(7):
        mse_loss(model(inputs), targets).backward()
    ratio = flat_grad(model).norm().item() / one
    right = [window(s, body(8), lr=0.2) for s in SEEDS]
    wrong = [window(s, body(1), lr=0.2) for s in SEEDS]
    return {
        "gradient of 8 equal micro-batches, undivided": f"{ratio:.1f}",
        "median final loss, divided by 8": f"{median(right):.3f}",
        "runs ruined, divided by 8": f"{ruined(right)} of {len(right)}",
        "runs ruined, summed": f"{ruined(wrong)} of {len(wrong)}",
    }


def window_guard_wrong() -> Figures:
    count = 16
    return {
        "(i + 1) % 4 == 0": f"{sum((i + 1) % 4 == 0 for i in range(count))} of {count}",
        "(i + 1) % 4": f"{sum(bool((i + 1) % 4) for i in range(count))} of {count}",
        "i % 1 == 1": f"{sum(i % 1 == 1 for i in range(count))} of {count}",
        "first window of `i % 4 == 0`": f"{next(i for i in range(count) if i % 4 == 0) + 1}",
    }
