"""Several ranks: when gradients are exchanged, and what the ranks' weights add up to.

The sync switch of DDP and FSDP2 must be set before a *forward*, so the window sets it
each time it hands out a batch: off, and on for the last one. Where a rank ends its
window early (a skipped batch, `break`, a short tail) the exchange has not happened yet;
under DDP it is made up for at the end of the block with a backward that adds zeros.
This module is the only place in the package that knows the inside of DDP and FSDP2.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from zerograd.errors import StepError

# Gloo's worker lets go of a finished sum some time after `wait` has returned. If it were the last
# to hold it, it would ask for the interpreter's lock to free the tensor, and asking an interpreter
# that is about to end aborts the process. So the last few sums are held here.
_FINISHED: deque[Any] = deque(maxlen=8)
_LOST_PEER = ("timed out", "timeout", "connection closed", "connection reset", "broken pipe")


class Ranks:
    """The process groups behind a Step's models, and their sync switches."""

    def __init__(
        self, ddp: list[Any], foreign_ddp: list[Any], fsdp: list[Any], sync_every: bool
    ) -> None:
        self._ddp = ddp
        self._foreign_ddp = foreign_ddp
        self._fsdp = fsdp
        self._sync_every = sync_every
        self.is_sharded = bool(fsdp)
        groups = [_ddp_groups(module) for module in ddp] + [_fsdp_groups(m) for m in fsdp]
        self._groups = groups[0]
        self.size = _members(self._groups)
        if any(_members(other) != self.size for other in groups[1:]):
            sizes = ", ".join(str(_members(other)) for other in groups)
            raise StepError(
                f"The models of this Step are spread over different numbers of ranks ({sizes}). "
                "Give each its own Step."
            )
        self.meets_on_device = any(_backend_is_device(group) for group in self._groups)
        self._sync = True  # the switch as it stands
        self._is_synced = False  # this window's gradients have been exchanged
        self._forwarded = False  # a DDP forward has run since the switch came on
        mark = _Mark(self)
        self._handles = [module.register_forward_pre_hook(mark) for module in ddp]

    @property
    def is_synced(self) -> bool:
        """Whether this window's gradients have been exchanged already."""
        return self._is_synced

    def release(self) -> None:
        for handle in self._handles:
            handle.remove()

    def open(self, has_window: bool) -> None:
        """A block begins. Without a window every backward may be the last, so all exchange."""
        self._is_synced = False
        for module in self._foreign_ddp:
            module.require_backward_grad_sync = False
        self.before_batch(not has_window)

    def before_batch(self, is_last: bool) -> None:
        self._set(is_last or self._sync_every)

    def after_backward(self) -> None:
        self._is_synced = self._is_synced or self._sync

    def finish(self) -> None:
        """Exchange what has not been exchanged: this rank's window ended early."""
        if self._is_synced:
            return
        if self._fsdp:
            raise StepError(
                "This rank's window ended before its last micro-batch was sent backward, and "
                "under FSDP2 every rank must run every micro-batch: the other ranks wait now. "
                "Do not skip: send the micro-batch backward with weight=0."
            )
        forwarded = self._forwarded
        self._set(True)
        with torch.enable_grad():
            for module in self._ddp:
                _exchange_without_batch(module, forwarded)
        self._is_synced = True

    def close(self) -> None:
        self._set(True)
        for module in self._foreign_ddp:
            module.require_backward_grad_sync = True

    def sum_on_host(self, value: float) -> float:
        total = torch.tensor([value], dtype=torch.float64)
        self._add_up(total)
        return float(total)

    def sum_on_device(self, value: torch.Tensor) -> torch.Tensor:
        total = value.reshape(1).clone()
        self._add_up(total)
        return total.reshape(())

    def _add_up(self, total: torch.Tensor) -> None:
        with explain_lost_rank():
            for group in self._groups:
                work = dist.all_reduce(total, group=group, async_op=True)
                work.wait()
                _FINISHED.append(work)

    def _set(self, sync: bool) -> None:
        self._sync = sync
        if sync:
            self._forwarded = False
        for module in self._ddp:
            module.require_backward_grad_sync = sync
        for module in self._fsdp:
            module.set_requires_gradient_sync(sync)
            module.set_is_last_backward(sync)


