"""The end of a block: normalise, unscale, clip, step, scheduler if stepped, scaler update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from zerograd.buffers.arena import GradArena
from zerograd.buffers.gather import Gather
from zerograd.training import scaling
from zerograd.training.clipping import (
    clip_parts_by_norm,
    clip_parts_by_value,
    dense_parts,
    scale_parts,
    total_norm,
)
from zerograd.training.normalise import Factor
from zerograd.training.ownership import Guard


class Updater:
    """Turns a window's gradients into one update, and knows how it went."""

    def __init__(
        self,
        optimizers: list[Optimizer],
        guard: Guard,
        *,
        clip: float | None,
        clip_value: float | None,
        norm_type: float,
        scaler: Any,
        schedulers: list[Any],
        arena: GradArena | Gather | None,
    ) -> None:
        self._optimizers = optimizers
        self._guard = guard
        self._clip = clip
        self._clip_value = clip_value
        self._norm_type = norm_type
        self._scaler = scaler
        self._schedulers = schedulers
        self._arena = arena
        self._is_plain = clip is None and clip_value is None
        self._skipped = False
        self._pending: scaling.Skip | None = None
        self._norm: torch.Tensor | float | None = None

    @property
    def skipped(self) -> bool:
        if self._pending is not None:
            self.settle()
        return self._skipped

    @property
    def grad_norm(self) -> float | None:
        if isinstance(self._norm, torch.Tensor):
            self._norm = float(self._norm)  # the host waits here, and only if asked
        return self._norm

    def settle(self) -> None:
        """Learn from the device whether the last step happened, and move the schedulers if so."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        self._skipped = pending.read()
        if not self._skipped:
            self._move_schedulers()

    def give_up(self) -> None:
        """The window came to nothing."""
        self.settle()
        self._skipped, self._norm = True, None

    def apply(
        self, parameters: list[torch.Tensor], factor: Factor, invalid: torch.Tensor | None
    ) -> None:
        """One update with the gradients of `parameters`, each to be multiplied by `factor`."""
        if self._pending is not None:
            self.settle()  # the scheduler must have moved before this step uses its rate
        if self._scaler is not None:
            self._apply_scaled(parameters, factor, invalid)
            return
        if factor is not None or not self._is_plain:
            self.edit(parameters, factor)
        if invalid is not None:
            self._step_unless(invalid)
            return
        guard = self._guard
        guard.is_stepping = True
        try:
            for optimizer in self._optimizers:
                optimizer.step()
        finally:
            guard.is_stepping = False
        self._skipped = False
        if self._schedulers:
            self._move_schedulers()

    def apply_closure(self, closure: Callable[[], torch.Tensor]) -> None:
        """One update by an optimizer that evaluates the loss itself."""
        self._guard.is_stepping = True
        try:
            self._optimizers[0].step(closure)  # type: ignore[arg-type]
        finally:
            self._guard.is_stepping = False
        self._skipped = False
        self._move_schedulers()

    def edit(self, parameters: list[torch.Tensor], factor: Factor) -> None:
        """Normalise and clip."""
        arena = self._arena
        if arena is not None and (self._clip is not None or isinstance(arena, GradArena)):
            parts = arena.collect()
        else:  # without a norm there is nothing to gain by gathering
            parts = dense_parts(parameters)
        if self._clip is not None:
            if arena is not None and len(parts) == 1:  # all in one buffer
                norm = GradArena.norm_of(parts, self._norm_type)
            else:
                norm = total_norm(parts, self._norm_type)
            self._norm = clip_parts_by_norm(parts, norm, self._clip, factor)
            return
        if factor is not None:
            scale_parts(parts, factor)
        if self._clip_value is not None:
            clip_parts_by_value(parts, self._clip_value)

    def _apply_scaled(
        self, parameters: list[torch.Tensor], factor: Factor, invalid: torch.Tensor | None
    ) -> None:
        scaler, guard = self._scaler, self._guard
        # a scaler refuses an optimizer that received nothing
        active = [optimizer for optimizer in self._optimizers if _has_gradient(optimizer)]
        try:
            if not self._is_plain or len(active) > 1 or invalid is not None:
                scaling.unscale(scaler, active)
                scaling.join_flags(scaler, active, invalid)
            if factor is not None or not self._is_plain:
                self.edit(parameters, factor)
            guard.stepped, guard.found_inf = 0, []
            guard.is_stepping = True
            try:
                for optimizer in active:
                    scaler.step(optimizer)
            finally:
                guard.is_stepping = False
        except BaseException:
            scaling.forget(scaler, active)
            raise
        scaler.update()
        if guard.found_inf:  # fused: the device decides, so ask later
            self._owe(scaling.Skip(guard.found_inf))
            guard.found_inf = []
            return
        self._skipped = guard.stepped == 0
        if not self._skipped:
            self._move_schedulers()

    def _step_unless(self, invalid: torch.Tensor) -> None:
        """Step, unless the device says that the weights made no sense.

        A fused optimizer leaves its step out on the device. Another one takes a step with
        gradients that are zero: to know better, the host would have to wait.
        """
        self._guard.is_stepping = True
        try:
            for optimizer in self._optimizers:
                if not scaling.is_fused(optimizer):
                    optimizer.step()
                    continue
                fused: Any = optimizer
                fused.grad_scale, fused.found_inf = None, invalid.float()
                try:
                    optimizer.step()
                finally:
                    del fused.grad_scale, fused.found_inf
        finally:
            self._guard.is_stepping = False
            self._guard.found_inf = []
        self._owe(scaling.Skip([invalid]))

    def _owe(self, skip: scaling.Skip) -> None:
        self._pending = skip
        if skip.is_known:
            self.settle()

    def _move_schedulers(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()


def _has_gradient(optimizer: Optimizer) -> bool:
    return any(p.grad is not None for group in optimizer.param_groups for p in group["params"])
