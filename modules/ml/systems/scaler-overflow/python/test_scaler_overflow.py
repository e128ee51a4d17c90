"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import scaler_overflow  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("scaler-overflow")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(scaler_overflow)


from torch.nn.utils import clip_grad_norm_  # noqa: E402


def never_clears(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def clears_only_if_stepped(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.unscale_(optimizer)
        norm = clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        if torch.isfinite(norm):
            optimizer.zero_grad()
        scales.append(scaler.get_scale())
    return scales


def clips_before_unscaling(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        clip_grad_norm_(model.parameters(), max_norm)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def does_not_clip(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def never_updates(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scales.append(scaler.get_scale())
    return scales


def bypasses_the_scaler(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        optimizer.step()
        scales.append(scaler.get_scale())
    return scales


def without_a_scaler(model, optimizer, scaler, loss_fn, batches, max_norm):
    scales = []
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scales.append(scaler.get_scale())
    return scales


def returns_nothing(model, optimizer, scaler, loss_fn, batches, max_norm):
    scaler_overflow.train(model, optimizer, scaler, loss_fn, batches, max_norm)


WRONG = {
    never_clears: "halved again and again",
    clears_only_if_stepped: "halved again and again",
    clips_before_unscaling: "Unscale first",
    does_not_clip: "the clipped updates are off",
    never_updates: "unscale_() is being called after step()",
    bypasses_the_scaler: "end elsewhere",
    without_a_scaler: "is update() called once per batch",
    returns_nothing: "expected 4 floats",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(train=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
