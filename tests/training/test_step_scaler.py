"""GradScaler: one unscale, one step, one update; a skipped step moves nothing."""

from __future__ import annotations

import pytest
import torch
from token_task import mlp
from torch import nn
from torch.amp import GradScaler

from zerograd import Step, StepError

X = torch.ones(3, 4)


def loss_of(model, factor=1.0):
    return model(X).pow(2).mean() * factor


def make(kind, model):
    if kind == "fused":
        return torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    return torch.optim.AdamW(model.parameters(), lr=0.01)


@pytest.mark.parametrize("kind", ["plain", "fused"])
@pytest.mark.parametrize("clip", [None, 0.01])
def test_scaler_loops_equal_the_hand_written_one_through_an_overflow(kind, clip):
    hand, ours = mlp(), mlp()
    hand_optimizer, optimizer = make(kind, hand), make(kind, ours)
    hand_scaler, scaler = GradScaler("cpu", init_scale=1024.0), GradScaler("cpu", init_scale=1024.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    step = Step(optimizer, scaler=scaler, scheduler=scheduler, clip=clip)
    skips = []
    for index in range(6):
        factor = float("inf") if index in (1, 4) else 1.0
        hand_scaler.scale(loss_of(hand, factor)).backward()
        if clip is not None:
            hand_scaler.unscale_(hand_optimizer)
            nn.utils.clip_grad_norm_(hand.parameters(), clip)
        hand_scaler.step(hand_optimizer)
        hand_scaler.update()
        hand_optimizer.zero_grad()
        if index not in (1, 4):
            hand_optimizer.param_groups[0]["lr"] *= 0.5
        with step:
            step.backward(loss_of(ours, factor))
        skips.append(step.skipped)
    assert skips == [False, True, False, False, True, False]
    assert scheduler.get_last_lr() == [0.01 * 0.5**4]
    assert scaler.get_scale() == hand_scaler.get_scale() == 256.0
    for a, b in zip(hand.parameters(), ours.parameters(), strict=True):
        assert torch.equal(a, b)


def test_weighted_windows_under_a_scaler_are_exact():
    model, twin = mlp(), mlp()
    scaler = GradScaler("cpu", init_scale=2.0**16)
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), scaler=scaler, clip=0.5)
    x = torch.randn(40, 4)
    for _ in range(3):
        with step:
            for piece in x.split([7, 1, 32]):
                step.backward(model(piece).pow(2).mean(), weight=len(piece))
        twin.zero_grad()
        twin(x).pow(2).mean().backward()
        norm = nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        torch.optim.SGD(twin.parameters(), lr=0.1).step()
        assert step.grad_norm == pytest.approx(float(norm), rel=1e-5)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("clip", [None, 1.0])
def test_two_optimizers_one_scaler_both_updates_are_right(clip):
    """The fault of two updates a step: the second optimizer unscaled twice, 1/65536 too small."""
    first, second, hand_first, hand_second = mlp(1), mlp(2), mlp(1), mlp(2)
    scaler = GradScaler("cpu", init_scale=65536.0)
    step = Step(
        torch.optim.SGD(first.parameters(), lr=0.1),
        torch.optim.SGD(second.parameters(), lr=0.1),
        scaler=scaler,
        clip=clip,
    )
    with step:
        step.backward(loss_of(first) + loss_of(second))
    both = [*hand_first.parameters(), *hand_second.parameters()]
    (loss_of(hand_first) + loss_of(hand_second)).backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(both, clip)
    torch.optim.SGD(both, lr=0.1).step()
    ours = [*first.parameters(), *second.parameters()]
    for a, b in zip(both, ours, strict=True):
        torch.testing.assert_close(a, b)


def test_an_overflow_in_one_optimizer_holds_back_all_of_the_step():
    first, second = mlp(1), mlp(2)
    before = second[0].weight.detach().clone()
    step = Step(
        torch.optim.Adam(first.parameters()),
        torch.optim.Adam(second.parameters()),
        scaler=GradScaler("cpu"),
        clip=1.0,
    )
    with step:
        step.backward(loss_of(first, float("inf")) + loss_of(second))
    assert step.skipped
    assert torch.equal(before, second[0].weight)


def test_an_optimizer_that_receives_nothing_is_left_out():
    first, second = mlp(1), mlp(2)
    step = Step(
        torch.optim.Adam(first.parameters()),
        torch.optim.Adam(second.parameters()),
        scaler=GradScaler("cpu"),
    )
    for model in (first, second):
        before = model[0].weight.detach().clone()
        with step:
            step.backward(loss_of(model))
        assert not torch.equal(before, model[0].weight)


def test_a_scaler_that_is_switched_off_is_as_good_as_none():
    model, twin = mlp(), mlp()
    step = Step(
        torch.optim.SGD(model.parameters(), lr=0.1), scaler=GradScaler("cpu", enabled=False)
    )
    with step:
        step.backward(loss_of(model))
    loss_of(twin).backward()
    torch.optim.SGD(twin.parameters(), lr=0.1).step()
    assert torch.equal(model[0].weight, twin[0].weight)


def test_a_scaler_step_by_hand_inside_the_block():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler("cpu")
    step = Step(optimizer, scaler=scaler)
    with pytest.raises(StepError, match="Remove the call"), step:
        step.backward(loss_of(model))
        scaler.step(optimizer)
    scaler.update()
    with step:
        step.backward(loss_of(model))
    assert not step.skipped


def test_a_failing_optimizer_leaves_the_scaler_usable():
    class Failing(torch.optim.SGD):
        fail = True

        def step(self, closure=None):
            if self.fail:
                raise OSError("no more memory")
            return super().step(closure)

    model = mlp()
    optimizer = Failing(model.parameters(), lr=0.1)
    step = Step(optimizer, scaler=GradScaler("cpu"), clip=1.0)
    with pytest.raises(OSError, match="no more memory"), step:
        step.backward(loss_of(model))
    optimizer.fail = False
    with step:
        step.backward(loss_of(model))
    assert not step.skipped


def test_two_blocks_with_one_scaler_do_not_overlap():
    first, second = mlp(1), mlp(2)
    scaler = GradScaler("cpu")
    outer = Step(torch.optim.SGD(first.parameters(), lr=0.1), scaler=scaler)
    inner = Step(torch.optim.SGD(second.parameters(), lr=0.1), scaler=scaler)
    with pytest.raises(StepError, match="same GradScaler"), outer:
        outer.backward(loss_of(first))
        with inner:
            inner.backward(loss_of(second))


def test_bf16_autocast_needs_no_scaler():
    model = mlp()
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), clip=1.0)
    with step:
        for piece, weight in ((X, 3), (X[:1], 1)):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(piece).float(), torch.zeros(weight, 1))
            step.backward(loss, weight=weight)
    assert not step.skipped and step.grad_norm > 0


def test_device_weights_and_a_fused_optimizer_skip_on_the_device():
    from zerograd.training.normalise import DeviceLedger

    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = Step(optimizer, scheduler=scheduler)
    step._ledger = DeviceLedger(torch.device("cpu"))  # as on a GPU, where nobody reads values
    before = model[0].weight.detach().clone()
    with step:
        step.backward(loss_of(model), weight=0)
    assert step.skipped
    assert torch.equal(before, model[0].weight)
    assert scheduler.get_last_lr() == [0.1]
    with step:
        step.backward(loss_of(model), weight=5)
    assert not step.skipped
    assert not torch.equal(before, model[0].weight)
