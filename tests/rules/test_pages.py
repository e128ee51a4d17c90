"""Every rule has a page, and the code on it does what the page says, in real PyTorch."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ranks_meet import said_by_ranks
from tests.rules.pages import SECTIONS, Block, blocks, file_name, page, pages, section
from tests.runtime.processes_under_test import DEADLINE
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule, Witness
from zerograd.rules import ALL_RULES, BY_CODE
from zerograd.static.check import check_source

ROOT = Path(__file__).parents[2]
NUMBERS = ROOT / "benchmarks" / "results" / "rule_numbers.json"

by_code = pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.code)
by_block = pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    assert set(pages()) == {file_name(rule) for rule in ALL_RULES}


@by_code
def test_a_page_has_its_sections_in_order(rule: Rule) -> None:
    text = page(rule)
    assert text.splitlines()[0] == f"# {rule.code} {rule.name}"
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    for title in SECTIONS:
        assert section(text, title).strip()


@by_code
def test_a_page_shows_the_fault_and_the_loop_without_it(rule: Rule) -> None:
    mine = [block for block in blocks() if block.rule is rule]
    assert {block.kind for block in mine} == {"bad", "good"}
    for block in mine:
        codes = {code for code, _ in block.expected}
        assert codes == ({rule.code} if block.kind == "bad" else set())


@by_code
def test_the_figures_of_a_page_are_those_of_the_last_run(rule: Rule) -> None:
    """Each decimal, percentage or "n of m" under "Why it hurts" was measured."""
    measured = set(json.loads(NUMBERS.read_text(encoding="utf-8"))["figures"][rule.code].values())
    why = section(page(rule), "Why it hurts")
    written = set(re.findall(r"\d+ of \d+|\d[\d,]*\.\d+(?:e-?\d+)?(?! ?%)|\d+(?:\.\d+)? %", why))
    settings = {"0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1.0"}  # learning rates and limits
    assert written - settings <= measured
    assert any(figure in why for figure in measured), "no figure of the run on the page"


def pairs(findings: list[Finding]) -> set[tuple[str, int]]:
    return {(finding.rule.code, finding.spot.line) for finding in findings}


@by_block
def test_the_static_checker_finds_exactly_what_the_block_says(block: Block) -> None:
    found = check_source(block.source, block.filename, notes=True)
    expected = {
        (code, line) for code, line in block.expected if Witness.STATIC in BY_CODE[code].seen_by
    }
    assert pairs(found) == expected


def run(block: Block, script: Path) -> set[tuple[str, int]]:
    """Run the block under `watch`; an exception that it announces is let through."""
    script.write_text(block.source, encoding="utf-8")
    if "init_process_group" in block.source:
        return run_ranks(script, block.ranks)  # a group that goes may hold its process for good
    from zerograd.runtime.sanitizer import watch

    code = compile(block.source, str(script), "exec")
    watcher = watch(policy="collect", show_notes=True)
    announced: tuple[type[BaseException], ...] = (Exception,) if block.raises else ()
    try:
        with watcher:
            exec(code, {"__name__": "__main__", "__file__": str(script)})
    except announced as error:
        assert type(error).__name__ == block.raises
    else:
        assert block.raises is None, f"the block should end in {block.raises}"
    return pairs(watcher.findings)


def run_ranks(script: Path, ranks: int) -> set[tuple[str, int]]:
    """Run the script as the ranks of one distributed run; return what any of them found."""
    command = [sys.executable, "-m", "tests.rules.live_block", str(script)]
    said = said_by_ranks(command, ranks, deadline=DEADLINE)
    return {(code, line) for out in said for code, line in json.loads(out.splitlines()[-1])}


@by_block
def test_the_block_runs_in_real_torch_and_the_sanitizer_finds_exactly_what_it_says(
    block: Block, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    found = run(block, tmp_path / block.filename)
    expected = {
        (code, line) for code, line in block.expected if Witness.RUNTIME in BY_CODE[code].seen_by
    }
    assert found == expected | block.consequences


@pytest.mark.parametrize("block", [block for block in blocks() if block.ranks == 1][:1])
def test_a_block_that_does_not_do_what_it_says_is_noticed(block: Block, tmp_path: Path) -> None:
    """A test of the test: its fault mended, the expectation left as it was."""
    pytest.importorskip("torch")
    mended = replace(block, source=block.source + "    optimizer.zero_grad()\n")
    assert run(block, tmp_path / "bad.py") == block.expected
    assert run(mended, tmp_path / "mended.py") == set()
    assert pairs(check_source(mended.source, "mended.py", notes=True)) == set()
    raising = replace(block, source="# raises: RuntimeError\n" + block.source)
    with pytest.raises(AssertionError, match="should end in RuntimeError"):
        run(raising, tmp_path / "raising.py")
