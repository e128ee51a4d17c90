"""What a clear that keeps the buffers must do to real tensors."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from zerograd.learn.grading import Wrong


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def _filled() -> nn.Module:
    model = _model()
    model(torch.ones(5, 3)).square().sum().backward()
    return model


def check_absent(solution: Any) -> None:
    """where no gradient is there yet, nothing happens and nothing is raised"""
    model = _model()
    solution.clear(model.parameters())
    made = [name for name, p in model.named_parameters() if p.grad is not None]
    if made:
        raise Wrong(f"{made[0]}.grad was None and is now a tensor: leave an absent one absent.")


def check_present(solution: Any) -> None:
    """gradients that are there become zero"""
    model = _filled()
    solution.clear(model.parameters())
    for name, p in model.named_parameters():
        if p.grad is None:
            raise Wrong(f"{name}.grad is None now: this clear is asked to keep the buffer.")
        if p.grad.count_nonzero():
            raise Wrong(f"{name}.grad still holds {p.grad.flatten()[0].item():.3g}.")


def check_mixed(solution: Any) -> None:
    """absent and present ones may be mixed, in any order"""
    model = _filled()
    first, *_ = model.parameters()
    first.grad = None
    solution.clear(model.parameters())
    if first.grad is not None:
        raise Wrong("the absent gradient became a tensor.")
    left = [n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()]
    if left:
        raise Wrong(f"{left[0]}.grad was not cleared: did the loop stop at the absent one?")


def check_in_place(solution: Any) -> None:
    """it happens in place: the same tensor, the same memory, as others may hold on to it"""
    model = _filled()
    before = [(p.grad, p.grad.data_ptr()) for p in model.parameters() if p.grad is not None]
    solution.clear(model.parameters())
    for p, (grad, pointer) in zip(model.parameters(), before, strict=True):
        if p.grad is not grad or p.grad is None or p.grad.data_ptr() != pointer:
            raise Wrong("p.grad is a new tensor: write the zeros into the one that was there.")


def check_poison(solution: Any) -> None:
    """NaN and infinity are cleared too"""
    model = _filled()
    for p, poison in zip(model.parameters(), [torch.nan, torch.inf, -torch.inf, 1.0], strict=True):
        assert p.grad is not None
        p.grad.fill_(poison)
    solution.clear(model.parameters())
    for p in model.parameters():
        assert p.grad is not None
        if not torch.equal(p.grad, torch.zeros_like(p.grad)):
            raise Wrong("nan or inf survived: multiplying by 0 does not clear, zero_() does.")


def check_graph(solution: Any) -> None:
    """a gradient made with create_graph=True is cut from its graph"""
    model = _model()
    loss = model(torch.ones(5, 3)).square().sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the cycle that is looked at here
        loss.backward(create_graph=True)
    solution.clear(model.parameters())
    try:
        for p in model.parameters():
            assert p.grad is not None
            if p.grad.grad_fn is not None or p.grad.requires_grad:
                raise Wrong("p.grad still hangs on a graph, which then grows: detach_() it first.")
    finally:
        for p in model.parameters():
            p.grad = None  # breaks the cycle of parameter and graph


def check_weights(solution: Any) -> None:
    """the weights stay as they are"""
    model = _filled()
    before = [p.detach().clone() for p in model.parameters()]
    solution.clear(model.parameters())
    for p, kept in zip(model.parameters(), before, strict=True):
        if not torch.equal(p, kept):
            raise Wrong("a weight changed: clear p.grad, not p.")
