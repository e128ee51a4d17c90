"""Which code counts when it is asked whether a moved leaf may have been updated by hand."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("torch")

from zerograd import watch

FOLLOWED = """
    import copy

    import torch
    from torch import nn
    {imports}

    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    target = copy.deepcopy(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(12):
        loss = (net(torch.randn(8, 4)) - 0.9 * target(torch.randn(8, 4))).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for p, q in zip(net.parameters(), target.parameters()):
            q.data.copy_(0.1 * p.data + 0.9 * q.data)
"""
BY_HAND = """
    import torch
    from torch import nn
    from zg_first import descend

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    for step in range(12):
        model(torch.randn(8, 4)).pow(2).mean().backward()
        descend(model)
"""
HANDS_ON = "from zg_second import descend\n"
DESCENDS = """
    import torch

    @torch.no_grad()
    def descend(model):
        for p in model.parameters():
            p -= 0.1 * p.grad
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in (("zg_first", HANDS_ON), ("zg_second", DESCENDS)):
        (tmp_path / f"{name}.py").write_text(dedent(text), encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)

    def codes(text: str) -> list[str]:
        script = tmp_path / "script.py"
        script.write_text(dedent(text), encoding="utf-8")
        with watch(policy="collect") as watching:
            runpy.run_path(str(script), run_name="__main__")
        return [each.rule.code for each in watching.findings]

    yield codes
    for name in ("zg_first", "zg_second"):
        sys.modules.pop(name, None)


def test_code_that_is_loaded_but_named_by_no_one_here_updates_nothing(run):
    importlib.import_module("zg_second")
    assert run(FOLLOWED.format(imports="")) == []


def test_code_that_is_named_by_what_the_script_names_may_update(run):
    assert run(BY_HAND) == ["ZG101"]


LIBRARY = """
    import torch

    class Descent{base}:
        def __init__(self, parameters):
            self.held = list(parameters)
            {init}

        def zero_grad(self):
            for p in self.held:
                p.grad = None

        @torch.no_grad()
        def step(self):
            def gradient(p):
                return p.grad

            for p in self.held:
                p -= 0.1 * gradient(p)
"""
THROUGH_A_LIBRARY = """
    import stepper
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = stepper.Descent(model.parameters())
    for step in range(12):
        {clear}
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "site-packages" / "stepper"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder.parent))
    (folder / "__init__.py").write_text("from stepper.steps import Descent\n", encoding="utf-8")

    def make(base: str = "", init: str = "pass") -> None:
        text = dedent(LIBRARY.format(base=base, init=init))
        (folder / "steps.py").write_text(text, encoding="utf-8")

    yield make
    for name in ("stepper", "stepper.steps"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("clear", "codes"), [("", ["ZG101"]), ("optimizer.zero_grad()", [])])
def test_a_library_that_steps_without_torchs_optimizers_updates_by_hand(run, library, clear, codes):
    library()
    assert run(THROUGH_A_LIBRARY.format(clear=clear)) == codes


def test_a_library_whose_optimizer_is_torchs_kind_moves_no_target(run, library):
    library("(torch.optim.Optimizer)", "super().__init__(self.held, {})")
    text = FOLLOWED.format(imports="import stepper").replace("torch.optim.SGD", "stepper.Descent")
    assert run(text.replace(", lr=0.01", "")) == []


def test_a_look_through_numpy_updates_nothing(run):
    look = FOLLOWED.format(imports="import numpy") + (
        "        print(numpy.linalg.norm(target.weight.grad.numpy()))\n"
    )
    assert run(look) == []


def test_an_update_through_numpy_is_one_by_hand(run):
    update = """
        import torch
        w = torch.nn.Parameter(torch.zeros(4, 1))
        for step in range(6):
            (torch.ones(8, 4) @ w - 1).pow(2).mean().backward()
            w.data = torch.from_numpy(w.data.numpy() - 0.1 * w.grad.numpy())
    """
    assert run(update) == ["ZG101"]


# What has changed weights, where some lines would with their gradients and some without.

A_TURN = """
    import copy
    import torch
    from torch import nn
    {before}
    torch.manual_seed(0)
    model, server = nn.Linear(6, 1), nn.Linear(6, 1)
    opt = torch.optim.SGD(server.parameters(), lr=0.1)
    for i in range(16):
        (model(torch.randn(8, 6)).pow(2).mean() / 2).backward()
        with torch.no_grad():
            {turn}
"""
UPDATE = "for p in model.parameters(): p -= 0.1 * p.grad"
WINDOW = "if i % 2: [(p.sub_(0.1 * p.grad), p.grad.zero_()) for p in model.parameters()]"
MOVES = {
    "loaded": "model.load_state_dict(copy.deepcopy(model.state_dict()))",
    "sent": "for p, q in zip(model.parameters(), server.parameters()): p.copy_(q)",
    "clamped": "for p in model.parameters(): p.clamp_(-0.2, 0.2)",
    "decayed past autograd": "for p in model.parameters(): p.data *= 0.99",
    "given noise": "for p in model.parameters(): p.add_(0.01 * torch.randn_like(p))",
    "set": "for p in model.parameters(): p.data = p.data.clamp(-0.2, 0.2)",
    "scaled at once": "torch._foreach_mul_(list(model.parameters()), 0.99)",
    "made anew": "nn.init.normal_(model.weight)",
    "from a vector": "nn.utils.vector_to_parameters("
    "0.9 * nn.utils.parameters_to_vector(model.parameters()), model.parameters())",
}
HAND_ON = (
    "if i % 2: [(setattr(q, 'grad', p.grad), setattr(p, 'grad', None)) "
    "for p, q in zip(model.parameters(), server.parameters())]; opt.step()"
)
OWN_CLASS = """
    class Descent:
        def __init__(self, parameters):
            self.held, self.sums = list(parameters), {}
        def decay(self):
            for p in self.held:
                p.data.mul_(0.99)
        def step(self):
            for p in self.held:
                g = self.sums[p] = 0.5 * self.sums.get(p, 0) + p.grad
                p.data.add_(g, alpha=-0.1)
"""


@pytest.mark.parametrize("update", [WINDOW, HAND_ON])
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_weights_that_are_moved_without_their_gradients_are_not_updated(run, move, update):
    turn = f"{move}\n            {update}"
    assert run(A_TURN.format(before="", turn=turn)) == []


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_an_update_in_each_turn_is_told_whatever_else_moves_the_weights(run, move):
    turn = f"{UPDATE}\n            {move}"
    assert run(A_TURN.format(before="", turn=turn)) == ["ZG101"]


def test_an_update_on_a_condition_is_told_where_nothing_else_moves_the_weights(run):
    turn = "if i % 2: " + UPDATE.replace("for p in", "[p.sub_(0.1 * p.grad) for p in").replace(
        ": p -= 0.1 * p.grad", "]"
    )
    assert run(A_TURN.format(before="", turn=turn)) == ["ZG101"]


@pytest.mark.parametrize(
    ("turn", "codes"),
    [
        ("own.decay(); own.step()", ["ZG101"]),
        ("own.decay()\n            if i % 2: own.step(); model.zero_grad()", []),
    ],
)
def test_what_functions_do_counts_where_they_are_called(run, turn, codes):
    text = A_TURN.format(before=OWN_CLASS, turn=turn)
    assert run(text.replace("for i in", "own = Descent(model.parameters())\n    for i in")) == codes


@pytest.mark.parametrize(
    "update",
    [
        "gs = [p.grad for p in model.parameters()]\n"
        "            torch._foreach_add_(list(model.parameters()), gs, alpha=-0.1)",
        "for p in model.parameters(): p.copy_(p - 0.1 * p.grad)",
        "for p in model.parameters(): p.data = p.data - 0.1 * p.grad",
        "for p in model.parameters(): p.data.add_(p.grad.sign(), alpha=-0.01)",
        "for p in model.parameters(): a = p.data.numpy(); a -= 0.1 * p.grad.numpy()",
        "g = torch.cat([p.grad.flatten() for p in model.parameters()])\n"
        "            v = nn.utils.parameters_to_vector(model.parameters())\n"
        "            nn.utils.vector_to_parameters(v - 0.1 * g, model.parameters())",
        "new = {n: p - 0.1 * p.grad for n, p in model.named_parameters()}\n"
        "            model.load_state_dict(new)",
    ],
)
def test_an_update_is_known_however_it_is_spelled(run, update):
    turn = f"{update}\n            {MOVES['clamped']}"
    assert run(A_TURN.format(before="", turn=turn)) == ["ZG101"]


def test_an_update_after_the_loop_over_tasks_moves_nothing_between_these(run):
    tasks = """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Linear(6, 1)
        loss = lambda: model(torch.randn(8, 6)).pow(2).mean()
        for turn in range(6):
            model.zero_grad()
            for task in range(3):
                kept = [p.detach().clone() for p in model.parameters()]
                inner = torch.autograd.grad(loss(), list(model.parameters()))
                with torch.no_grad():
                    for p, g in zip(model.parameters(), inner): p -= 0.1 * g
                (loss() / 3).backward()
                with torch.no_grad():
                    for p, k in zip(model.parameters(), kept): p.copy_(k)
            with torch.no_grad():
                for p in model.parameters(): p -= 0.1 * p.grad
    """
    assert run(tasks) == []


def test_weights_that_a_network_moves_as_it_is_called_are_not_updated(run):
    text = """
        import torch
        from torch import nn
        class Unit(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.randn(3, 6))
            def forward(self, x):
                with torch.no_grad():
                    self.w.div_(self.w.norm(dim=1, keepdim=True))
                return x @ self.w.T
        model = Unit()
        for i in range(16):
            model(torch.randn(4, 6)).pow(2).mean().backward()
            if i % 2:
                with torch.no_grad():
                    model.w -= 0.1 * model.w.grad
                model.w.grad = None
    """
    assert run(text) == []


def test_between_two_backwards_of_a_turn_only_what_stands_there_moves_the_weights(run):
    turn = """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Linear(6, 1)
        for i in range(8):
            model(torch.randn(4, 6)).pow(2).mean().backward()
            for p in model.parameters(): p.data.clamp_(-0.2, 0.2)
            model(torch.randn(4, 6)).abs().mean().backward()
            for p in model.parameters():
                p.data -= 0.1 * p.grad
                p.grad = None
    """
    assert run(turn) == []
    assert run(turn.replace("p.grad = None", "pass")) == ["ZG101"]
