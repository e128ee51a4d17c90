"""Weights summed over micro-batches and ranks, divided out once.

A loss is a mean over `weight` items. Each backward carries `weight * scale`, and when
the window ends its gradients are multiplied by `factor = 1 / (scale * total weight)`.
`scale` is provisional: a power of two near the previous window's weight, so that
gradients in half precision stay in range while the total is not yet known. A power of
two changes no bit of a mantissa, and it only moves when it is off by 4x or more.

Two ledgers hold the sums. `HostLedger` counts in Python floats. `DeviceLedger` counts on
the device and never reads a value back: a total that makes no sense gives the factor 0
and the flag `invalid`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from zerograd.errors import StepError

if TYPE_CHECKING:
    from zerograd.training.ranks import Ranks

Factor = float | torch.Tensor | None  # None stands for exactly 1
Weight = float | torch.Tensor

# the bounds within which a float32 can carry a weight, its square and their inverses
LIGHTEST, HEAVIEST = 2.0**-60, 2.0**60


def provisional_scale(scale: float, mean: float) -> float:
    """The scale for the next window, given this window's weight (per rank)."""
    if 0.25 < scale * mean < 4.0:
        return scale
    return 2.0 ** -round(math.log2(mean))


class HostLedger:
    """Sums in Python floats: for Python weights and weights on the CPU."""

    invalid: torch.Tensor | None = None  # bad weights have raised before they came here

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self.total = 0.0
        self._root: torch.Tensor | None = None
        self._root_value = 0.0

    def root(self, loss: torch.Tensor, weight: float) -> torch.Tensor | None:
        """What to start the backward with; None where that is 1."""
        value = weight * self.scale
        if value == 1.0:
            return None
        root = self._root
        if (
            root is None
            or self._root_value != value
            or root.dtype is not loss.dtype
            or root.device != loss.device
            or root.shape != loss.shape
        ):
            root = torch.full(loss.shape, value, dtype=loss.dtype, device=loss.device)
            self._root, self._root_value = root, value
        return root

    def add(self, weight: float) -> None:
        self.total += weight

    def close(self, ranks: Ranks | None) -> Factor:
        """End the window: the factor for its gradients."""
        total, members = self.total, 1
        if ranks is not None:
            total, members = ranks.sum_on_host(total), ranks.size
        self.total = 0.0
        if total <= 0.0:
            raise StepError(
                "The weights of this window add up to 0, so its mean does not exist. "
                "Give at least one micro-batch a weight above 0, or call step.drop()."
            )
        if total == math.inf:
            raise StepError("The weights of this window add up to more than a float can hold.")
        mean = total / members
        factor = 1.0 / (self.scale * mean)
        self.scale = provisional_scale(self.scale, mean)
        return None if factor == 1.0 else factor

    def reset(self) -> None:
        self.total = 0.0

    def state(self) -> tuple[float, float]:
        return self.total, self.scale

    def restore(self, total: float, scale: float) -> None:
        self.total, self.scale = total, scale

    def to_device(self, device: torch.device) -> DeviceLedger:
        ledger = DeviceLedger(device)
        ledger.restore(self.total, self.scale)
        return ledger


class DeviceLedger:
    """Sums on the device, read by nobody: for weights there, and for ranks that meet there."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # token counts add up exactly in float64; MPS has none
        self._dtype = torch.float32 if device.type == "mps" else torch.float64
        self.invalid: torch.Tensor | None = None
        self._bad: torch.Tensor | None = None
        self._known = 0.0  # the part of the total that came as Python floats
        self._total: torch.Tensor
        self._scale: torch.Tensor
        self.restore(0.0, 1.0)

    def root(self, loss: torch.Tensor, weight: Weight) -> torch.Tensor:
        value = self._clean(weight, loss.device) * self._scale.to(loss.device)
        return value.to(loss.dtype).expand(loss.shape)

    def add(self, weight: Weight) -> None:
        if isinstance(weight, torch.Tensor):
            weight = weight.detach().to(self.device, self._dtype).reshape(())
            bad = ~(torch.isfinite(weight) & (weight >= 0))
            self._bad = bad if self._bad is None else self._bad | bad
            weight = weight.masked_fill(bad, 0.0)
        else:
            self._known += weight
        self._total = self._total + weight

    def close(self, ranks: Ranks | None) -> Factor:
        total, members = self._total, 1
        if self._bad is not None:
            total = total.masked_fill(self._bad, math.nan)  # a rank's NaN reaches them all
        if ranks is not None:
            total, members = ranks.sum_on_device(total), ranks.size
        mean = total / members
        invalid = ~(torch.isfinite(mean) & (mean > 0))
        # validated weights above 0 add up to more than 0 on every rank: nothing to ask the device
        self.invalid = None if self._bad is None and self._known > 0.0 else invalid
        mean = mean.masked_fill(invalid, 1.0)
        product = self._scale * mean
        factor: torch.Tensor = product.reciprocal().masked_fill(invalid, 0.0)
        off = ((product <= 0.25) | (product >= 4.0)) & ~invalid
        self._scale = torch.where(off, torch.exp2(-torch.round(torch.log2(mean))), self._scale)
        self.reset()
        return factor.float()

    def reset(self) -> None:
        self._total = torch.zeros((), dtype=self._dtype, device=self.device)
        self._bad = None
        self._known = 0.0

    def state(self) -> tuple[float, float]:
        return self._total.item(), self._scale.item()

    def restore(self, total: float, scale: float) -> None:
        # torch.full launches a fill; torch.tensor would copy from the host and wait
        self._total = torch.full((), total, dtype=self._dtype, device=self.device)
        self._scale = torch.full((), scale, dtype=self._dtype, device=self.device)

    def _clean(self, weight: Weight, device: torch.device) -> torch.Tensor | float:
        """The weight as a number that cannot spoil a gradient; `add` remembers a bad one."""
        if not isinstance(weight, torch.Tensor):
            return weight
        weight = weight.detach().to(device, self._dtype).reshape(())
        return weight.masked_fill(~(torch.isfinite(weight) & (weight >= 0)), 0.0)


def check_weight(weight: object) -> Weight:
    """A weight that can be used: a float, or a tensor of one element on a device.

    What the host knows is validated here and raises. A tensor on a device is not read.
    """
    if isinstance(weight, torch.Tensor):
        if weight.numel() != 1:
            raise ValueError(
                f"a weight is one number, but this tensor has shape {tuple(weight.shape)}; "
                "sum the items first, for example weight=mask.sum()"
            )
        if weight.device.type != "cpu":
            return weight
        value = float(weight.detach())
    else:
        try:
            if isinstance(weight, (str, bytes)):  # float() would read them
                raise TypeError
            value = float(weight)  # type: ignore[arg-type]
        except OverflowError:
            value = math.inf
        except (TypeError, ValueError):
            raise TypeError(
                f"a weight is a number or a tensor of one element, not {type(weight).__name__}"
            ) from None
    if not math.isfinite(value) or value < 0.0:
        raise ValueError(
            f"a weight is the number of items in the mean, finite and not negative; got {value}"
        )
    if value and not LIGHTEST <= value <= HEAVIEST:
        raise ValueError(
            f"a weight lies between {LIGHTEST:.0e} and {HEAVIEST:.0e}, or is 0; got {value}"
        )
    return value
