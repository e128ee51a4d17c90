"""The bucket itself: one weight, a few calls, and the sum they leave behind."""

from __future__ import annotations

from typing import Any

import torch

from zerograd.lab.recorder.numbers import short, shorts

GRADIENTS = (3.0, 5.0)  # d(3w)/dw and d(5w)/dw: the losses of the page's first panel
WEIGHT, RATE = 2.0, 0.1


def bucket() -> dict[str, Any]:
    """Record w and w.grad after each call, with and without the second clear."""
    stories = {
        "forgotten": ["clear", "backward", "step", "backward", "step"],
        "cleared": ["clear", "backward", "step", "clear", "backward", "step"],
    }
    return {
        "weight": WEIGHT,
        "rate": RATE,
        "gradients": list(GRADIENTS),
        **{name: play(calls) for name, calls in stories.items()},
    }


def play(calls: list[str]) -> list[dict[str, Any]]:
    """Make the calls on a real weight and return what it holds after each of them.

    `clear` sets to None, `zero` writes zeros; backwards take the gradients in turn.
    """
    w = torch.nn.Parameter(torch.tensor(WEIGHT))
    optimizer = torch.optim.SGD([w], lr=RATE)
    backwards = 0
    rows = []
    for call in calls:
        if call == "backward":
            (GRADIENTS[backwards % len(GRADIENTS)] * w).backward()
            backwards += 1
        elif call == "step":
            optimizer.step()
        else:
            optimizer.zero_grad(set_to_none=call == "clear")
        grad = None if w.grad is None else short(w.grad)
        rows.append({"call": call, "weight": short(w), "grad": grad})
    return rows


def running_sum() -> dict[str, Any]:
    """Record each iteration's own gradient and the buffer that is never cleared."""
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 16)
    y = 1.5 * x + 0.3 * torch.randn(16)
    w = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([w], lr=0.15)
    terms, buffers, weights, largest_gap, total = [], [], [], 0.0, torch.zeros(())
    for _ in range(24):
        loss = ((w * x - y) ** 2).mean()
        (own,) = torch.autograd.grad(loss, [w], retain_graph=True)
        loss.backward()
        assert w.grad is not None
        total = total + own
        largest_gap = max(largest_gap, abs(float(total - w.grad)))
        terms.append(own.clone())
        buffers.append(w.grad.clone())
        weights.append(w.detach().clone())
        optimizer.step()
    return {
        "terms": shorts(terms),
        "buffers": shorts(buffers),
        "weights": shorts(weights),
        "best_weight": short((x * y).sum() / (x * x).sum()),
        "largest_gap": largest_gap,
    }
