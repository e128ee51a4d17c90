"""One update per batch, from that batch alone, compared with gradients computed afresh."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong

Batches = list[tuple[Tensor, Tensor]]


def _task(count: int = 6) -> tuple[nn.Module, Batches]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(count)]


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def _reference(model: nn.Module, batches: Batches) -> tuple[nn.Module, list[float]]:
    """Train a copy with gradients that never stay in a buffer."""
    model = copy.deepcopy(model)
    optimizer = _optimizer(model)
    losses = []
    for inputs, targets in batches:
        loss = nn.functional.mse_loss(model(inputs), targets)
        parameters = list(model.parameters())
        for p, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            p.grad = grad
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def _weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _train(solution: Any, model: nn.Module, batches: Any) -> Any:
    return solution.train(model, _optimizer(model), nn.functional.mse_loss, batches)


def check_it_learns(solution: Any) -> None:
    """the weights move: each step sees the gradients of its batch"""
    model, batches = _task()
    before = _weights(model)
    _train(solution, model, batches)
    if torch.equal(before, _weights(model)):
        raise Wrong(
            "the weights are what they were: step() saw no gradients. "
            "They were cleared, or not there yet, when it ran."
        )


def check_only_this_batch(solution: Any) -> None:
    """no step uses gradients of an earlier batch"""
    model, batches = _task()
    wanted, _ = _reference(model, batches)
    first_only, _ = _reference(model, batches[:1])
    once = copy.deepcopy(model)
    _train(solution, once, batches[:1])
    if not torch.allclose(_weights(once), _weights(first_only), atol=1e-6):
        raise Wrong("the update of a single batch is off: is it one backward() and one step()?")
    _train(solution, model, batches)
    if not torch.allclose(_weights(model), _weights(wanted), atol=1e-6):
        raise Wrong(
            "right after one batch, wrong after six: older gradients are still in p.grad "
            "when the next backward() adds to it."
        )


def check_losses(solution: Any) -> None:
    """it returns one plain float per batch, the loss before the update"""
    model, batches = _task()
    _, wanted = _reference(model, batches)
    losses = _train(solution, model, batches)
    if not isinstance(losses, list) or len(losses) != len(batches):
        raise Wrong(f"expected a list of {len(batches)} losses, got {losses!r:.80}.")
    if any(type(loss) is not float for loss in losses):
        raise Wrong(f"a loss is a {type(losses[0]).__name__}: loss.item() makes it a number.")
    off = max(abs(loss - want) for loss, want in zip(losses, wanted, strict=True))
    if off > 1e-5:
        raise Wrong(f"the losses differ from the true ones by up to {off:.3g}.")


def check_left_over(solution: Any) -> None:
    """gradients that someone left in the buffers before the call are not used"""
    model, batches = _task()
    wanted, _ = _reference(model, batches)
    nn.functional.mse_loss(model(batches[0][0]), batches[0][1]).backward()
    _train(solution, model, batches)
    if not torch.allclose(_weights(model), _weights(wanted), atol=1e-6):
        raise Wrong(
            "a backward() ran before train() was called, and its gradients went into the "
            "first update: clear before the first backward, too."
        )


def check_one_pass(solution: Any) -> None:
    """the batches may be an iterator that can be read once; none at all is fine"""
    model, batches = _task()
    wanted, _ = _reference(model, batches)
    losses = _train(solution, model, iter(batches))
    if len(losses) != len(batches) or not torch.allclose(_weights(model), _weights(wanted)):
        raise Wrong("with an iterator the result differs: read the batches only once.")
    if _train(solution, model, iter([])) != []:
        raise Wrong("without batches the answer is an empty list.")
