"""Models that DistributedDataParallel keeps equal on all ranks: was a backward synchronised?

DDP decides in its forward whether the backward will all-reduce. So each forward
is heard of, and compared with the flag at the time of its backward.

A step that uses what no backward has averaged since is a fault only where nobody averages by hand:
gradients before the step, or weights after it, perhaps many steps later. So counters of the
process groups are read around such steps, and the source is, before anything is told.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from zerograd.lifecycle.findings import Finding
from zerograd.rules.rank_desync import RULE
from zerograd.runtime import exchanges, torch_facts
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.call_site import Site

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

_OUTSIDE = (
    "the forward ran inside no_sync() and the backward outside, so this window's gradients "
    "were never averaged over the ranks"
)
_RAW = "the model inside DistributedDataParallel was called itself, past the wrapper"
_INSIDE = "the last backward of each window ran inside no_sync()"
_ALL_INSIDE = "every backward of each window ran inside no_sync()"
_LATE = (
    "of each window's last micro-batch, the forward ran inside no_sync(), or before "
    "require_backward_grad_sync was set"
)
_LEFT_APART = ", so the steps use gradients that were not averaged over the ranks"
_NONE = "none"
_WHOLE = "; DistributedDataParallel then averages the gradients of the whole window"
_LAST_OUTSIDE = "make the last backward of each window outside no_sync(), its forward too" + _WHOLE
_BETTER = {
    _INSIDE: _LAST_OUTSIDE,
    _ALL_INSIDE: _LAST_OUTSIDE,
    _LATE: "leave no_sync(), or set require_backward_grad_sync, before that forward" + _WHOLE,
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
    sent: int | None = None  # collectives, as the backward under way began that may not average
    apart: _Apart | None = None  # the last backward, if nothing has averaged since
    stepped_apart: int | None = None  # collectives as a step began that used such gradients
    windows_apart: int = 0  # of these, those around which nothing was exchanged


@dataclass(slots=True, frozen=True)
class _Apart:
    """A backward that has left gradients which differ from rank to rank."""

    site: Site
    fault: str
    sent: int  # collectives by then


class Replicas:
    """The DDP models of this process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replicas: list[_Replica] = []
        self._searched = False
        self._source: list[int | None] = []  # what it names, once it was read
        self._synchronises = False  # does the backward under way, for any of them?
        self._began: int | None = None  # collectives, as the synchronised backward under way began
        self._own = 0  # those that DDP has issued in such backwards, as far as they were counted

    def __bool__(self) -> bool:
        return bool(self._replicas)

    def search_once(self) -> None:
        """Find the replicas made before we came, as soon as there is a process group."""
        if not self._searched and _is_distributed():
            self._search()

    def register(self, module: Any) -> None:
        """Take note of a module that is being built, if it is torch's DDP wrapper."""
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            self._add(module)

    def before_backward(self) -> bool:
        """Return whether the backward that begins will be synchronised."""
        synchronised = False
        for replica in self._replicas:
            model = replica.ref()
            if model is None:
                continue
            replica.fault = _fault_of(replica.forward, model.require_backward_grad_sync)
            if replica.fault == _NONE:
                synchronised = True
            elif replica.fault:
                replica.sent = torch_facts.exchanges()
        self._synchronises = synchronised
        waits = synchronised and any(
            each.apart is not None or each.stepped_apart is not None for each in self._replicas
        )
        self._began = torch_facts.exchanges() if waits else None
        return synchronised

    def forwarded(self, model: Any, synchronised: bool) -> None:
        """Take note of a forward of a DDP model, its gradients being wanted."""
        self._add(model)
        if self._recorder.others is not None:
            self._recorder.others.be_uneven(torch_facts.is_under_join(model))
        for replica in self._replicas:
            if replica.ref() is model:
                self._judge_window(replica)
                # One loss may come from several forwards; it is enough that one is synchronised.
                replica.forward = bool(replica.forward) or synchronised

    def after_backward(self, site: Site, mask: int) -> None:
        """Keep what the backward that ended means for each replica that it filled."""
        if self._began is not None:
            self._own += (torch_facts.exchanges() or 0) - self._began
            self._began = None
        for replica in self._replicas:
            model = replica.ref()
            if model is None or not self._is_filled(model, mask):
                continue
            replica.forward = None
            if not replica.fault:
                replica.apart = None
                continue
            self._keep_apart(replica, model, site)
            if replica.fault == _NONE:
                replica.synchronised = True
            elif replica.fault != _INSIDE:
                replica.faults = (*replica.faults[-3:], (site, replica.fault))

    def at_step(self, mask: int, *, in_closure: bool) -> None:
        """Speak, if a window ends that should have been synchronised and was not.

        Args:
            mask: the buckets that the step uses.
            in_closure: it may use them to no end of its own, as SAM does to climb.
        """
        for replica in self._replicas:
            model = replica.ref()
            if model is None or not self._is_filled(model, mask):
                continue
            faults, synchronised = replica.faults, replica.synchronised
            apart = replica.apart
            replica.faults, replica.synchronised, replica.apart = (), False, None
            if _ranks_of(model) < 2:
                continue
            if faults and not synchronised:
                site, fault = faults[-1]
                self._tell(site, fault, _BETTER[fault])
            elif apart is not None and not in_closure and self._is_used(model, mask):
                self._step_apart(replica, apart, synchronised)

    def _keep_apart(self, replica: _Replica, model: Any, site: Site) -> None:
        """Keep whether gradients are left as they are on this rank by the backward that ended."""
        replica.apart = None
        if replica.fault == _NONE:
            return
        sent = torch_facts.exchanges()
        if sent != replica.sent:
            # Somebody made it synchronise all the same, as Accelerate does on demand. Or did
            # another model, or a layer of its own?
            is_known = not self._synchronises and not _averages_in_layers(model)
            if replica.fault != _INSIDE and is_known:
                replica.fault = _NONE
            return
        if sent is None or replica.fault == _RAW or site.in_library or _averages_otherwise(model):
            return
        fault = _INSIDE if replica.fault == _INSIDE else _LATE
        replica.apart = _Apart(site, fault, sent - self._own)

    def _step_apart(self, replica: _Replica, apart: _Apart, synchronised: bool) -> None:
        """Take note of a step on gradients of this rank alone; tell of the second one."""
        sent = self._sent()
        if sent is None:
            return
        if sent != apart.sent:
            # The gradients, averaged by hand? Or only a loss?
            measures = self._measures()
            if measures is None or sent - apart.sent > measures:
                return
        replica.stepped_apart = sent
        if not replica.windows_apart or self._measures() is None:
            return
        fault = apart.fault
        if fault == _INSIDE and not synchronised:
            fault = _ALL_INSIDE
        self._tell(apart.site, fault + _LEFT_APART, _BETTER[fault])

    def _judge_window(self, replica: _Replica) -> None:
        """Count the window before, if nothing was exchanged since a step on its own gradients.

        Weights may be averaged after the step, or gradients by the optimizer in its step.
        """
        sent, replica.stepped_apart = replica.stepped_apart, None
        if sent is not None and sent == self._sent():
            replica.windows_apart += 1

    def _sent(self) -> int | None:
        """Return how many collectives others than DDP have issued; only a difference means much."""
        sent = torch_facts.exchanges()
        return None if sent is None else sent - self._own

    def _measures(self) -> int | None:
        """Return how many exchanges of measures the source names, None where it names others."""
        if not self._source:
            self._source.append(exchanges.named())
        return self._source[0]

    def _tell(self, site: Site, fault: str, better: str) -> None:
        message = RULE.summary.format(fault=fault)
        self._recorder.tell(Finding(RULE, site.spot, message, better))

    def _is_used(self, model: Any, mask: int) -> bool:
        """Has the step used what DDP would have averaged, and is no other optimizer there for it?

        Of two optimizers over one model, the inner one may rightly train each rank's own copy.
        """
        recorder = self._recorder
        for name, parameter in model.module.named_parameters():
            if parameter.requires_grad and name not in model.parameters_to_ignore:
                bucket = recorder.partition.bucket_of(parameter)
                if bucket is None or not bucket.bit & mask:
                    continue
                if bucket.name in recorder.memo.before.unused:
                    return len(self._groups_of(bucket)) == 1
        return False

    def _groups_of(self, bucket: Bucket) -> set[int]:
        """Return which lists of groups hold it: what wraps an optimizer has that one's own."""
        owners = (self._recorder.owners.by_name.get(name) for name in bucket.owners)
        optimizers = (owner.ref() for owner in owners if owner is not None)
        return {id(each.param_groups) for each in optimizers if each is not None}

    def _is_filled(self, model: Any, mask: int) -> bool:
        for parameter in model.parameters():
            if parameter.requires_grad:
                bucket = self._recorder.partition.bucket_of(parameter)
                return bucket is not None and bool(bucket.bit & mask)
        return False

    def _search(self) -> None:
        self._searched = True
        for each in gc.get_objects():
            # Not `isinstance`, which asks every object there is what it says of itself.
            if issubclass(type(each), torch.nn.parallel.DistributedDataParallel):
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


def _fault_of(forward: bool | None, is_wanted: bool) -> str:
    """Return what a backward means, given its forward's and its own wish to synchronise."""
    if forward is None:
        return "" if torch_facts.has_compiled() else _RAW  # a compiled forward is not heard of
    if forward:
        return _NONE
    return _OUTSIDE if is_wanted else _INSIDE


def _averages_otherwise(model: Any) -> bool:
    """Is it a model whose forward does not decide alone? Compiled DDP, or under `Join`, say."""
    return (
        torch_facts.is_under_join(model)
        or bool(getattr(model, "_use_python_reducer", False))
        or bool(getattr(model, "_delay_all_reduce_params", ()))
    )


def _averages_in_layers(model: Any) -> bool:
    """Do layers of it exchange something of their own in each backward?"""
    return any(isinstance(each, torch.nn.SyncBatchNorm) for each in model.modules())
