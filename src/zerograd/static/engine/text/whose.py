"""The words that tell whose an optimizer is: `d` of optimizer_D, `critic` of critic_opt."""

from __future__ import annotations

from collections.abc import Iterable

from zerograd.static.engine.text.words import (
    MODULE_WORDS,
    OPTIMIZER_WORDS,
    is_optimizer_name,
    words_of,
)


def matches(optimizer: str, module: str) -> bool:
    """Do an optimizer's and a module's names belong together, as optimizer_D and netD do?"""
    mine = _words_of_owner(optimizer)
    theirs = tuple(word for word in words_of(module) if word not in MODULE_WORDS)
    if not mine or not theirs:
        return not mine and not theirs
    if len(mine) == len(theirs):
        return all(_alike(one, other) for one, other in zip(mine, theirs, strict=True))
    return False


def are_others(names: Iterable[str], optimizer: str) -> bool:
    """Are they all optimizers, each of something else by its name?

    >>> are_others(["critic_opt"], "actor_opt"), are_others(["opt"], "actor_opt")
    (True, False)
    """
    mine = _words_of_owner(optimizer)
    return bool(mine) and all(
        is_optimizer_name(each) and _have_other_owners(_words_of_owner(each), mine)
        for each in names
    )


def _have_other_owners(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    return bool(mine) and not any(_alike(one, other) for one in mine for other in theirs)


def _words_of_owner(optimizer: str) -> tuple[str, ...]:
    return tuple(
        word
        for word in words_of(optimizer)
        if word not in OPTIMIZER_WORDS and not word.startswith("optim")
    )


def _alike(one: str, other: str) -> bool:
    """Is one the other, or its abbreviation: d, disc and discriminator?"""
    short, long = sorted((one, other), key=len)
    return short == long or (len(long) > 2 and long.startswith(short))
