"""What functions that are not seen do to gradients, as far as their names tell."""

from __future__ import annotations

from collections.abc import Sequence

from zerograd.static.engine.text.words import words_of

# words in the name of an unseen function that mark it as one that trains
_ACTING = frozenset(
    (
        *("train", "trainer", "training", "fit", "step", "optimize", "optimise", "backward"),
        *("epoch", "run", "update", "learn", "batch", "iteration", "loop", "closure"),
        *("zero", "clear", "reset", "grad", "grads", "gradient", "gradients"),
    )
)
# of these, what is done in any case: the others may say what is written down, or when
_DEEDS = frozenset(
    ("fit", "optimize", "optimise", "backward", "update", "learn", "zero", "clear", "reset", "and")
)
# what a function does that only writes or reads: `save_checkpoint_after_batch(model, opt)`
_WRITING = frozenset(
    ("save", "dump", "log", "plot", "print", "load", "restore", "visualize", "write", "summarize")
)
_EMPTYING = frozenset(("zero", "zeros", "clear", "reset", "clean", "init", "prepare"))
_GRADIENTS = frozenset(("grad", "grads", "gradient", "gradients"))
_HANDING_ON = frozenset(
    ("copy", "share", "shared", "transfer", "assign", "push", "give", "put", "set", "ensure")
)
_EVERYTHING = frozenset(
    ("all", "grad", "grads", "gradient", "gradients", "optimizer", "optimizers", "optim", "optims")
)
# words in the name of an unseen function that mark it as one that leaves gradients alone
_INERT = frozenset(
    (
        *("average", "averaged", "checkpoint", "count", "dump", "ema", "eval", "evaluate"),
        *("evaluation", "load", "log", "plot", "print", "sample", "save", "summary", "test"),
        *("valid", "validate", "validation", "visualize"),
    )
)
# words in the name of what writes a loss down
_NOTING = _INERT | frozenset(
    (
        *("add", "append", "extend", "put", "push", "write", "record", "report", "store", "note"),
        *("scalar", "scalars", "info", "debug", "warning", "insert", "collect", "accumulate"),
        *("metric", "metrics", "meter", "assert", "check", "display", "postfix", "description"),
    )
)


def is_acting(words: Sequence[str]) -> bool:
    """Is it one that trains? Who saves or logs a batch, an epoch or a step does not."""
    if _ACTING.isdisjoint(words):
        return False
    return words[0] not in _WRITING or not _DEEDS.isdisjoint(words)


def is_inert(words: Sequence[str]) -> bool:
    """Is it one that leaves gradients alone?"""
    return not _INERT.isdisjoint(words) or not _WRITING.isdisjoint(words[:1])


def notes_down(words: Sequence[str]) -> bool:
    """Does it write a loss down, and not send it back?"""
    return not _NOTING.isdisjoint(words)


def comes_before_step(name: str) -> bool:
    """Is it a hook between a backward and its step? Who cleared there, would lose the gradient."""
    words = frozenset(words_of(name))
    after_backward = "backward" in words and not words.isdisjoint(("after", "post", "end"))
    before_step = {"optimizer", "step"} <= words and not words.isdisjoint(("before", "pre"))
    return (after_backward or before_step) and not is_emptying(name)


def is_emptying(name: str) -> bool:
    """May an unseen function of this name clear the gradients of a network it is handed?"""
    return not _EMPTYING.isdisjoint(words_of(name))


def hands_gradients_on(name: str) -> bool:
    """Does it, by its name, put one network's gradients in the place of another's?

    >>> hands_gradients_on("copy_gradients_from"), hands_gradients_on("set_requires_grad")
    (True, False)
    """
    words = frozenset(words_of(name))
    return bool(words & _GRADIENTS and words & _HANDING_ON) and "requires" not in words


def empties_all(words: Sequence[str]) -> bool:
    """Does it, by its name, empty all gradients there are?"""
    return not _EMPTYING.isdisjoint(words) and not _EVERYTHING.isdisjoint(words)
