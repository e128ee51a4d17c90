"""The mutation harness: every kind of break is a clean edit, and really a break."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from benchmarks.accuracy.interpreter import explore
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.mutations import MUTATIONS, mutate
from benchmarks.accuracy.training_code import find_units
from benchmarks.accuracy.verdict import Verdicts, chain_of

HEAD = "import torch\nfrom torch import nn\n"
PLAIN = HEAD + textwrap.dedent("""
    def train(net, opt, loader):
        for x, y in loader:
            opt.zero_grad()
            loss = (net(x) - y).sum()
            if x.mean() > 10:
                print("large")
            loss.backward()
            opt.step()
""")
SCALED = HEAD + textwrap.dedent("""
    def train(net, opt, loader, scaler):
        for i, (x, y) in enumerate(loader):
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cuda"):
                loss = (net(x) - y).sum()
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
""")
TWO = HEAD + textwrap.dedent("""
    gen, disc = nn.Linear(2, 2), nn.Linear(2, 1)
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    for x in loader:
        disc.zero_grad()
        fake = gen(x)
        (disc(x) + disc(fake.detach())).sum().backward()
        opt_d.step()
        gen.zero_grad()
        disc(fake).sum().backward()
        opt_g.step()
""")
WINDOW = HEAD + textwrap.dedent("""
    def train(net, opt, loader):
        for i, x in enumerate(loader):
            net(x).sum().backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
""")


def mutants(text: str) -> list[Mutant]:
    made = [m for unit in find_units(text, Path("a.py")) for m in mutate(Subject(text, unit))]
    assert all(isinstance(m, Mutant) for m in made)
    return [m for m in made if isinstance(m, Mutant)]


def kinds(text: str) -> set[str]:
    return {mutant.kind for mutant in mutants(text)}


def refused(text: str) -> list[tuple[str, str]]:
    made = [m for unit in find_units(text, Path("a.py")) for m in mutate(Subject(text, unit))]
    return [m for m in made if isinstance(m, tuple)]


def test_every_kind_is_made_from_some_program() -> None:
    made = set().union(*(kinds(text) for text in (PLAIN, SCALED, TWO, WINDOW)))
    assert made == set(MUTATIONS)


@pytest.mark.parametrize("text", [PLAIN, SCALED, TWO, WINDOW])
def test_every_mutant_is_proved_broken_at_its_line(text: str) -> None:
    unit = find_units(text, Path("a.py"))[0]
    verdicts = Verdicts(None)
    for mutant in mutants(text):
        verdict = verdicts.of(mutant, chain_of(unit))
        assert verdict == "real", f"{mutant.kind} ({mutant.detail})\n{mutant.text}"


@pytest.mark.parametrize("text", [PLAIN, SCALED, TWO, WINDOW])
def test_the_originals_are_right_on_every_path(text: str) -> None:
    unit = find_units(text, Path("a.py"))[0]
    outcome = explore(text, chain_of(unit))
    assert outcome.complete and outcome.faults == {}


def test_expected_lines_hold_the_statement_that_is_wrong() -> None:
    words = {
        "clear-deleted": "step",
        "clear-hoisted-before-loop": "step",
        "unscale-deleted-before-clip": "clip_grad",
        "update-deleted": "step",
    }
    for mutant in [*mutants(PLAIN), *mutants(SCALED)]:
        lines = mutant.text.split("\n")
        for line in mutant.lines:
            if mutant.kind in words:
                assert words[mutant.kind] in lines[line - 1], mutant.kind


def test_an_edit_changes_only_the_lines_concerned() -> None:
    for mutant in mutants(PLAIN):
        before, after = PLAIN.split("\n"), mutant.text.split("\n")
        kept = [line for line in after if line in before]
        assert len(before) - len(kept) <= 2, mutant.kind


def test_deleting_the_only_clear_of_a_loop_that_runs_once_is_equivalent() -> None:
    text = HEAD + textwrap.dedent("""
        def demo():
            net = nn.Linear(2, 2)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            opt.zero_grad()
            net(torch.ones(2)).sum().backward()
            opt.step()
    """)
    unit = find_units(text, Path("a.py"))[0]
    deleted = next(m for m in mutants(text) if m.kind == "clear-deleted")
    assert Verdicts(None).of(deleted, chain_of(unit)) == "equivalent"


def test_a_block_that_loses_its_only_statement_gets_a_pass() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt, loader, first):
            for x in loader:
                if first:
                    opt.zero_grad()
                net(x).sum().backward()
                opt.step()
    """)
    deleted = next(m for m in mutants(text) if m.kind == "clear-deleted")
    assert "            pass\n" in deleted.text


