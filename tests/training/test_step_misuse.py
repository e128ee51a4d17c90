"""Every misuse raises, says what to write instead, and leaves nothing half done."""

from __future__ import annotations

import pytest
import torch
from token_task import mlp
from torch import nn

from zerograd import Step, StepError, windows

X = torch.ones(3, 4)


def parts(**options):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, Step(optimizer, **options)


def loss_of(model):
    return model(X).pow(2).mean()


def assert_dropped(model, step, before):
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    with step:  # and the next block works
        step.backward(loss_of(model))


def bare_backward_first(model, optimizer, step):
    loss_of(model).backward()
    step.backward(loss_of(model))


def bare_backward_after(model, optimizer, step):
    step.backward(loss_of(model))
    loss_of(model).backward()


def bare_backward_only(model, optimizer, step):
    loss_of(model).backward()


def edit_of_a_gradient(model, optimizer, step):
    step.backward(loss_of(model))
    for p in model.parameters():
        p.grad.mul_(2)


def optimizer_step(model, optimizer, step):
    step.backward(loss_of(model))
    optimizer.step()


def zero_grad_between(model, optimizer, step):
    step.backward(loss_of(model))
    optimizer.zero_grad()
    step.backward(loss_of(model))


def model_zero_grad_at_the_end(model, optimizer, step):
    step.backward(loss_of(model))
    model.zero_grad()


def zeros_between(model, optimizer, step):
    step.backward(loss_of(model))
    optimizer.zero_grad(set_to_none=False)


def no_backward(model, optimizer, step):
    loss_of(model)


def nested(model, optimizer, step):
    with step:
        step.backward(loss_of(model))


def loss_without_grad(model, optimizer, step):
    step.backward(loss_of(model).detach())


def loss_of_another_model(model, optimizer, step):
    step.backward(loss_of(mlp()))


def loss_of_several_numbers(model, optimizer, step):
    step.backward(model(X))


def all_weights_zero(model, optimizer, step):
    step.backward(loss_of(model), weight=0)


def caught_failure(model, optimizer, step):
    loss = loss_of(model)
    step.backward(loss)
    try:
        step.backward(loss)
    except RuntimeError:
        pass


MISUSES = {
    bare_backward_first: "step.backward(loss)",
    bare_backward_after: "step.backward(loss)",
    bare_backward_only: "step.backward(loss)",
    edit_of_a_gradient: "register_step_pre_hook",
    optimizer_step: "Remove the call",
    zero_grad_between: "Remove the call",
    model_zero_grad_at_the_end: "Remove the call",
    zeros_between: "step.backward(loss)",
    no_backward: "step.drop()",
    nested: "do not nest",
    loss_without_grad: "no_grad",
    loss_of_another_model: "does not depend on them",
    loss_of_several_numbers: "loss.mean()",
    all_weights_zero: "add up to 0",
    caught_failure: "failed halfway",
}


@pytest.mark.parametrize("misuse", MISUSES, ids=lambda f: f.__name__)
def test_misuse_raises_and_drops_the_window(misuse):
    model, optimizer, step = parts()
    if misuse is nested:
        with pytest.raises(StepError, match=MISUSES[misuse]), step:
            misuse(model, optimizer, step)
        return
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(StepError) as caught, step:
        misuse(model, optimizer, step)
    assert MISUSES[misuse] in str(caught.value)
    assert step.skipped
    assert_dropped(model, step, before)


@pytest.mark.parametrize(
    ("weight", "kind"),
    [
        (float("nan"), ValueError),
        (10**400, ValueError),
        (1e308, ValueError),
        (1e-320, ValueError),
        ("3", TypeError),
        (float("inf"), ValueError),
        (-1, ValueError),
        (-0.5, ValueError),
        ("three", TypeError),
        (None, TypeError),
        (torch.tensor(float("nan")), ValueError),
        (torch.tensor([1.0, 2.0]), ValueError),
        (object(), TypeError),
    ],
)
def test_a_weight_that_makes_no_sense(weight, kind):
    model, _, step = parts()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(kind, match="weight"), step:
        step.backward(loss_of(model), weight=weight)
    assert_dropped(model, step, before)


