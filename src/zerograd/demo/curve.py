"""A curve on one line of a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-~=+*#"


def binned(values: Sequence[float], width: int) -> list[float]:
    """Return `width` means over equal stretches of `values`.

    >>> binned([1, 3, 5, 7], 2)
    [2.0, 6.0]
    """
    width = min(width, len(values))
    edges = [round(n * len(values) / width) for n in range(width + 1)]
    return [sum(values[first:last]) / (last - first) for first, last in pairwise(edges)]


def curve(values: Sequence[float], lowest: float, highest: float, marks: str = BLOCKS) -> str:
    """Return the values as marks of rising height; what is no number is a `!`.

    >>> curve([0.0, 0.5, 1.0, math.nan], 0.0, 1.0)
    '▁▅█!'
    """
    span = (highest - lowest) or 1.0
    return "".join(
        marks[max(0, min(len(marks) - 1, round((value - lowest) / span * (len(marks) - 1))))]
        if math.isfinite(value)
        else "!"
        for value in values
    )
