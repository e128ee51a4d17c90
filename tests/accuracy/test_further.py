"""The further ways to break a loop: each is a clean edit, found at its line, and really a break."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import zerograd
from benchmarks.accuracy.further import FURTHER
from benchmarks.accuracy.interpreter import explore
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.mutations import MUTATIONS, mutate
from benchmarks.accuracy.training_code import find_units
from benchmarks.accuracy.verdict import JUDGED, Verdicts, chain_of

HEAD = "import torch\nfrom torch import nn\n"
PLAIN = HEAD + textwrap.dedent("""
    def train(net, opt, loader, criterion):
        for x, y in loader:
            opt.zero_grad()
            loss = criterion(net(x), y) / 4
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
""")
SCALED = HEAD + textwrap.dedent("""
    def train(net, opt, loader, scaler):
        for x, y in loader:
            with torch.autocast("cuda"):
                loss = nn.functional.mse_loss(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
""")
CLIPPED = SCALED.replace(
    "            scaler.step",
    "            scaler.unscale_(opt)\n"
    "            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
    "            scaler.step",
)
TWO = HEAD + textwrap.dedent("""
    gen, disc = nn.Linear(2, 2), nn.Linear(2, 1)
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    for x in loader:
        opt_d.zero_grad()
        fake = gen(x)
        (disc(x) + disc(fake.detach())).sum().backward()
        opt_d.step()
        opt_g.zero_grad()
        disc(fake).sum().backward()
        opt_g.step()
""")
TEXTS = [PLAIN, SCALED, CLIPPED, TWO]


def mutants(text: str) -> list[Mutant]:
    units = find_units(text, Path("a.py"))
    made = [m for unit in units for m in mutate(Subject(text, unit), FURTHER)]
    assert all(isinstance(m, Mutant) for m in made)
    return [m for m in made if isinstance(m, Mutant)]


def test_no_way_has_the_name_of_one_of_the_ten() -> None:
    assert FURTHER.keys().isdisjoint(MUTATIONS)


def test_every_kind_is_made_from_some_program() -> None:
    assert {mutant.kind for text in TEXTS for mutant in mutants(text)} == set(FURTHER)


@pytest.mark.parametrize("text", TEXTS)
def test_what_the_interpreter_can_judge_is_proved_broken_at_its_line(text: str) -> None:
    unit = find_units(text, Path("a.py"))[0]
    verdicts = Verdicts(None)
    for mutant in mutants(text):
        expected = "real" if mutant.codes <= JUDGED else "not executed"
        verdict = verdicts.of(mutant, chain_of(unit))
        assert verdict == expected, f"{mutant.kind} ({mutant.detail})\n{mutant.text}"


@pytest.mark.parametrize("text", TEXTS)
def test_the_originals_are_right_on_every_path(text: str) -> None:
    outcome = explore(text, chain_of(find_units(text, Path("a.py"))[0]))
    assert outcome.complete and outcome.faults == {}
    assert zerograd.check_source(text, "a.py") == []


@pytest.mark.parametrize("text", TEXTS)
def test_every_break_of_a_plain_program_is_found_at_its_line(text: str) -> None:
    for mutant in mutants(text):
        found = zerograd.check_source(mutant.text, "a.py")
        at = [each.spot.line for each in found if each.rule.code in mutant.codes]
        assert mutant.lines & set(at), f"{mutant.kind} ({mutant.detail})\n{mutant.text}"
