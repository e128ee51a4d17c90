"""Multiplying on a GPU: torch's own numbers, bit for bit, and no pass where the number is 1."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from zerograd import GradArena
from zerograd.buffers.multiply import DTYPES, LARGE, multiply_

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@contextmanager
def no_waiting():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mode calls itself a prototype
        try:
            torch.cuda.set_sync_debug_mode("error")
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


def values_of(dtype):
    torch.manual_seed(0)
    values = torch.randn(LARGE // 2 + 77, device="cuda").mul_(100).to(dtype)
    values[:3] = torch.tensor([math.nan, math.inf, -0.0])
    return values


@pytest.mark.parametrize("number", [1.0, 0.3, 0.0, 1e-30, math.nan, math.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_numbers_are_those_of_mul(dtype, number):
    values = values_of(dtype)
    expected = values.clone().mul_(torch.tensor(number, device="cuda"))
    version = values._version
    multiply_(values, torch.tensor(number, device="cuda"))
    torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(values[2:].signbit(), expected[2:].signbit())
    assert values._version > version


def test_a_clip_equals_torchs_and_does_not_wait():
    torch.manual_seed(0)
    apart = [nn.Parameter(torch.zeros(2_000_000, device="cuda")) for _ in range(3)]
    together = [nn.Parameter(torch.zeros(2_000_000, device="cuda")) for _ in range(3)]
    arena = GradArena(together)
    for p, q in zip(apart, together, strict=True):
        p.grad = torch.randn_like(p)
        q.grad.copy_(p.grad)
    arena.clip_(1e9)  # compiles
    for max_norm in (1e9, 3.0):
        with no_waiting():
            arena.clip_(max_norm)
        nn.utils.clip_grad_norm_(apart, max_norm)
        for p, q in zip(apart, together, strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-6, atol=0)


def test_it_is_captured_in_a_graph():
    values, number = values_of(torch.float32), torch.tensor(0.5, device="cuda")
    multiply_(values, torch.tensor(1.0, device="cuda"))
    before = values.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        multiply_(values, number)
    graph.replay()
    assert torch.equal(values[3:], before[3:] * 0.5)
    number.fill_(1.0)
    graph.replay()
    assert torch.equal(values[3:], before[3:] * 0.5)
