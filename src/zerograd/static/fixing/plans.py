"""What a remedy is made of: a sentence, and a plan that yields its edits when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from zerograd.lifecycle.findings import Edit

STEPS = ("step", "optimizer_step", "apply", "apply_gradients")  # the last two of Keras

Plan = Callable[[], list[Edit]]
Plans = Iterator[tuple[str, Plan]]


def together(plans: Sequence[Plan]) -> list[Edit]:
    return [edit for plan in plans for edit in plan()]
