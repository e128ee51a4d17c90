"""A Triton kernel; imported only where there is a GPU (see `multiply.py`)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 8192


@triton.jit  # type: ignore[untyped-decorator]
def _multiply_unless_one(values, number, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    factor = tl.load(number)
    if factor != 1.0:  # true for NaN as well
        place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = place < size
        kept = tl.load(values + place, mask=inside)
        tl.store(values + place, kept * factor, mask=inside)


def multiply_unless_one(values: torch.Tensor, number: torch.Tensor) -> None:
    """Multiply contiguous values in place; where the number is 1, touch nothing."""
    size = values.numel()
    with torch.cuda.device(values.device):
        _multiply_unless_one[(triton.cdiv(size, BLOCK),)](
            values, number, size, BLOCK=BLOCK, num_warps=8
        )
