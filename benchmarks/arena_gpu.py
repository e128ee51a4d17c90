"""GradArena on a GPU: `python benchmarks/arena_gpu.py --output FOLDER` writes arena_gpu.json.

Clears against the fill ceiling, norm and clip against torch's own, whole steps with and
without clipping in eager mode and in a captured CUDA graph. Every ratio is taken within
this run, the policies one after the other in each round, with the first one measured
twice as an A/A control.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from zerograd import GradArena, Step
from zerograd.bench.workloads import Workload, make_workload

CUDA = torch.device("cuda")


def wall(work: Callable[[], object], times: int) -> float:
    """Microseconds a run, host and device, until all are done."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / times * 1e6


def on_device(work: Callable[[], object], times: int) -> float:
    """Microseconds a run between two events on the device."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    elapsed: float = begin.elapsed_time(end)
    return elapsed / times * 1e3


class StepWork:
    """A training step by a Step that exists only while it is measured: Steps know each other."""

    def __init__(self, loss: Callable[[], torch.Tensor], optimizer: Any, **options: Any) -> None:
        self._loss, self._optimizer, self._options = loss, optimizer, options
        self._step: Step | None = None

    def __enter__(self) -> StepWork:
        self._step = Step(self._optimizer, **self._options)
        self()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._step is not None
        self._step.close()
        self._step = None

    def __call__(self) -> None:
        assert self._step is not None
        with self._step:
            self._step.backward(self._loss())


def interleaved(
    works: dict[str, Callable[[], object]],
    times: int,
    rounds: int,
    clock: Callable[[Callable[[], object], int], float] = wall,
) -> dict[str, float]:
    """The median of each, taken in turns."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for index in range(rounds + 1):
        for name, work in works.items():
            with work if isinstance(work, StepWork) else nullcontext():
                taken = clock(work, times if index else max(1, times // 4))
            if index:  # the first round warms up
                found[name].append(taken)
    return {name: statistics.median(values) for name, values in found.items()}


def parameters(sizes: list[int]) -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(size, device=CUDA)) for size in sizes]


