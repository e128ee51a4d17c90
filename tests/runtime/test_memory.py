"""What the witness keeps of a run that is never alike: bounded, whatever is new in it.

Each loop is run with the bounds drawn close, so that a few hundred steps go past all of
them: then no container of the witness holds an entry for each thing that was new, and
Python holds no more objects than half-way. `benchmarks/million_steps.py` shows the same
with the true bounds.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from weakref import WeakKeyDictionary

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402
from zerograd.runtime import (  # noqa: E402
    call_site,
    callers,
    care,
    confirm,
    feeding,
    leaves,
    ledger,
    memo,
    rounds,
    scaling,
    steps,
    unseen,
    ways,
)
from zerograd.trace import writer as trace_writer  # noqa: E402
from zerograd.trace.format import Header  # noqa: E402
from zerograd.trace.writer import TraceWriter  # noqa: E402

CLOSE = 16
BOUNDS = (
    (call_site, "MOST_SITES"),
    (callers, "MOST_SPOTS"),
    (care, "MOST_SITES"),
    (confirm, "MOST_PLACES"),
    (feeding, "MOST_SYMBOLS"),
    (leaves, "MOST_CANDIDATES"),
    (leaves, "MOST_SITES"),
    (ledger, "MOST_FOUND"),
    (ledger, "MOST_PLACES"),
    (memo, "MOST_EDGES"),
    (memo, "MOST_SITES"),
    (rounds, "MOST_RINGS"),
    (scaling, "MOST_SCALERS"),
    (steps, "MOST_SITES"),
    (trace_writer, "MOST_SITES"),
    (unseen, "MOST_SITES"),
    (ways, "MOST_SPOTS"),
)
ROUNDS = 48  # of new things before the first count, and as many again before the second
MOST_HELD = 64  # entries: less than one for each new thing, more than there are rules
MOST_MORE = 4_000  # objects, as bounds come and go; states of the judge that are kept are 10,000


class Program:
    """Runs one loop after the other, each of them new in some way."""

    def __init__(self) -> None:
        self.model = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.x = torch.ones(1, 2)
        self.number = 0

    def exec(self, text):
        self.number += 1
        code = compile(text, f"made/program_{self.number}.py", "exec")
        space = {"model": self.model, "opt": self.optimizer, "x": self.x, "torch": torch}
        exec(code, space)

    def new_code(self):
        self.exec(
            "for _ in range(3):\n    opt.zero_grad()\n"
            "    model(x).sum().backward()\n    opt.step()\n"
        )

    def new_faults(self):
        self.exec("for _ in range(3):\n    model(x).sum().backward(); opt.step()")

    def new_models(self):
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(3):
            optimizer.zero_grad()
            model(self.x).sum().backward()
            optimizer.step()

    def new_models_without_an_optimizer(self):
        self.exec(
            "model = torch.nn.Linear(2, 1)\nfor _ in range(3):\n    model(x).sum().backward()\n"
            "    for p in model.parameters():\n        p.data -= 0.1 * p.grad\n"
            "        p.grad.zero_()\n"
        )

    def new_leaves(self):
        self.exec(
            "image = torch.zeros(1, 2, requires_grad=True)\n"
            "for _ in range(3):\n    model(image).sum().backward()\n"
            "    image.data += 0.1 * image.grad\n    image.grad.zero_()\n    model.zero_grad()\n"
        )

    def new_scalers(self):
        self.exec(
            "scaler = torch.amp.GradScaler('cpu', init_scale=2.0)\n"
            "for _ in range(2):\n    opt.zero_grad()\n    scaler.scale(model(x).sum()).backward()\n"
            "    scaler.step(opt)\n    scaler.update()\n"
        )


CONTAINERS = (dict, list, set, frozenset, tuple, deque, WeakKeyDictionary)


def objects():
    gc.collect()
    return len(gc.get_objects())


def too_large(*roots):
    """Return what is reached from `roots`, through containers and objects of ours, and is large."""
    seen, waiting, found = {id(each) for each in roots}, list(roots), []
    while waiting:
        each = waiting.pop()
        if isinstance(each, CONTAINERS) and len(each) > MOST_HELD:
            found.append((len(each), repr(each)[:200]))
        for part in gc.get_referents(each):
            is_ours = type(part).__module__.startswith("zerograd.")
            if id(part) not in seen and (is_ours or isinstance(part, CONTAINERS)):
                seen.add(id(part))
                waiting.append(part)
    return found


@pytest.mark.parametrize("traced", [False, True], ids=["watched", "traced"])
@pytest.mark.parametrize(
    "loop",
    [
        Program.new_code,
        Program.new_faults,
        Program.new_models,
        Program.new_models_without_an_optimizer,
        Program.new_leaves,
        Program.new_scalers,
    ],
    ids=lambda each: each.__name__.replace("_", " "),
)
def test_memory_is_bounded_whatever_is_new(loop, traced, monkeypatch, tmp_path):
    for place, name in BOUNDS:
        monkeypatch.setattr(place, name, CLOSE)
    monkeypatch.setattr(call_site, "_kinds", {})
    writer = TraceWriter(tmp_path / "t.jsonl", Header("0", time.time())) if traced else None
    program = Program()
    with zerograd.watch(policy="collect", trace=writer) as watching:
        for _ in range(ROUNDS):
            loop(program)
        before = objects()
        for _ in range(ROUNDS):
            loop(program)
        assert objects() - before < MOST_MORE
        if writer is not None:
            writer.flush()
        assert too_large(watching, writer) == []
    assert len(watching.findings) <= CLOSE
    if writer is not None:
        writer.close()
