"""Multiplying large tensors by a number that lies on their device.

Most clips clip nothing: their coefficient is 1. The host cannot know that without waiting
for the device, but a kernel can: it reads the number first and, if it is 1, leaves the
memory alone. torch has no such kernel, so on a GPU one is compiled with Triton, where that
is installed and works; everywhere else this is `mul_`, and the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch.autograd.graph import increment_version

Kernel = Callable[[torch.Tensor, torch.Tensor], None]

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LARGE = 4 * 1024 * 1024  # bytes from which on a pass over memory costs more than a launch


def multiply_(values: torch.Tensor, number: torch.Tensor) -> None:
    """Multiply in place by a tensor of one number on the same device."""
    kernel = _find_kernel() if is_worth_a_look(values) else None
    if kernel is None:
        values.mul_(number)
        return
    kernel(values, number.to(values.dtype))
    increment_version(values)  # as each of torch's own in-place operations does


def is_worth_a_look(values: torch.Tensor) -> bool:
    """Whether reading the number first can save more than it costs."""
    return (
        values.is_cuda
        and values.numel() * values.element_size() >= LARGE
        and values.dtype in DTYPES
        and values.is_contiguous()
    )


def _find_kernel() -> Kernel | None:
    if not _kernel.cache_info().currsize and torch.cuda.is_current_stream_capturing():
        return None  # compiling would break the capture of a CUDA graph
    return _kernel()


@cache
def _kernel() -> Kernel | None:
    """The compiled kernel, or None where Triton is missing or has no compiler to work with."""
    try:
        from zerograd.buffers.kernel import multiply_unless_one

        probe = torch.ones(8, device="cuda")
        multiply_unless_one(probe, torch.full((), 2.0, device="cuda"))
    except Exception:  # whatever a tool chain can throw: the plain way is always there
        return None
    return multiply_unless_one
