"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import subset_optimizer  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("subset-optimizer")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(subset_optimizer)


from torch.nn.utils import clip_grad_norm_  # noqa: E402


def clears_the_head_alone(model, optimizer, loss_fn, batches, max_norm):
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        clip_grad_norm_(model.head.parameters(), max_norm)
        optimizer.step()


def clips_the_whole_model(model, optimizer, loss_fn, batches, max_norm):
    for x, y in batches:
        model.zero_grad()
        loss_fn(model(x), y).backward()
        clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


def does_not_clip(model, optimizer, loss_fn, batches, max_norm):
    for x, y in batches:
        model.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def clips_after_the_step(model, optimizer, loss_fn, batches, max_norm):
    for x, y in batches:
        model.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        clip_grad_norm_(model.head.parameters(), max_norm)


def clears_only_the_backbone(model, optimizer, loss_fn, batches, max_norm):
    for x, y in batches:
        model.backbone.zero_grad()
        loss_fn(model(x), y).backward()
        clip_grad_norm_(model.head.parameters(), max_norm)
        optimizer.step()


def trains_the_backbone_too(model, optimizer, loss_fn, batches, max_norm):
    everything = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        everything.zero_grad()
        loss_fn(model(x), y).backward()
        everything.step()


def leaves_it_frozen(model, optimizer, loss_fn, batches, max_norm):
    model.backbone.requires_grad_(False)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        clip_grad_norm_(model.head.parameters(), max_norm)
        optimizer.step()


WRONG = {
    clears_the_head_alone: "optimizer.zero_grad() passes it by",
    clips_the_whole_model: "norm taken over more than the head",
    does_not_clip: "the head's weights are off",
    clips_after_the_step: "the head's weights are off",
    clears_only_the_backbone: "a gradient used twice",
    trains_the_backbone_too: "the backbone's weights changed",
    leaves_it_frozen: "put it back",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(train_head=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
