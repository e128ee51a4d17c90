"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import gan_two_optimizers  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("gan-two-optimizers")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(gan_two_optimizers)


bce = torch.nn.functional.binary_cross_entropy_with_logits


def d_loss_of(D, real, fake):
    on_real, on_fake = D(real), D(fake)
    return bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))


def g_loss_of(D, fake):
    on_fake = D(fake)
    return bce(on_fake, torch.ones_like(on_fake))


def clears_after_each_step(G, D, opt_g, opt_d, real, noise):
    fake = G(noise)
    d_loss = d_loss_of(D, real, fake.detach())
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()
    g_loss = g_loss_of(D, fake)
    g_loss.backward()
    opt_g.step()
    opt_g.zero_grad()
    return d_loss.item(), g_loss.item()


def clears_the_wrong_one(G, D, opt_g, opt_d, real, noise):
    fake = G(noise)
    opt_g.zero_grad()
    d_loss = d_loss_of(D, real, fake.detach())
    d_loss.backward()
    opt_d.step()
    g_loss = g_loss_of(D, fake)
    g_loss.backward()
    opt_g.step()
    return d_loss.item(), g_loss.item()


def does_not_detach(G, D, opt_g, opt_d, real, noise):
    fake = G(noise)
    opt_d.zero_grad()
    opt_g.zero_grad()
    d_loss = d_loss_of(D, real, fake)
    d_loss.backward(retain_graph=True)
    opt_d.step()
    g_loss = g_loss_of(D, fake)
    g_loss.backward()
    opt_g.step()
    return d_loss.item(), g_loss.item()


def judges_with_the_old_d(G, D, opt_g, opt_d, real, noise):
    fake = G(noise)
    g_loss = g_loss_of(D, fake)
    grads = torch.autograd.grad(g_loss, list(G.parameters()))
    opt_d.zero_grad()
    d_loss = d_loss_of(D, real, fake.detach())
    d_loss.backward()
    opt_d.step()
    for p, grad in zip(G.parameters(), grads, strict=True):
        p.grad = grad
    opt_g.step()
    return d_loss.item(), g_loss.item()


def detaches_for_g_too(G, D, opt_g, opt_d, real, noise):
    fake = G(noise).detach()
    opt_d.zero_grad()
    opt_g.zero_grad()
    d_loss = d_loss_of(D, real, fake)
    d_loss.backward()
    opt_d.step()
    g_loss = g_loss_of(D, fake)
    g_loss.backward()
    opt_g.step()
    return d_loss.item(), g_loss.item()


def steps_d_on_both(G, D, opt_g, opt_d, real, noise):
    fake = G(noise)
    opt_d.zero_grad()
    opt_g.zero_grad()
    d_loss, g_loss = d_loss_of(D, real, fake.detach()), g_loss_of(D, fake)
    d_loss.backward()
    g_loss.backward()
    opt_d.step()
    opt_g.step()
    return d_loss.item(), g_loss.item()


def returns_tensors(G, D, opt_g, opt_d, real, noise):
    d, g = gan_two_optimizers.train_round(G, D, opt_g, opt_d, real, noise)
    return torch.tensor(d), torch.tensor(g)


def never_clears_g(G, D, opt_g, opt_d, real, noise):
    fake = G(noise)
    opt_d.zero_grad()
    d_loss = d_loss_of(D, real, fake.detach())
    d_loss.backward()
    opt_d.step()
    g_loss = g_loss_of(D, fake)
    g_loss.backward()
    opt_g.step()
    return d_loss.item(), g_loss.item()


WRONG = {
    clears_after_each_step: "D is right after one round and wrong after 2",
    clears_the_wrong_one: "D is right after one round and wrong after 2",
    does_not_detach: "G is off after one round",
    judges_with_the_old_d: "D has moved",
    detaches_for_g_too: "G is off after one round",
    steps_d_on_both: "no other step on D",
    returns_tensors: "expected two floats",
    never_clears_g: "G is right after one round and wrong after 2",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(train_round=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
