"""The page as a file: small, alone, escaped, and with a place for each of the nine modes."""

import json
import os
import re
import subprocess
import sys

import pytest

from zerograd.lab import page
from zerograd.lab.cards import anki_text, cards
from zerograd.lab.page import LARGEST, load_recorded, render

MODES = ["learn", "why", "deep", "visual", "try", "challenge", "project", "recall", "performance"]


@pytest.fixture(scope="module")
def html():
    return render()


def test_it_is_one_small_file_that_asks_for_nothing(html):
    assert len(html.encode("utf-8")) < LARGEST
    assert not re.search(r"<(link|img|iframe|script)[^>]*\s(src|href)=", html)
    assert "@import" not in html
    assert "url(http" not in html


def test_every_mode_has_a_place(html):
    named = set(re.findall(r"[a-z]+", " ".join(re.findall(r'class="mode">([^<]*)<', html))))
    assert named == set(MODES)


def test_version_and_seed_are_said(html):
    recorded = load_recorded()
    assert f"PyTorch {recorded['torch']}" in html
    assert f"seed {recorded['seed']}" in html


def test_recorded_text_cannot_become_markup():
    recorded = load_recorded()
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    recorded["machine"] = recorded["replay"][0]["title"] = recorded["replay"][0]["about"] = evil
    recorded["printed"]["memory"] = evil
    html = render(recorded)
    assert evil not in html
    assert "<img src=x" not in html


def test_the_data_in_the_page_is_json(html):
    text = re.search(r'id="data">(.*?)</script>', html, re.S).group(1)
    assert json.loads(text)["bucket"] == load_recorded()["bucket"]


def test_the_cards_are_text_that_anki_imports():
    deck = cards(load_recorded())
    lines = anki_text(deck).splitlines()
    assert lines[0] == "#separator:tab"
    rows = [line for line in lines if not line.startswith("#")]
    assert len(rows) == len(deck) >= 8
    assert all(row.count("\t") == 1 for row in rows)


def lab(*words, cwd):
    command = [sys.executable, "-m", "zerograd", "lab", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def test_the_command_writes_the_page(tmp_path):
    answer = lab("--output", "lab.html", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "lab.html").read_text(encoding="utf-8") == render()


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    for path in ("file/lab.html", "no/such/folder/lab.html", "."):
        answer = lab("--output", path, cwd=tmp_path)
        assert answer.returncode == 2
        assert answer.stderr.startswith(f"zerograd: --output {path}: cannot be written (")
        assert "Traceback" not in answer.stderr
    assert os.listdir(tmp_path) == ["file"]  # no folder was made on the way


def test_record_without_torch_says_what_to_do(monkeypatch):
    from zerograd.cli import lab as command
    from zerograd.cli.main import main

    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert main(["lab", "--record"]) == 2


def test_the_page_needs_no_torch(tmp_path):
    code = "import sys; sys.modules['torch'] = None; from zerograd.lab.page import render; render()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_all_assets_are_used():
    from importlib.resources import files

    names = {item.name for item in files(page.__package__).joinpath("assets").iterdir()}
    assert names == {"lab.html", "lab.css", *(f"{name}.js" for name in page.SCRIPTS)}
