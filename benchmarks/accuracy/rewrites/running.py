"""Run a program on torch and take down what its optimizers did, value for value."""

from __future__ import annotations

import hashlib
import io
import signal
import sys
import warnings
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from benchmarks.accuracy.rewrites.foreign import SOURCE
from benchmarks.accuracy.rewrites.programs import Program
from benchmarks.agreement.live import Surroundings, provide

LONGEST = 20  # seconds: a loop may have lost its end


class TooLong(BaseException):
    """No exception that a program would catch."""


def _give_up(*_: object) -> None:
    raise TooLong


def prepare() -> None:
    """Make this process ready: one thread, and what programs import."""
    torch.set_num_threads(1)
    provide()
    outside = ModuleType("outside")
    exec(compile(SOURCE, "outside.py", "exec"), vars(outside))
    sys.modules["outside"] = outside


def history(program: Program, text: str) -> tuple[str, ...]:
    """Return a digest of the parameters after each step, and the error that ended it.

    Which object stepped is left out: a rewrite may make another one in its place.
    """
    seen: list[str] = []

    def stepped(optimizer: Any, *_: object) -> None:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        seen.append(_digest(held))

    namespace = Surroundings(True, True).namespace()
    namespace.pop("print")
    hook = register_optimizer_step_post_hook(stepped)
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(LONGEST)
    torch.manual_seed(0)
    error = ""
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(compile(text, f"{program.name}.py", "exec"), namespace)
    except (Exception, TooLong) as raised:
        error = type(raised).__name__
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        hook.remove()
    return (*seen, error)


def _digest(held: list[Any]) -> str:
    whole = hashlib.blake2b(digest_size=8)
    for each in held:
        whole.update(each.detach().to(torch.float64).numpy().tobytes())
    return whole.hexdigest()
