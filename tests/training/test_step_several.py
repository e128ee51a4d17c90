"""Several Steps over models that see each other's losses: each fills its own parameters only."""

from __future__ import annotations

import pytest
import torch
from token_task import mlp
from torch import nn
from torch.utils.checkpoint import checkpoint

from zerograd import GradArena, Step, windows


def networks():
    torch.manual_seed(3)
    return nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def d_loss(d, real, fake):
    return nn.functional.softplus(-d(real)).mean() + nn.functional.softplus(d(fake)).mean()


def g_loss(d, fake):
    return nn.functional.softplus(-d(fake)).mean()


def hand_written_gan(rounds):
    g, d = networks()
    og, od = torch.optim.Adam(g.parameters(), 0.01), torch.optim.Adam(d.parameters(), 0.01)
    torch.manual_seed(4)
    for _ in range(rounds):
        real, z = torch.randn(6, 4), torch.randn(6, 2)
        od.zero_grad()
        d_loss(d, real, g(z).detach()).backward()
        od.step()
        og.zero_grad()
        g_loss(d, g(z)).backward()
        og.step()
    return [p.detach().clone() for m in (g, d) for p in m.parameters()]


@pytest.mark.parametrize("models", ["both", "none"])
@pytest.mark.parametrize("arena", [False, True, "own"])
def test_a_gan_without_detach_or_toggles_equals_the_right_hand_written_one(models, arena):
    g, d = networks()
    seen = [g, d] if models == "both" else []
    own = [GradArena(m) if arena == "own" else arena for m in (g, d)]
    sg = Step(torch.optim.Adam(g.parameters(), 0.01), models=seen, arena=own[0])
    sd = Step(torch.optim.Adam(d.parameters(), 0.01), models=seen, arena=own[1])
    torch.manual_seed(4)
    for _ in range(5):
        real, z = torch.randn(6, 4), torch.randn(6, 2)
        with sd:
            sd.backward(d_loss(d, real, g(z)))  # not detached
        with sg:
            sg.backward(g_loss(d, g(z)))
    ours = [p for m in (g, d) for p in m.parameters()]
    for a, b in zip(hand_written_gan(5), ours, strict=True):
        assert torch.equal(a, b)
    if arena != "own":
        assert all(p.grad is None for p in ours)
    assert all(p.requires_grad for p in ours)


def test_a_window_that_is_open_keeps_its_gradients_while_the_other_steps():
    g, d = networks()
    sg = Step(torch.optim.SGD(g.parameters(), 0.1))
    sd = Step(torch.optim.SGD(d.parameters(), 0.1))
    real, z = torch.randn(6, 4), torch.randn(6, 2)
    alone_g, alone_d = networks()
    nn.functional.softplus(-alone_d(real)).mean().backward()
    expected = [p.grad.clone() for p in alone_d.parameters()]
    with sd:
        sd.backward(nn.functional.softplus(-d(real)).mean())
        with sg:
            sg.backward(g_loss(d, g(z)))
        for p, grad in zip(d.parameters(), expected, strict=True):
            assert torch.equal(p.grad, grad)
    del alone_g