class _Mark:
    """A forward pre-hook: this rank's DDP has gone forward with the switch on."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks: Callable[[], Ranks | None] = weakref.ref(ranks)

    def __call__(self, module: nn.Module, args: Any) -> None:
        ranks = self._ranks()
        if ranks is not None and ranks._sync:
            ranks._forwarded = True


def find_ranks(
    models: list[nn.Module], parameters: list[torch.Tensor], *, sync_every: bool
) -> Ranks | None:
    """The ranks that share these models, or None where there is one process only."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return None
    own = {id(parameter) for parameter in parameters}
    has_shards = any(hasattr(parameter, "device_mesh") for parameter in parameters)
    if not models:
        raise StepError(
            f"There are {dist.get_world_size()} ranks, and this Step was not told which models "
            "they share. Write Step(optimizer, models=[model]) with the model as you call it "
            "(the DDP or fully_shard one)."
        )
    ddp: list[Any] = []
    foreign: list[Any] = []
    fsdp: list[Any] = []
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
    from torch.nn.parallel import DistributedDataParallel

    for model in models:
        inside: set[int] = set()
        for module in model.modules():
            if isinstance(module, FullyShardedDataParallel):
                raise StepError(
                    "FullyShardedDataParallel (FSDP1) is not supported: its gradients have "
                    "their own clip and no_sync. Use torch.distributed.fsdp.fully_shard."
                )
            if isinstance(module, DistributedDataParallel):
                is_own = any(id(p) in own for p in module.parameters())
                (ddp if is_own else foreign).append(module)
            elif isinstance(module, FSDPModule) and id(module) not in inside:
                inside.update(id(child) for child in module.modules())
                # after a forward the whole parameters stand where the shards were
                if any(id(p) in own or not hasattr(p, "device_mesh") for p in module.parameters()):
                    fsdp.append(module)
    if has_shards and not fsdp:
        raise StepError(
            "The optimizer's parameters are sharded (DTensor), but none of the models of this "
            "Step is a fully_shard one. Write Step(optimizer, models=[model])."
        )
    if not ddp and not fsdp:
        return None
    return Ranks(ddp, foreign, fsdp, sync_every)


@contextmanager
def explain_lost_rank() -> Iterator[None]:
    """Turn a process group's time-out into a StepError that says what usually causes it."""
    try:
        yield
    except RuntimeError as error:
        raise_if_lost_rank(error)
        raise


def raise_if_lost_rank(error: RuntimeError) -> None:
    text = str(error).lower()
    if any(sign in text for sign in _LOST_PEER):
        raise StepError(
            f"Rank {dist.get_rank()} waited for another rank and gave up. All ranks must open "
            "the same number of blocks: a rank with fewer windows, or one that raised, leaves "
            "the others waiting. Give every rank the same number of windows (drop_last, or a "
            "sampler that pads), and set init_process_group(timeout=...) to learn of it sooner.\n"
            f"  {error}"
        ) from error


def _exchange_without_batch(module: Any, forwarded: bool) -> None:
    """Let a DDP module reduce what it has gathered, without a batch of its own.

    The other ranks reduce their buckets inside a backward. A backward that adds zero to
    every parameter fires the same hooks here, in the same order.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    zero = torch.stack([p.sum() * 0.0 for p in parameters]).sum()
    if not forwarded:
        module._pre_forward()
        zero = module._post_forward(zero)
    with explain_lost_rank():
        zero.backward()


def _ddp_groups(module: Any) -> list[Any]:
    return [module.process_group]


def _fsdp_groups(module: Any) -> list[Any]:
    mesh = next(p.device_mesh for p in module.parameters() if hasattr(p, "device_mesh"))
    if mesh.ndim == 1:
        return [mesh.get_group()]
    state = module._get_fsdp_state()
    # torch 2.11 keeps one group of parameters a module, later versions a list
    found = getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]
    info = next(group.mesh_info for group in found if group is not None)
    names = ("shard_process_group", "replicate_process_group")
    return [getattr(info, name) for name in names if hasattr(info, name)]


def _members(groups: list[Any]) -> int:
    size = 1
    for group in groups:
        size *= dist.get_world_size(group)
    return size


def _backend_is_device(group: Any) -> bool:
    return "gloo" not in str(dist.get_backend(group)) and "mpi" not in str(dist.get_backend(group))
