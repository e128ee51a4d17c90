"""Questions about what a thing is in, or holds, that its value answers.

`if isinstance(optimizers, (list, tuple)): … else: …` and `if key in optimizers: …` choose among
things; they do not change from one iteration to the next, and often the value tells which holds.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Class, Instance
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.values import (
    Constant,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.words import is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

_LISTS = frozenset(
    ("list", "tuple", "set", "Sequence", "Iterable", "Collection", "MutableSequence")
)
_DICTS = frozenset(
    ("dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "ModuleDict")
)
_BUILT_IN = frozenset(("list", "tuple", "set", "dict"))  # which no network is
_OF_OPTIMIZERS = frozenset(("zero_grad", "step", "param_groups", "state", "state_dict", "defaults"))
_WRAPPERS = frozenset(
    (
        *("Module", "DataParallel", "DistributedDataParallel", "DDP", "DP", "FSDP", "ModuleList"),
        *("FullyShardedDataParallel", "OptimizedModule", "PeftModel", "PreTrainedModel"),
        *("Optimizer", "LightningModule", "AcceleratedOptimizer"),
    )
)
_SINGLE = (Optimizer, Params)
_HELD = (Optimizer, Module, Params, Instance)


def is_container_of(value: Value, kinds: ast.expr) -> bool | None:
    """Is `value` a list, or a dict, as `kinds` asks? None: that is not asked, or not known."""
    asked = _names(kinds)
    if not asked or not asked <= _LISTS | _DICTS:
        return None
    if isinstance(value, Several):
        return not asked.isdisjoint(_LISTS)
    if isinstance(value, Mapping):
        return not asked.isdisjoint(_DICTS) or "Iterable" in asked
    # What is known by its name alone is taken for one thing everywhere, so here too.
    single = isinstance(value, _SINGLE) or (
        isinstance(value, Named) and is_optimizer_name(value.path)
    )
    return False if single or (asked <= _BUILT_IN and _is_one_network(value)) else None


def _is_one_network(value: Value) -> bool:
    """Is it a network, and none whose name says that it may be a list of them: `self.nets`?"""
    return isinstance(value, Module) and not value.key.rsplit(".", 1)[-1].endswith("s")


def _names(kinds: ast.expr) -> frozenset[str]:
    if isinstance(kinds, ast.Tuple):
        return frozenset().union(*(_names(each) for each in kinds.elts))
    if isinstance(kinds, ast.BinOp):  # list | tuple
        return _names(kinds.left) | _names(kinds.right)
    return frozenset((path_of(kinds).rsplit(".", 1)[-1],))


def is_member(frame: Frame, item: ast.expr, container: ast.expr) -> bool | None:
    """Is `item in container`? None: it is not known, or may change."""
    program = frame.program
    if not isinstance(container, ast.Name | ast.Attribute | ast.Subscript | ast.List | ast.Tuple):
        return None
    inside = program.evaluate(frame, container)
    key = program.evaluate(frame, item) if not isinstance(item, ast.Call) else None
    if isinstance(inside, Mapping) and isinstance(key, Constant) and key.value in inside.items:
        return True
    if isinstance(key, Constant) and isinstance(key.value, str):
        # Only that it is there is believed: names may come from keys of which some were not seen.
        if isinstance(inside, Constant) and isinstance(inside.value, str):
            return key.value in inside.value or None
        if isinstance(inside, Several) and all(isinstance(e, Constant) for e in inside.items):
            return any(e.value == key.value for e in inside.items) or None  # type: ignore[attr-defined]
    # Who asks a container of optimizers for one of them has it in there, as with `is not None`.
    if isinstance(inside, Several | Mapping):
        held = leaves_of(inside)
        if not held or not all(isinstance(each, _HELD) for each in held):
            return None
        told = isinstance(inside, Mapping) and isinstance(key, Constant)
        return not (told and all(isinstance(each, str) for each in inside.items))
    named = isinstance(inside, Named) and is_optimizer_name(inside.path)
    return True if named else None


def asks_for_more(frame: Frame, value: Value, node: ast.Call) -> bool:
    """Is it asked for what it need not have, or be?

    An optimizer for what those of torch have not, `hasattr(opt, "post_step")`, a network whether
    it is in a wrapper of the project's already.
    """
    asked = node.args[1] if len(node.args) > 1 else None
    if isinstance(asked, ast.Name):  # isinstance(net, Wrapper)
        return isinstance(value, Module) and isinstance(frame.lookup(asked.id), Class)
    if isinstance(asked, ast.Tuple):  # isinstance(net, (Guided, GuidedToo)): of one kind or another
        return isinstance(value, Module | Named) and _names(asked).isdisjoint(_WRAPPERS)
    return (
        path_of(node.func) == "hasattr"
        and isinstance(value, Optimizer | Named)
        and isinstance(asked, ast.Constant)
        and asked.value not in _OF_OPTIMIZERS
    )
