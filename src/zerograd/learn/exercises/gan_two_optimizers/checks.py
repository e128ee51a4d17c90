"""Both networks follow a reference whose gradients never meet in a buffer."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong

bce = nn.functional.binary_cross_entropy_with_logits


class _Game:
    """A generator, a discriminator and their optimizers, always built alike."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.G = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
        self.D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        self.opt_g = torch.optim.SGD(self.G.parameters(), lr=0.3, momentum=0.5)
        self.opt_d = torch.optim.SGD(self.D.parameters(), lr=0.3, momentum=0.5)
        self.data = [(torch.randn(8, 3) + 1, torch.randn(8, 2)) for _ in range(5)]

    def play(self, solution: Any, rounds: int) -> list[Any]:
        return [
            solution.train_round(self.G, self.D, self.opt_g, self.opt_d, real, noise)
            for real, noise in self.data[:rounds]
        ]


def _update(loss: Tensor, net: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    parameters = list(net.parameters())
    for p, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.grad = grad
    optimizer.step()
    return loss.item()


def _reference(rounds: int) -> tuple[_Game, list[tuple[float, float]]]:
    game = _Game()
    losses = []
    for real, noise in game.data[:rounds]:
        on_real, on_fake = game.D(real), game.D(game.G(noise).detach())
        d_loss = bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))
        d = _update(d_loss, game.D, game.opt_d)
        on_fake = game.D(game.G(noise))
        g = _update(bce(on_fake, torch.ones_like(on_fake)), game.G, game.opt_g)
        losses.append((d, g))
    return game, losses


def _same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.allclose(p, q, atol=1e-5) for p, q in pairs)


def check_first_round_d(solution: Any) -> None:
    """after one round the discriminator has moved by its own loss alone"""
    game, (wanted, _) = _Game(), _reference(1)
    game.play(solution, 1)
    if not _same(game.D, wanted.D):
        raise Wrong("D is off after one round: one step on d_loss, and no other step on D?")


def check_first_round_g(solution: Any) -> None:
    """after one round the generator has moved by its own loss alone"""
    game, (wanted, _) = _Game(), _reference(1)
    game.play(solution, 1)
    if not _same(game.G, wanted.G):
        raise Wrong(
            "G is off after one round: did d_loss.backward() leave something in G's bucket? "
            "detach() the fake there, or clear opt_g before g_loss.backward(). "
            "And g_loss needs a fresh D(fake), because D has moved."
        )


def check_more_rounds(solution: Any) -> None:
    """after five rounds both still have: nothing leaks from one round into the next"""
    # the first round in which one goes astray names the culprit; later both are off
    for rounds in range(2, 6):
        game, (wanted, _) = _Game(), _reference(rounds)
        game.play(solution, rounds)
        for name in ("D", "G"):
            if not _same(getattr(game, name), getattr(wanted, name)):
                raise Wrong(
                    f"{name} is right after one round and wrong after {rounds}: what is left in "
                    f"{name}'s bucket, and who empties it before {name}'s own backward()?"
                )


def check_losses(solution: Any) -> None:
    """it returns (d_loss, g_loss) as plain numbers"""
    _, wanted = _reference(2)
    answers = _Game().play(solution, 2)
    for answer, want in zip(answers, wanted, strict=True):
        if not (isinstance(answer, tuple) and [type(x) for x in answer] == [float, float]):
            raise Wrong(f"expected two floats (d_loss, g_loss), got {answer!r:.80}.")
        if max(abs(a - w) for a, w in zip(answer, want, strict=True)) > 1e-4:
            raise Wrong(f"the losses should be {want}, and are {answer}.")


def check_left_over(solution: Any) -> None:
    """gradients left in both buckets before the call are not used"""
    game, (wanted, _) = _Game(), _reference(1)
    game.D(game.G(copy.copy(game.data[0][1]))).sum().backward()
    game.play(solution, 1)
    if not (_same(game.D, wanted.D) and _same(game.G, wanted.G)):
        raise Wrong("what was in the buckets before the call was used: clear before backward().")
