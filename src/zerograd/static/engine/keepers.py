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
        *("observe", "observer", "record", "recorder", "report", "reporter", "inspect", "display"),
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
    if any(map(_only_moves_a_rate, names)):
        return
    frame.program.keepers[target.path] = keys_of(Several(optimizers))


def ask_made(frame: Frame, made: ast.Call, name: str) -> None:
    """`Cleaner(optimizer).run()`: asked as it is made."""
    called = path_of(made.func).rsplit(".", 1)[-1]
    if _only_moves_a_rate(called) or is_reading(name):
        return
    before, frame.out = frame.out, []  # what its arguments set off, they have set off already
    given = Arguments.of(frame, made)
    frame.out = before
    optimizers = given.optimizers()
    if optimizers:
        frame.emit(Haze(keys_of(Several(optimizers)), whole=True))


def _only_moves_a_rate(name: str) -> bool:
    return is_scheduler_name(name) or not _RATES.isdisjoint(words_of(name))


def ask(frame: Frame, keeper: Named, name: str) -> None:
    """Call a method of such an object, or of a part: who keeps an optimizer may do all with it."""
    keepers = frame.program.keepers
    keys = keepers.get(keeper.path) or keepers.get(keeper.path.rpartition(".")[0])
    if keys and not is_reading(name):
        frame.emit(Haze(keys, whole=True))
