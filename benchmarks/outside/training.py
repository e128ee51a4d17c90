"""A training through somebody else's package: right, and with each fault that its lines name.

A module of `trainings_with` has functions of one argument, the fault (an empty string for a
right training), that return all parameters and losses. A line that ends in
`# found: FAULT CODE` is where that fault must be told; a fault may have several such lines.
Run as a program, such a module trains all of them and prints what each came to.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

Training = Callable[[str], Iterable[Any]]
_MARK = "# found: "


def trainings_of(module: ModuleType) -> dict[str, Training]:
    """Return the trainings of a module, by name."""
    return {
        name: each
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and name[0] != "_"
    }


def marks_of(training: Training) -> dict[str, set[tuple[str, int]]]:
    """Return the faults that a training can have, with the codes and lines where they are told."""
    text, first = inspect.getsourcelines(training)
    marks: dict[str, set[tuple[str, int]]] = {}
    for number, line in enumerate(text):
        for word in line.partition(_MARK)[2].split(","):
            if word.strip():
                fault, code = word.split()
                marks.setdefault(fault, set()).add((code, first + number))
    return marks


def main(words: list[str] | None = None) -> None:
    """Train: all that are right, or all faults, of those whose names begin with a given one."""
    kind, *only = words if words is not None else sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ.setdefault("TQDM_DISABLE", "1")
    for name, training in trainings_of(sys.modules["__main__"]).items():
        if only and not name.startswith(tuple(only)):
            continue
        faults = [""] if kind == "right" else list(marks_of(training))
        for fault in faults:
            what = f"{name} {fault or 'right'}"  # in one piece: other ranks write too
            sys.stderr.write(f"begins {what} {_rounds()}\n")
            sys.stdout.write(f"{what} {_outcome(training, fault)}\n")
            sys.stdout.flush()


def _rounds() -> int:
    """Return how often the watch, if there is one, has seen a loop come round by now."""
    watching = sys.modules.get("zerograd.runtime.sanitizer")
    active = watching.active() if watching is not None else None
    return active.iterations if active is not None else 0


def _outcome(training: Training, fault: str) -> str:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            tensors = [torch.as_tensor(each).detach() for each in training(fault)]
    except Exception as error:
        return f"raised {type(error).__name__}: {str(error)[:90]!r}"
    print(said.getvalue(), end="")
    digest = hashlib.sha256()
    for each in tensors:
        digest.update(each.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"{len(tensors)} tensors {digest.hexdigest()[:16]}"
