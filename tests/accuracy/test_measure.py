"""A measurement as a whole: what is measured, how it is shared out, and how it is added up."""

from __future__ import annotations

import sys
import tarfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy import measure, pack
from benchmarks.accuracy.tables import read_parts, report, table
from benchmarks.accuracy.trial import FileResult, TooSlow, Trial, deadline
from benchmarks.accuracy.worklist import sampled, worklist

LOOP = textwrap.dedent("""
    import torch

    def train(net, loader):
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
""")
OTHER = LOOP.replace("zero_grad()\n", "zero_grad()\n        print(x)\n")
BROKEN = LOOP.replace("        opt.zero_grad()\n", "").replace(
    "    opt = ", "    net.zero_grad()\n    opt = "
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two repositories: one has two loops, the other a copy of one and a broken one."""
    for place, text in {
        "one/a.py": LOOP,
        "one/b.py": OTHER,
        "one/inner/empty.py": "import os\n",
        "two/a.py": LOOP,
        "two/broken.py": BROKEN,
    }.items():
        path = tmp_path / "part" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "part"


def run(monkeypatch: pytest.MonkeyPatch, corpus: Path, *options: str) -> list[FileResult]:
    kept = corpus.parent / "trials.jsonl"
    words = ["measure", "--corpus", str(corpus), "--jobs", "1", "--trials", str(kept), *options]
    monkeypatch.setattr(sys, "argv", words)
    measure.main()
    return read_parts([kept])


def untimed(files: list[FileResult]) -> list[dict[str, object]]:
    return [
        {key: value for key, value in file.as_data().items() if not key.endswith("_seconds")}
        for file in files
    ]


def test_a_copy_counts_once_and_the_first_one_counts(corpus: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        tasks = worklist(corpus, pool)
    assert [(task.name, len(task.units), task.copies) for task in tasks] == [
        ("one/a.py", 1, 0),
        ("one/b.py", 1, 0),
        ("two/a.py", 0, 1),
        ("two/broken.py", 1, 0),
    ]
    assert [task.name for task in sampled(tasks, every=2, offset=1)] == [
        "one/b.py",
        "two/broken.py",
    ]


def test_parts_measured_apart_add_up_to_the_whole(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = run(monkeypatch, corpus)
    parts = []
    for number in (1, 2):
        parts.append(tmp_path / f"{number}.jsonl")
        run(monkeypatch, corpus, "--shard", f"{number}/2", "--trials", str(parts[-1]))
    assert untimed(read_parts(parts)) == untimed(whole)
    rows = table([trial for file in whole for trial in file.trials])
    assert rows["clear-deleted"]["mutants"] == 2
    assert rows["all"]["filtered_recall"] == 1.0
    assert not list(corpus.parent.glob("accuracy-*")), "the copies are taken away again"


def test_what_is_said_without_the_mutation_is_no_discovery(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = run(monkeypatch, corpus, "--no-execution")
    told = {(t.place, t.kind): t.result for file in files for t in file.trials}
    assert told["broken.py", "clear-deleted"] == "said before"
    assert told["b.py", "clear-deleted"] == "found"
    assert any("broken.py" in line for line in report(files)["said_before"])  # type: ignore[attr-defined]


def test_what_is_packed_gives_the_same_figures(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = tmp_path / "corpus.tar.gz"
    words = ["pack", "--corpus", str(corpus), "--into", str(archive)]
    monkeypatch.setattr(sys, "argv", words)
    pack.main()
    elsewhere = tmp_path / "elsewhere"
    with tarfile.open(archive) as packed:
        assert packed.getmember("part/one/inner/empty.py").size == 0
        # Python has had filters since 3.11.4, and asks for one from 3.12 on
        how: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(elsewhere, **how)
    here, there = run(monkeypatch, corpus), run(monkeypatch, elsewhere / "part")
    assert untimed(there) == untimed(here)


def test_a_wrong_line_or_a_wrong_code_is_no_discovery() -> None:
    def result(*said: tuple[int, str]) -> str:
        return Trial("k", "r", "p", "u", "d", ["ZG101"], [4], list(said), False, "real").result

    assert result((4, "ZG101")) == "found"
    assert result((5, "ZG101")) == "right code, other line"
    assert result((4, "ZG102")) == "other code"
    assert result() == "nothing said"


def test_a_check_that_hangs_is_given_up() -> None:
    with pytest.raises(TooSlow), deadline(0.05):
        try:
            while True:
                pass
        except Exception:  # as the checker survives its own errors
            raise AssertionError("it must come through") from None


def test_a_shard_is_written_as_a_fraction(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        measure.arguments().parse_args(["--corpus", "x", "--shard", "5/4"])
    assert "second of four" in capsys.readouterr().err
