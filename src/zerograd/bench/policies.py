"""The ways to clear gradients, each as a step that can be run."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from zerograd.bench.workloads import Workload, make_optimizer
from zerograd.buffers.arena import GradArena
from zerograd.training.step import Step

MAX_NORM = 1.0


class Policy:
    """Clears to None: the default of torch, and the base of the others."""

    name = "none"
    can_clip = True

    def __init__(self, workload: Workload, device: torch.device) -> None:
        self.workload = workload
        self.parameters = workload.parameters
        self.optimizer: Optimizer = make_optimizer(self.parameters, device)

    def fill(self) -> None:
        """Give every parameter a gradient, so that there is something to clear."""
        for parameter in self.parameters:
            parameter.grad = torch.full_like(parameter, 1e-3)

    def clear(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def norm(self) -> torch.Tensor:
        """Clip to a norm that nothing reaches: the cost of norm and scaling together."""
        return clip_grad_norm_(self.parameters, 1e9)

    def step(self, clip: bool) -> None:
        assert self.workload.loss is not None
        self.workload.loss().backward()
        if clip:
            clip_grad_norm_(self.parameters, MAX_NORM)
        self.optimizer.step()
        self.clear()

    def close(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


class Again(Policy):
    """The same once more: how far two equal measurements lie apart."""

    name = "none (again)"


class Zero(Policy):
    """Keeps the gradients and fills each with zeros."""

    name = "zero"

    def clear(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)


class Arena(Policy):
    """One buffer: a GradArena that holds the gradients, and with clipping Step(arena=True)."""

    name = "arena"

    def __init__(self, workload: Workload, device: torch.device) -> None:
        super().__init__(workload, device)
        self._arena: GradArena | None = None
        self._step: Step | None = None

    @property
    def arena(self) -> GradArena:
        if self._arena is None:
            self._arena = GradArena(self.parameters)
        return self._arena

    def fill(self) -> None:
        for flat in self.arena.collect():
            flat.fill_(1e-3)

    def clear(self) -> None:
        self.arena.zero_()

    def norm(self) -> torch.Tensor:
        return self.arena.clip_(1e9)

    def step(self, clip: bool) -> None:
        assert self.workload.loss is not None
        if clip:
            if self._step is None:
                self._step = Step(self.optimizer, clip=MAX_NORM, arena=True)
            with self._step:
                self._step.backward(self.workload.loss())
            return
        arena = self.arena
        self.workload.loss().backward()
        self.optimizer.step()
        arena.zero_()

    def close(self) -> None:
        if self._arena is not None:
            self._arena.release()
        if self._step is not None:
            self._step.close()


class InBackward(Policy):
    """Updates each parameter inside backward and drops its gradient at once.

    Legal only without a clip over all gradients and without accumulation.
    """

    name = "in backward"
    can_clip = False

    def __init__(self, workload: Workload, device: torch.device) -> None:
        super().__init__(workload, device)
        self._handles: list[Any] = []
        for parameter in self.parameters:
            own = make_optimizer([parameter], device)

            def update(filled: torch.Tensor, own: Optimizer = own) -> None:
                own.step()
                filled.grad = None

            self._handles.append(parameter.register_post_accumulate_grad_hook(update))

    def step(self, clip: bool) -> None:
        assert self.workload.loss is not None
        self.workload.loss().backward()

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        super().close()


POLICIES: tuple[type[Policy], ...] = (Policy, Again, Zero, Arena, InBackward)
