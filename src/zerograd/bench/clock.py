"""Timing: what the host waits for and what the device does, medians of many."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], object], device: torch.device, times: int = 1) -> float:
    """Seconds until `times` runs are done, the device included, for one run."""
    wait(device)
    start = time.perf_counter()
    for _ in range(times):
        work()
    wait(device)
    return (time.perf_counter() - start) / times


def median_seconds(
    work: Callable[[], object],
    device: torch.device,
    *,
    before: Callable[[], object] | None = None,
    rounds: int = 15,
) -> float:
    """The median of `rounds` runs, each after an untimed `before`."""
    found = []
    for index in range(rounds + 3):  # three to warm up
        if before is not None:
            before()
        taken = seconds_of(work, device)
        if index >= 3:
            found.append(taken)
    return statistics.median(found)


def fill_bytes_per_second(device: torch.device) -> float:
    """How fast this device fills memory with one value: the ceiling of every clear."""
    size = (1 << 30) if device.type == "cuda" else (1 << 28)
    buffer = torch.ones(size // 4, dtype=torch.float32, device=device)
    best = min(seconds_of(buffer.zero_, device, 5) for _ in range(8))
    return size / best


class PeakMemory:
    """The most memory used while the block ran, in bytes; None where it cannot be known."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
        else:
            self._can_reset = _reset_process_peak()
        return self

    def __exit__(self, *_: object) -> None:
        if self._device.type == "cuda":
            self.bytes = torch.cuda.max_memory_allocated(self._device)
        elif self._can_reset:
            self.bytes = _process_peak()


def _reset_process_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return _process_peak() is not None


def _process_peak() -> int | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
