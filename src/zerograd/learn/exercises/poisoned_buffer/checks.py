"""A run with bad batches must end where the run without them ends."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong

Batch = tuple[Tensor, Tensor]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))


def _good(count: int) -> list[Batch]:
    torch.manual_seed(1)
    return [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(count)]


def _bad(kind: float) -> Batch:
    inputs, targets = _good(1)[0]
    targets = targets.clone()
    targets[0] = kind
    return inputs, targets


def _train(solution: Any, model: nn.Module, batches: list[Batch], loss_fn: Any = None) -> Any:
    # momentum remembers: a step that should have been skipped shows up later
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return solution.train(model, optimizer, loss_fn or nn.functional.mse_loss, iter(batches))


def _plain(model: nn.Module, batches: list[Batch]) -> nn.Module:
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return model


def _demand_same(model: nn.Module, wanted: nn.Module, what: str) -> None:
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    if not torch.isfinite(weights).all():
        raise Wrong(f"{what}: the weights are not finite any more, a step used the bad gradients.")
    if not torch.allclose(weights, torch.cat([p.flatten() for p in wanted.parameters()])):
        raise Wrong(f"{what}: the model does not end as if the bad batch had not been there.")


def check_good_batches(solution: Any) -> None:
    """without a bad batch it is plain training, and 0 are skipped"""
    model, batches = _model(), _good(6)
    wanted = _plain(model, batches)
    skipped = _train(solution, model, batches)
    if skipped != 0:
        raise Wrong(f"all batches are good, and it says {skipped!r} were skipped.")
    _demand_same(model, wanted, "six good batches")


def check_one_nan(solution: Any) -> None:
    """a NaN batch is skipped alone: the batches after it count"""
    model, batches = _model(), _good(6)
    wanted = _plain(model, batches)
    skipped = _train(solution, model, [*batches[:2], _bad(torch.nan), *batches[2:]])
    if skipped == 5:
        raise Wrong(
            "it skipped the bad batch and the 4 after it: the NaN stayed in p.grad, "
            "and nan plus a number is nan."
        )
    if skipped != 1:
        raise Wrong(f"1 batch of 7 is bad, and it says {skipped!r} were skipped.")
    _demand_same(model, wanted, "one NaN batch")


def check_infinity(solution: Any) -> None:
    """an infinity is as bad as a NaN; two bad batches in a row are two"""
    model, batches = _model(), _good(4)
    wanted = _plain(model, batches)
    bad = [_bad(torch.inf), _bad(-torch.inf)]
    skipped = _train(solution, model, [*batches[:2], *bad, *batches[2:]])
    if skipped != 2:
        raise Wrong(f"2 batches of 6 are bad, and it says {skipped!r} were skipped.")
    _demand_same(model, wanted, "two batches with infinities")


def check_first_batch(solution: Any) -> None:
    """the bad one may come first or last"""
    model, batches = _model(), _good(3)
    wanted = _plain(model, batches)
    skipped = _train(solution, model, [_bad(torch.nan), *batches, _bad(torch.nan)])
    if skipped != 2:
        raise Wrong(f"2 batches of 5 are bad, and it says {skipped!r} were skipped.")
    _demand_same(model, wanted, "bad first and last batch")


def check_gradients_not_loss(solution: Any) -> None:
    """it judges the gradients: a finite loss may have a gradient that is not"""

    def root(output: Tensor, targets: Tensor) -> Tensor:
        # the derivative of a square root at 0 is infinite, its value is 0
        return (output - targets).square().mean() + (output.sum() * 0).sqrt()

    model, batches = _model(), _good(1)
    skipped = _train(solution, model, batches, root)
    if skipped != 1:
        raise Wrong("a batch with a finite loss and NaN gradients was not skipped.")
