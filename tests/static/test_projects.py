"""Programs of several files: each case of `projects/*.txt` gives the findings it marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from zerograd import check_paths

HEAD = "import torch\nfrom torch import nn\n"
MARK = re.compile(r"# expect: (ZG\d+)")


def cases() -> Iterator[object]:
    for path in sorted(Path(__file__).with_name("projects").glob("*.txt")):
        for case in re.split(r"(?m)^## ", path.read_text())[1:]:
            name, _, text = case.partition("\n")
            _, *parts = re.split(r"(?m)^# file: (.+)\n", text)
            yield pytest.param(dict(zip(parts[::2], parts[1::2], strict=True)), id=name)


@pytest.mark.parametrize("files", list(cases()))
def test_a_project_gives_the_findings_it_marks(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = []
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)
        lines = (HEAD + text).splitlines()
        expected += [
            (name, row, found[1])
            for row, line in enumerate(lines, 1)
            if (found := MARK.search(line))
        ]
    result = check_paths(["."])
    found = [(each.spot.path, each.spot.line, each.rule.code) for each in result.findings]
    assert sorted(found) == sorted(expected)
