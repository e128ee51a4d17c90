"""Numbers as the page keeps them: short, and never NaN, which JSON does not know."""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch import Tensor

_LARGEST = 1e6  # beyond this a run has diverged and its digits say nothing


def short(value: float | Tensor) -> float | None:
    """Return a number with six digits, or None for one that is not finite or has run away."""
    number = float(value.detach()) if isinstance(value, Tensor) else float(value)
    if not math.isfinite(number) or abs(number) > _LARGEST:
        return None
    return float(f"{number:.6g}")


def shorts(values: Iterable[float | Tensor]) -> list[float | None]:
    return [short(value) for value in values]
