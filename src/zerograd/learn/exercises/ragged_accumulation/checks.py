"""Every window must equal the one big batch it stands for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong


def _micro_batches(sizes: list[int]) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(n, 3), torch.randn(n, 1)) for n in sizes]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.2)


def _weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _big_batches(model: nn.Module, sizes: list[int], window: int) -> nn.Module:
    model = copy.deepcopy(model)
    optimizer = _optimizer(model)
    pieces = _micro_batches(sizes)
    for start in range(0, len(pieces), window):
        inputs = torch.cat([x for x, _ in pieces[start : start + window]])
        targets = torch.cat([y for _, y in pieces[start : start + window]])
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return model


# How a micro-batch of n samples is weighed, out of N in its window of `count`: what often goes
# wrong, and what to say when the weights come out just as wrong.
_SLIPS: list[tuple[Callable[[int, int, int, int], float], str]] = [
    (
        lambda n, N, count, window: 1.0,
        "The mean losses of a window are added up and not weighed: each counts n / N, its own "
        "samples out of all in the window.",
    ),
    (
        lambda n, N, count, window: float(n),
        "Each loss carries its n, the samples it stands for, but the division by N is missing, "
        "the samples of the whole window.",
    ),
    (
        lambda n, N, count, window: 1 / count,
        "Every micro-batch counts the same here, and a small one should count less: n / N, its "
        "own samples out of all in the window.",
    ),
    (
        lambda n, N, count, window: 1 / window,
        "Each loss is divided by `window`: that is right only in a full window of equal sizes. "
        "n / N is right in all of them.",
    ),
    (
        lambda n, N, count, window: n / N / window,
        "n / N is enough: these weights add up to 1, and a division by the number of "
        "micro-batches makes the update too small.",
    ),
]


def _accumulated(
    model: nn.Module,
    sizes: list[int],
    window: int,
    weigh: Callable[[int, int, int, int], float],
) -> Tensor:
    """Return the weights after one epoch in which each micro-batch is weighed like this."""
    model = copy.deepcopy(model)
    optimizer = _optimizer(model)
    pieces = _micro_batches(sizes)
    for start in range(0, len(pieces), window):
        held = pieces[start : start + window]
        samples = sum(len(x) for x, _ in held)
        optimizer.zero_grad()
        for x, y in held:
            loss = nn.functional.mse_loss(model(x), y)
            (loss * weigh(len(x), samples, len(held), window)).backward()
        optimizer.step()
    return _weights(model)


def _pointer(start: nn.Module, got: Tensor, sizes: list[int], window: int) -> str:
    """Return what is likely wrong, if the weights are those that a known slip gives."""
    for weigh, words in _SLIPS:
        if torch.allclose(got, _accumulated(start, sizes, window, weigh), rtol=1e-4, atol=1e-6):
            return f" {words}"
    return ""


def _compare(solution: Any, sizes: list[int], window: int, *, epochs: int = 1) -> None:
    start = _model()
    wanted, model = start, copy.deepcopy(start)
    for _ in range(epochs):
        wanted = _big_batches(wanted, sizes, window)
    optimizer = _optimizer(model)
    moved = _weights(model)
    for _ in range(epochs):
        updates = solution.train_epoch(
            model, optimizer, nn.functional.mse_loss, iter(_micro_batches(sizes)), window
        )
    expected = -(-len(sizes) // window)
    if updates != expected:
        raise Wrong(
            f"{len(sizes)} micro-batches in windows of {window} make {expected} updates, "
            f"the answer was {updates!r}."
        )
    off = float((_weights(model) - _weights(wanted)).norm() / (_weights(wanted) - moved).norm())
    if not off <= 1e-4:  # a nan is off, too
        share = f"{off:.0%} of" if off < 2 else f"{off:.0f} times"
        pointer = _pointer(start, _weights(model), sizes, window) if epochs == 1 else ""
        raise Wrong(
            f"sizes {sizes}, window {window}: the weights are off by {share} "
            f"the way the big batches go.{pointer}"
        )


def check_equal_sizes(solution: Any) -> None:
    """equal sizes and full windows: the same weights as with big batches"""
    _compare(solution, [8, 8, 8, 8], 2)


def check_short_tail(solution: Any) -> None:
    """a short last window makes its own update"""
    _compare(solution, [8, 8, 8, 8, 8], 2)
    _compare(solution, [8], 4)


def check_uneven(solution: Any) -> None:
    """micro-batches of different sizes: each sample counts the same"""
    _compare(solution, [20, 20, 20, 4], 4)
    _compare(solution, [5, 1, 9, 2, 30, 3, 7], 3)


def check_next_epoch(solution: Any) -> None:
    """nothing of one epoch leaks into the next"""
    _compare(solution, [6, 6, 6, 3], 3, epochs=3)


def check_no_windows(solution: Any) -> None:
    """a window of 1 is plain training, and no micro-batch is no update"""
    _compare(solution, [4, 7, 2], 1)
    model = _model()
    before = _weights(model)
    updates = solution.train_epoch(
        model, torch.optim.SGD(model.parameters(), lr=1.0), nn.functional.mse_loss, [], 4
    )
    if updates != 0 or not torch.equal(before, _weights(model)):
        raise Wrong("without a micro-batch there is nothing to update from.")


def check_clean_at_both_ends(solution: Any) -> None:
    """gradients left in the buffers before the call are not used, and none are left after it"""
    model = _model()
    wanted = _big_batches(model, [8, 8, 8], 2)
    model(torch.ones(2, 3)).sum().backward()
    solution.train_epoch(
        model, _optimizer(model), nn.functional.mse_loss, _micro_batches([8, 8, 8]), 2
    )
    if not torch.allclose(_weights(model), _weights(wanted), atol=1e-5):
        raise Wrong("what was in p.grad before the call went into the first window.")
    if any(p.grad is not None and p.grad.any() for p in model.parameters()):
        raise Wrong("p.grad is not empty when the epoch ends.")
