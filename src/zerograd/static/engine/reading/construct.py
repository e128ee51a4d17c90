"""Calls into packages: what torch, the builtins and the frameworks give back."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.branches import ALWAYS
from zerograd.static.engine.identity.choices import settled
from zerograd.static.engine.identity.conditions import test_of
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.keys import is_named_only
from zerograd.static.engine.identity.prepared import prepared
from zerograd.static.engine.identity.values import (
    MADE,
    NOTHING,
    SCHEDULE,
    Accelerator,
    Bound,
    Constant,
    Engine,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Several,
    Tensor,
    Value,
    leaves_of,
)
from zerograd.static.engine.reading.composed import composed
from zerograd.static.engine.reading.emit import is_false
from zerograd.static.engine.reading.passing import HANDED_ON, Reader
from zerograd.static.engine.text.words import is_optimizer_class

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

_WRAPPERS = frozenset(
    [
        "DataParallel",
        "DistributedDataParallel",
        "FullyShardedDataParallel",
        "DDP",
        "FSDP",
        "compile",
        "script",
        "fully_shard",
        "convert_sync_batchnorm",
        "SyncBatchNorm",
        "cast",
        "broadcast_parameters",
        "replicate",
        "checkpoint_wrapper",
        "ModuleList",
        "nullcontext",
    ]
)
_MAKERS = frozenset(
    [
        "zeros",
        "ones",
        "rand",
        "randn",
        "empty",
        "full",
        "tensor",
        "zeros_like",
        "ones_like",
        "rand_like",
        "randn_like",
        "empty_like",
        "full_like",
        "from_numpy",
        "as_tensor",
        "Variable",
        "FloatTensor",
        "normal",
        "uniform",
        "linspace",
        "arange",
        "eye",
        "clone",
        "randint",
    ]
)


def external_call(frame: Frame, dotted: str, arguments: Arguments) -> Value | None:
    """Return what a call of a package's function gives, or None where it is not known."""
    read = _reader(dotted)
    return read(frame, dotted, arguments) if read is not None else None


@lru_cache(maxsize=16_384)
def _reader(dotted: str) -> Reader | None:
    """Return what makes something of a call of this name; most names say nothing."""
    root, _, name = dotted.rpartition(".")
    if name in _BY_NAME:
        return _BY_NAME[name]
    if dotted == "operator.methodcaller":
        return _method_caller
    if name == "cast" and root.startswith("typing"):
        return _second  # the first is a type, whatever its name tells
    if ".lr_scheduler" in dotted or root.endswith("swa_utils"):
        return _copied if name == "AveragedModel" else _schedule
    if name.endswith("GradScaler"):
        return torch_scaler
    if dotted.startswith("deepspeed.initialize"):
        return _engines
    a_class = name[:1].isupper()
    if is_optimizer_class(name) and a_class:
        return _optimizer
    if dotted.startswith(("torch.optim.", "optim.")) and a_class:
        return _plain_optimizer
    if "optim" in root.split(".") and a_class and not name.endswith("Scaler"):
        return _plain_optimizer  # other packages keep theirs there too
    if name in _WRAPPERS:
        return _wrapped
    if name == "deepcopy" or dotted == "copy.copy":
        return _copied
    if name == "Parameter":
        return _leaf
    if name in _MAKERS:
        return _tensor
    if ".nn." in f".{dotted}" and a_class:
        return _nothing if name.endswith("Loss") or ".utils." in dotted else _network
    if name == "initialize" or name == "prepare":  # apex and its kin
        return _prepared
    if name in ("grad", "jacobian", "vjp", "value_and_grad"):
        return _no_deps
    if name == "scale_loss":
        return _first
    if root.startswith("torch") and name in ("no_grad", "inference_mode", "enable_grad"):
        return _nothing
    return None


