"""Plain loops: bit-equal to the hand-written one, for every optimizer and option."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
from token_task import mlp
from torch import nn

from zerograd import Step, StepError, zero_grad

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


def data(count=12):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(5, 4, generator=generator), torch.randn(5, 1, generator=generator))
        for _ in range(count)
    ]


def equal(first: nn.Module, second: nn.Module) -> bool:
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("clip", [None, 0.05, "value"])
@pytest.mark.parametrize("weight", [1, 1.0, 32])
def test_a_plain_loop_is_bit_equal_to_the_hand_written_one(name, clip, weight):
    hand, ours = mlp(), mlp()
    hand_optimizer, optimizer = (OPTIMIZERS[name](m.parameters()) for m in (hand, ours))
    hand_scheduler = torch.optim.lr_scheduler.StepLR(hand_optimizer, 4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)
    how = {"clip_value": 0.01} if clip == "value" else {"clip": clip}
    step = Step(optimizer, scheduler=scheduler, **how)
    for x, y in data():
        nn.functional.mse_loss(hand(x), y).backward()
        if clip == "value":
            nn.utils.clip_grad_value_(hand.parameters(), 0.01)
        elif clip is not None:
            norm = nn.utils.clip_grad_norm_(hand.parameters(), clip)
        hand_optimizer.step()
        hand_scheduler.step()
        hand_optimizer.zero_grad()
        with step:
            step.backward(nn.functional.mse_loss(ours(x), y), weight=weight)
        assert not step.skipped
        if clip is not None and clip != "value" and weight == 1:
            assert step.grad_norm == float(norm)
        assert all(p.grad is None for p in ours.parameters())
    assert equal(hand, ours)
    assert scheduler.get_last_lr() == hand_scheduler.get_last_lr()


def test_without_a_clip_there_is_no_norm_and_infinity_only_measures():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = Step(optimizer)
    (x, y), *_ = data(1)
    with step:
        step.backward(nn.functional.mse_loss(model(x), y))
    assert step.grad_norm is None
    step.close()
    step = Step(optimizer, clip=math.inf)
    with step:
        step.backward(nn.functional.mse_loss(model(x), y))
    nn.functional.mse_loss(model(x), y).backward()
    assert step.grad_norm == float(nn.utils.get_total_norm([p.grad for p in model.parameters()]))
    zero_grad(model)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_windows_of_a_power_of_two_are_bit_equal_to_dividing_the_loss(count):
    hand, ours = mlp(), mlp()
    hand_optimizer, optimizer = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (hand, ours))
    step = Step(optimizer)
    for _ in range(3):  # the provisional scale changes after the first window
        for x, y in data(count):
            (nn.functional.mse_loss(hand(x), y) / count).backward()
        hand_optimizer.step()
        hand_optimizer.zero_grad()
        with step:
            for x, y in data(count):
                step.backward(nn.functional.mse_loss(ours(x), y))
    assert equal(hand, ours)


def test_a_block_that_raises_drops_its_window_and_the_next_one_is_untouched_by_it():
    model = mlp()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = Step(optimizer, scheduler=scheduler)
    (x, y), *_ = data(1)
    with pytest.raises(KeyError, match="mine"), step:
        step.backward(nn.functional.mse_loss(model(x), y), weight=100)
        raise KeyError("mine")
    assert step.skipped
    assert scheduler.get_last_lr() == [0.1]
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    other = mlp()
    nn.functional.mse_loss(other(x), y).backward()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    with step:
        step.backward(nn.functional.mse_loss(model(x), y))
    assert not step.skipped and equal(model, other)


def test_break_and_continue_and_return_leave_the_block_well():
    model = mlp()
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1))

    def train():
        for x, y in data(3):
            with step:
                step.backward(nn.functional.mse_loss(model(x), y))
                return

    before = model[0].weight.detach().clone()
    train()
    assert not torch.equal(before, model[0].weight)
    for x, y in data(3):
        with step:
            step.backward(nn.functional.mse_loss(model(x), y))
            break
    assert not step.skipped


def test_a_failing_forward_that_is_caught_costs_one_micro_batch_only():
    model, other = mlp(), mlp()
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1))
    batches = data(3)
    with step:
        for index, (x, y) in enumerate(batches):
            try:
                if index == 1:
                    raise MemoryError
                step.backward(nn.functional.mse_loss(model(x), y))
            except MemoryError:
                continue
    x, y = (torch.cat(parts) for parts in zip(batches[0], batches[2], strict=True))
    nn.functional.mse_loss(other(x), y).backward()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_group_added_later_is_adopted():
    body, head = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    step = Step(optimizer)
    (x, y), *_ = data(1)
    with step:
        step.backward(nn.functional.mse_loss(head(body(x).detach()), y))
    optimizer.add_param_group({"params": list(body.parameters())})
    before = body.weight.detach().clone()
    with step:
        step.backward(nn.functional.mse_loss(head(body(x)), y))
    assert not torch.equal(before, body.weight)
    assert body.weight.grad is None


def test_a_forgotten_step_frees_its_parameters_and_leaves_no_hook():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gc.disable()  # no reference cycle may keep it
    try:
        step = Step(optimizer)
        gone = weakref.ref(step)
        del step
        assert gone() is None
    finally:
        gc.enable()
    assert not optimizer._optimizer_step_pre_hooks
    Step(optimizer)


def test_retain_graph_and_create_graph_reach_torch():
    model = mlp()
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1))
    (x, y), *_ = data(1)
    with step:
        loss = nn.functional.mse_loss(model(x), y)
        step.backward(loss, retain_graph=True)
        step.backward(loss)
    with pytest.raises(RuntimeError, match="second time"), step:
        loss = nn.functional.mse_loss(model(x), y)
        step.backward(loss)
        step.backward(loss)
        raise AssertionError("not reached")
    assert all(p.grad is None for p in model.parameters())


def test_a_frozen_or_unused_parameter_is_left_alone():
    model = nn.ModuleDict({"used": nn.Linear(4, 1), "unused": nn.Linear(4, 1)})
    model["used"].bias.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    before = model["unused"].weight.detach().clone()
    step = Step(optimizer, clip=1.0)
    (x, y), *_ = data(1)
    with step:
        step.backward(nn.functional.mse_loss(model["used"](x), y))
    assert torch.equal(before, model["unused"].weight)


def test_backward_outside_a_block_and_a_closed_step():
    model = mlp()
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1))
    loss = model(torch.ones(1, 4)).sum()
    with pytest.raises(StepError, match="outside a block"):
        step.backward(loss)
    step.close()
    with pytest.raises(StepError, match="closed"), step:
        pass
