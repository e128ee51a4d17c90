"""Tensors, modules and optimizers: cleared where they are, all or nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from zerograd import zero_grad


def filled():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    model(torch.ones(2, 3)).sum().backward()
    return model


def are_none(model):
    return all(p.grad is None for p in model.parameters())


def are_zero(model):
    return all(p.grad is not None and not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize(
    "target",
    [
        lambda m: m,
        lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
        lambda m: m.parameters(),
        lambda m: list(m.parameters()),
        lambda m: tuple(m.parameters()),
        lambda m: set(m.parameters()),
        lambda m: [m],
        lambda m: [m[0].parameters(), m[2]],
        lambda m: torch.optim.SGD([{"params": [p]} for p in m.parameters()], lr=0.1),
        lambda m: torch.optim.SGD(m.parameters(), lr=0.1).param_groups,
    ],
)
def test_every_kind_of_holder(target, set_to_none):
    model = filled()
    assert zero_grad(target(model), set_to_none=set_to_none) is None
    assert (are_none if set_to_none else are_zero)(model)


def test_several_at_once():
    first, second = filled(), filled()
    zero_grad(first, torch.optim.SGD(second.parameters(), lr=0.1))
    assert are_none(first) and are_none(second)


def test_one_tensor_and_a_retained_one():
    leaf = torch.ones(3, requires_grad=True)
    result = leaf * 2
    result.retain_grad()
    result.sum().backward()
    zero_grad(leaf, result)
    assert leaf.grad is None and result.grad is None


def test_what_has_no_gradient_is_left_as_it_is():
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    zero_grad(model, set_to_none=False)
    assert are_none(model)


def test_sparse_gradients():
    table = nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    zero_grad(table, set_to_none=False)
    assert table.weight.grad.is_sparse and not table.weight.grad.to_dense().any()
    zero_grad(table)
    assert table.weight.grad is None


def test_zeros_keep_the_tensor_itself_so_that_captured_graphs_stay_valid():
    model = filled()
    grads = [p.grad for p in model.parameters()]
    zero_grad(model, set_to_none=False)
    assert all(p.grad is grad for p, grad in zip(model.parameters(), grads, strict=True))


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_with_a_history_are_cut_off_from_it():
    w = torch.ones(2, requires_grad=True)
    (w**3).sum().backward(create_graph=True)
    zero_grad([w], set_to_none=False)
    assert not w.grad.requires_grad and not w.grad.any()


def test_mixed_dtypes():
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2).double()])
    model[0](torch.ones(1, 2)).sum().backward()
    model[1](torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    zero_grad(model, set_to_none=False)
    assert are_zero(model)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda m: [*m.parameters(), 1.0], "element"),
        (lambda m: list(m.named_parameters()), "parameters()"),
        (lambda m: dict(m.named_parameters()), "values()"),
        (lambda m: [*m.parameters(), None], "got None at index 4"),
        (lambda m: [*m.parameters(), m(torch.ones(1, 3))], "result of an operation"),
    ],
)
def test_an_error_has_changed_nothing(bad, said):
    model = filled()
    with pytest.raises(TypeError) as caught:
        zero_grad(bad(model))
    assert said in str(caught.value)
    assert not any(p.grad is None for p in model.parameters())


def test_an_optimizer_prepared_by_accelerate_is_cleared_in_the_middle_of_a_window_too():
    """Its own zero_grad() does nothing there; this one clears what it is asked to."""

    class Prepared(torch.optim.SGD):
        def zero_grad(self, set_to_none=True):
            pass

    model = filled()
    zero_grad(Prepared(model.parameters(), lr=0.1))
    assert are_none(model)
