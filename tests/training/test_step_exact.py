"""The gradient of a window equals that of the full batch, whatever its micro-batches weigh."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from token_task import (
    Recorder,
    TokenModel,
    relative_error,
    token_batches,
    token_loss,
    true_gradient,
)
from torch import nn

from zerograd import GradArena, Step, windows
from zerograd.training.normalise import DeviceLedger, HostLedger, provisional_scale

CLOSE = 1e-6


def seen_gradients(model, batches, size, **options):
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, **options)
    for window in windows(batches, size):
        with step(window):
            for batch in window:
                step.backward(token_loss(model, batch), weight=(batch[1] != -100).sum())
    return optimizer.seen


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(1, 128), min_size=1, max_size=9),
    size=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_uneven_tokens_and_short_tails_give_the_full_batch_gradient(counts, size, seed):
    torch.manual_seed(seed)
    model = TokenModel()
    batches = token_batches(counts, seed)
    seen = seen_gradients(model, batches, size)
    groups = [batches[i : i + size] for i in range(0, len(batches), size)]
    assert len(seen) == len(groups)
    for found, group in zip(seen, groups, strict=True):
        assert relative_error(found, true_gradient(model, group)) < CLOSE


def test_the_frameworks_mistake_would_be_seen():
    """A mean of means is far off on the same data, so the test above can fail."""
    model = TokenModel()
    batches = token_batches([128, 3, 1, 60])
    for batch in batches:
        (token_loss(model, batch) / 4).backward()
    naive = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
    assert relative_error(naive, true_gradient(model, batches)) > 0.1


def test_skipped_micro_batches_and_weight_zero_count_for_nothing():
    model = TokenModel()
    batches = token_batches([100, 20, 7, 64])
    optimizer = Recorder(model.parameters())
    step = Step(optimizer)
    with step:
        for index, batch in enumerate(batches):
            if index == 0:
                continue
            weight = 0 if index == 3 else (batch[1] != -100).sum()
            step.backward(token_loss(model, batch), weight=weight)
    assert relative_error(optimizer.seen[0], true_gradient(model, batches[1:3])) < CLOSE


@pytest.mark.parametrize("arena", [False, True, "own"])
def test_the_clip_acts_on_the_mean_and_its_norm_is_reported(arena):
    model = TokenModel()
    batches = token_batches([100, 20, 7, 64])
    exact = true_gradient(model, batches)
    optimizer = Recorder(model.parameters())
    limit = float(exact.norm()) / 3
    step = Step(optimizer, clip=limit, arena=GradArena(model) if arena == "own" else arena)
    for _ in range(3):  # with provisional scales of 1 and of 2^-6
        with step:
            for batch in batches:
                step.backward(token_loss(model, batch), weight=int((batch[1] != -100).sum()))
        assert step.grad_norm == pytest.approx(float(exact.norm()), rel=1e-6)
        clipped = exact * (limit / (float(exact.norm()) + 1e-6))  # the 1e-6 is torch's own
        assert relative_error(optimizer.seen[-1], clipped) < CLOSE


def test_clip_value_acts_on_the_mean():
    model = TokenModel()
    batches = token_batches([100, 20])
    exact = true_gradient(model, batches)
    limit = float(exact.abs().max()) / 2
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, clip_value=limit)
    with step:
        for batch in batches:
            step.backward(token_loss(model, batch), weight=int((batch[1] != -100).sum()))
    assert relative_error(optimizer.seen[0], exact.clamp(-limit, limit)) < CLOSE


@pytest.mark.parametrize("clip", [None, 0.01])
def test_sparse_gradients(clip):
    dense, sparse = TokenModel(), TokenModel()
    sparse.load_state_dict(dense.state_dict())
    sparse.embedding.sparse = True
    batches = token_batches([100, 20, 7])
    exact = true_gradient(dense, batches)
    if clip is not None:
        exact = exact * (clip / (float(exact.norm()) + 1e-6))  # the 1e-6 is torch's own
    optimizer = Recorder(sparse.parameters())
    step = Step(optimizer, clip=clip)
    for _ in range(2):
        with step:
            for batch in batches:
                step.backward(token_loss(sparse, batch), weight=int((batch[1] != -100).sum()))
        assert relative_error(optimizer.seen[-1], exact) < CLOSE


def test_sparse_adam_trains_through_a_step():
    table = nn.Embedding(10, 4, sparse=True)
    twin = nn.Embedding(10, 4, sparse=True)
    twin.load_state_dict(table.state_dict())
    step = Step(torch.optim.SparseAdam(table.parameters(), lr=0.1))
    hand = torch.optim.SparseAdam(twin.parameters(), lr=0.1)
    for _ in range(3):
        with step:
            step.backward(table(torch.tensor([1, 2, 2])).pow(2).mean())
        twin(torch.tensor([1, 2, 2])).pow(2).mean().backward()
        hand.step()
        hand.zero_grad()
    assert torch.equal(table.weight, twin.weight)


def test_half_precision_stays_in_range_where_a_raw_sum_of_tokens_would_not():
    torch.manual_seed(0)
    model = nn.Linear(8, 1).half()
    x = torch.randn(4, 8).half()
    optimizer = Recorder(model.parameters())
    step = Step(optimizer)
    weight = 60_000  # the sum of two is beyond fp16, as is a gradient times this weight
    with step:  # the first window learns the size
        step.backward(model(x).float().pow(2).mean() * 1e-3, weight=weight)
    with step:
        for _ in range(4):
            step.backward(model(x).float().pow(2).mean(), weight=weight)
    model.float().zero_grad()
    model(x.float()).pow(2).mean().backward()
    exact = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
    assert relative_error(optimizer.seen[1], exact) < 0.01


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=20))
def test_the_provisional_scale_is_a_power_of_two_and_moves_only_when_far_off(weights):
    scale = 1.0
    for weight in weights:
        after = provisional_scale(scale, weight)
        mantissa, _ = __import__("math").frexp(after)
        assert mantissa == 0.5
        assert 0.25 < after * weight < 4.0
        assert after == scale or not 0.25 < scale * weight < 4.0
        scale = after


@given(st.lists(st.lists(st.integers(0, 5000), min_size=1, max_size=5), min_size=1, max_size=5))
def test_both_ledgers_count_alike(shape):
    host, device = HostLedger(), DeviceLedger(torch.device("cpu"))
    loss = torch.zeros(())
    for window in shape:
        if sum(window) == 0:
            continue
        for weight in window:
            root = host.root(loss, float(weight))
            other = device.root(loss, torch.tensor(weight))
            assert float(1.0 if root is None else root) == float(other)
            host.add(float(weight))
            device.add(torch.tensor(weight))
        factor = host.close(None)
        assert float(device.close(None)) == pytest.approx(1.0 if factor is None else factor)
        assert not device.invalid


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_a_bad_weight_on_a_device_gives_zero_and_a_flag_and_does_not_spoil_the_next_window(bad):
    ledger = DeviceLedger(torch.device("cpu"))
    loss = torch.zeros(())
    assert float(ledger.root(loss, torch.tensor(bad))) == 0.0
    ledger.add(torch.tensor(bad))
    ledger.add(torch.tensor(3.0))
    assert float(ledger.close(None)) == 0.0
    assert ledger.invalid
    ledger.add(torch.tensor(2.0))
    assert float(ledger.close(None)) == 0.5
    assert not ledger.invalid