def _nothing(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return NOTHING


def _schedule(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return SCHEDULE


def _first(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return arguments.first()


def _second(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return arguments.positional[1] if len(arguments.positional) > 1 else NOTHING


def _no_deps(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return Tensor()


def _leaf(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return frame.program.new_leaf()


def _prepared(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return prepared(frame.program, arguments)


def _named(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    """A namespace of things that last is as good as a dict; one of settings is a stranger."""
    lasting = any(frame.program.is_lasting(each) for each in arguments.named.values())
    return _mapping(frame, dotted, arguments) if lasting else MADE


def _mapping(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return Mapping(dict(arguments.named.items()))


def _partial(frame: Frame, dotted: str, arguments: Arguments) -> Value | None:
    function = arguments.first()
    if isinstance(function, Function):
        return function.with_given(arguments.positional[1:], arguments.named)
    return function if function is not NOTHING else None  # a method of an optimizer, say


def _method_caller(frame: Frame, dotted: str, arguments: Arguments) -> Value | None:
    function = arguments.first()
    return Bound(NOTHING, str(function.value)) if isinstance(function, Constant) else None


def torch_scaler(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    asked = arguments.nodes.get("enabled")
    test = test_of(frame, asked) if isinstance(asked, ast.expr) else ALWAYS
    off = is_false(arguments.named.get("enabled")) or test.kind == "never"
    on = settled(frame.program, test)
    for key in on.atoms() if on is not None else ():
        frame.program.atoms[key].lasts = True
    return frame.program.new_scaler(live=not off, on=on)


def _accelerator(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return Accelerator(_accumulates(arguments))


def _fabric(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return Accelerator(False)


def _engines(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return Several([Engine(), Engine(), NOTHING, NOTHING])


def _optimizer(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    held = arguments.held()
    wrapped = [each for each in leaves_of(held) if isinstance(each, Optimizer)]
    if wrapped:
        wrapped[0].of_torch = False
        return wrapped[0]
    made = frame.program.new_optimizer(held)
    made.of_torch = dotted.startswith("torch.optim.")
    made.clears_itself = dotted.startswith("dgl.")  # those of sparse rows drop what they have used
    repeats = dotted.rpartition(".")[2] == "LBFGS"
    made.repeats = repeats and not _is_one(arguments.named.get("max_iter"))
    return made


def _plain_optimizer(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return frame.program.new_optimizer(arguments.held())


def _wrapped(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    first = arguments.first()
    if isinstance(first, Several) and not first.items:
        return frame.program.new_module()  # its parts come later, and are its own
    return first


def _tensor(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    required = arguments.named.get("requires_grad")
    if required is not None and not is_false(required):
        return frame.program.new_leaf()
    return arguments.computed() if dotted.rpartition(".")[2] == "clone" else Tensor()


def _network(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    # a module around a function, such as a captured graph, runs it when it is called
    function = arguments.first()
    if isinstance(function, Function):
        return function
    return composed(dotted, arguments) or frame.program.new_module(arguments)


def _is_one(value: Value | None) -> bool:
    return isinstance(value, Constant) and value.value == 1


def _accumulates(arguments: Arguments) -> bool:
    """May Accelerate's window be longer than one micro-batch?"""
    given = arguments.named.get("gradient_accumulation_steps")
    if given is None:
        return "gradient_accumulation_plugin" in arguments.named
    return not (isinstance(given, Constant) and given.value == 1)


def _got(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    base = arguments.first()
    name = arguments.positional[1] if len(arguments.positional) > 1 else NOTHING
    if isinstance(name, Constant) and isinstance(name.value, str):
        return frame.program.attribute(frame, base, name.value)
    return NOTHING


def _copied(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    """A copy is another network: training one does not touch the other."""
    value = arguments.first()
    if type(value) is Named and is_named_only(value.path):
        return MADE  # a group of parameters, or its settings: no network is called so
    if isinstance(value, Module | Instance | Named | Leaf):
        return frame.program.new_copy(value)
    return value


# what a name means wherever it comes from
_BY_NAME: dict[str, Reader] = {
    **HANDED_ON,
    "dict": _mapping,
    "SimpleNamespace": _named,
    "Namespace": _named,
    "partial": _partial,
    "getattr": _got,
    "Accelerator": _accelerator,
    "Fabric": _fabric,
}
