"""What a line only says: its comments, and the messages in it."""

from __future__ import annotations

import re

# a text, with the letters before its quotes, or a comment
_SAID = re.compile(r"""(\w*)("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|#.*""")


def is_said(line: str, column: int) -> bool:
    """Is what stands at a column no code?

    A text without a space may be a name to ask for, and what is formatted into one is code.

    >>> is_said("x = 1  # then backward", 14), is_said("loss.backward()", 5)
    (True, False)
    >>> is_said('print("no step")', 10), is_said('getattr(adam, "step")()', 15)
    (True, False)
    """
    if '"' not in line and "'" not in line and "#" not in line:
        return False  # most lines
    for found in _SAID.finditer(line):
        if found.start() > column:
            return False
        if found.end() > column:
            letters, text = found.groups()
            return text is None or (" " in text and "f" not in letters.lower())
    return False
