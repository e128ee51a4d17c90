"""Calls that by their names fill gradients, or train: a backward may hide in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.endings import is_empty
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit

# the end of a name that is called; where the name begins is looked up, which is faster
_ACTING = re.compile(
    r"((?:backward|backprop|grad|train|fit|learn|optimi[sz]e|pipeline|execute)\w*)\s*\("
)
COMMENTS = re.compile(r"(?m)^\s*#.*$|\s#\s.*$")
# what a function does that goes back, or has somebody else do it
_GOES_BACK = re.compile(
    r"back_?ward|backprop|autograd|\.grad\b|\.(?:step|update|run|minimize)\w*\("
)
_HARMLESS = frozenset(
    (
        *("zero_grad", "no_grad", "enable_grad", "set_grad_enabled", "requires_grad_", "train"),
        "forward_train",  # the forward of a training round, which gives its losses back
        *(
            "clip_grad_norm_",
            "clip_grad_norm",
            "clip_grad_value_",
            "is_grad_enabled",
            "retain_grad",
        ),
    )
)


def acts(text: str, unit: Unit) -> bool:
    """Does it call something that by its name fills gradients, or trains?

    What is commented out does not, who sets a learning rate does not either, and of a function
    of the same file it can be read whether it does.
    """
    # Most texts call nothing of the kind, comments or not; those are left as they are.
    return _calls_what_acts(text) and any(
        not _only_computes(unit, name, frozenset())
        for name in _called_to_act(COMMENTS.sub("", text))
        if _is_of_training(name)
    )


def _calls_what_acts(text: str) -> bool:
    return any(map(_is_of_training, _called_to_act(text)))


def _is_of_training(name: str) -> bool:
    return name not in _HARMLESS and "learning_rate" not in name and not _measures(name)


def _only_computes(unit: Unit, name: str, asked: frozenset[str]) -> bool:
    """Is it written in this file, and does it give something back that it only computes?"""
    if name in asked:
        return True
    written = [each for each in unit.functions_saying(f"def {name}(") if each.name == name]
    for each in written:
        code = COMMENTS.sub("", unit.text_of(each)).split("\n", 1)[-1]
        returns = any(
            isinstance(part, ast.Return) and part.value is not None
            for part in statements_in(each.body)
        )
        if is_empty(each) or not returns or _GOES_BACK.search(code):
            return False
        inner = {name for name in _called_to_act(code) if _is_of_training(name)}
        if not all(_only_computes(unit, other, asked | {name}) for other in inner):
            return False
    return bool(written)


def _called_to_act(text: str) -> Iterator[str]:
    """Yield the whole names of which the pattern finds the ends."""
    for found in _ACTING.finditer(text):
        start = found.start()
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        yield text[start : found.end(1)]


def _measures(name: str) -> bool:
    """Is it `body_fitting_loss` or `grad_norm`: what computes a number, and goes back no step?

    Or does it say how many rounds a window has: `gradient_accumulation_steps()`?
    """
    words = words_of(name)
    if words[-1:] in (("steps",), ("iters",)):
        return any(word.startswith("accum") for word in words)
    return words[-1:] in (("loss",), ("norm",), ("norms",), ("penalty",)) and not any(
        word.startswith("back") for word in words
    )
