"""A program that is written in another way: the checker says the same of it."""

from __future__ import annotations

import random

import pytest

from benchmarks.accuracy.rewrites import trial
from benchmarks.accuracy.rewrites.catalogue import REWRITES
from benchmarks.accuracy.rewrites.programs import Program, written
from benchmarks.accuracy.rewrites.tally import Tally
from benchmarks.accuracy.rewrites.trial import at_random, attempt, rewrite

PLAIN = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [torch.randn(8, 4) for _ in range(5)]
for x in data:
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
"""
WINDOW = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [torch.randn(8, 4) for _ in range(8)]
for i, x in enumerate(data):
    if x is None:
        continue
    loss = net(x).pow(2).mean() / 4
    loss.backward()
    print(loss.item())
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
"""
PROGRAMS = [Program("plain", PLAIN, True), Program("window", WINDOW, True)]
FAULTY = [Program("stale", PLAIN.replace("    opt.zero_grad()\n", ""), True)]


def outcomes(programs: list[Program], name: str) -> list[trial.Outcome]:
    """Return what comes of the rewrite, tried at some places until it fits."""
    found = []
    for program in programs:
        tried = (attempt(program, [name], random.Random(seed)) for seed in range(6))
        found += [each for each in tried if each is not None][:1]
    return found


@pytest.mark.parametrize("name", REWRITES)
def test_a_right_program_stays_right(name: str) -> None:
    found = outcomes(PROGRAMS, name)
    assert found, "the rewrite fits neither program"
    assert [(each.text, each.invented) for each in found if each.invented] == []


def test_faulty_programs_are_nearly_always_told_of_as_before() -> None:
    found = [each for name in REWRITES for each in outcomes(FAULTY, name) if not each.hidden]
    lost = [each.rewrites for each in found if each.lost]
    assert len(found) > 150
    assert len(lost) <= len(found) // 8, lost


def test_rewrites_train_bit_for_bit_as_before() -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.accuracy.rewrites.running import history, prepare
    from benchmarks.agreement.live import withdraw

    threads = torch.get_num_threads()
    try:
        prepare()
        for program in PROGRAMS:
            before = history(program, program.text)
            assert before[-1] == ""
            assert len(before) > 2
            for name in REWRITES:
                for each in outcomes([program], name):
                    assert history(program, each.text) == before, (name, each.text)
    finally:
        withdraw()
        torch.set_num_threads(threads)


def test_programs_of_many_kinds_under_several_rewrites() -> None:
    programs = written()
    tally = Tally()
    for seed in range(150):
        outcome = at_random(programs, seed)
        if outcome is not None:
            tally.take(seed, outcome)
    total = tally.total()
    assert total.right > 60
    assert total.alarms <= total.right // 25, tally.alarms


def test_a_checker_that_invents_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS[0]
    told = {program.text: frozenset[tuple[str, int]]()}
    monkeypatch.setattr(trial, "said", lambda text: told.get(text, frozenset({("ZG101", 3)})))
    assert [each.invented for each in outcomes([program], "call: getattr")] == [{("ZG101", 3)}]


def test_a_checker_that_loses_a_finding_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    program = FAULTY[0]
    told = {program.text: frozenset({("ZG101", 11)})}
    monkeypatch.setattr(trial, "said", lambda text: told.get(text, frozenset()))
    assert [each.lost for each in outcomes([program], "extract: function")] == [{("ZG101", 11)}]


def test_a_rewrite_that_does_not_fit_leaves_the_program_alone() -> None:
    sketch = trial.open_sketch("x = 1\n", random.Random(0))
    assert rewrite(sketch, "loop: map") is None
    assert sketch.text() == "x = 1"
