"""Calls that are not followed: a network's forward, and functions of elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import combinations

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.ir import Doubt, Haze
from zerograd.static.engine.identity.keepers import HOOKS, entrust, is_reading
from zerograd.static.engine.identity.keys import keys_of, spelled
from zerograd.static.engine.identity.values import (
    MADE,
    NOTHING,
    WRAPPED,
    Bound,
    Constant,
    External,
    Mapping,
    Module,
    Named,
    Optimizer,
    Scaler,
    Several,
    Tensor,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.doing import (
    comes_before_step,
    empties_all,
    hands_gradients_on,
    is_acting,
    is_emptying,
    is_inert,
    notes_down,
)
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import (
    is_loss_name,
    is_network_name,
    is_only_a_scheduler,
    is_optimizer_class,
    is_optimizer_name,
    is_scaler_name,
    is_scheduler_name,
    words_of,
)

_NETWORKS = frozenset(("model", "net", "network", "resnet", "backbone"))

_COMMON = frozenset(
    ("train", "step", "eval", "forward", "update", "run", "fit", "learn", "get", "add", "append")
)
# names of methods that an unseen function may be told to call
_TOLD = frozenset(("backward", "step", "update", "unscale_", "zero_grad"))
_CLEARS = re.compile(r"\.zero_\(|zero_grad\(|\.grad = None")
# what empties gradients itself, or asks somebody whose name speaks of them
_EMPTIES = re.compile(r"zero|clear|reset|wipe|flush|drop|\.grad\b|grad\w*(?:\(| = None)")
_PARAMETERS = frozenset(("param", "params", "parameter", "parameters"))
# words in the names of what draws one output to another
_COMPARING = frozenset(("kl", "kd", "dml", "kld", "js", "distill", "distillation", "divergence"))


def forward(frame: Frame, keys: frozenset[str], arguments: Arguments) -> Value:
    """Return the output of a network: it depends on the network and on the inputs."""
    computed = arguments.computed()
    if frame.no_grad:
        return Tensor()
    frame.program.networks |= {key for key in keys if not is_loss_name(key)}
    # Networks handed to a network are part of what it computes. One that is frozen now is
    # not filled, even if it is thawed before the loss goes back.
    kept = _in_dicts(frame, arguments) - keys
    deps = keys | networks_in(frame, arguments) | frame.program.remembered_by(keys)
    deps |= frame.program.put_into(arguments.all())
    if isinstance(computed, Tensor) and computed.deps:
        deps -= frame.program.frozen
    sure, scaler = True, ""
    averaged, leaves, read = False, frozenset[str](), frozenset[str]()
    if isinstance(computed, Tensor):
        deps, sure, scaler = deps | computed.deps, computed.sure, computed.scaler
        leaves, read = computed.leaves, computed.read - keys
        # What is weighed before any network weighs no loss; the module of a loss may be handed one.
        averaged = computed.averaged and bool(computed.deps or any(map(is_loss_name, keys)))
        cut = _may_cut(frame, keys, arguments)
        deps, sure = deps - cut, sure and not cut
    return Tensor(
        deps - kept,
        sure=sure and not kept,
        scaler=scaler,
        averaged=averaged,
        leaves=leaves,
        read=read,
    )


def _may_cut(frame: Frame, keys: frozenset[str], arguments: Arguments) -> frozenset[str]:
    """Return what a loss of elsewhere may cut off: outputs of networks that have nothing in common.

    One that draws them together, for distillation say, mostly detaches the one or the other.
    """
    if not frame.program.has_several_optimizers or not are_apart(arguments):
        return frozenset()
    names = [re.escape(spelled(key).rsplit(".", 1)[-1]) for key in keys]
    if not all(map(is_loss_name, keys)) and not all(map(_compares, keys)):
        return frozenset()
    known = re.compile(rf"[ \t]*[\w.]*\b(?:{'|'.join(names)})\s*=\s*(?:torch\.)?nn\.\w+Loss\(")
    places = frame.unit.places
    if any(known.match(places.row(row)) for row in places.rows("Loss(")):
        return frozenset()
    return frozenset[str]().union(*_outputs(arguments))


def _in_dicts(frame: Frame, arguments: Arguments) -> frozenset[str]:
    """Return the networks that come in dicts alone, or whose outputs do: it may use none."""
    if not frame.program.has_several_optimizers:
        return frozenset()
    given = arguments.all()
    dicts = [each for each in given if type(each) is Mapping]
    rest = [each for each in given if type(each) is not Mapping]
    return _reached(frame, dicts) - _reached(frame, rest) if dicts else frozenset()


def _reached(frame: Frame, values: Sequence[Value]) -> frozenset[str]:
    """Return the networks among values, and those whose outputs are."""
    arguments = Arguments([*values], {})
    computed = arguments.computed()
    outputs = computed.deps if isinstance(computed, Tensor) else frozenset[str]()
    return networks_in(frame, arguments) | outputs


def are_apart(arguments: Arguments) -> bool:
    """Are there outputs of networks that have nothing in common?"""
    return any(one.isdisjoint(other) for one, other in combinations(_outputs(arguments), 2))


def _outputs(arguments: Arguments) -> list[frozenset[str]]:
    return [each.deps for each in arguments.all() if type(each) is Tensor and each.deps]


def _compares(key: str) -> bool:
    return not _COMPARING.isdisjoint(words_of(key))


def is_called_part(name: str) -> bool:
    """Is `self.net_g(x)` a call of a part, a network or a loss, and no method?"""
    return is_network_name(name) or is_loss_name(name)


def _is_network(frame: Frame, value: Value) -> bool:
    if isinstance(value, Named):
        return frame.program.is_network(value.path)
    return isinstance(value, (Module, Instance))


def clear_by_hook(frame: Frame, path: str, arguments: Arguments) -> None:
    """A hook of an object that is not known: if the project has one that clears, it may be that."""
    project = frame.program.project
    holder, _, name = path.rpartition(".")
    if not holder or name in _COMMON:
        return  # a variable, or what everything has: the name says nothing of others
    hooked = not HOOKS.isdisjoint((*words_of(name), *words_of(holder)))
    given = any(isinstance(each, Instance) for each in arguments.all())
    given = given and not arguments.optimizers()  # who is handed one clears that one
    if (
        (hooked or given)
        and project is not None
        and project.around.is_cleared_in(frame.unit.source, name)
    ):
        frame.emit(Haze(None, whole=True))
    elif hooked and (given or frame.program.entrusted) and not frame.is_cleared():
        # The trainer is handed over, and nobody else clears.
        frame.emit(Haze(None, whole=not comes_before_step(name)))


def inherited(frame: Frame, name: str, arguments: Arguments) -> None:
    """`self.before_batch()` of a base class of elsewhere: by its name it may clear."""
    words = words_of(name)
    hooked = not HOOKS.isdisjoint(words) or is_emptying(name)
    hooked = hooked and not arguments.all()  # else it looks at what it is handed
    if frame.bare and hooked and not is_inert(words) and not frame.is_cleared():
        frame.emit(Haze(None, whole=not comes_before_step(name)))


def networks_in(frame: Frame, arguments: Arguments) -> frozenset[str]:
    """Return the keys of the networks that a call is handed."""
    handed = [each for value in arguments.all() for each in leaves_of(value)]
    return keys_of(Several([each for each in handed if _is_network(frame, each)]))


def makes_optimizer(name: str) -> bool:
    """Is it, by its name, a function that gives back an optimizer and does nothing with it?"""
    return is_optimizer_name(name) and not is_acting(words_of(name))


def of_unseen_kind(frame: Frame, source: Value) -> Optimizer:
    """Return the optimizer that an unseen function makes; of which class, is not known.

    If a class of the file clears as it steps, it may be of that one.
    """
    optimizer = frame.program.new_optimizer(source)
    for cls in frame.unit.classes.values():
        if "step" in cls.methods and _CLEARS.search(cls.unit.text_of(cls.methods["step"])):
            optimizer.clears_itself = None
    return optimizer


def _is_inert(words: Sequence[str], base: Value) -> bool:
    """Does the name, or that of a running average, say that gradients are left alone?"""
    average = isinstance(base, Named) and "ema" in words_of(base.path)
    return average or is_inert(words)


def hand_over(frame: Frame, arguments: Arguments) -> None:
    """`stack.callback(opt.zero_grad)`: who is given a method may call it at any time."""
    if not arguments.has_functions():  # most calls
        if _is_told_what_to_do(arguments):
            frame.emit(Haze(None, whole=True))
        return
    for each in arguments.leaves():
        # the text is asked first: it costs least
        clears = type(each) is Function and _clears(each) and _is_repeated(frame)
        if clears or type(each) is Bound:
            frame.emit(Haze(None, whole=True))
    work = _work_in(arguments)
    frame.program.called.update(id(each) for each in work if not _has_loop(each))
    if work or _is_told_what_to_do(arguments):
        frame.emit(Haze(None, whole=True))


def _is_told_what_to_do(arguments: Arguments) -> bool:
    """`call(loss, "backward")`: is it handed the name of a method, and what has it?"""
    constants = [each.value for each in arguments.all() if type(each) is Constant]
    return (
        bool(constants)
        and not _TOLD.isdisjoint(constants)
        and any(
            isinstance(each, Optimizer | Scaler)
            or (isinstance(each, Tensor) and each.deps)
            or (isinstance(each, Named) and is_optimizer_name(each.path))
            or (isinstance(each, Named) and is_scaler_name(each.path))
            for each in arguments.leaves()
        )
    )


def _work_in(arguments: Arguments) -> list[ast.AST]:
    """`call(train_step, net, opt, x)`: the functions that train, handed on with an optimizer."""
    functions = [each for each in arguments.leaves() if type(each) is Function]
    if not functions or not arguments.optimizers():
        return []
    return [each.node for each in functions if each.unit.has_events(each.node)]


def _has_loop(function: ast.AST) -> bool:
    """Does it train by itself? Then it is judged, whoever calls it."""
    return isinstance(function, FunctionNode) and any(
        isinstance(each, (ast.For, ast.While, ast.AsyncFor))
        for each in statements_in(function.body)
    )


def _is_optimizer_kind(value: Value) -> bool:
    return isinstance(value, External) and is_optimizer_class(value.dotted.rsplit(".", 1)[-1])


def _clears(function: Function) -> bool:
    """May it, for all its words say? A hook that keeps what passes only names gradients."""
    if not function.unit.mentions(function.node, "grad"):
        return False
    return bool(_EMPTIES.search(function.unit.text_of(function.node).partition("(")[2]))


def _is_repeated(frame: Frame) -> bool:
    """Does it stand in a loop, or in a function without one, which a loop may call?"""
    if frame.loop is not None:
        return True
    return frame.node is not None and not _has_loop(frame.node)


def _is_record(frame: Frame, name: str, arguments: Arguments) -> bool:
    """Is it, for all one sees, made to hold what a network gave: `StateAction(state, action)`?

    Who runs a network on that goes back to who made the action. What is made of a network, or
    from a loss, does things of its own with it.
    """
    return (
        name[:1].isupper()
        and not frame.program.holds(arguments)
        and not arguments.optimizers()
        and not is_loss_name(name)
        and not is_network_name(name)
    )


def take_loss(frame: Frame, name: str, arguments: Arguments) -> None:
    """`runner.go(loss)`: who is handed a loss, and asked for nothing, may send it back."""
    if not frame.bare or notes_down(words_of(name)) or is_reading(name):
        return
    computed = arguments.computed()
    if isinstance(computed, Tensor) and computed.deps:
        frame.emit(Haze(computed.deps, whole=False))


def go_back_inside(frame: Frame, name: str, arguments: Arguments) -> None:
    """`adversary.loss(net, x)`: a loss that is computed for nothing goes back by itself."""
    if not frame.bare or not is_loss_name(name) or is_reading(name):
        return
    if not notes_down(words_of(name)) and frame.program.holds(arguments):
        frame.emit(Haze(None, whole=False))


def _acts(frame: Frame, name: str) -> bool:
    """Does an unseen function do something with the optimizer it is handed?

    So does what is asked for nothing, or stands in a loop, unless its name says otherwise.
    """
    words = words_of(name)
    if is_acting(words):
        return True
    if not frame.bare and words and words[-1] in _PARAMETERS:
        return False  # clip_grad_norm_(amp.master_params(opt), 1): asked for what it holds
    inert = is_inert(words) or is_reading(name)
    return not inert and (frame.bare or _is_repeated(frame))


def unseen(frame: Frame, name: str, arguments: Arguments, base: Value) -> Value:
    """A call that cannot be followed: it may do anything to what it is handed."""
    optimizers = arguments.optimizers()
    words = words_of(name)
    hand_over(frame, arguments)
    entrust(frame, name, arguments)
    if frame.loop is not None:
        clear_by_hook(frame, base.path if isinstance(base, Named) else name, arguments)
    if is_optimizer_class(name) or (name[:1].isupper() and "optim" in name.lower()):
        if optimizers:
            return optimizers[0]  # a wrapper around the optimizer
        if arguments.has_params():
            return frame.program.new_optimizer(arguments.held())
    if arguments.has_params() and any(map(_is_optimizer_kind, arguments.positional)):
        return frame.program.new_optimizer(arguments.held())  # make(torch.optim.SGD, params)
    if is_scheduler_name(name):
        return NOTHING
    fresh = not optimizers or arguments.has_params() or arguments.has_modules()
    if fresh and makes_optimizer(name):
        return of_unseen_kind(frame, arguments.held())  # get_optimizer(model, …)
    if optimizers and not name[:1].isupper() and _acts(frame, name):
        frame.program.unresolved += 1
        keys = frozenset[str]().union(*(keys_of(each) for each in optimizers))
        # A scheduler moves rates, or masks what it prunes.
        scheduled = isinstance(base, Named) and is_only_a_scheduler(base.path)
        frame.emit(Haze(keys, whole=not scheduled or is_emptying(name)))
    elif arguments.has_modules() and not name[:1].isupper() and not _is_inert(words, base):
        modules: list[Value] = [
            each for each in arguments.all() if isinstance(each, Module | Instance | Named)
        ]
        # What is asked for a value, and has no word of training in its name, runs it forward.
        forward_only = not frame.bare and not is_acting(words)
        doubt = Doubt.FORWARD if forward_only else Doubt.UNSEEN
        frame.emit(Haze(keys_of(Several(modules)), whole=False, doubt=doubt))
    else:
        take_loss(frame, name, arguments)
    plain = base is NOTHING or (isinstance(base, Named) and base.path == name)
    if frame.bare and plain and empties_all(words) and not arguments.all():
        frame.emit(Haze(None, whole=True))  # reset_optimizers(), of whoever keeps them
    empties = is_emptying(name) and (not name[:1].isupper() or empties_all(words))  # Clean(net)
    handed = networks_in(frame, arguments) if empties else None
    if handed:
        frame.emit(Haze(handed, whole=True))
    if hands_gradients_on(name) and len(arguments.positional) > 1:
        frame.emit(Haze(None, whole=True))
    modules_called = frozenset([each.key for each in arguments.leaves() if type(each) is Module])
    makes = name[:1].isupper() or not _NETWORKS.isdisjoint(words)
    computed = arguments.computed()
    held = isinstance(computed, Tensor) and bool(computed.deps)
    if makes and not (held and _is_record(frame, name, arguments)):
        return WRAPPED if computed is not NOTHING or frame.program.holds(arguments) else MADE
    if isinstance(computed, Tensor):
        return Tensor(
            computed.deps | modules_called,
            sure=False,
            scaler=computed.scaler,
            averaged=computed.averaged,
            leaves=computed.leaves,
            read=computed.read,
        )
    return Tensor(modules_called, sure=False) if modules_called else NOTHING
