"""Gradients that are read by hand, or kept elsewhere: who clears them afterwards loses nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind

if TYPE_CHECKING:
    from zerograd.lifecycle.state import Contribution
    from zerograd.static.engine.identity.ir import Happening

# A gradient that is read, and not only asked for or cleared.
_TAKEN = re.compile(
    r"(?<!del )\b(?!autograd\b)\w+\.grad\b(?!\s*=|\s*\*=|\s+is\b|(\.data|\.detach)?\.?\w*_\()"
)

# Where it stays in its place: averaged over ranks, for a step of its own.
_BETWEEN_RANKS = re.compile(r"(?:reduce|broadcast)\w*\([\w.]*$")

# A list of them that is zeroed at once is a clear: `grads = [...]`, `_foreach_zero_(grads)`.
_ZEROED = re.compile(
    r"(\w+) = \[.*\.grad\b.*\]\s+(?:if \1:\s+)?(?:torch\.)?_foreach_zero_\(\1\)"
    r"|_foreach_zero_\(\[.*\]\)"
)

# A method of the optimizer's own that keeps them.
_KEPT = re.compile(r"\.(?:aggregate|accumulate|collect|gather|store|save|keep|cache|push)\w*_grad")


def is_taken_by_hand(node: Happening) -> bool:
    """Does the loop around it, or its function, read gradients, or have them kept elsewhere?"""
    return (node.loop is not None and takes(node.loop.text)) or takes(_function_of(node))


def is_for_reading(node: Happening) -> bool:
    """Is it a backward in a function that reads the gradients by hand, and has no step?"""
    if node.kind is not EventKind.BACKWARD or node.scope is None:
        return False
    text = _function_of(node)
    return ".step(" not in text and takes(text)


def _function_of(node: Happening) -> str:
    """Return the text of the function that it stands in, or of the module."""
    lines = node.unit.source.lines
    first, last = node.scope or (1, len(lines))
    return "\n".join(lines[first - 1 : last])


def takes(text: str) -> bool:
    """Does code read some gradient, and not only ask for it or clear it?"""
    if "_foreach_zero_" in text:
        text = _ZEROED.sub("", text)
    at = text.find(".grad")
    while at >= 0:
        start = at  # of the word before it
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        if (
            _TAKEN.match(text, start)
            and not _BETWEEN_RANKS.search(text, max(0, start - 80), start)
            and "#" not in text[text.rfind("\n", 0, start) + 1 : start]  # no comment
        ):
            return True
        at = text.find(".grad", at + 1)
    return "_grad" in text and bool(_KEPT.search(text))


def is_unused(each: Contribution) -> bool:
    """Has no step used it? Who took the gradient of an input did not use those of the weights."""
    return each.used_by <= each.read_by
