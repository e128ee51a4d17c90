"""GradArena: the same numbers as separate gradients, in one buffer, whatever others do."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from zerograd import GradArena, Step, StepError, zero_grad


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))


def loss_of(model, seed=0):
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
    return model(x.to(next(model.parameters()).dtype)).pow(2).mean()


def is_inside(arena, model):
    ranges = [
        (flat.data_ptr(), flat.data_ptr() + flat.numel() * flat.element_size())
        for flat in (block.flat for block in arena._blocks)
    ]
    return all(
        any(low <= p.grad.data_ptr() < high for low, high in ranges) for p in model.parameters()
    )


def test_backward_fills_the_buffer_and_zero_clears_it():
    model, twin = network(), network()
    arena = GradArena(model.parameters())
    loss_of(model).backward()
    loss_of(twin).backward()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad) and p.grad.stride() == q.grad.stride()
    assert is_inside(arena, model)
    arena.zero_()
    assert all(not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_norm_and_clip_equal_torchs(norm_type):
    model, twin = network(), network()
    arena = GradArena(model)
    loss_of(model).backward()
    loss_of(twin).backward()
    expected = nn.utils.clip_grad_norm_(twin.parameters(), 0.01, norm_type)
    torch.testing.assert_close(arena.norm(norm_type), expected)
    torch.testing.assert_close(arena.clip_(0.01, norm_type), expected)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


def test_clip_to_infinity_measures_and_scale_multiplies():
    model = network()
    arena = GradArena(model)
    loss_of(model).backward()
    before = arena.norm()
    arena.clip_(float("inf"))
    assert arena.norm() == before
    arena.scale_(0.5)
    torch.testing.assert_close(arena.norm(), before / 2)
    arena.scale_(torch.tensor(2.0))
    torch.testing.assert_close(arena.norm(), before)


def test_training_with_the_arena_equals_training_without():
    model, twin = network(), network()
    arena = GradArena(model)
    ours = torch.optim.AdamW(model.parameters(), lr=0.01)
    theirs = torch.optim.AdamW(twin.parameters(), lr=0.01)
    for seed in range(5):
        loss_of(model, seed).backward()
        arena.clip_(0.05)
        ours.step()
        arena.zero_()
        loss_of(twin, seed).backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.05)
        theirs.step()
        theirs.zero_grad()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)


DISTURBANCES = {
    "zero_grad to None": lambda m: zero_grad(m),
    "zero_grad to zero": lambda m: zero_grad(m, set_to_none=False),
    "one gradient dropped": lambda m: setattr(m[2].weight, "grad", None),
    "one gradient replaced": lambda m: setattr(m[2].weight, "grad", torch.ones_like(m[2].weight)),
    "to float64": lambda m: m.double(),
    "to float64 and back": lambda m: m.double().float(),
    "load_state_dict": lambda m: m.load_state_dict(network(9).state_dict()),
    "deep copy": lambda m: copy.deepcopy(m),
}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from([*DISTURBANCES, "backward", "clear", "clip", "scale"]),
        min_size=1,
        max_size=10,
    )
)
def test_whatever_happens_the_gradients_are_those_of_separate_tensors(happenings):
    model, twin = network(), network()
    arena = GradArena(model)
    for seed, what in enumerate(happenings):
        if what == "backward":
            loss_of(model, seed).backward()
            loss_of(twin, seed).backward()
        elif what == "clear":
            arena.zero_()
            zero_grad(twin, set_to_none=False)
        elif what == "clip":
            arena.clip_(0.01)
            if any(p.grad is not None for p in twin.parameters()):
                nn.utils.clip_grad_norm_(twin.parameters(), 0.01)
        elif what == "scale":
            arena.scale_(0.5)
            for p in twin.parameters():
                if p.grad is not None:
                    p.grad.mul_(0.5)
        else:
            DISTURBANCES[what](model)
            DISTURBANCES[what](twin)
    arena.norm()
    assert is_inside(arena, model)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        expected = torch.zeros_like(q) if q.grad is None else q.grad
        torch.testing.assert_close(p.grad, expected)


def test_a_clear_after_a_silent_move_of_one_gradient_clears_it():
    """`.data` of a gradient is exchanged without a new object, as module.to() does."""
    model = network()
    arena = GradArena(model)
    loss_of(model).backward()
    model[4].bias.grad.data = model[4].bias.grad.data.clone()
    arena.zero_()
    assert not model[4].bias.grad.any() and is_inside(arena, model)


def test_new_parameters_are_taken_in_with_their_gradients():
    body, head = network(), nn.Linear(3, 1)
    arena = GradArena(body.parameters())
    loss_of(body).backward()
    head(torch.ones(1, 3)).sum().backward()
    before = [p.grad.clone() for p in [*body.parameters(), *head.parameters()]]
    arena.add(head.parameters())
    assert is_inside(arena, body) and is_inside(arena, head)
    for p, grad in zip([*body.parameters(), *head.parameters()], before, strict=True):
        assert torch.equal(p.grad, grad)


def test_channels_last_tied_frozen_and_empty_parameters():
    convolution = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    empty = nn.Parameter(torch.empty(0, 3))
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    tied = convolution.weight
    arena = GradArena([*convolution.parameters(), tied, empty, frozen])
    convolution(torch.randn(1, 3, 5, 5)).sum().backward()
    assert convolution.weight.grad.stride() == convolution.weight.stride()
    assert frozen.grad is None
    arena.zero_()
    arena.clip_(1.0)
    assert not convolution.weight.grad.any()


def test_one_buffer_for_each_dtype_and_a_norm_over_all():
    model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3).bfloat16(), nn.Linear(3, 3).double()])
    arena = GradArena(model)
    for layer in model:
        layer(torch.ones(1, 3, dtype=layer.weight.dtype)).sum().backward()
    expected = sum(float(p.grad.double().norm()) ** 2 for p in model.parameters()) ** 0.5
    assert float(arena.norm()) == pytest.approx(expected, rel=1e-3)
    assert len(arena.collect()) == 3


def test_a_half_precision_norm_does_not_overflow():
    parameter = nn.Parameter(torch.zeros(1000, dtype=torch.float16))
    arena = GradArena([parameter])
    parameter.grad.fill_(6e4)
    assert float(arena.norm()) == pytest.approx(6e4 * 1000**0.5, rel=1e-3)


@given(st.lists(st.integers(1024, 5000), min_size=1, max_size=30))
@settings(deadline=None, max_examples=20)
def test_memory_is_at_most_one_percent_above_the_gradients(sizes):
    parameters = [nn.Parameter(torch.empty(size)) for size in sizes]
    arena = GradArena(parameters)
    assert arena.nbytes <= 1.01 * sum(p.numel() * 4 for p in parameters)
    for p in parameters:
        assert p.grad.data_ptr() % 16 == 0


def test_an_arena_that_goes_leaves_nothing_behind():
    model = network()
    gc.disable()
    try:
        arena = GradArena(model)
        gone = weakref.ref(arena)
        arena.release()
        del arena
        assert gone() is None
    finally:
        gc.enable()
    assert all(p.grad is None for p in model.parameters())


def test_what_it_cannot_hold_is_said():
    with pytest.raises(StepError, match="sparse=True"):
        GradArena(nn.Sequential(nn.Embedding(3, 2, sparse=True)))
    table = nn.Embedding(3, 2, sparse=True)
    arena = GradArena(table.parameters())
    table.weight.grad = None
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(StepError, match="sparse gradient"):
        arena.norm()
    with pytest.raises(ValueError, match="no parameter"):
        GradArena([])
    with pytest.raises(TypeError, match="iterable"):
        GradArena(torch.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="got int"):
        GradArena([3])
    with pytest.raises(TypeError, match="operation"):
        GradArena([torch.ones(1, requires_grad=True) * 2])
    with pytest.raises(ValueError, match="max_norm"):
        GradArena([torch.ones(1, requires_grad=True)]).clip_(-1.0)


def test_a_step_with_an_arena_refuses_what_the_arena_cannot_hold():
    table = nn.Embedding(3, 2, sparse=True)
    with pytest.raises(StepError, match="SparseAdam"):
        Step(torch.optim.SparseAdam(table.parameters()), arena=True)


@pytest.mark.parametrize("misuse", ["bare backward before", "dropped inside", "other loss"])
@pytest.mark.parametrize("own", [False, True])
def test_a_step_with_an_arena_sees_misuse(misuse, own):
    model = network()
    arena = GradArena(model) if own else True
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), arena=arena, clip=1.0)
    with step:
        step.backward(loss_of(model))
    if misuse == "bare backward before":
        loss_of(model).backward()
        with pytest.raises(StepError, match="left over"), step:
            step.backward(loss_of(model))
    elif misuse == "dropped inside":
        with pytest.raises(StepError, match="cleared inside"), step:
            step.backward(loss_of(model))
            model.zero_grad()
    else:
        with pytest.raises(StepError, match="does not depend"), step:
            step.backward(loss_of(network(1)))


@pytest.mark.parametrize("own", [False, True])
def test_a_step_with_an_arena_survives_a_clear_to_none_between_blocks(own):
    model, twin = network(), network()
    arena = GradArena(model) if own else True
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), arena=arena, clip=1e9)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    for seed in range(3):
        model.zero_grad()
        with step:
            step.backward(loss_of(model, seed))
        loss_of(twin, seed).backward()
        optimizer.step()
        optimizer.zero_grad()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


def test_gathered_gradients_survive_a_moved_model_a_new_group_and_an_unused_head():
    model, twin, head = network(), network(), nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5)
    theirs = torch.optim.SGD(twin.parameters(), lr=0.1, weight_decay=0.5)
    step = Step(optimizer, arena=True, clip=0.01)
    before = head.weight.detach().clone()
    for seed in range(4):
        if seed == 1:
            model.double()
            twin.double()
        if seed == 2:
            optimizer.add_param_group({"params": list(head.parameters())})
        if seed == 3:
            model.float()
            twin.float()
        with step:
            step.backward(loss_of(model, seed))
        loss_of(twin, seed).backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.01)
        theirs.step()
        theirs.zero_grad()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    assert torch.equal(head.weight, before), "an unused head is not decayed"


def test_a_sparse_gradient_is_refused_by_a_step_that_gathers():
    table = nn.Embedding(5, 2, sparse=True)
    step = Step(torch.optim.SGD(table.parameters(), lr=0.1), arena=True, clip=1.0)
    with pytest.raises(StepError, match="sparse"), step:
        step.backward(table(torch.tensor([1, 1])).sum())


def test_a_gradient_of_the_last_window_does_not_count_in_this_ones_norm():
    first, second = nn.Linear(3, 1), nn.Linear(3, 1)
    both = [*first.parameters(), *second.parameters()]
    step = Step(torch.optim.SGD(both, lr=0.0), arena=True, clip=float("inf"))
    x = torch.ones(1, 3)
    with step:
        step.backward(first(x).sum() * 100 + second(x).sum())
    with step:
        step.backward(second(x).sum())
    assert step.grad_norm == pytest.approx(2.0)
