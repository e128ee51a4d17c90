"""The brute-force interpreter runs small programs and sees what really happens in them."""

from __future__ import annotations

import textwrap

import pytest

from benchmarks.accuracy.interpreter import explore

HEAD = """\
import torch
from torch import nn
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def program(body: str) -> str:
    return HEAD + textwrap.dedent(body).lstrip("\n")


def found(body: str) -> list[tuple[str, int]]:
    """Return the faults, with lines counted from the first of `body`."""
    offset = HEAD.count("\n")
    outcome = explore(program(body))
    assert outcome.complete
    return sorted((code, line - offset) for code, line in outcome.faults)


RIGHT = {
    "clear first": """
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
    """,
    "clear last": """
        for x in loader:
            net(x).sum().backward()
            opt.step()
            opt.zero_grad()
    """,
    "network cleared by hand": """
        for x in loader:
            for p in net.parameters():
                p.grad = None
            net(x).sum().backward()
            opt.step()
    """,
    "window": """
        accum = 4
        for i, x in enumerate(loader):
            net(x).sum().backward()
            if (i + 1) % accum == 0:
                opt.step()
                opt.zero_grad()
    """,
    "step and clear under one flag": """
        for x in loader:
            net(x).sum().backward()
            if args.update:
                opt.step()
            if args.update:
                opt.zero_grad()
    """,
    "helper": """
        def reset(o):
            o.zero_grad()
        for x in loader:
            reset(opt)
            net(x).sum().backward()
            opt.step()
    """,
    "closure": """
        for x in loader:
            def closure():
                opt.zero_grad()
                loss = net(x).sum()
                loss.backward()
                return loss
            opt.step(closure)
    """,
    "method of a class": """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.opt = torch.optim.Adam(model.parameters())
            def reset(self):
                self.opt.zero_grad()
            def fit(self, data):
                for x in data:
                    self.reset()
                    self.model(x).sum().backward()
                    self.opt.step()
        Trainer(net).fit(loader)
    """,
    "generator and discriminator": """
        disc = nn.Linear(2, 1)
        opt_d = torch.optim.SGD(disc.parameters(), lr=0.1)
        for x in loader:
            fake = net(x)
            opt_d.zero_grad()
            (disc(x) + disc(fake.detach())).sum().backward()
            opt_d.step()
            opt.zero_grad()
            disc(fake).sum().backward()
            opt.step()
    """,
    "a network made anew in each round": """
        for x in loader:
            fresh = nn.Linear(4, 2)
            o = torch.optim.SGD(fresh.parameters(), lr=0.1)
            fresh(x).sum().backward()
            o.step()
    """,
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT.keys())
def test_right_programs_have_no_fault_on_any_path(body: str) -> None:
    assert found(body) == []


WRONG = {
    "never cleared": (
        """
        for x in loader:
            net(x).sum().backward()
            opt.step()
        """,
        [("ZG101", 3)],
    ),
    "cleared once an epoch": (
        """
        for epoch in range(3):
            opt.zero_grad()
            for x in loader:
                net(x).sum().backward()
                opt.step()
        """,
        [("ZG101", 5)],
    ),
    "cleared between": (
        """
        for x in loader:
            net(x).sum().backward()
            opt.zero_grad()
            opt.step()
        """,
        [("ZG102", 4)],
    ),
    "cleared on one branch": (
        """
        for x in loader:
            if args.flag:
                opt.zero_grad()
            net(x).sum().backward()
            opt.step()
        """,
        [("ZG101", 5)],
    ),
    "cleared in the other branch": (
        """
        for i, x in enumerate(loader):
            if x.mean() > 0:
                opt.zero_grad()
            else:
                print(i)
            net(x).sum().backward()
            opt.step()
        """,
        [("ZG101", 7)],
    ),
    "cleared in every micro-batch": (
        """
        for i, x in enumerate(loader):
            opt.zero_grad()
            net(x).sum().backward()
            if (i + 1) % 4 == 0:
                opt.step()
        """,
        [("ZG501", 2)],
    ),
    "not called": (
        """
        for x in loader:
            opt.zero_grad
            net(x).sum().backward()
            opt.step()
        """,
        [("ZG103", 2)],
    ),
    "clipped before it is unscaled": (
        """
        scaler = torch.amp.GradScaler("cuda")
        for x in loader:
            opt.zero_grad()
            scaler.scale(net(x).sum()).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        """,
        [("ZG301", 5)],
    ),
    "skipped by continue": (
        """
        for x in loader:
            net(x).sum().backward()
            opt.step()
            if x.mean() > 0:
                continue
            opt.zero_grad()
        """,
        [("ZG101", 3)],
    ),
}


@pytest.mark.parametrize(("body", "expected"), WRONG.values(), ids=WRONG.keys())
def test_wrong_programs_show_their_fault_at_its_line(
    body: str, expected: list[tuple[str, int]]
) -> None:
    assert found(body) == expected


def test_a_flag_is_fixed_and_a_test_of_the_batch_is_not() -> None:
    fixed = program("for x in loader:\n    if args.flag:\n        opt.step()\n")
    moving = program("for x in loader:\n    if x.mean() > 0:\n        opt.step()\n")
    assert explore(fixed).paths == 2
    assert explore(moving).paths == 8


def test_a_fault_on_some_paths_is_not_one_on_every_path() -> None:
    outcome = explore(program(WRONG["cleared on one branch"][0]))
    assert {code for code, _ in outcome.faults} == {"ZG101"}
    assert outcome.every_path == set()


def test_a_function_nobody_calls_is_run_as_if_a_loop_called_it() -> None:
    text = textwrap.dedent("""
        def train_step(model, optimizer, x):
            model(x).sum().backward()
            optimizer.step()
    """)
    assert explore(text).faults == {}
    outcome = explore(text, (("train_step", 0),))
    assert [code for code, _ in outcome.faults] == ["ZG101"]


def test_too_many_paths_are_said_to_be_incomplete() -> None:
    conditions = "".join(f"    if x.mean() > {n}:\n        opt.zero_grad()\n" for n in range(20))
    outcome = explore(program(f"for x in loader:\n{conditions}    opt.step()\n"), limit=8)
    assert not outcome.complete


def test_an_execution_is_bounded_by_counts_whatever_the_program_asks_for() -> None:
    text = textwrap.dedent("""
        import torch
        numbers = [0] * 10**9
        letters = "ab" * 10**12
        power = 10 ** 60 ** 60
        everything = list(range(10**12))
        for i in range(10**12):
            for j in everything:
                for k in numbers:
                    loss.backward()
                    opt.step()
                    opt.zero_grad()
    """)
    outcome = explore(text)
    assert outcome.faults == {}
    assert outcome.steps < 700_000


def test_a_program_too_long_for_the_budget_is_not_called_complete() -> None:
    text = "while go():\n    if p():\n        opt.zero_grad()\n"
    text += "    x = f(x) + g(x) * h(x)\n" * 1000
    text += "    loss.backward()\n    opt.step()\n"
    outcome = explore(text)
    assert not outcome.complete
    assert outcome.steps < 700_000


def test_a_buffer_that_is_empty_when_it_is_made_is_trained_on_all_the_same() -> None:
    text = program("""
        class Agent:
            def __init__(self):
                self.rewards = []

            def learn(self):
                for t in range(len(self.rewards)):
                    net(t).sum().backward()
                    opt.step()
    """)
    outcome = explore(text, (("Agent", 0), ("learn", 0)))
    assert outcome.complete and outcome.codes == {"ZG101"}


def test_a_method_left_to_the_classes_below_does_not_end_the_run() -> None:
    text = program("""
        class Trainer:
            def loss(self, x):
                raise NotImplementedError

            def fit(self, loader):
                for x in loader:
                    self.loss(x).backward()
                    opt.step()
    """)
    outcome = explore(text, (("Trainer", 0), ("fit", 0)))
    assert outcome.complete and outcome.codes == {"ZG101"}


def test_an_optimizer_that_no_loss_is_seen_to_fill_is_filled_by_those_there_are() -> None:
    text = program("""
        def train(model, loader):
            for x in loader:
                model.train()
                model(x).sum().backward()
                opt.step()
    """)
    outcome = explore(text, (("train", 0),))
    assert outcome.complete and outcome.codes == {"ZG101"}


def test_the_only_step_of_a_run_needs_no_second_one_to_have_lost_its_loss() -> None:
    assert found("""
        net(1).sum().backward()
        opt.zero_grad()
        opt.step()
    """) == [("ZG102", 3)]
