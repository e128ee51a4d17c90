"""With a scaler the weights go where they go without one, but for the skipped batch."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong

Batch = tuple[Tensor, Tensor]
MAX_NORM = 0.2
SCALE = 65536.0


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))


def _good(count: int) -> list[Batch]:
    torch.manual_seed(1)
    return [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(count)]


def _overflow() -> Batch:
    # its gradients are finite until they are multiplied by the scale
    inputs, targets = _good(1)[0]
    return inputs, targets * 1e35


def _loss(output: Tensor, targets: Tensor) -> Tensor:
    return (output - targets).square().mean()


def _train(solution: Any, model: nn.Module, batches: list[Batch], max_norm: float) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    return solution.train(model, optimizer, scaler, _loss, iter(batches), max_norm)


def _plain(model: nn.Module, batches: list[Batch], max_norm: float) -> nn.Module:
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in batches:
        optimizer.zero_grad()
        _loss(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
    return model


def _weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def check_no_stale(solution: Any) -> None:
    """without a clip in effect the weights are those of plain training"""
    model, batches = _model(), _good(5)
    wanted = _plain(model, batches, 1e9)
    _train(solution, model, batches, 1e9)
    if not torch.allclose(_weights(model), _weights(wanted), atol=1e-5):
        raise Wrong("five plain batches end elsewhere: is the bucket emptied between updates?")


def check_clip(solution: Any) -> None:
    """the clip sees the true norm, not the scaled one"""
    model, batches = _model(), _good(5)
    wanted = _plain(model, batches, MAX_NORM)
    start = _weights(model)
    _train(solution, model, batches, MAX_NORM)
    way = (_weights(model) - start).norm() / (_weights(wanted) - start).norm()
    if way < 0.01:
        raise Wrong(
            f"the weights go {way:.2g} of the right way: the clip measured gradients that "
            f"still carried the scale of {SCALE:.0f}. Unscale first."
        )
    if not torch.allclose(_weights(model), _weights(wanted), atol=1e-5):
        raise Wrong("the clipped updates are off: unscale, then clip, then step.")


def check_scale_rests(solution: Any) -> None:
    """it returns one float per batch; without an overflow the scale stays"""
    scales = _train(solution, _model(), _good(4), MAX_NORM)
    if not isinstance(scales, list) or [type(s) for s in scales] != [float] * 4:
        raise Wrong(f"expected 4 floats, got {scales!r:.80}.")
    if scales != [SCALE] * 4:
        raise Wrong(f"four good batches keep the scale at {SCALE:.0f}, and it went {scales}.")


def check_overflow(solution: Any) -> None:
    """one overflow halves the scale once, and the batches after it count"""
    model, batches = _model(), _good(6)
    wanted = _plain(model, batches, MAX_NORM)
    mixed = [*batches[:2], _overflow(), *batches[2:]]
    scales = _train(solution, model, mixed, MAX_NORM)
    if len(scales) == 7 and scales[-1] < SCALE / 2:
        raise Wrong(
            f"the scale went {scales}: halved again and again, because the infinity "
            "stayed in p.grad. Who clears it after a skipped step?"
        )
    if scales != [SCALE] * 2 + [SCALE / 2] * 5:
        raise Wrong(f"the scale went {scales}: is update() called once per batch, after step()?")
    if not torch.allclose(_weights(model), _weights(wanted), atol=1e-5):
        raise Wrong("the weights do not end as if the overflowing batch had not been there.")
