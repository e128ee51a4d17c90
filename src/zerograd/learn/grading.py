"""Run an exercise's checks on a solution and say what came of each.

Meant for a process that may be killed: solutions loop, crash and spawn. The
learner's side of that process is in `process.py`.
"""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Literal

from zerograd.learn.exercise import Exercise

Check = Callable[[Any], None]


class Wrong(Exception):
    """The solution does something else than was asked: the text says what, and what next."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check; most exercises stop at the first failure, the rest waits."""

    demand: str
    state: Literal["passed", "failed", "waiting"]
    message: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def checks_of(exercise: Exercise) -> list[Check]:
    """Return the checks of an exercise in the order they are run."""
    module = import_module(f"{exercise.package}.checks")
    return [found for name, found in vars(module).items() if name.startswith("check_")]


def grade(exercise: Exercise, solution: Any, *, path: str = "") -> list[Outcome]:
    """Run the checks on a loaded solution; return one outcome a check.

    Mostly the first failure ends it, because later checks build on earlier ones.

    Args:
        path: the solution's file, so that an exception can be placed at its line.
    """
    outcomes: list[Outcome] = []
    message = ""
    for check in checks_of(exercise):
        demand = " ".join((inspect.getdoc(check) or check.__name__).split())
        if message and not exercise.runs_every_check:
            outcomes.append(Outcome(demand, "waiting"))
            continue
        message = _complaint(check, solution, path)
        if message and path and exercise.names_slips:
            message += "".join(f"\n{slip}" for slip in _uncalled(path))
        outcomes.append(Outcome(demand, "failed" if message else "passed", message))
    return outcomes


def first_failure(exercise: Exercise, solution: Any) -> Outcome | None:
    """Return the check that a solution fails, or None if it passes them all."""
    failed = (outcome for outcome in grade(exercise, solution) if outcome.state == "failed")
    return next(failed, None)


def grade_file(exercise: Exercise, path: Path) -> list[Outcome]:
    """Load a learner's file and grade it; a file that cannot be loaded fails the first check."""
    path = path.resolve()  # as it will stand in tracebacks
    try:
        solution = load(path)
    except BaseException as error:  # a learner's file may even call sys.exit()
        first, *others = exercise.demands()
        waiting = [Outcome(demand, "waiting") for demand in others]
        return [Outcome(first, "failed", describe(error, str(path))), *waiting]
    return grade(exercise, solution, path=str(path))


def load(path: Path) -> Any:
    """Import a file under the name `solution`, wherever it lies."""
    spec = spec_from_file_location("solution", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _complaint(check: Check, solution: Any, path: str) -> str:
    try:
        check(solution)
    except Wrong as wrong:
        return str(wrong)
    except BaseException as error:
        return describe(error, path)
    return ""


def _uncalled(path: str) -> Iterator[str]:
    """Yield a sentence for each method that is named as a statement and not called."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute):
            name = ast.unparse(node.value)
            yield f"Line {node.lineno} names `{name}` and does not call it: write `{name}()`."


# What torch says, and what it mostly means in a training loop.
_MEANINGS = {
    "modified by an inplace operation": "backward() needs the weights as they were in the "
    "forward: a step(), or another change of them, stands between the two.",
    "Boolean value of Tensor": "A tensor of several values is neither true nor false: whether a "
    "gradient is there is asked by `p.grad is not None`.",
    "backward through the graph a second time": "Each backward() uses up the graph of its "
    "forward: compute the loss anew before the next one.",
    "does not require grad": "This loss does not hang on any parameter that wants a gradient: "
    "is there a detach(), an item() or a no_grad() too many?",
}


def describe(error: BaseException, path: str) -> str:
    """Say what was raised and at which of the learner's own lines."""
    if isinstance(error, NotImplementedError):
        return "Not written yet: replace the line that raises NotImplementedError."
    if isinstance(error, SyntaxError):
        return f"Python cannot read the file: line {error.lineno}: {error.msg}."
    if isinstance(error, AttributeError) and "module 'solution' has no attribute" in str(error):
        return f"The file has no function called {error.name}: keep the names of the starter."
    text = f"{type(error).__name__}: {error}"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    said = f"Line {own[-1].lineno} raised {text}\n    {own[-1].line}" if own else ""
    meanings = [means for part, means in _MEANINGS.items() if part in str(error)]
    return "\n".join([said or f"Your code raised {text}", *meanings])
