"""What faults with a loss scaler or a clip do."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import mse_loss

from benchmarks.rule_numbers.tasks import (
    SEEDS,
    Figures,
    batches,
    final_loss,
    median,
    norm,
    ruined,
    task,
    train,
)


def scaled_loop(
    seed: int, body: Callable[..., None], *, lr: float = 0.1, steps: int = 300
) -> float:
    scaler = torch.amp.GradScaler("cpu")
    return train(seed, lambda m, o, b: body(m, o, b, scaler), lr=lr, steps=steps)


def clip_before_unscale() -> Figures:
    def body(unscale: bool) -> Callable[..., None]:
        def run(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor],
                scaler: torch.amp.GradScaler) -> None:  # fmt: skip
            opt.zero_grad()
            scaler.scale(mse_loss(model(batch[0]), batch[1])).backward()
            if unscale:
                scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()

        return run

    start = [final_loss(*task(s)) for s in SEEDS]
    right = [scaled_loop(s, body(True)) for s in SEEDS]
    wrong = [scaled_loop(s, body(False)) for s in SEEDS]
    return {
        "median loss at the start": f"{median(start):.3f}",
        "median final loss, unscaled first": f"{median(right):.3f}",
        "clipped with the scale in": f"{median(wrong):.3f}",
    }


def missing_scaler_update() -> Figures:
    model, inputs, targets = task(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    done = 0
    try:
        for batch in batches(inputs, targets, 10):
            optimizer.zero_grad()
            scaler.scale(mse_loss(model(batch[0]), batch[1])).backward()
            scaler.step(optimizer)
            done += 1
    except RuntimeError as error:
        return {"steps before the error": f"{done}", "the error": str(error)}
    return {"steps before the error": "none"}


def scaler_bypassed() -> Figures:
    def past(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor],
             scaler: torch.amp.GradScaler) -> None:  # fmt: skip
        opt.zero_grad()
        scaler.scale(mse_loss(model(batch[0]), batch[1])).backward()
        opt.step()

    start = [final_loss(*task(s)) for s in SEEDS]
    after = [scaled_loop(s, past, lr=0.01, steps=1) for s in SEEDS]
    later = [scaled_loop(s, past, lr=0.01, steps=50) for s in SEEDS]
    return {
        "median loss at the start": f"{median(start):.3f}",
        "median loss after one step": f"{median(after):,.0f}",
        "runs ruined after 50 steps": f"{ruined(later)} of {len(later)}",
    }


def clip_after_step() -> Figures:
    def run(after: bool) -> tuple[float, float]:
        model, inputs, targets = task(0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        longest = 0.0
        for number, batch in enumerate(batches(inputs, targets, 300)):
            if number == 150:
                batch[1] = batch[1] * 100  # one bad batch
            optimizer.zero_grad()
            mse_loss(model(batch[0]), batch[1]).backward()
            if not after:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            longest = max(longest, norm([p.grad for p in model.parameters()]))
            optimizer.step()
            if after:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return longest, final_loss(model, inputs, targets)

    (right, right_loss), (wrong, wrong_loss) = run(False), run(True)
    return {
        "largest norm stepped on, clipped before": f"{right:.2f}",
        "clipped after": f"{wrong:.0f}",
        "final loss, clipped before": f"{right_loss:.3f}",
        "final loss, clipped after": f"{wrong_loss:.3f}",
    }


def scaler_updated_early() -> Figures:
    def moved(early: bool) -> float:
        torch.manual_seed(0)
        encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
        opt_e = torch.optim.SGD(encoder.parameters(), lr=0.1)
        opt_d = torch.optim.SGD(decoder.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        data = torch.randn(32, 4)
        before = decoder.weight.detach().clone()
        scaler.scale(mse_loss(decoder(encoder(data)), data)).backward()
        scaler.unscale_(opt_e)
        scaler.unscale_(opt_d)
        scaler.step(opt_e)
        if early:
            scaler.update()
        scaler.step(opt_d)
        scaler.update()
        return float((decoder.weight - before).norm())

    right, wrong = moved(False), moved(True)
    return {
        "step of the second optimizer": f"{right:.4f}",
        "with the update in between": f"{wrong:.1e}",
        "ratio": f"{right / wrong:,.0f}",
    }
