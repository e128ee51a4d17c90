"""The two witnesses agree on generated programs, and a corrupted one is found out.

The long form is `make bench-agreement`; here a few programs, always the same.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch

from benchmarks.agreement.compare import compare
from benchmarks.agreement.corruptions import Corruption, corruptions
from benchmarks.agreement.generate import generate
from benchmarks.agreement.live import withdraw
from benchmarks.agreement.noticed import EQUIVALENT, RESULTS, disagrees, notices
from benchmarks.agreement.same import PAIRS
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
