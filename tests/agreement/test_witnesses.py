"""The two witnesses agree on generated programs, and a corrupted one is found out.

The long form is `make bench-agreement`; here a few programs, always the same.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")

import torch

from benchmarks.agreement.compare import compare
from benchmarks.agreement.corruptions import Corruption, corruptions
from benchmarks.agreement.generate import generate
from benchmarks.agreement.live import withdraw
from benchmarks.agreement.noticed import EQUIVALENT, RESULTS, disagrees, notices
from benchmarks.agreement.same import PAIRS, sameness
from benchmarks.agreement.work import prepare
from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.rule import RuleKind
from zerograd.lifecycle.state import BucketState, Contribution, Drop
from zerograd.rules import ALL_RULES

PROGRAMS = 100
KNOWN = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def surroundings() -> Iterator[None]:
    threads = torch.get_num_threads()
    prepare()
    yield
    gc.unfreeze()
    torch.set_num_threads(threads)
    withdraw()


as_it_is = functools.cache(disagrees)


def test_the_witnesses_disagree_on_few_programs() -> None:
    found = {seed: compare(generate(seed).text).disagreements for seed in range(PROGRAMS)}
    wrong = {seed: each for seed, each in found.items() if each}
    assert len(wrong) <= PROGRAMS // 50, wrong


STEPPED_FOR_THE_OTHER = """\
import torch
import torch.nn as nn
gen, disc = nn.Linear(4, 4), nn.Linear(4, 4)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.01)
opt_d = torch.optim.SGD(disc.parameters(), lr=0.01)
for x in loader:
    opt_d.zero_grad()
    disc(x).sum().backward()
    opt_d.step()
    opt_g.zero_grad()
    disc(gen(x)).sum().backward()
    opt_d.step()
"""


def test_a_step_of_the_wrong_one_of_two_optimizers_is_one_fault_to_both() -> None:
    result = compare(STEPPED_FOR_THE_OTHER)
    assert [(each.code, each.meant) for each in result.read] == [("ZG101", "opt_g")]
    assert {each.code for each in result.seen} == {"ZG101", "ZG203"}
    assert not result.disagreements
    # Another optimizer than the one that reading advises to step would be a fault of its own.
    (said,) = result.read
    (unstepped,) = (each for each in result.seen if each.code == "ZG203")
    assert sameness(said, unstepped)
    assert not sameness(said, replace(unstepped, owner="opt_e"))
    assert not sameness(replace(said, meant=""), unstepped)


def test_a_further_step_after_a_lost_loss_is_no_other_fault_under_a_helpers_name() -> None:
    result = compare("""\
import torch
import torch.nn as nn
def reset(o):
    o.zero_grad()
class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 4)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)
    def train(self, loader):
        for epoch in range(5):
            for x in loader:
                self.net(x).sum().backward()
                reset(self.opt)
                if x.sum() > 0:
                    continue
                self.opt.step()
            self.opt.step()
Trainer().train(loader)
""")
    assert [(each.code, each.owner) for each in result.read] == [("ZG102", "self.opt")]
    assert {(each.code, each.owner) for each in result.seen} == {("ZG102", "o"), ("ZG401", "o")}
    assert [each.code for each in result.covered] == ["ZG401"]
    assert not result.disagreements


def test_a_note_that_waits_for_a_fault_of_the_same_line_is_no_disagreement() -> None:
    result = compare("""\
import torch
import torch.nn as nn
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(5):
    for i, x in enumerate(loader):
        scaler.scale(net(x).sum() / 2).backward()
        if (i + 1) % 2 == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
    scaler.unscale_(opt)
""")
    assert [(each.code, each.line) for each in result.seen] == [("ZG303", 10)]
    assert [(each.code, each.line) for each in result.covered] == [("ZG502", 10)]
    assert not result.disagreements


def test_the_same_seed_gives_the_same_program() -> None:
    assert generate(7) == generate(7)
    assert generate(7).text != generate(8).text


NOTICED = [each for each in corruptions() if KNOWN.get(each.name) is not None]


@pytest.mark.parametrize("corruption", NOTICED, ids=lambda each: each.name)
def test_a_corruption_of_one_witness_is_noticed(corruption: Corruption) -> None:
    seed = KNOWN[corruption.name]
    assert not as_it_is(seed)
    assert notices(seed, corruption)


def test_every_corruption_is_in_the_table() -> None:
    assert [each.name for each in corruptions()] == list(KNOWN)


def test_each_pair_of_names_has_its_reason() -> None:
    assert all(pair.why for pair in PAIRS)
    assert len({(pair.read, pair.seen) for pair in PAIRS}) == len(PAIRS)


def test_a_corruption_that_is_not_noticed_changes_nothing() -> None:
    assert {name for name, seed in KNOWN.items() if seed is None} == EQUIVALENT
    # The one there is leaves the mark `lost` as it was: no rule that the live judge asks reads it.
    asked = [each for each in ALL_RULES if each.kind is RuleKind.TRANSITION and not each.windowed]
    spot = Spot("program.py", 1)
    used = Contribution("first", spot, used_by=frozenset({"opt"}), used_at=spot)
    states = [
        BucketState(contributions=held, scaled=scaled, seen=True, awaiting=awaiting)
        for held in ((), (used,), (Contribution("new", spot),), (used, Contribution("new", spot)))
        for scaled in ("", "scaler")
        for awaiting in (frozenset[str](), frozenset({"opt"}))
    ]
    events = [
        Event(kind, "opt", spot, ("net",), scaler=scaler)
        for kind in EventKind
        for scaler in ("", "scaler")
    ]
    for rule, state, event in itertools.product(asked, states, events):
        marked = state._replace(lost=Drop(spot, spot))
        assert rule.broken_by(state, event) == rule.broken_by(marked, event), rule.code
