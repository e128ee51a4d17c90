"""The size of a window, by what code does with it and by how it is called."""

from __future__ import annotations

import re

_NAMED = re.compile(r"accum|grad_?acc|acc_?step", re.IGNORECASE)


def is_divided_by(text: str, size: str) -> bool:
    """Does code divide something, a loss one would think, by this size?

    >>> is_divided_by("loss = loss / k", "k"), is_divided_by("n = len(data) // k", "k")
    (True, False)
    """
    spelled = re.escape(size)
    return re.search(rf"(?<!/)/=?\s*(?:(?:float|int)\()?{spelled}(?!\w)", text) is not None


def is_of_a_window(text: str, size: str, counter: str = "") -> bool:
    """Is the loss in this code divided by the size, or is one of the two named after a window?

    >>> is_of_a_window("loss = net(x).sum()", "accum_steps")
    True
    """
    return _NAMED.search(f"{size} {counter}") is not None or is_divided_by(text, size)
