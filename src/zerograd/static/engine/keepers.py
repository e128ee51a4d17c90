"""Objects of classes that are not seen, made from an optimizer or a network.

What they keep they may clear, fill and step in any method, as trainers and hooks of other
libraries do. Schedulers keep an optimizer as well, and only move its rate.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.arguments import Arguments
from zerograd.static.engine.frame import path_of
from zerograd.static.engine.ir import Haze
from zerograd.static.engine.keys import keys_of
from zerograd.static.engine.values import Named, Several, Value
from zerograd.static.engine.words import is_scheduler_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.frame import Frame

# words in the names of what reads an optimizer, or moves its rate
_RATES = frozenset(
    (
        *("lr", "rate", "learning", "schedule", "scheduler", "sched", "warmup", "warm", "ramp"),
        *("anneal", "decay", "cosine", "poly", "momentum", "policy", "dampen", "weight", "adjust"),
    )
)
_READING = frozenset(
    (
        *("state", "dict", "save", "load", "log", "logger", "print", "checkpoint", "checkpointer"),
        *("saver", "writer", "summary", "show", "plot", "ema", "average", "get", "set", "count"),
        *("monitor", "track", "tracker", "watch", "info", "freeze", "stop", "stopping", "early"),
        *("step", "update", "eval", "test", "validate", "register", "describe", "history"),
    )
)


def is_reading(name: str) -> bool:
    """Does it, by its name, only read an optimizer or move its rate?"""
    words = words_of(name)
    return not _RATES.isdisjoint(words) or not _READING.isdisjoint(words)


def keep(frame: Frame, target: Named, made: ast.Call, given: list[Value]) -> None:
    """Remember what an object of elsewhere was made from, if that is an optimizer."""
    optimizers = Arguments(given, {}).optimizers()
    if not optimizers:
        return
    called = path_of(made.func).rsplit(".", 1)[-1]
    names = (called, target.path)
    if any(is_scheduler_name(each) or not _RATES.isdisjoint(words_of(each)) for each in names):
        return
    frame.program.keepers[target.path] = keys_of(Several(optimizers))


def ask(frame: Frame, keeper: Named, name: str) -> None:
    """Call a method of such an object: who keeps an optimizer may do all with it."""
    keys = frame.program.keepers.get(keeper.path)
    if keys and not is_reading(name):
        frame.emit(Haze(keys, whole=True))