def ceiling() -> list[dict[str, Any]]:
    """The arena's clear against filling one buffer of the same size, on the device."""
    rows = []
    for megabytes in (500, 1000, 2000, 4000, 8000):
        sizes = [megabytes * 1_000_000 // 4 // 64] * 64
        owners = parameters(sizes)
        arena = GradArena(owners)
        buffer = torch.ones(sum(sizes), device=CUDA)
        # enough clears in one go that the host is far ahead of the device
        found = interleaved(
            {"fill": buffer.zero_, "fill again": buffer.zero_, "arena": arena.zero_},
            times=60, rounds=9, clock=on_device,
        )  # fmt: skip
        size = sum(sizes) * 4
        rows.append(
            {
                "megabytes": megabytes,
                "fill_tb_per_s": size / found["fill"] / 1e6,
                "arena_tb_per_s": size / found["arena"] / 1e6,
                "arena_of_ceiling": found["fill"] / found["arena"],
                "a_a": found["fill"] / found["fill again"],
            }
        )
        arena.release()
        del owners, arena, buffer
        torch.cuda.empty_cache()
    return rows


def shapes(name: str) -> list[int]:
    if name == "10k":
        return [64] * 10_000
    if name == "4k":
        return [256, 16] * 2000
    return [p.numel() for p in make_workload("gpt2", CUDA).parameters]


def clears_and_norms(name: str) -> dict[str, Any]:
    sizes = shapes(name)
    torch.cuda.empty_cache()
    apart, together = parameters(sizes), parameters(sizes)
    for p in apart:
        p.grad = torch.full_like(p, 1e-3)
    arena = GradArena(together)
    arena.collect()[0].fill_(1e-3)
    optimizer = torch.optim.AdamW(apart, lr=1e-3)
    cached = [p.grad for p in apart if p.grad is not None]
    slow = 5 if name != "gpt2" else 20
    clears = interleaved(
        {
            "zero_grad(set_to_none=False)": lambda: optimizer.zero_grad(set_to_none=False),
            "zero again": lambda: optimizer.zero_grad(set_to_none=False),
            "torch._foreach_zero_, cached list": lambda: torch._foreach_zero_(cached),
            "arena.zero_": arena.zero_,
        },
        times=slow, rounds=9,
    )  # fmt: skip
    for grad in cached:
        grad.fill_(1e-3)
    arena.collect()[0].fill_(1e-3)
    norms = interleaved(
        {
            "clip_grad_norm_": lambda: clip_grad_norm_(apart, 1e9),
            "clip_grad_norm_ again": lambda: clip_grad_norm_(apart, 1e9),
            "torch._foreach_norm, cached list": lambda: torch.linalg.vector_norm(
                torch.stack(torch._foreach_norm(cached))
            ),
            "get_total_norm": lambda: nn.utils.get_total_norm(cached),
            "arena.clip_": lambda: arena.clip_(1e9),
            "arena.norm": arena.norm,
        },
        times=slow, rounds=9,
    )  # fmt: skip
    exact = math.sqrt(sum(float(g.double().pow(2).sum()) for g in cached))
    norm_arena, norm_torch = float(arena.norm()), float(nn.utils.get_total_norm(cached))
    # below any norm here, so that each call has something to clip
    clips = interleaved(
        {
            "clip_grad_norm_": lambda: clip_grad_norm_(apart, 1e-4),
            "clip_grad_norm_ again": lambda: clip_grad_norm_(apart, 1e-4),
            "arena.clip_": lambda: arena.clip_(1e-4),
        },
        times=slow, rounds=9,
    )  # fmt: skip
    row = {
        "model": name,
        "tensors": len(sizes),
        "megabytes": sum(sizes) * 4 / 1e6,
        "arena_bytes_over_gradients": arena.nbytes / (sum(sizes) * 4),
        "clear_us": clears,
        "norm_us": norms,
        "clip_us": clips,
        "clear_speedup": clears["zero_grad(set_to_none=False)"] / clears["arena.zero_"],
        "clear_a_a": clears["zero_grad(set_to_none=False)"] / clears["zero again"],
        "clip_speedup_nothing_to_clip": norms["clip_grad_norm_"] / norms["arena.clip_"],
        "clip_speedup_clipping": clips["clip_grad_norm_"] / clips["arena.clip_"],
        "clip_a_a_clipping": clips["clip_grad_norm_"] / clips["clip_grad_norm_ again"],
        "norm_speedup_over_get_total_norm": norms["get_total_norm"] / norms["arena.norm"],
        "norm_speedup_over_cached_foreach": norms["torch._foreach_norm, cached list"]
        / norms["arena.norm"],
        "clip_a_a": norms["clip_grad_norm_"] / norms["clip_grad_norm_ again"],
        "norm_error_arena": abs(norm_arena - exact) / exact,
        "norm_error_torch": abs(norm_torch - exact) / exact,
    }
    arena.release()
    return row


def twin_steps(name: str, rounds: int, times: int, kind: str = "AdamW") -> dict[str, Any]:
    """Whole steps on copies of one model, so that nothing is shared but the machine."""

    def fresh() -> tuple[Workload, torch.optim.Optimizer]:
        workload = make_workload(name, CUDA)
        return workload, getattr(torch.optim, kind)(workload.parameters, lr=1e-6, fused=True)

    works: dict[str, Callable[[], object]] = {}
    peaks: dict[str, float] = {}

    def hand(clip: bool) -> Callable[[], object]:
        workload, optimizer = fresh()
        assert workload.loss is not None
        loss = workload.loss

        def work() -> None:
            loss().backward()
            if clip:
                clip_grad_norm_(workload.parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()

        return work

    def zero() -> Callable[[], object]:
        workload, optimizer = fresh()
        assert workload.loss is not None
        loss = workload.loss

        def work() -> None:
            loss().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)

        return work

    def arena(clip: bool) -> Callable[[], object]:
        """Gradients that stay in the buffer."""
        workload, optimizer = fresh()
        held = GradArena(workload.parameters)
        assert workload.loss is not None
        loss = workload.loss

        def work() -> None:
            loss().backward()
            if clip:
                held.clip_(1.0)
            optimizer.step()
            held.zero_()

        return work

    def step(clip: bool, with_arena: bool) -> Callable[[], object]:
        workload, optimizer = fresh()
        assert workload.loss is not None
        loss = workload.loss
        return StepWork(loss, optimizer, clip=1.0 if clip else None, arena=with_arena)

    makers: dict[str, Callable[[], Callable[[], object]]] = {
        "none": lambda: hand(False),
        "none again": lambda: hand(False),
        "zero": zero,
        "arena": lambda: arena(False),
        "Step": lambda: step(False, False),
        "clip: none": lambda: hand(True),
        "clip: none again": lambda: hand(True),
        "clip: arena": lambda: arena(True),
        "clip: Step": lambda: step(True, False),
        "clip: Step, arena": lambda: step(True, True),
    }
    for label, make in makers.items():
        torch.cuda.synchronize()
        base = torch.cuda.memory_allocated()
        work = works[label] = make()
        with work if isinstance(work, StepWork) else nullcontext():
            work()
            torch.cuda.reset_peak_memory_stats()
            work()
            torch.cuda.synchronize()
        peaks[label] = (torch.cuda.max_memory_allocated() - base) / 1e9
    found = interleaved(works, times=times, rounds=rounds)
    return {
        "model": name,
        "optimizer": f"fused {kind}",
        "us": found,
        "peak_gb": peaks,
        "arena_speedup_with_clip": found["clip: none"] / found["clip: arena"],
        "step_arena_speedup_with_clip": found["clip: none"] / found["clip: Step, arena"],
        "arena_speedup_without_clip": found["none"] / found["arena"],
        "step_over_hand": found["Step"] / found["none"],
        "a_a": found["none"] / found["none again"],
        "a_a_clip": found["clip: none"] / found["clip: none again"],
    }


def captured() -> dict[str, Any]:
    """A 60-layer MLP captured in a CUDA graph, replayed."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(60):
        layers += [nn.Linear(256, 256), nn.ReLU()]
    start = nn.Sequential(*layers).to(CUDA)
    x = torch.randn(64, 256, device=CUDA)
    works: dict[str, Callable[[], object]] = {}
    ends: dict[str, list[torch.Tensor]] = {}
    kept = []
    for label in ("none", "none again", "zero", "arena", "clip: none", "clip: arena"):
        model = copy.deepcopy(start)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=True)
        arena = GradArena(model.parameters()) if "arena" in label else None
        clip = label.startswith("clip")

        def work(
            model: nn.Module = model,
            optimizer: torch.optim.Optimizer = optimizer,
            arena: GradArena | None = arena,
            clip: bool = clip,
            label: str = label,
        ) -> None:
            model(x).pow(2).mean().backward()
            if clip:
                if arena is None:
                    clip_grad_norm_(model.parameters(), 1.0)
                else:
                    arena.clip_(1.0)
            optimizer.step()
            if arena is not None:
                arena.zero_()
            else:
                optimizer.zero_grad(set_to_none=label != "zero")

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        kept.append((graph, work))  # a replay uses the memory of all that the work holds
        works[label] = graph.replay
        ends[label] = list(model.parameters())
    for replay in works.values():
        for _ in range(5):
            replay()
    torch.cuda.synchronize()

    def apart(a: str, b: str) -> float:
        pairs = zip(ends[a], ends[b], strict=True)
        return max(float((p - q).detach().abs().max()) for p, q in pairs)

    difference, difference_clip = apart("none", "arena"), apart("clip: none", "clip: arena")
    found = interleaved(works, times=50, rounds=9)
    return {
        "us": found,
        "a_a": found["none"] / found["none again"],
        "largest_difference_none_arena": difference,
        "largest_difference_clip": difference_clip,
        "arena_speedup_with_clip": found["clip: none"] / found["clip: arena"],
        "arena_speedup_without_clip": found["none"] / found["arena"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", help="the parts whose name starts so")
    args = parser.parse_args()
    folder = args.output
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "what": "microseconds, medians; speedups are ratios within this run",
    }
    parts: dict[str, Callable[[], Any]] = {
        "ceiling": ceiling,
        "gpt2": lambda: clears_and_norms("gpt2"),
        "10k": lambda: clears_and_norms("10k"),
        "4k": lambda: clears_and_norms("4k"),
        "steps_many": lambda: twin_steps("many", rounds=11, times=3),
        "steps_many_sgd": lambda: twin_steps("many", rounds=11, times=3, kind="SGD"),
        "steps_gpt2": lambda: twin_steps("gpt2", rounds=11, times=5),
        "captured": captured,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        if not name.startswith(args.only or ""):
            continue
        began = time.perf_counter()
        try:
            result[name] = part()
        except Exception as error:  # the other parts are still worth having
            result[name] = {"failed": repr(error)}
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        print(json.dumps(result[name]), flush=True)
        (folder / "arena_gpu.json").write_text(json.dumps(result, indent=2) + "\n")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