def test_statements_that_share_a_line_are_refused_not_mangled() -> None:
    text = "for x in d:\n    opt.zero_grad(); loss = f(x)\n    loss.backward(); opt.step()\n"
    assert ("clear-deleted", "it shares its line with another statement") in refused(text)


def test_what_shares_a_line_is_not_put_under_a_condition_with_it() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt, loader):
            for x in loader:
                loss = net(x).sum()
                opt.zero_grad(); loss.backward(); opt.step()
    """)
    assert ("clear-in-one-branch", "it shares its line with another statement") in refused(text)


def test_all_clears_of_an_optimizer_are_moved_each_once() -> None:
    text = HEAD + textwrap.dedent("""
        def train(encoder, decoder, loader):
            opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
            for x in loader:
                encoder.zero_grad()
                decoder.zero_grad()
                decoder(encoder(x)).sum().backward()
                opt.step()
    """)
    moved = next(m for m in mutants(text) if m.kind == "clear-between-backward-and-step")
    after = moved.text.split("backward()\n")[1].split()
    assert after == ["encoder.zero_grad()", "decoder.zero_grad()", "opt.step()"]
    assert len(moved.lines) == 2


def test_a_counter_that_the_loop_gives_another_value_counts_nothing() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt, loader, terms):
            for i, x in enumerate(loader):
                loss = net(x).sum()
                for i, term in terms:
                    loss += term
                opt.zero_grad()
                loss.backward()
                opt.step()
    """)
    assert "step-guarded-clear-not" in dict(refused(text))


def test_gradients_that_were_kept_may_be_those_of_another_loss() -> None:
    codes = {m.kind: m.codes for m in mutants(TWO)}
    assert codes["clear-hoisted-before-loop"] == {"ZG101", "ZG201"}
    assert {m.kind: m.codes for m in mutants(PLAIN)}["clear-hoisted-before-loop"] == {"ZG101"}


def test_a_clear_leaves_its_guard_only_where_the_backward_is_not_under_it_too() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt, loader):
            for i, x in enumerate(loader):
                if i % 5 == 0:
                    opt.zero_grad()
                    net(x).sum().backward()
                    opt.step()
    """)
    assert "step-guarded-clear-not" in kinds(WINDOW)
    assert "step-guarded-clear-not" not in kinds(text)


def test_a_fault_has_one_name_also_inside_accelerates_windows() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt, loader, accelerator):
            for x in loader:
                with accelerator.accumulate(net):
                    accelerator.backward(net(x).sum())
                    opt.step()
                    opt.zero_grad()
    """)
    moved = {m.kind: m.codes for m in mutants(text)}
    assert moved["step-before-backward"] == {"ZG401", "ZG102"}
    assert moved["clear-deleted"] == {"ZG101"}


def test_a_clear_or_a_step_in_a_wrong_place_is_expected_at_that_place() -> None:
    words = {
        "clear-between-backward-and-step": "zero_grad",
        "step-guarded-clear-not": "zero_grad",
        "step-before-backward": "step",
    }
    for mutant in [*mutants(PLAIN), *mutants(WINDOW), *mutants(TWO)]:
        lines = mutant.text.split("\n")
        for line in mutant.lines:
            assert words.get(mutant.kind, "") in lines[line - 1], mutant.kind


def test_a_clear_is_not_put_between_a_loss_and_its_step_by_another_mutations_way() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt, loader):
            for x in loader:
                opt.zero_grad()
                loss = net(x).sum()
                loss.backward()
                if x.mean() > 10:
                    print("large")
                opt.step()
                if x.mean() > 20:
                    print("larger")
    """)
    moved = next(m for m in mutants(text) if m.kind == "clear-in-one-branch")
    after = moved.text.split("opt.zero_grad()\n")[1]
    assert after.lstrip().startswith('print("larger")')


def test_one_of_several_that_step_on_one_loss_is_not_given_a_window() -> None:
    text = HEAD + textwrap.dedent("""
        def train(net, opt_a, opt_b, loader):
            for x in loader:
                opt_a.zero_grad()
                opt_b.zero_grad()
                net(x).sum().backward()
                opt_a.step()
                opt_b.step()
    """)
    assert "step-guarded-clear-not" not in kinds(text)
    assert "step-guarded-clear-not" in kinds(TWO)


@pytest.mark.parametrize("limit", ["None", 'float("inf")', "max_norm=math.inf"])
def test_a_clip_that_only_measures_loses_nothing_by_a_missing_unscale(limit: str) -> None:
    text = SCALED.replace("net.parameters(), 1.0", f"net.parameters(), {limit}")
    assert "unscale-deleted-before-clip" in kinds(SCALED)
    assert "unscale-deleted-before-clip" not in kinds(text)
