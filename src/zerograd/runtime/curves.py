"""Loss and gradient norm for a trace, read without making any device wait.

What lies in the host's memory is read at once. What lies on a GPU is copied aside while
the GPU works on, and told when the copy is found to have arrived, some steps later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
from torch import Tensor

from zerograd.lifecycle.events import Event
from zerograd.runtime import torch_facts

SLOTS = 256  # copies under way at a time
AT_FIRST = 64  # numbers of one kind that are copied from a device; then every APART-th
APART = 8
_NEAR = 4  # frames between the call that is ticked off and the hook that does


class CurveSink(Protocol):
    """A trace that also takes numbers, and says for which iterations it wants them."""

    def keeps(self, iteration: int) -> bool: ...

    def measured(self, event: Event, *, iteration: int, extra: Mapping[str, float]) -> None: ...


@dataclass(slots=True)
class Copy:
    """A number on its way from a device."""

    value: Tensor  # a view of the host's memory
    arrived: Any
    divisor: Copy | None = None

    def read(self) -> float | None:
        """Return the number, None while it is under way."""
        by = self.divisor.read() if self.divisor is not None else 1.0
        if by is None or not self.arrived.query():
            return None
        return self.value.item() / by if by else None


Number = float | Copy


class Curves:
    """Takes numbers for a trace.

    Args:
        trace: whatever events are written to; without `keeps`, nothing is measured.
    """

    def __init__(self, trace: Any) -> None:
        self._trace: CurveSink | None = trace if hasattr(trace, "keeps") else None
        self._lanes: dict[tuple[str, torch.device, torch.dtype], _Lane] = {}
        self._waiting: deque[tuple[Copy, str, Event, int]] = deque()
        self._norm: Number | None = None  # measured without a clip, for the next step

    def __bool__(self) -> bool:
        return self._trace is not None

    def are_wanted(self, iteration: int) -> bool:
        """Is this iteration, or the one that may begin now, written down?"""
        return self.are_wanted_in(iteration) or self.are_wanted_in(iteration + 1)

    def are_wanted_in(self, iteration: int) -> bool:
        """Is this iteration written down?"""
        return self._trace is not None and self._trace.keeps(iteration)

    @property
    def has_norm(self) -> bool:
        """Has a norm been measured since the last step?"""
        return self._norm is not None

    @property
    def are_under_way(self) -> bool:
        """Are numbers on their way from a device?"""
        return bool(self._waiting)

    def loss(self, roots: Any, scale: Any = None) -> Number | None:
        """Take the loss that a backward begins at; the factor of a scaler is taken out."""
        if len(roots) != 1:
            return None
        value = self.take("loss", roots[0])
        if value is None or scale is None:
            return value
        factor = self.take("scale", scale)
        if isinstance(value, Copy):
            value.divisor = factor if isinstance(factor, Copy) else None
            return value if value.divisor is not None else None
        return value / factor if isinstance(factor, float) and factor else None

    def take(self, what: str, tensor: Any) -> Number | None:
        """Take one number; None if it is none, or cannot be had without waiting."""
        if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.numel() != 1:
            return None
        if not tensor.is_floating_point() or not torch_facts.may_look_at_values():
            return None
        if torch_facts.has_modes():
            return None  # a mode of the user's would see it
        if tensor.is_cpu:
            return float(tensor.item())
        return self._copy(what, tensor) if tensor.is_cuda else None

    def hold_norm(self, norm: Any) -> None:
        """Take a norm that was only measured, to be told with the next step."""
        self._norm = self.take("norm", norm)

    def held_norm(self) -> Number | None:
        """Return the norm that was measured since the last step."""
        norm, self._norm = self._norm, None
        return norm

    def told(
        self, name: str, number: Number | None, event: Event, iteration: int
    ) -> Mapping[str, float] | None:
        """Return what to write beside the event; what is under way is told later."""
        if self._waiting:
            self.tell_arrived()
        if isinstance(number, Copy):
            self._waiting.append((number, name, event, iteration))
            return None
        return None if number is None else {name: number}

    def tell_arrived(self) -> None:
        """Tell the numbers that have arrived since, in order."""
        while self._waiting and self._trace is not None:
            copy, name, event, iteration = self._waiting[0]
            value = copy.read()
            if value is None:
                return
            self._waiting.popleft()
            self._trace.measured(event, iteration=iteration, extra={name: value})

    def _copy(self, what: str, tensor: Tensor) -> Copy | None:
        key = (what, tensor.device, tensor.dtype)
        if len(self._waiting) >= SLOTS // 2 - 2:
            return None  # the device lags far behind
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(tensor)
        return lane.copy(tensor) if lane.is_due() else None


def local_near(frame: FrameType | None, code: CodeType, name: str) -> Any:
    """Return a local variable of the innermost frame of `code`, this one or a few around it."""
    for _ in range(_NEAR):
        if frame is None:
            break
        if frame.f_code is code:
            return frame.f_locals.get(name)
        frame = frame.f_back
    return None


class _Lane:
    """Room in the host's memory for numbers of one kind from one device.

    A copy costs the host several microseconds, so after the first ones only some are made.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._values = torch.empty(SLOTS, dtype=tensor.dtype, pin_memory=True)
        self._arrived = [torch.cuda.Event() for _ in range(SLOTS)]
        self._next = 0
        self._asked = 0

    def is_due(self) -> bool:
        """Is the next number to be copied?"""
        self._asked += 1
        return self._asked <= AT_FIRST or self._asked % APART == 0

    def copy(self, tensor: Tensor) -> Copy:
        slot, self._next = self._next, (self._next + 1) % SLOTS
        value, arrived = self._values[slot], self._arrived[slot]
        with torch.no_grad(), torch.cuda.device(tensor.device):
            value.copy_(tensor.detach().view(()), non_blocking=True)
            arrived.record(torch.cuda.current_stream(tensor.device))
        return Copy(value, arrived)