def test_leftovers_at_entry():
    model, _, step = parts()
    loss_of(model).backward()
    with pytest.raises(StepError, match="left over"), step:
        step.backward(loss_of(model))
    assert model[0].weight.grad is not None, "the user's own gradient is still there to look at"
    model.zero_grad()
    with step:
        step.backward(loss_of(model))


def test_a_parameter_in_two_steps():
    model, optimizer, step = parts()
    with pytest.raises(StepError, match="another Step"):
        Step(optimizer)
    with pytest.raises(StepError, match="another Step"):
        Step(torch.optim.Adam(model[0].parameters()))
    assert len(optimizer._optimizer_step_pre_hooks) == 1, "the refused Step left its hook"
    step.close()
    Step(optimizer)


def test_drop_leaves_the_update_out_on_purpose():
    model, optimizer, _ = parts()
    _.close()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = Step(optimizer, scheduler=scheduler)
    before = [p.detach().clone() for p in model.parameters()]
    with step:
        step.backward(loss_of(model))
        step.drop()
    assert step.skipped and scheduler.get_last_lr() == [0.1]
    assert_dropped(model, step, before)
    with pytest.raises(StepError, match="outside a block"):
        step.drop()


def test_drop_after_a_failure_inside_backward():
    model, _, step = parts()
    loss = loss_of(model)
    with step:
        step.backward(loss)
        try:
            step.backward(loss)
        except RuntimeError:
            step.drop()
    assert step.skipped


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "said"),
    [
        ((), {}, TypeError, "needs an optimizer"),
        (("sgd",), {}, TypeError, "got str"),
        ((nn.Linear(1, 1),), {}, TypeError, "got Linear"),
        ((), {"models": [3]}, TypeError, "models"),
        ((), {"clip": 0}, ValueError, "above 0"),
        ((), {"clip": -1.0}, ValueError, "above 0"),
        ((), {"clip": float("nan")}, ValueError, "above 0"),
        ((), {"clip": "1"}, TypeError, "clip is a number"),
        ((), {"clip": True}, TypeError, "clip is a number"),
        ((), {"clip_value": 0}, ValueError, "above 0"),
        ((), {"clip": 1.0, "clip_value": 1.0}, ValueError, "not by both"),
        ((), {"norm_type": "2"}, TypeError, "norm_type"),
        ((), {"scheduler": object()}, TypeError, "step"),
        ((), {"arena": "yes"}, TypeError, "arena"),
    ],
)
def test_options_that_make_no_sense(arguments, options, kind, said):
    model = mlp()
    if not arguments and options:
        arguments = (torch.optim.SGD(model.parameters(), lr=0.1),)
    with pytest.raises(kind, match=said):
        Step(*arguments, **options)
    if options:
        Step(*arguments)  # the refused one owns nothing


def test_an_optimizer_without_parameters():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    optimizer.param_groups[0]["params"] = []
    with pytest.raises(StepError, match="no parameters"):
        Step(optimizer)


def test_a_plateau_scheduler_is_the_users_own_business():
    _, optimizer, step = parts()
    step.close()
    with pytest.raises(TypeError, match="metric"):
        Step(optimizer, scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))


def test_something_else_than_a_window():
    _, _, step = parts()
    with pytest.raises(TypeError, match="windows"):
        step([1, 2])


def test_a_loss_that_is_no_tensor():
    _, _, step = parts()
    with pytest.raises(TypeError, match="not float"), step:
        step.backward(1.5)


def test_close_and_load_inside_the_block():
    model, _, step = parts()
    state = step.state_dict()
    with step:
        step.backward(loss_of(model))
        with pytest.raises(StepError, match="inside the block"):
            step.close()
        with pytest.raises(StepError, match="inside the block"):
            step.load_state_dict(state)


def test_a_window_of_another_step_does_not_stay_bound():
    model, _, step = parts()
    for window in windows([1, 2], 2):
        with step(window):
            for _ in window:
                step.backward(loss_of(model))
    with step:
        step.backward(loss_of(model))
