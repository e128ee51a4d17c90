"""The head trains as if the backbone were a constant."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong

MAX_NORM = 0.5


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Linear(4, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.backbone(inputs)))
        return out


def _task(count: int) -> tuple[_Net, list[tuple[Tensor, Tensor]]]:
    torch.manual_seed(0)
    return _Net(), [(torch.randn(8, 4), 3 * torch.randn(8, 1) + 5) for _ in range(count)]


def _optimizer(model: _Net) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.head.parameters(), lr=0.1)


def _train(solution: Any, model: _Net, batches: Any) -> None:
    solution.train_head(model, _optimizer(model), nn.functional.mse_loss, batches, MAX_NORM)


def _reference(model: _Net, batches: list[tuple[Tensor, Tensor]]) -> _Net:
    model = copy.deepcopy(model)
    optimizer = _optimizer(model)
    for inputs, targets in batches:
        with torch.no_grad():
            features = torch.tanh(model.backbone(inputs))
        optimizer.zero_grad()
        nn.functional.mse_loss(model.head(features), targets).backward()
        nn.utils.clip_grad_norm_(model.head.parameters(), MAX_NORM)
        optimizer.step()
    return model


def check_backbone_weights(solution: Any) -> None:
    """the backbone's weights stay as they are"""
    model, batches = _task(5)
    before = [p.detach().clone() for p in model.backbone.parameters()]
    _train(solution, model, batches)
    if not all(torch.equal(p, b) for p, b in zip(model.backbone.parameters(), before, strict=True)):
        raise Wrong("the backbone's weights changed: only the head is to be trained.")


def check_backbone_gradients(solution: Any) -> None:
    """the backbone's gradients do not grow with the number of batches"""
    norms = []
    for count in (1, 30):
        model, batches = _task(1)
        _train(solution, model, batches * count)
        grads = [p.grad for p in model.backbone.parameters() if p.grad is not None]
        norms.append(sum(g.norm().item() for g in grads))
    if norms[1] > 2 * norms[0] + 1e-6:
        raise Wrong(
            f"the backbone's gradient norm is {norms[0]:.3g} after 1 batch and {norms[1]:.3g} "
            "after 30: the optimizer does not hold it, so optimizer.zero_grad() passes it by."
        )


def check_head(solution: Any) -> None:
    """the head's weights are those of training with the head's own norm clipped"""
    model, batches = _task(30)
    wanted = _reference(model, batches)
    _train(solution, model, batches)
    for p, want in zip(model.head.parameters(), wanted.head.parameters(), strict=True):
        if not torch.allclose(p, want, atol=1e-5):
            raise Wrong(
                "the head's weights are off: is the clip's norm taken over more than the head, "
                "or a gradient used twice?"
            )


def check_flags(solution: Any) -> None:
    """requires_grad of every parameter is afterwards what it was before"""
    model, batches = _task(2)
    _train(solution, model, batches)
    changed = [name for name, p in model.named_parameters() if not p.requires_grad]
    if changed:
        raise Wrong(f"{changed[0]}.requires_grad is False now: put it back when done.")
