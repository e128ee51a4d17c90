"""A few gradients watched between the calls of a Step: did somebody else touch them?

Between two calls of `step.backward()` no gradient of ours may change. A bare
`loss.backward()` adds to it in place, which moves its version; a bare `zero_grad()`
drops it. A handful of parameters is enough, since both touch whole models at once.
Not seen: a fill with zeros by CUDA's foreach kernels, which moves no version.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from zerograd.errors import StepError

COUNT = 3


class Canaries:
    """The gradients of at most three parameters, as the last backward left them."""

    __slots__ = ("_birds", "_blank", "_seen")

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._seen: list[tuple[torch.Tensor, torch.Tensor | None, int]] = []
        self.choose(parameters)

    def choose(self, parameters: Sequence[torch.Tensor]) -> None:
        """Watch parameters that had a gradient, spread over the list."""
        filled = [p for p in parameters if p.grad is not None] or list(parameters)
        last = len(filled) - 1
        spots = sorted({last * i // (COUNT - 1) for i in range(COUNT)})
        self._birds: list[torch.Tensor] = [filled[spot] for spot in spots]
        self._blank: list[tuple[torch.Tensor, torch.Tensor | None, int]] = [
            (bird, None, 0) for bird in self._birds
        ]

    def forget(self) -> None:
        """Between the blocks there is nothing to compare with."""
        self._seen = []

    def expect_none(self) -> None:
        """No gradient is there yet."""
        self._seen = self._blank

    def record(self) -> bool:
        """Remember each gradient and its version; whether there is one at all."""
        seen: list[tuple[torch.Tensor, torch.Tensor | None, int]] = []
        is_filled = False
        for bird in self._birds:
            grad = bird.grad
            if grad is None:
                seen.append((bird, None, 0))
            else:
                is_filled = True
                seen.append((bird, grad, grad._version))
        self._seen = seen
        return is_filled

    def check(self) -> None:
        """Raise StepError if a gradient is not as it was left."""
        for bird, grad, version in self._seen:
            now = bird.grad
            if now is not grad or (now is not None and now._version != version):
                _accuse(now)


def _accuse(now: torch.Tensor | None) -> None:
    if now is None:
        raise StepError(
            "Gradients were cleared inside the block (zero_grad(), or .grad = None), so the "
            "update would miss what came before. Remove the call: the block clears when it ends."
        )
    raise StepError(
        "Gradients changed inside the block other than by step.backward(): a bare "
        "loss.backward(), or an edit of .grad. Write step.backward(loss) instead. To edit "
        "gradients right before the update, use optimizer.register_step_pre_hook(edit)."
    )
