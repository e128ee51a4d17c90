"""Measure a model under each policy, interleaved, and say which one to use."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from zerograd.bench.clock import PeakMemory, fill_bytes_per_second, median_seconds, seconds_of
from zerograd.bench.policies import POLICIES, Policy
from zerograd.bench.workloads import Workload, make_workload

MOST_APART = 0.05  # two equal measurements that lie farther apart allow no advice


@dataclass
class Row:
    """One policy. Times in seconds; None where the policy cannot do it."""

    policy: str
    clear: float | None
    clear_bytes_per_second: float | None
    norm_and_clip: float | None
    step: float | None
    step_with_clip: float | None
    peak_bytes: int | None


@dataclass
class Report:
    """Everything measured in one run, and the machine it was measured on."""

    model: str
    device: str
    machine: str
    torch: str
    tensors: int
    gradient_bytes: int
    fill_bytes_per_second: float
    rounds: int
    # How far two equal measurements lay apart, as a share; None where no steps were measured.
    spread: float | None
    spread_with_clip: float | None
    rows: list[Row]
    advice: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    name: str, device_name: str, rounds: int = 15, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Measure the named model. `say` hears what is going on."""
    device = torch.device(device_name)
    say(f"building {name} on {device_name}")
    workload = make_workload(name, device)
    say("measuring the fill ceiling")
    ceiling = fill_bytes_per_second(device)
    rows = {
        policy.name: _measure_alone(policy, workload, device, rounds, say) for policy in POLICIES
    }
    spread = spread_with_clip = None
    if workload.loss is not None:
        spread, spread_with_clip = _measure_steps(workload, device, rounds, rows, say)
    listed = list(rows.values())
    return Report(
        model=workload.name,
        device=_device_name(device),
        machine=f"{platform.system()} {platform.machine()}, {torch.get_num_threads()} threads",
        torch=torch.__version__,
        tensors=len(workload.parameters),
        gradient_bytes=workload.gradient_bytes,
        fill_bytes_per_second=ceiling,
        rounds=rounds,
        spread=spread,
        spread_with_clip=spread_with_clip,
        rows=listed,
        advice=advise(listed, spread, spread_with_clip),
    )


def _measure_alone(
    kind: type[Policy],
    workload: Workload,
    device: torch.device,
    rounds: int,
    say: Callable[[str], None],
) -> Row:
    """The clear and the norm by themselves, on gradients that are there."""
    row = Row(kind.name, None, None, None, None, None, None)
    if not kind.can_clip:
        return row  # it never holds all gradients at once
    say(f"clearing and norm: {kind.name}")
    policy = kind(workload, device)
    row.clear = median_seconds(policy.clear, device, before=policy.fill, rounds=rounds)
    if kind.name in ("zero", "arena"):
        row.clear_bytes_per_second = workload.gradient_bytes / row.clear
    policy.fill()
    row.norm_and_clip = median_seconds(policy.norm, device, rounds=rounds)
    policy.close()
    return row


def _measure_steps(
    workload: Workload,
    device: torch.device,
    rounds: int,
    rows: dict[str, Row],
    say: Callable[[str], None],
) -> tuple[float, float]:
    """Whole steps, one policy after the other in each round, so that drift hits all alike."""
    times: dict[tuple[str, bool], list[float]] = {}
    repeats = 1
    for index in range(rounds + 1):  # the first to warm up, and to choose the repeats
        say(f"whole steps: round {index} of {rounds}")
        for kind in POLICIES:
            for clip in (False, True):
                if clip and not kind.can_clip:
                    continue
                policy = kind(workload, device)
                policy.step(clip)  # a policy's first step makes its buffers
                with PeakMemory(device) as peak:
                    taken = seconds_of(lambda p=policy, c=clip: p.step(c), device, repeats)  # type: ignore[misc]
                policy.close()
                if index:
                    times.setdefault((kind.name, clip), []).append(taken)
                    if not clip:
                        rows[kind.name].peak_bytes = peak.bytes
                elif kind is Policy and not clip:
                    repeats = max(1, min(50, int(0.02 / taken)))
    for name, row in rows.items():
        row.step = statistics.median(times[name, False])
        if (name, True) in times:
            row.step_with_clip = statistics.median(times[name, True])
    return _spread(times, clip=False), _spread(times, clip=True)


def _spread(times: dict[tuple[str, bool], list[float]], *, clip: bool) -> float:
    """Return how far the two equal policies lay apart: by rounds or by medians, what is more."""
    first, again = times["none", clip], times["none (again)", clip]
    ratios = [b / a for a, b in zip(first, again, strict=True)]
    medians = statistics.median(again) / statistics.median(first)
    return max(abs(statistics.median(ratios) - 1.0), abs(medians - 1.0))


def advise(rows: list[Row], spread: float | None, spread_with_clip: float | None) -> str:
    """One sentence: what to use, and by how much it differs. Noise is not advised on."""
    by_name = {row.policy: row for row in rows}
    none, arena, zero = by_name["none"], by_name["arena"], by_name["zero"]
    if spread is None or spread_with_clip is None:
        assert arena.clear is not None and zero.clear is not None
        return (
            f"Clear to None, the torch default; where gradients must stay, a GradArena clears "
            f"{zero.clear / arena.clear:.1f}x faster than zeros (whole steps were not measured: "
            "the factory gave no loss)."
        )
    assert none.step is not None and none.step_with_clip is not None
    assert arena.step is not None and arena.step_with_clip is not None
    apart = max(spread, spread_with_clip)
    if apart > MOST_APART:
        return (
            f"Too noisy to say: two equal measurements lay {apart:.0%} apart. "
            "Leave the machine alone meanwhile, or measure more --rounds."
        )
    noise = max(2 * apart, 0.05)
    gain, loss = none.step_with_clip / arena.step_with_clip, arena.step / none.step
    without = "without clipping clear to None, which gives its memory back"
    if loss > 1.0 + noise:
        without += f" (the arena takes {loss:.2f}x as long)"
    elif loss < 1.0 - noise:
        without += f" (the arena took {loss:.2f}x as long)"
    else:
        without += f" and is as fast (within {noise:.0%})"
    if gain > 1.0 + noise:
        return (
            f"With clipping use Step(optimizer, clip=..., arena=True), {gain:.2f}x faster here "
            f"than None and clip_grad_norm_; {without}."
        )
    with_clip = (
        f"{1 / gain:.2f}x as long" if gain < 1.0 - noise else f"as long (within {noise:.0%})"
    )
    return (
        f"Clear to None, the torch default: with clipping the arena takes {with_clip}; {without}."
    )


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.processor() or platform.machine()})"
