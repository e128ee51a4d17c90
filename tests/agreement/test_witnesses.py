"""The two witnesses agree on generated programs, and a corrupted one is found out.

The long form is `make bench-agreement`; here a few programs, always the same.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch

from benchmarks.agreement.compare import compare
from benchmarks.agreement.corruptions import Corruption, corruptions
from benchmarks.agreement.generate import generate
from benchmarks.agreement.noticed import RESULTS, disagrees, notices
from benchmarks.agreement.same import PAIRS
from benchmarks.agreement.work import prepare
from zerograd.runtime import replicas

PROGRAMS = 100
KNOWN = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def surroundings() -> Iterator[None]:
    ranks, threads = vars(replicas)["_ranks_of"], torch.get_num_threads()
    prepare()
    yield
    gc.unfreeze()
    vars(replicas)["_ranks_of"] = ranks
    torch.set_num_threads(threads)
    torch.distributed.destroy_process_group()
    del sys.modules["tools"]


as_it_is = functools.cache(disagrees)


def test_the_witnesses_disagree_on_few_programs() -> None:
    found = {seed: compare(generate(seed).text).disagreements for seed in range(PROGRAMS)}
    wrong = {seed: each for seed, each in found.items() if each}
    assert len(wrong) <= PROGRAMS // 25, wrong


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
