"""Every script of the suite through both witnesses: what its comments promise, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.live import expected, run_live
from zerograd.rules import BY_CODE

HERE = Path(__file__).parent
FAULTY = sorted((HERE / "faulty").glob("*.py"))
CORRECT = sorted((HERE / "correct").glob("*.py"))
NOTES = {code for code, rule in BY_CODE.items() if rule.severity.value == "note"}


def names(paths):
    return [path.stem for path in paths]


def without_unasked_notes(found, promised):
    """Notes are shown on request; a script that promises one is not asked about others."""
    asked = {code for code, _ in promised}
    return [(code, line) for code, line in found if code not in NOTES or code in asked]


def test_the_suite_is_there():
    assert len(FAULTY) >= 30
    assert len(CORRECT) >= 40
    for path in FAULTY:
        assert expected(path, "live") or expected(path, "static"), path


@pytest.fixture(autouse=True)
def one_thread():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("path", FAULTY, ids=names(FAULTY))
def test_a_faulty_script_is_found_out_live(path):
    promised = expected(path, "live")
    assert without_unasked_notes(run_live(path, notes=True), promised) == promised


@pytest.mark.parametrize("path", CORRECT, ids=names(CORRECT))
def test_a_correct_script_runs_in_silence(path):
    assert run_live(path, notes=True) == []


def check(path):
    from zerograd import check_source

    findings = check_source(path.read_text(encoding="utf-8"), str(path), notes=True)
    return sorted((each.rule.code, each.spot.line) for each in findings)


@pytest.mark.parametrize("path", FAULTY, ids=names(FAULTY))
def test_a_faulty_script_is_found_out_by_reading(path):
    promised = expected(path, "static")
    assert without_unasked_notes(check(path), promised) == promised


@pytest.mark.parametrize("path", CORRECT, ids=names(CORRECT))
def test_a_correct_script_reads_well(path):
    assert without_unasked_notes(check(path), []) == []


@pytest.mark.parametrize("path", [*FAULTY[:1], *CORRECT[:1]], ids=lambda path: path.stem)
def test_a_script_stands_alone(path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
