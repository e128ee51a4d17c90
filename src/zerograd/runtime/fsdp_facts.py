"""What we rely on in torch's FSDP beyond its documentation, as `torch_facts` does for the rest.

FSDP1 may leave the parameters that a user knows in place (`use_orig_params=True`). They and
their gradients are then parts of a flat parameter and of its gradient. FSDP puts new views in
the place of these gradients before and after each forward and backward, so that neither the
objects nor their counters tell anything; the flat parameter's gradient does.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from torch import Tensor
from torch.nn import Module

_FIRST = "torch.distributed.fsdp.fully_sharded_data_parallel"
_SECOND = "torch.distributed.fsdp"

Ref = weakref.ref[Tensor]


def is_flat(leaf: Tensor) -> bool:
    """Is it FSDP's own, of which the parameters that a user knows may be parts?"""
    return bool(getattr(leaf, "_is_flat_param", False))


def is_elsewhere(parameter: Tensor) -> bool:
    """Is it a part of which this rank holds nothing, and which never has a gradient here?"""
    return getattr(parameter, "_fsdp_flattened", False) and parameter.numel() == 0


def wrapper() -> type[Any] | None:
    """Return FSDP1's class, if it is loaded: it has a way of its own to clip."""
    return getattr(sys.modules.get(_FIRST), "FullyShardedDataParallel", None)


def clips_itself(model: Any) -> bool:
    """Does its own clip do the work? With nothing sharded it leaves that to torch's."""
    return any(each.uses_sharded_strategy for each in model._all_handles)


def has_second() -> bool:
    """Has any module been sharded by `fully_shard`? Its class is then made from FSDP2's too."""
    kind = getattr(sys.modules.get(_SECOND), "FSDPModule", None)
    return kind is not None and _makes_modules(kind)


def _makes_modules(kind: type[Any]) -> bool:
    made = kind.__subclasses__()
    return any(issubclass(each, Module) or _makes_modules(each) for each in made)


class Keepers:
    """Which flat parameter keeps the gradient of each of its parts."""

    def __init__(self) -> None:
        self._keepers: dict[int, tuple[Ref, Ref]] = {}

    def __bool__(self) -> bool:
        return bool(self._keepers)

    def take_up(self, flat: Tensor) -> bool:
        """Take note of the parts of a flat parameter; is any of them new?"""
        keeper = weakref.ref(flat)
        new = [each for each in getattr(flat, "_params", None) or () if self._of(each) is None]
        for part in new:
            self._keepers[id(part)] = (weakref.ref(part), keeper)
        return bool(new)

    def shown(self, parameter: Tensor, grad: Tensor) -> Tensor:
        """Return what tells whether this gradient has changed: itself, or what keeps it."""
        keeper = self._of(parameter)
        kept = keeper.grad if keeper is not None else None
        # A gradient that the user has put there is in other memory, until the next forward.
        return kept if kept is not None and _share_memory(kept, grad) else grad

    def is_touched_for_others(self, parameter: Tensor) -> bool:
        """Does FSDP write zeros to what keeps its gradient, for parts that have none?"""
        keeper = self._of(parameter)
        return any(getattr(keeper, "_is_grad_none_mask", None) or ())

    def _of(self, parameter: Tensor) -> Tensor | None:
        part, keeper = self._keepers.get(id(parameter), (None, None))
        if part is None or keeper is None or part() is not parameter:
            return None
        return keeper()


def _share_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
