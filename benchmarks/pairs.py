"""Measuring what watching adds to a step: short blocks of one process, in random order.

All arms run the same step of the same model in the same process. A round is one block of
each of three arms: plain (A), watched (B), plain again (C), in random order, so that what else the
machine does, and where it keeps what, falls on all alike. The ratio of a round is B
over the mean of A and C; its control is C over A, taken the very same way. A row counts
only if the median of its controls lies within 1 %, and if the interval that holds the median
of its ratios (19 times in 20) is narrower than what the limit leaves, or lies on one side of
the limit: a wide one around it says nothing.

Between arms the patches are set or taken off torch, nothing else: the witness stands where
it stood, and for it the watched steps are one long run. After each change some
steps are dropped, in all arms. Until the interpreter has adapted to the change, which takes
about 60 steps, a plain step takes 1 % longer and watching it a little more, so few may be dropped
where it matters more that the blocks of a round lie close together: a machine that is
slow for a tenth of a second is then slow for all three. Garbage is collected between rounds
and not within a block.

The median of short blocks leaves out what comes rarely, so that is measured apart and added:
the first turns, each beside a plain step, and the turns of full care, 1 in 256. "Amortised"
holds all of it.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import optimizer as optimizer_module

import zerograd
from zerograd.runtime import hooks, ride
from zerograd.trace.writer import TraceWriter

Step = Callable[[], None]
PERIOD = ride.MOST_LAPS + 1  # steps from one turn of full care to the next
FORCED = 20  # turns of full care that are measured


@dataclass(frozen=True, slots=True)
class Plan:
    """How one row is measured.

    Args:
        rounds: of three blocks each.
        count: steps of a block.
        dropped: steps before it.
        first: steps within which all that only the first turns cost has been paid.
        over: steps over which the first turns are spread.
        limit: of the amortised ratio.
    """

    rounds: int
    count: int
    dropped: int
    first: int
    over: int
    limit: float | None = None


class Clock:
    """The seconds of this process, whoever else the machine works for."""

    def now(self) -> float:
        return time.process_time()


class DeviceClock(Clock):
    """The wall clock, with all that was asked of the device done."""

    def now(self) -> float:
        torch.cuda.synchronize()
        return time.perf_counter()


class Switch:
    """A watch whose patches can be taken off torch and put on again, while it stands still."""

    def __init__(self, trace: TraceWriter | None = None) -> None:
        self.trace = trace
        self.watch = zerograd.watch(policy="collect", trace=trace)
        self._patches: list[tuple[Any, str, Any, Any]] = []
        tables: tuple[Any, ...] = (
            optimizer_module._global_optimizer_pre_hooks,
            optimizer_module._global_optimizer_post_hooks,
        )
        before = [set(table) for table in tables]
        put_on = hooks._patch

        def noted(place: Any, name: str, value: Any) -> None:
            before = vars(place).get(name, getattr(place, name))  # it may come from a base
            self._patches.append((place, name, before, value))
            put_on(place, name, value)

        hooks._patch = noted
        start = time.process_time()
        try:
            self.watch.start()
        finally:
            hooks._patch = put_on
        self.start_ms = (time.process_time() - start) * 1e3
        self._hooks = [
            (table, {key: table[key] for key in table if key not in known})
            for table, known in zip(tables, before, strict=True)
        ]

    def on(self) -> None:
        for place, name, _, value in self._patches:
            setattr(place, name, value)
        for table, ours in self._hooks:
            table.update(ours)

    def off(self) -> None:
        for place, name, before, _ in self._patches:
            setattr(place, name, before)
        for table, ours in self._hooks:
            for key in ours:
                table.pop(key, None)

    def settle(self) -> None:
        """Do what a thread of the trace would do later, and perhaps in a plain block."""
        if self.trace is not None:
            self.trace.flush()

    def end(self) -> None:
        self.on()
        self.watch.stop()
        if self.trace is not None:
            self.trace.close()


class Measurement:
    """One row under way."""

    def __init__(self, step: Step, plan: Plan, clock: Clock, trace: TraceWriter | None) -> None:
        self._step, self._plan, self._clock = step, plan, clock
        for _ in range(plan.dropped + plan.count):
            step()
        self.switch = Switch(trace)

    def first_turns(self) -> float:
        """Return what the first watched steps take more than the plain ones beside them."""
        more = 0.0
        at_once = 1 if self.switch.trace is None else 100  # steps between two writes, or so
        steps = [self._step] * at_once
        for _ in range(self._plan.first // at_once):
            self.switch.on()
            more += self._timed(*steps, self.switch.settle)
            self.switch.off()
            more -= self._timed(*steps)
        return more

    def round(self) -> dict[str, float]:
        """Return the seconds of a step in each of the three arms."""
        arms = {"A": self.switch.off, "B": self.switch.on, "C": self.switch.off}
        names = random.sample(sorted(arms), k=len(arms))
        found = {}
        gc.collect()
        for name in names:
            arms[name]()
            for _ in range(self._plan.dropped):
                self._step()
            settle = self.switch.settle if name == "B" else _nothing
            settle()
            gc.disable()
            found[name] = self._timed(self._block, settle) / self._plan.count
            gc.enable()
        return found

    def careful_turn(self) -> float:
        """Return what a turn of full care takes more than any other, with what it leads to."""
        self.switch.on()
        for _ in range(max(self._plan.dropped, 3)):
            self._step()
        usual = self._timed(self._step, self._step)
        careful = self._timed(hooks._end_ride, self._step, self._step)
        return careful - usual

    def _block(self) -> None:
        step = self._step
        for _ in range(self._plan.count):
            step()

    def _timed(self, *acts: Callable[[], None]) -> float:
        now = self._clock.now
        start = now()
        for act in acts:
            act()
        return now() - start


def measure(
    name: str, step: Step, plan: Plan, *, clock: Clock | None = None, trace: Any = None
) -> dict[str, Any]:
    """Return the quartiles of ratio, control and microseconds of one row, and print them."""
    random.seed(name)
    keep_memory()
    gc.collect()
    gc.freeze()
    going = Measurement(step, plan, clock or Clock(), trace)
    first = going.first_turns()
    rounds = [going.round() for _ in range(plan.rounds)]
    around = [(each["A"] + each["C"]) / 2 for each in rounds]
    careful = statistics.median(going.careful_turn() for _ in range(FORCED))
    going.switch.end()
    gc.unfreeze()
    plain = statistics.median(around)
    ratios = [each["B"] / base for each, base in zip(rounds, around, strict=True)]
    controls = [each["C"] / each["A"] for each in rounds]
    ratio, control = _quartiles(ratios), _quartiles(controls)
    rare = max(first, 0.0) / plan.over + max(careful, 0.0) / PERIOD
    amortised = [each + rare / plain for each in interval(ratios)]
    row: dict[str, Any] = {
        "name": name,
        "steps": plan.rounds * plan.count,
        "rounds": plan.rounds,
        "ratio": ratio,
        "ratio_interval": interval(ratios),
        "control": control,
        "control_interval": interval(controls),
        "extra_us": _quartiles(
            [(each["B"] - base) * 1e6 for each, base in zip(rounds, around, strict=True)]
        ),
        "step_us": plain * 1e6,
        "counts": counts(controls, amortised, plan.limit),
        "start_ms": going.switch.start_ms,
        "first_turns_ms": first * 1e3,
        "careful_turn_us": careful * 1e6,
        "amortised": ratio[1] + rare / plain,
        "amortised_interval": amortised,
        "over": plan.over,
        "limit": plan.limit,
        "findings": len(going.switch.watch.findings),
        "metrics": going.switch.watch.metrics(),
    }
    print(told(row), flush=True)
    return row


def told(row: dict[str, Any]) -> str:
    """Return one line for a row."""
    ratio, control = row["ratio"], row["control"]
    return (
        f"{row['name']:22} "
        f"{ratio[1]:.4f}x [{ratio[0]:.3f}, {ratio[2]:.3f}]{_within(row, 'ratio')}  "
        f"A/A {control[1]:.4f} [{control[0]:.3f}, {control[2]:.3f}]{_within(row, 'control')}  "
        f"{row['extra_us'][1]:+.1f} us of {row['step_us']:.0f}  "
        f"first {row['first_turns_ms']:.1f} ms, care {row['careful_turn_us']:.0f} us  "
        f"amortised {row['amortised']:.4f}x{_within(row, 'amortised')}"
        f"{'' if row['counts'] else '  (control off or interval too wide: does not count)'}"
    )


def _within(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_interval"]
    return f" ({low:.4f} to {high:.4f})"


def verdict(row: dict[str, Any]) -> bool:
    """Print whether a row keeps its limit; True also where it does not count."""
    amortised, limit = row["amortised"], row["limit"]
    if not row["counts"]:
        word = "NOT MEASURED"
    else:
        word = "met" if amortised <= limit else "BROKEN"
    print(
        f"{word:12} {row['name']}: {amortised:.4f}x{_within(row, 'amortised')} over "
        f"{row['over']:,} steps, limit {limit}x, "
        f"control {row['control'][1]:.4f}{_within(row, 'control')}"
    )
    return word != "BROKEN"


def interval(values: list[float]) -> list[float]:
    """Return between which of the values their median lies, 19 times in 20.

    By the order of the values alone, whatever their distribution.
    """
    ordered = sorted(values)
    half = 0.98 * len(ordered) ** 0.5
    low, high = int(len(ordered) / 2 - half), int(len(ordered) / 2 + half)
    return [ordered[max(low, 0)], ordered[min(high, len(ordered) - 1)]]


def counts(controls: list[float], within: list[float], limit: float | None) -> bool:
    """Does a row say anything of its limit, given the interval its median lies within?"""
    low, high = within
    is_open = limit is not None and low <= limit < high and high - low > limit - 1
    return abs(statistics.median(controls) - 1) <= 0.01 and not is_open


def pin() -> None:
    """Stay on one core, with all threads that there are, where the system lets us."""
    if hasattr(os, "sched_setaffinity"):
        core = max(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})


def keep_memory() -> None:
    """Let the allocator keep what is freed: asking the system for it again takes no steady time."""
    import ctypes

    trim, by_mapping = -1, -3
    with suppress(OSError, AttributeError):  # only glibc has it
        library = ctypes.CDLL(None)
        library.mallopt(trim, 2**31 - 1)
        library.mallopt(by_mapping, 2**30)


def _quartiles(values: list[float]) -> list[float]:
    return statistics.quantiles(values, n=4)


def _nothing() -> None:
    return None
