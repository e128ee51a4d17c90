"""Objects of classes that are not seen, made from an optimizer or a network.

What they keep they may clear, fill and step in any method, as trainers and hooks of other
libraries do. Schedulers keep an optimizer as well, and only move its rate.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Haze
from zerograd.static.engine.identity.keys import frame_of, keys_of
from zerograd.static.engine.identity.values import Named, Optimizer, Several, Value
from zerograd.static.engine.text.doing import comes_before_step, is_acting
from zerograd.static.engine.text.words import (
    clips_by_name,
    is_follower_name,
    is_optimizer_name,
    is_scheduler_name,
    words_of,
)

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

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
        *("unwrap", "unwrapped"),
        *("monitor", "track", "tracker", "watch", "info", "freeze", "stop", "stopping", "early"),
        *("step", "update", "eval", "test", "validate", "register", "describe", "history"),
        *("observe", "observer", "record", "recorder", "report", "reporter", "inspect", "display"),
    )
)


# words in the names of hooks, and of what holds them
HOOKS = frozenset(
    (
        *("on", "before", "after", "begin", "start", "end", "pre", "post", "hook", "hooks"),
        *("callback", "callbacks", "cb", "cbs", "event", "events", "trigger", "notify"),
    )
)
# words of functions that call what was registered with them
_CALLING = HOOKS | {"call", "fire", "emit", "dispatch", "invoke", "run", "send", "publish"}
_MOVING = frozenset(("step", "update", "register", "set"))  # words of who reads, or else does it
_LOOKING = (_READING - _MOVING) | _RATES


def kept_above(frame: Frame, node: ast.Call, instance: Instance) -> None:
    """`super().__init__(net, optimizer)`: one that is not read keeps them by their own names."""
    for each in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(each, ast.Name) and is_optimizer_name(each.id):
            value = frame.lookup(each.id)
            if isinstance(value, Named | Optimizer):
                instance.attributes.setdefault(each.id, value)
                if frame.program.is_scheduler(instance.cls):  # torch calls it so
                    instance.attributes.setdefault("optimizer", value)


def is_reading(name: str) -> bool:
    """Does it, by its name, only read an optimizer or move its rate?"""
    words = words_of(name)
    return not _RATES.isdisjoint(words) or not _READING.isdisjoint(words)


def keep(frame: Frame, target: Named, made: ast.Call, given: list[Value]) -> None:
    """Remember what an object of elsewhere was made from, if that is an optimizer."""
    optimizers = Arguments(given, {}, frame.unit).optimizers()
    called = path_of(made.func).rsplit(".", 1)[-1]
    names = (called, target.path)
    if not optimizers:
        trusted = called[:1].isupper() and any(_is_a_trainer(frame, each) for each in given)
        if trusted and not any(map(_only_looks_on, names)):
            frame.program.keepers.setdefault(target.path, frozenset())
        return
    if any(map(_only_moves_a_rate, names)):
        if len(optimizers) == 1:  # and its `optimizer` is that one
            frame.program.attach(target.path, "optimizer", optimizers[0])
        return
    frame.program.keepers[target.path] = keys_of(Several(optimizers))


def take_parameters(frame: Frame, target: Named, made: ast.Call) -> None:
    """Remember an object of elsewhere that is made from a network's parameters."""
    for each in (*made.args, *(each.value for each in made.keywords)):
        if not isinstance(each, ast.Call) or path_of(each.func).rpartition(".")[2] != "parameters":
            continue
        before, frame.program.peeking = frame.program.peeking, True
        keys = keys_of(frame.program.evaluate(frame, each))
        frame.program.peeking = before
        frame.program.derive(target.path, keys)
        frame.program.takers |= {target.path}


def ask_for_gradients(frame: Frame, taker: Named, name: str) -> None:
    """`accumulator.reduce_gradients()`: what it keeps may have been given others, or none."""
    if taker.path in frame.program.takers and "grad" in name and not clips_by_name(name):
        frame.emit(Haze(frame.program.behind(taker), whole=True))


def entrust(frame: Frame, name: str, arguments: Arguments) -> None:
    """`Hooks(self)`: what is made from the trainer itself may do all that the trainer can.

    And what is attached to an optimizer, `privacy_engine.attach(opt)`, has a hand in its step.
    """
    made = name[:1].isupper() and not _only_looks_on(name)
    if made and any(_is_a_trainer(frame, each) for each in arguments.leaves()):
        frame.program.entrusted = True
    for each in arguments.optimizers() if name == "attach" else ():
        if isinstance(each, Named):
            each = frame.program.named_optimizer(each.path)
        if isinstance(each, Optimizer) and not each.clears_itself:
            each.clears_itself = None


