"""Every order of the calls of a loop, really run, and what the machine says of each."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.lab.recorder.numbers import short
from zerograd.lab.verdicts import CALLS, SCALER_CALLS, machine_codes

_ROUNDS = 4
_MAX_NORM = 0.05


class Loop:
    """A net of two layers, and a method for each call of the puzzle."""

    def __init__(self, *, scaled: bool = False) -> None:
        generator = torch.Generator().manual_seed(0)
        self.first = nn.Parameter(torch.randn(4, 3, generator=generator))
        self.second = nn.Parameter(torch.randn(3, 1, generator=generator))
        self.data = torch.randn(_ROUNDS, 5, 4, generator=generator)
        self.optimizer = torch.optim.SGD([self.first, self.second], lr=0.1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
        self.round = 0
        self.loss: Tensor | None = None

    def clear(self) -> None:
        self.optimizer.zero_grad()

    def forward(self) -> None:
        hidden = torch.tanh(self.data[self.round] @ self.first)
        self.loss = (hidden @ self.second - 1).square().mean()

    def backward(self) -> None:
        if self.loss is None:
            raise NameError("name 'loss' is not defined")
        self.loss.backward()

    def scaled_backward(self) -> None:
        self.forward()
        assert self.loss is not None
        self.scaler.scale(self.loss).backward()

    def unscale(self) -> None:
        self.scaler.unscale_(self.optimizer)

    def clip(self) -> None:
        nn.utils.clip_grad_norm_([self.first, self.second], _MAX_NORM)

    def step(self) -> None:
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)
        else:
            self.optimizer.step()

    def update(self) -> None:
        self.scaler.update()

    def weights(self) -> Tensor:
        return torch.cat([self.first.detach().flatten(), self.second.detach().flatten()])

    def run(self, order: tuple[str, ...], rounds: int) -> str | None:
        """Go round the loop; return the exception that stopped it, if one did."""
        try:
            for self.round in range(rounds):
                for call in order:
                    getattr(self, call)()
        except (RuntimeError, NameError, AssertionError) as error:
            return f"{type(error).__name__}: {_first_sentence(str(error))}"
        return None


def _first_sentence(text: str) -> str:
    """Return the message without the addresses and advice that follow it."""
    line = text.splitlines()[0] if text else ""
    return line.split(": [", 1)[0].split(".  ", 1)[0].split(". ", 1)[0].rstrip(".")


def _weights(
    order: tuple[str, ...], *, scaled: bool = False, rounds: int = _ROUNDS
) -> tuple[Tensor, str | None]:
    loop = Loop(scaled=scaled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = loop.run(order, rounds)
    return loop.weights(), error


def plain_orders() -> dict[str, Any]:
    """Run every order of clear, forward, backward and step, and those without the clear."""
    right, _ = _weights(CALLS)
    one_short, _ = _weights(CALLS, rounds=_ROUNDS - 1)
    start = Loop().weights()
    rows = {}
    for order in (*itertools.permutations(CALLS), *itertools.permutations(CALLS[1:])):
        end, error = _weights(order)
        ran = error is None
        rows[" ".join(order)] = {
            "codes": machine_codes(order, _ROUNDS),
            "error": error,
            "right": ran and bool(torch.equal(end, right)),
            "learns_nothing": ran and bool(torch.equal(end, start)),
            "one_short": ran and bool(torch.equal(end, one_short)),
            "difference": short((end - right).norm() / right.norm()) if ran else None,
        }
    return {"rounds": _ROUNDS, "calls": list(CALLS), "rows": rows}


def scaler_orders() -> dict[str, Any]:
    """Run the 720 orders of a loop with a loss scaler and a clip.

    Kept small: verdicts are listed once, and each order names one of them.
    """
    right, _ = _weights(
        ("clear", "scaled_backward", "unscale", "clip", "step", "update"), scaled=True
    )
    verdicts: list[dict[str, Any]] = []
    table: dict[str, int] = {}
    letters = dict(zip(SCALER_CALLS, "cbupsd", strict=True))
    for order in itertools.permutations(SCALER_CALLS):
        end, error = _weights(order, scaled=True)
        verdict = {
            "codes": machine_codes(order, _ROUNDS),
            "error": error,
            "right": error is None and bool(torch.allclose(end, right, rtol=1e-4)),
        }
        if verdict not in verdicts:
            verdicts.append(verdict)
        table["".join(letters[call] for call in order)] = verdicts.index(verdict)
    return {
        "calls": [*SCALER_CALLS],
        "letters": "".join(letters.values()),
        "verdicts": verdicts,
        "table": table,
    }
