"""Run a program on torch under the live witness, in surroundings that it cannot tell apart."""

from __future__ import annotations

import itertools
import linecache
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from zerograd import watch
from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.runtime import replicas
from zerograd.runtime.callers import is_counted
from zerograd.runtime.chosen import is_chosen

BATCHES = 7  # no multiple of 2 or 3, so that windows have tails
ROWS = 4  # loops over a batch run often enough, too
TOOLS = """
def clear_gradients(optimizer):
    optimizer.zero_grad()


def step(optimizer):
    optimizer.step()


def update(network, optimizer):
    optimizer.step()
    network.zero_grad()
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program does not decide itself."""

    flag: bool = False
    other: bool = False
    data: int = 0

    def namespace(self) -> dict[str, Any]:
        """Return the names that the program finds when it begins."""
        torch.manual_seed(self.data)
        torch.set_grad_enabled(True)  # a program that was cut off may have left it off
        loader = [torch.randn(ROWS, 4) for _ in range(BATCHES)]
        args = SimpleNamespace(flag=self.flag, other=self.other)
        return {
            "__name__": "__main__",
            "args": args,
            "loader": loader,
            "print": lambda *words: None,
        }


@dataclass(slots=True)
class Step:
    """One step of an optimizer in a traced run."""

    optimizer: int
    names: set[str]  # of its variables, there and in the callers
    line: int
    counted: bool  # does a remainder decide when it comes?
    chosen: bool  # do the batch's own data?
    lines: Counter[int]  # how often each line had run by then


@dataclass(slots=True)
class Run:
    """What one run showed."""

    text: str = ""
    findings: list[Finding] = field(default_factory=list)
    error: str = ""  # the program's own exception
    error_line: int = 0
    not_checked: list[str] = field(default_factory=list)
    never_filled: set[int] = field(default_factory=set)  # steps whose gradients were never there
    wasted: set[int] = field(default_factory=set)  # losses that clears drop, and no step has used
    lines: Counter[int] = field(default_factory=Counter)  # how often each ran, if traced
    backwards: list[int] = field(default_factory=list)  # the lines that call one
    steps: list[Step] = field(default_factory=list)  # if traced


class Losses:
    """Takes down, as a trace does, which losses steps have used, and which clears have dropped."""

    def __init__(self) -> None:
        self._held: dict[str, set[int]] = {}  # by bucket: the lines of the losses in it
        self._used: set[int] = set()
        self._trained: set[str] = set()  # the buckets in which some step found a loss
        self._dropped: Counter[tuple[int, str]] = Counter()

    def write(self, event: Event, *, iteration: int, extra: object = None) -> None:
        for bucket in event.reach:
            held = self._held.setdefault(bucket, set())
            if event.kind is EventKind.BACKWARD:
                held.add(event.spot.line)
            elif event.kind is EventKind.STEP and held:
                self._used |= held
                self._trained.add(bucket)
            elif event.kind is EventKind.CLEAR:
                self._dropped.update((line, bucket) for line in held)
                held.clear()

    @property
    def wasted(self) -> set[int]:
        """The lines of the losses that were dropped round by round, beside others that are used."""
        return {
            line
            for (line, bucket), times in self._dropped.items()
            if times > 2 and bucket in self._trained and line not in self._used
        }


_ranks_as_they_are = vars(replicas)["_ranks_of"]


def provide() -> None:
    """Give this process what programs import: a process group, and `tools`.

    One process is one rank. The witness is told that there are two, so that it speaks of what
    would go wrong between them. `withdraw` takes it all back.
    """
    from torch import distributed

    if not distributed.is_initialized():
        store = distributed.HashStore()
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    vars(replicas)["_ranks_of"] = lambda model: 2
    tools = ModuleType("tools")
    exec(compile(TOOLS, "tools.py", "exec"), vars(tools))
    sys.modules["tools"] = tools


def withdraw() -> None:
    """Take back what `provide` has given, so that other work in this process is not misled."""
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
    vars(replicas)["_ranks_of"] = _ranks_as_they_are
    sys.modules.pop("tools", None)


def surroundings(text: str, draws: int = 3) -> Iterator[Surroundings]:
    """Yield every setting of the flags that occur, each with some draws of the data."""
    flags = (False, True) if "args.flag" in text else (False,)
    others = (False, True) if "args.other" in text else (False,)
    data = range(draws) if "x.sum() >" in text else range(1)
    for draw, flag, other in itertools.product(data, flags, others):
        yield Surroundings(flag, other, draw)


def run(text: str, path: str, where: Surroundings, *, traced: bool = False) -> Run:
    """Execute `text` under the witness and return what it saw."""
    code = compile(text, path, "exec")
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    outcome = Run(text)
    outcome.backwards = [n for n, line in enumerate(text.splitlines(), 1) if ".backward(" in line]
    namespace = where.namespace()
    losses = Losses() if traced else None
    watching = watch(policy="collect", show_notes=True, trace=losses)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with watching:
                _execute(code, namespace, outcome if traced else None)
        except Exception as error:
            outcome.error = f"{type(error).__name__}: {error}".splitlines()[0]
            outcome.error_line = _line_of(error, path)
    outcome.findings = watching.findings
    outcome.not_checked = watching.not_checked
    outcome.wasted = losses.wasted if losses is not None else set()
    linecache.cache.pop(path, None)
    return outcome


def _execute(code: CodeType, namespace: dict[str, Any], outcome: Run | None) -> None:
    if outcome is None:
        exec(code, namespace)
        return
    path, lines = code.co_filename, outcome.lines
    filled: set[int] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != path:
            return None
        if event == "line":
            lines[frame.f_lineno] += 1
        return trace

    def stepping(optimizer: Any, *_: Any) -> None:
        line, around = _user_line(path), _user_lines(path)
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if any(p.grad is not None for p in held):
            filled.update(around)
        outcome.never_filled.update(around)
        outcome.steps.append(
            Step(
                id(optimizer),
                _names_of(optimizer, path),
                line,
                is_counted(),
                is_chosen(may_leave=True),
                lines.copy(),
            )
        )

    hook = register_optimizer_step_pre_hook(stepping)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, namespace)
    finally:
        sys.settrace(before)
        hook.remove()
        outcome.never_filled -= filled


def _user_line(path: str) -> int:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def _user_lines(path: str) -> set[int]:
    """Return the lines of all open calls; a wrapper's fault is told where it is called."""
    found: set[int] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == path:
            found.add(frame.f_lineno)
        frame = frame.f_back
    return found


def _names_of(optimizer: Any, path: str) -> set[str]:
    found: set[str] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == path:
            for name, value in frame.f_locals.items():
                held = getattr(value, "__dict__", {}) if name == "self" else {}
                found |= {f"self.{each}" for each, inner in held.items() if inner is optimizer}
                if value is optimizer:
                    found.add(name)
        frame = frame.f_back
    return found


def _line_of(error: BaseException, path: str) -> int:
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            line = step.tb_lineno
        step = step.tb_next
    return line
