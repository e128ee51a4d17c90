"""The recall cards, and their export as text that Anki imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zerograd.lab.figures import percent


@dataclass(frozen=True, slots=True)
class Card:
    """A question and its answer, both plain text."""

    front: str
    back: str


def cards(recorded: dict[str, Any]) -> list[Card]:
    """Return the cards; numbers come from the recorded runs."""
    steps = recorded["three_steps"]
    batch = next(
        row
        for row in recorded["memory"]["rows"]
        if row["batch"] == 256 and row["optimizer"] == "SGD"
    )["peaks"]
    saved = 1 - batch["none"] / batch["zero"]
    return [
        Card(
            "w.grad holds 3. A backward() comes whose own gradient is 5. What does w.grad hold?",
            "8. backward() adds; only a clear empties.",
        ),
        Card(
            "What is p.grad after optimizer.zero_grad() with its defaults?",
            "None, since PyTorch 2.0. set_to_none=False asks for zeros.",
        ),
        Card(
            "Plain SGD that never clears is the same as which optimizer?",
            "SGD with momentum exactly 1.0. The recorded weights are bit-equal.",
        ),
        Card(
            "Name three right places for the clear in a plain loop.",
            "At the top, just before backward(), right after step(). Same weights; "
            "only memory differs.",
        ),
        Card(
            "zero_grad() between backward() and step(): what happens?",
            "The step finds nothing, the weights never move. Nothing piles up.",
        ),
        Card(
            "How do you notice a forgotten clear from the loss after three steps?",
            "You do not: the forgetful run was ahead in "
            f"{steps['ahead_after_3']} of {steps['seeds']} seeds.",
        ),
        Card(
            "When do clears to None and to zero train differently?",
            "When a parameter gets no gradient in some step and the optimizer has momentum, "
            "adaptive state or weight decay.",
        ),
        Card(
            "Your optimizer holds the head only. Does optimizer.zero_grad() clear the backbone?",
            "No. It clears what it holds. model.zero_grad() clears the whole model.",
        ),
        Card(
            "A generator's loss runs backward through the discriminator. Whose buckets fill?",
            "Both. Clear the discriminator's before its own backward().",
        ),
        Card(
            "Order of unscale, clip, step and update with a loss scaler?",
            "scale(loss).backward(), unscale_(opt), clip, scaler.step(opt), scaler.update().",
        ),
        Card(
            "Micro-batches of uneven size make one update. By what is each loss weighted?",
            "By its share of the window's samples, n / N; not by 1 / K.",
        ),
        Card(
            "Does grad *= 0 clear a gradient?",
            "Not a poisoned one: nan * 0 is nan. zero_() and None do.",
        ),
        Card(
            "What saves all-reduces in a window under DDP?",
            "no_sync() around forward and backward of all micro-batches but the last. "
            "Leaving out the clear saves none.",
        ),
        Card(
            "Why is None leaner than zero?",
            "The buffer is gone during the forward pass. Peak of a recorded step (batch 256, "
            f"SGD): {percent(saved)} less.",
        ),
    ]


def anki_text(deck: list[Card]) -> str:
    """Return the cards as a file that Anki imports as it is: tab between front and back.

    >>> print(anki_text([Card("front", "back")]).splitlines()[-1].replace(chr(9), " | "))
    front | back
    """
    head = ["#separator:tab", "#html:false", "#deck:zerograd", "#tags:pytorch gradients"]
    return "\n".join([*head, *(f"{_flat(card.front)}\t{_flat(card.back)}" for card in deck)]) + "\n"


def _flat(text: str) -> str:
    return " ".join(text.split())