def test_one_loss_for_two_optimizers_of_one_step():
    g, d = networks()
    step = Step(torch.optim.SGD(g.parameters(), 0.1), torch.optim.Adam(d.parameters(), 0.01))
    before = [p.detach().clone() for m in (g, d) for p in m.parameters()]
    with step:
        step.backward(g_loss(d, g(torch.randn(6, 2))))
    after = [p for m in (g, d) for p in m.parameters()]
    moved = [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert all(moved)


def test_actor_and_critic_on_a_shared_encoder():
    encoder, actor, critic = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(4, 1)
    step = Step(
        torch.optim.SGD([*encoder.parameters(), *actor.parameters()], 0.1),
        torch.optim.SGD(critic.parameters(), 0.1),
        clip=1.0,
    )
    x = torch.randn(5, 4)
    with step:
        seen = encoder(x)
        step.backward(actor(seen).pow(2).mean() + critic(seen).pow(2).mean())
    assert not step.skipped


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_of_either_kind(reentrant):
    """backward(inputs=...) would leave gradients None here without an error; Step has none."""

    class Deep(nn.Module):
        def __init__(self, use):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second, self.use = nn.Linear(4, 4), nn.Linear(4, 1), use

        def forward(self, x):
            if not self.use:
                return self.second(torch.tanh(self.first(x)))
            x = x.requires_grad_()
            return self.second(
                checkpoint(lambda v: torch.tanh(self.first(v)), x, use_reentrant=reentrant)
            )

    hand, ours = Deep(False), Deep(True)
    other = mlp()
    step = Step(torch.optim.SGD(ours.parameters(), 0.1), models=[ours, other])
    neighbour = Step(torch.optim.SGD(other.parameters(), 0.1), models=[ours, other])
    x = torch.randn(6, 4)
    with step:
        for piece in x.split([4, 2]):
            step.backward(ours(piece.clone()).pow(2).mean(), weight=len(piece))
    hand(x).pow(2).mean().backward()
    torch.optim.SGD(hand.parameters(), 0.1).step()
    for a, b in zip(hand.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    neighbour.close()


def test_lbfgs_equals_the_hand_written_closure():
    hand, ours = mlp(), mlp()
    x, y = torch.randn(20, 4), torch.randn(20, 1)
    hand_optimizer = torch.optim.LBFGS(hand.parameters(), line_search_fn="strong_wolfe")
    step = Step(torch.optim.LBFGS(ours.parameters(), line_search_fn="strong_wolfe"))

    def closure():
        hand_optimizer.zero_grad()
        loss = nn.functional.mse_loss(hand(x), y)
        loss.backward()
        return loss

    for _ in range(3):
        hand_optimizer.step(closure)
        with step:
            step.backward(lambda: nn.functional.mse_loss(ours(x), y))
        assert all(p.grad is None for p in ours.parameters())
    for a, b in zip(hand.parameters(), ours.parameters(), strict=True):
        assert torch.equal(a, b)


def test_lbfgs_over_a_window_of_uneven_pieces():
    whole, ours = mlp(), mlp()
    x, y = torch.randn(20, 4), torch.randn(20, 1)
    alone = Step(torch.optim.LBFGS(whole.parameters(), max_iter=5))
    step = Step(torch.optim.LBFGS(ours.parameters(), max_iter=5))
    with alone:
        alone.backward(lambda: nn.functional.mse_loss(whole(x), y))
    pieces = list(zip(x.split([13, 2, 5]), y.split([13, 2, 5]), strict=True))
    for window in windows(pieces, 3):
        with step(window):
            for px, py in window:
                step.backward(
                    lambda px=px, py=py: nn.functional.mse_loss(ours(px), py), weight=len(px)
                )
    for a, b in zip(whole.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_lbfgs_says_what_it_needs():
    from zerograd import StepError

    model = mlp()
    step = Step(torch.optim.LBFGS(model.parameters()))
    with pytest.raises(StepError, match="lambda"), step:
        step.backward(model(torch.ones(1, 4)).sum())
    with pytest.raises(StepError, match="ended without"), step:
        pass
    step.close()
    with pytest.raises(StepError, match="of its own"):
        Step(torch.optim.LBFGS(model.parameters()), torch.optim.SGD(mlp().parameters(), 0.1))


def test_a_function_as_loss_works_for_every_optimizer():
    model, twin = mlp(), mlp()
    step = Step(torch.optim.SGD(model.parameters(), 0.1))
    with step:
        step.backward(lambda: model(torch.ones(1, 4)).sum())
    twin(torch.ones(1, 4)).sum().backward()
    torch.optim.SGD(twin.parameters(), 0.1).step()
    assert torch.equal(model[0].weight, twin[0].weight)


def test_a_compiled_model():
    hand, ours = mlp(), mlp()
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    step = Step(torch.optim.SGD(ours.parameters(), 0.1), models=[compiled], clip=1.0)
    optimizer = torch.optim.SGD(hand.parameters(), 0.1)
    for seed in range(3):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))
        with step:
            step.backward(compiled(x).pow(2).mean())
        optimizer.zero_grad()
        hand(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(hand.parameters(), 1.0)
        optimizer.step()
    for a, b in zip(hand.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.filterwarnings("ignore")  # dynamo provokes warnings and hides them itself
def test_a_loop_body_that_is_compiled_whole():
    hand, ours = mlp(), mlp()
    step = Step(torch.optim.SGD(ours.parameters(), 0.1))

    @torch.compile(backend="eager")
    def train(x):
        with step:
            step.backward(ours(x).pow(2).mean())

    optimizer = torch.optim.SGD(hand.parameters(), 0.1)
    for seed in range(3):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))
        train(x)
        hand(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    for a, b in zip(hand.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_step_that_is_collected_while_others_are_looked_at_disturbs_nobody():
    from zerograd.training import ownership

    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1))
    old = Step(torch.optim.SGD(other.parameters(), lr=0.1))
    looked_at = iter(ownership._GUARDS)
    next(looked_at)
    old.close()
    list(looked_at)
    again = Step(torch.optim.SGD(other.parameters(), lr=0.1))
    assert step is not again