def _is_a_trainer(frame: Frame, value: Value) -> bool:
    return isinstance(value, Instance) and not frame.program.is_module(value.cls)


def _only_looks_on(name: str) -> bool:
    words = words_of(name)
    return not _LOOKING.isdisjoint(words)


def ask_trusted(frame: Frame, path: str, name: str) -> None:
    """A hook of who was handed the trainer: it clears, where nobody else in the file does."""
    if not frame.program.entrusted or not frame.bare or frame.is_cleared():
        return
    hooked = not path or not HOOKS.isdisjoint((*words_of(path), *words_of(name)))
    if (hooked or path in frame.program.keepers) and not _only_looks_on(name):
        frame.emit(Haze(None, whole=not comes_before_step(name)))


def ask_by_name(frame: Frame, node: ast.Call, arguments: Arguments) -> None:
    """`getattr(hook, name)(self)`: whatever is asked for by name may do all."""
    made = node.func
    if not (isinstance(made, ast.Call) and path_of(made.func) == "getattr"):
        return
    if any(isinstance(each, Instance) for each in arguments.all()):
        frame.emit(Haze(None, whole=True))
    ask_trusted(frame, "", "")


def hand_trainer(frame: Frame, node: ast.Call, arguments: Arguments) -> None:
    """`for hook in hooks: hook(self)`: a function that is kept as a value is handed the trainer.

    A method would not be handed its own object: `self.before(self)` calls what was given. So
    does a function whose name tells that it calls others: `fire("before", self)`.
    """
    if not frame.bare:
        return  # most calls
    called = node.func
    calls = not _CALLING.isdisjoint(words_of(path_of(called)))
    kept = isinstance(called, (ast.Subscript, ast.Attribute)) or (
        isinstance(called, ast.Name) and called.id in frame.locals
    )
    if not (kept or calls) or _only_looks_on(path_of(called)):
        return
    handed = [each for each in arguments.leaves() if _is_a_trainer(frame, each)]
    if handed and not _keeps_its_optimizer(frame, arguments):
        frame.emit(Haze(None, whole=not comes_before_step(path_of(called))))


def _keeps_its_optimizer(frame: Frame, arguments: Arguments) -> bool:
    """Does a function make its optimizers itself, and hand over nothing that has one?

    Who clears by a callback lets it have them.
    """
    local = [each for each in frame.locals.values() if type(each) is Optimizer]
    kept = [
        value
        for each in arguments.leaves()
        if isinstance(each, Instance)
        for name, value in each.attributes.items()
        if type(value) is Optimizer or is_optimizer_name(name)
    ]
    made = bool(local) and all(frame_of(each.key) == frame.number for each in local)
    return made and not kept and not arguments.optimizers()


def tell(frame: Frame, dotted: str, arguments: Arguments) -> None:
    """`engine.register(opt)`, of a module that is not seen: it may keep what it is told of."""
    module, _, name = dotted.rpartition(".")
    told = frame.program.told
    if not frame.bare or _only_looks_on(name):
        return
    optimizers = arguments.optimizers()
    if optimizers:
        told[module] = told.get(module, frozenset()) | keys_of(Several(optimizers))
    elif module in told and not arguments.all():
        frame.emit(Haze(told[module], whole=True))  # asked for nothing, with nothing: by itself


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


def ask_to_train(frame: Frame, holder: Named, name: str) -> None:
    """`agent.step(batch)`, of an object of elsewhere that was made from a network: it may go back.

    One that follows a network goes nowhere back, nor does what moves a rate.
    """
    behind = frame.program.behind(holder)
    if not behind or is_follower_name(holder.path) or _only_moves_a_rate(holder.path):
        return
    if is_acting(words_of(name)) or not is_reading(name):
        frame.emit(Haze(behind, whole=False))


def ask(frame: Frame, keeper: Named, name: str) -> None:
    """Call a method of such an object, or of a part: who keeps an optimizer may do all with it."""
    keepers = frame.program.keepers
    keys = keepers.get(keeper.path) or keepers.get(keeper.path.rpartition(".")[0])
    if keys and not is_reading(name):
        frame.emit(Haze(keys, whole=True))
