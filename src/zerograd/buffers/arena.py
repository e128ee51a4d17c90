"""`GradArena`: all gradients in one flat buffer per device and dtype.

Each parameter's `.grad` is a view of the buffer, so that clearing, the global norm,
clipping and scaling are one pass over memory each, however many tensors there are.
The price: the buffer stays allocated, and a parameter that a loss does not reach has a
gradient of zeros, not None (an optimizer with momentum or weight decay still moves it).

Other code may drop or replace a `.grad`: `zero_grad()` to None, `module.to()`. A weak
reference to each view tells at once when one is dropped; where the data lie is compared
before each norm, clip and scale, and for a part of the parameters, in turn, at each clear.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from zerograd.buffers.multiply import multiply_
from zerograd.errors import StepError

ALIGNMENT = 16  # bytes: the widest load of a GPU thread
CHECKED_AT_CLEAR = 32

# as functions, so that a list of thousands is gone through without a line of Python for each
_grad_of = torch.Tensor.grad.__get__  # type: ignore[union-attr]
_address_of = torch.Tensor.data_ptr


class _Flag:
    """Whether a view was dropped. Apart from the arena, so that no reference cycle arises."""

    __slots__ = ("__weakref__", "is_up")

    def __init__(self) -> None:
        self.is_up = False

    def raise_it(self, _: object) -> None:
        self.is_up = True


class Block:
    """The gradients of one device and dtype."""

    __slots__ = ("clean_version", "flat", "offsets", "parameters", "pointers", "views")

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        first = parameters[0]
        item = first.element_size()
        step = max(1, ALIGNMENT // item)
        self.parameters = parameters
        self.offsets: list[int] = []
        end = 0
        for parameter in parameters:
            self.offsets.append(end)
            end += -(-parameter.numel() // step) * step
        self.flat = torch.zeros(end, dtype=first.dtype, device=first.device)
        start = self.flat.data_ptr()
        self.pointers = [
            start + offset * item if parameter.numel() else 0
            for offset, parameter in zip(self.offsets, parameters, strict=True)
        ]
        self.views: list[Any] = [None] * len(parameters)
        self.clean_version = self.flat._version

    def view(self, index: int) -> torch.Tensor:
        """The place of one gradient, with the strides autograd and fused kernels want."""
        parameter = self.parameters[index]
        like = torch.empty_like(parameter, device="meta", memory_format=torch.preserve_format)
        return self.flat.as_strided(parameter.shape, like.stride(), self.offsets[index])

    def is_whole(self) -> bool:
        """Whether every gradient lies in its place."""
        try:
            return list(map(_address_of, map(_grad_of, self.parameters))) == self.pointers
        except (TypeError, RuntimeError):  # None has no address, nor has a sparse tensor
            return False

    def off(self, indices: Iterable[int]) -> list[int]:
        """Which of these gradients do not lie in the buffer."""
        found = []
        parameters, pointers = self.parameters, self.pointers
        for index in indices:
            grad = parameters[index].grad
            if grad is None or (pointers[index] and not _lies_at(grad, pointers[index])):
                found.append(index)
        return found


class GradArena:
    """Gradients as views of one flat buffer per device and dtype.

    >>> model = nn.Linear(2, 1)
    >>> arena = GradArena(model.parameters())
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> norm = arena.clip_(1.0)  # one pass for the norm, one for the scaling
    >>> arena.zero_()  # one fill

    It cannot hold sparse gradients, FSDP's sharded ones, or those that DDP keeps in its own
    buckets (`gradient_as_bucket_view=True`): each raises a StepError or TypeError.
    """

    def __init__(self, params: nn.Module | Optimizer | Iterable[torch.Tensor]) -> None:
        self._flag = _Flag()
        self._blocks: list[Block] = []
        self._turn = 0
        self.add(params)
        if not self._blocks:
            raise ValueError("GradArena() got no parameter that requires a gradient")

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{len(block.parameters)} x {block.flat.dtype} on {block.flat.device}"
            for block in self._blocks
        )
        return f"GradArena({parts}; {self.nbytes:,} bytes)"

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers, padding included."""
        return sum(block.flat.numel() * block.flat.element_size() for block in self._blocks)

    def add(self, params: nn.Module | Optimizer | Iterable[torch.Tensor]) -> None:
        """Take over more parameters. Gradients they hold already are kept."""
        known = {id(p): p for block in self._blocks for p in block.parameters}
        fresh = dict(known)
        for parameter in _list_parameters(params):
            _check_parameter(parameter)
            if parameter.requires_grad:
                fresh[id(parameter)] = parameter
        if len(fresh) > len(known):
            self._build(list(fresh.values()))

    def zero_(self) -> None:
        """Clear every gradient: one fill per buffer."""
        if not self._is_in_place_briefly():
            self._repair()
        for block in self._blocks:
            block.flat.zero_()
            block.clean_version = block.flat._version

    def norm(self, norm_type: float = 2.0) -> torch.Tensor:
        """The norm of all gradients as one vector, as a tensor (the host does not wait)."""
        return self.norm_of(self.collect(), norm_type)

    def clip_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Scale all gradients so that their norm is at most `max_norm`; the norm before."""
        max_norm = float(max_norm)
        if math.isnan(max_norm) or max_norm < 0.0:
            raise ValueError(f"max_norm is a number of at least 0, but is {max_norm}")
        flats = self.collect()
        norm = self.norm_of(flats, norm_type)
        if max_norm != math.inf:
            coefficient = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
            for flat in flats:
                multiply_(flat, coefficient.to(flat.device))
        return norm

    def scale_(self, factor: float | torch.Tensor) -> None:
        """Multiply all gradients."""
        for flat in self.collect():
            flat.mul_(factor.to(flat.device) if isinstance(factor, torch.Tensor) else factor)

    def collect(self) -> list[torch.Tensor]:
        """The buffers, once every gradient is known to lie in them."""
        if not _is_capturing() and not all(block.is_whole() for block in self._blocks):
            self._repair()
        return [block.flat for block in self._blocks]

    @staticmethod
    def norm_of(flats: list[torch.Tensor], norm_type: float = 2.0) -> torch.Tensor:
        norms: list[torch.Tensor] = []
        for flat in flats:
            # half precision overflows at 65504, which a norm soon passes
            wide = torch.float32 if flat.dtype in (torch.float16, torch.bfloat16) else None
            norms.append(torch.linalg.vector_norm(flat, norm_type, dtype=wide))
        if len(norms) == 1:
            return norms[0]
        home = norms[0].device
        together = torch.stack([norm.to(home) for norm in norms])
        total: torch.Tensor = torch.linalg.vector_norm(together, norm_type)
        return total

    def is_untouched(self) -> bool:
        """Whether nothing was added to any gradient since the last clear."""
        if not self._is_in_place_briefly():
            for block in self._blocks:
                strays = block.off(range(len(block.parameters)))
                if any(block.parameters[index].grad is not None for index in strays):
                    return False
            was_clean = [block.flat._version == block.clean_version for block in self._blocks]
            self._repair()  # what is missing is zero, so a clean buffer stays one
            if all(was_clean):
                for block in self._blocks:
                    block.clean_version = block.flat._version
        return all(block.flat._version == block.clean_version for block in self._blocks)

    def release(self) -> None:
        """Take the views off the parameters and let the buffers go."""
        for block in self._blocks:
            for parameter in block.parameters:
                parameter.grad = None
        self._blocks = []

    def _is_in_place_briefly(self) -> bool:
        """A check whose cost does not grow with the number of tensors."""
        if _is_capturing():
            return True
        if self._flag.is_up:
            return False
        for block in self._blocks:
            count = len(block.parameters)
            if count <= CHECKED_AT_CLEAR:
                indices: Iterable[int] = range(count)
            else:
                start = self._turn % count
                indices = [0, count - 1, *range(start, min(start + CHECKED_AT_CLEAR, count))]
            if block.off(indices):
                return False
        self._turn += CHECKED_AT_CLEAR
        return True

    def _repair(self) -> None:
        """Bring every gradient back into the buffer: None is zero, another tensor is copied."""
        if _is_capturing():
            raise StepError(
                "A gradient left the GradArena before the CUDA graph was captured. "
                "Call arena.zero_() once before the capture."
            )
        for block in self._blocks:
            first = block.flat
            if any(p.device != first.device or p.dtype != first.dtype for p in block.parameters):
                self._build([p for each in self._blocks for p in each.parameters])
                return
        for block in self._blocks:
            for index in block.off(range(len(block.parameters))):
                self._attach(block, index)
        self._flag.is_up = False

    def _build(self, parameters: list[torch.Tensor]) -> None:
        """New buffers for these parameters, with the gradients they hold now."""
        self._blocks = [Block(group) for group in group_parameters(parameters)]
        self._flag = _Flag()  # the old views go now, and that is no news
        for block in self._blocks:
            was_clean = all(parameter.grad is None for parameter in block.parameters)
            for index in range(len(block.parameters)):
                self._attach(block, index)
            block.clean_version = block.flat._version if was_clean else -1

    def _attach(self, block: Block, index: int) -> None:
        parameter = block.parameters[index]
        grad = parameter.grad
        view = block.view(index)
        if grad is None:
            view.zero_()
        elif grad.layout is not torch.strided:
            raise StepError(
                f"GradArena cannot hold a sparse gradient (a parameter of shape "
                f"{tuple(parameter.shape)} has one). Leave that parameter out of the arena."
            )
        else:
            view.copy_(grad.detach())
        parameter.grad = view
        block.views[index] = weakref.ref(view, self._flag.raise_it)


def group_parameters(parameters: Iterable[torch.Tensor]) -> list[list[torch.Tensor]]:
    """One list per device and dtype."""
    groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    for parameter in parameters:
        groups.setdefault((parameter.device, parameter.dtype), []).append(parameter)
    return list(groups.values())


def _lies_at(grad: torch.Tensor, pointer: int) -> bool:
    return grad.layout is torch.strided and grad.data_ptr() == pointer


def _is_capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _list_parameters(params: nn.Module | Optimizer | Iterable[torch.Tensor]) -> list[torch.Tensor]:
    if isinstance(params, nn.Module):
        for module in params.modules():
            if getattr(module, "gradient_as_bucket_view", False):
                raise StepError(
                    "DDP with gradient_as_bucket_view=True keeps the gradients in its own "
                    "buckets, so a GradArena cannot hold them. Leave that option out."
                )
            if getattr(module, "sparse", False) and isinstance(
                module, (nn.Embedding, nn.EmbeddingBag)
            ):
                raise StepError(
                    "GradArena cannot hold sparse gradients, and this model has an embedding "
                    "with sparse=True. Pass the other parameters only."
                )
        return list(params.parameters())
    if isinstance(params, Optimizer):
        return [parameter for group in params.param_groups for parameter in group["params"]]
    if isinstance(params, torch.Tensor):
        raise TypeError("GradArena() takes an iterable of parameters: GradArena([tensor])")
    return list(params)


def _check_parameter(parameter: object) -> None:
    if not isinstance(parameter, torch.Tensor):
        raise TypeError(f"GradArena() takes parameters, but got {type(parameter).__name__}")
    if hasattr(parameter, "device_mesh"):
        raise TypeError(
            "GradArena cannot hold sharded gradients (FSDP2, DTensor): "
            "fully_shard keeps its own flat buffers already."
        )
    if not parameter.is_leaf:
        raise TypeError("GradArena() takes leaf tensors; this one is the result of an operation")
    if parameter.layout is not torch.strided:
        raise TypeError(f"GradArena() takes dense parameters, but got {parameter.layout}")
