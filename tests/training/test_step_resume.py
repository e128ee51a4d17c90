"""state_dict(): go on between windows, and in the middle of one."""

from __future__ import annotations

import io

import pytest
import torch
from token_task import TokenModel, mlp, token_batches, token_loss
from torch.amp import GradScaler

from zerograd import GradArena, Step, StepError, windows

COUNTS = [100, 3, 50, 128, 17, 64, 9]


def count(batch):
    return int((batch[1] != -100).sum())


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def setup(arena, scaled):
    torch.manual_seed(0)
    model = TokenModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = GradScaler("cpu", init_scale=256.0) if scaled else None
    held = GradArena(model) if arena == "own" else arena
    return model, optimizer, scaler, Step(optimizer, scaler=scaler, clip=1.0, arena=held)


@pytest.mark.parametrize("arena", [False, True, "own"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("stop", range(1, 7))
def test_a_run_stopped_after_any_micro_batch_goes_on_bit_equal(arena, scaled, stop):
    batches = token_batches(COUNTS)
    model, optimizer, scaler, step = setup(arena, scaled)
    saved = None
    seen = 0
    for window in windows(batches, 3):
        with step(window):
            for batch in window:
                step.backward(token_loss(model, batch), weight=count(batch))
                seen += 1
                if seen == stop:
                    saved = through_a_file(
                        {
                            "model": model.state_dict(),
                            "optimizer": optimizer.state_dict(),
                            "scaler": scaler.state_dict() if scaler else {},
                            "step": step.state_dict(),
                        }
                    )
    again, optimizer_again, scaler_again, step_again = setup(arena, scaled)
    again.load_state_dict(saved["model"])
    optimizer_again.load_state_dict(saved["optimizer"])
    if scaler_again:
        scaler_again.load_state_dict(saved["scaler"])
    step_again.load_state_dict(saved["step"])
    done = saved["step"]["drawn"]
    assert done == (stop - 1) % 3 + 1
    if done == 3:  # the window was full: only its end is missing
        with step_again:
            pass
        done = 0
    for window in windows(batches[stop:], 3, done=done):
        with step_again(window):
            for batch in window:
                step_again.backward(token_loss(again, batch), weight=count(batch))
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_between_windows_the_state_is_small_and_keeps_the_provisional_scale():
    model, _, _, step = setup(False, False)
    batches = token_batches([100, 100])
    with step:
        for batch in batches:
            step.backward(token_loss(model, batch), weight=count(batch))
    state = step.state_dict()
    assert "grads" not in state and state["scale"] == 2.0**-8
    _, _, _, other = setup(False, False)
    other.load_state_dict(state)
    assert other.state_dict() == state


def test_a_state_that_waits_to_be_continued_can_be_saved_again():
    model, _, _, step = setup(False, False)
    batch = token_batches([10])[0]
    with step:
        step.backward(token_loss(model, batch), weight=10)
        state = step.state_dict()
    _, _, _, other = setup(False, False)
    other.load_state_dict(state)
    assert other.state_dict()["count"] == 1


def test_a_resumed_block_that_raises_drops_the_old_part_too():
    model, _, _, step = setup(False, False)
    batch = token_batches([10])[0]
    with step:
        step.backward(token_loss(model, batch), weight=10)
        state = step.state_dict()
    step.load_state_dict(state)
    with pytest.raises(OSError, match="gone"), step:
        raise OSError("gone")
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(StepError, match="ended without"), step:
        pass


@pytest.mark.parametrize("state", [{}, {"version": 2}, None, []])
def test_a_state_of_something_else(state):
    step = Step(torch.optim.SGD(mlp().parameters(), 0.1))
    with pytest.raises(ValueError, match="not a state"):
        step.load_state_dict(state)


def test_a_state_of_another_model():
    model, _, _, step = setup(False, False)
    with step:
        step.backward(token_loss(model, token_batches([10])[0]))
        state = step.state_dict()
    other = Step(torch.optim.SGD(mlp().parameters(), 0.1))
    with pytest.raises(ValueError, match="gradient"):
        other.load_state_dict(state)
