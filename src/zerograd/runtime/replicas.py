"""Models that DistributedDataParallel keeps equal on all ranks: was a backward synchronised?

DDP decides in its forward whether the backward will all-reduce. So each forward
is heard of, and compared with the flag at the time of its backward.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from zerograd.lifecycle.findings import Finding
from zerograd.rules.rank_desync import RULE
from zerograd.runtime import torch_facts
from zerograd.runtime.call_site import Site

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

_OUTSIDE = (
    "the forward ran inside no_sync() and the backward outside, so this window's gradients "
    "were never averaged over the ranks"
)
_RAW = "the model inside DistributedDataParallel was called itself, past the wrapper"
_NONE = "none"
_BETTER = {
    _OUTSIDE: "put forward and backward of a micro-batch both inside no_sync(), or both outside",
    _RAW: "call the DistributedDataParallel object, not the module that it wraps",
}


@dataclass(slots=True)
class _Replica:
    ref: weakref.ref[Any]
    forward: bool | None = None  # since the last backward: synchronised, not, or none at all
    fault: str = ""  # of the backward under way
    synchronised: bool = False  # any backward of this window
    faults: tuple[tuple[Site, str], ...] = ()  # of this window


class Replicas:
    """The DDP models of this process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replicas: list[_Replica] = []
        self._searched = False

    def __bool__(self) -> bool:
        return bool(self._replicas)

    def search_once(self) -> None:
        """Find the replicas made before we came, as soon as there is a process group."""
        if not self._searched and _is_distributed():
            self._search()

    def register(self, module: Any) -> None:
        """Take note of a module that is being built, if it is a DDP wrapper."""
        if type(module).__name__ == "DistributedDataParallel":
            self._add(module)

    def before_backward(self) -> bool:
        """Return whether the backward that begins will be synchronised."""
        synchronised = False
        for replica in self._replicas:
            model = replica.ref()
            if model is None:
                continue
            replica.fault = ""
            if replica.forward is None:
                # A compiled forward is not heard of.
                replica.fault = "" if torch_facts.has_compiled() else _RAW
            elif replica.forward:
                replica.fault = _NONE
                synchronised = True
            elif model.require_backward_grad_sync:
                replica.fault = _OUTSIDE
        return synchronised

    def forwarded(self, model: Any, synchronised: bool) -> None:
        """Take note of a forward of a DDP model, its gradients being wanted."""
        self._add(model)
        if self._recorder.others is not None:
            self._recorder.others.be_uneven(torch_facts.is_under_join(model))
        for replica in self._replicas:
            if replica.ref() is model:
                # One loss may come from several forwards; it is enough that one is synchronised.
                replica.forward = bool(replica.forward) or synchronised

    def after_backward(self, site: Site, mask: int) -> None:
        """Keep what the backward that ended means for each replica that it filled."""
        for replica in self._replicas:
            model = replica.ref()
            if model is None or not self._is_filled(model, mask):
                continue
            replica.forward = None
            if not replica.fault:
                continue
            if replica.fault == _NONE:
                replica.synchronised = True
            else:
                replica.faults = (*replica.faults[-3:], (site, replica.fault))

    def at_step(self, mask: int) -> None:
        """Speak, if a window ends that should have been synchronised and was not."""
        for replica in self._replicas:
            model = replica.ref()
            if model is None or not self._is_filled(model, mask):
                continue
            faults, synchronised = replica.faults, replica.synchronised
            replica.faults, replica.synchronised = (), False
            if not faults or synchronised or _ranks_of(model) < 2:
                continue
            site, fault = faults[-1]
            message = RULE.summary.format(fault=fault)
            finding = Finding(RULE, site.spot, message, _BETTER[fault])
            self._recorder.tell(finding)

    def _is_filled(self, model: Any, mask: int) -> bool:
        for parameter in model.parameters():
            if parameter.requires_grad:
                bucket = self._recorder.partition.bucket_of(parameter)
                return bucket is not None and bool(bucket.bit & mask)
        return False

    def _search(self) -> None:
        self._searched = True
        for each in gc.get_objects():
            if type(each).__name__ == "DistributedDataParallel" and isinstance(
                each, torch.nn.Module
            ):
                self._add(each)

    def _add(self, model: Any) -> None:
        if any(replica.ref() is model for replica in self._replicas):
            return
        self._replicas = [each for each in self._replicas if each.ref() is not None]
        self._replicas.append(_Replica(weakref.ref(model)))


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _ranks_of(model: Any) -> int:
    return torch.distributed.get_world_size(model.process_group)
