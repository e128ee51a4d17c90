"""Every code block of the how-to pages about Step and the arena runs, and is clean to `check`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.ranks_meet import ABORTED, TRIES

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
ON_RANKS = ["step-ddp", "step-fsdp2"]
ALONE = [
    "step", "step-accumulation", "step-amp", "step-gan",
    "step-from-accelerate", "step-from-lightning", "clear-and-arena",
]  # fmt: skip


def code_of(page: str) -> str:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks, f"{page} has no code"
    return "\n".join(textwrap.dedent(block) for block in blocks)


def run(code: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    path = folder / "page.py"
    path.write_text(code, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", str(path)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_every_page_about_step_is_run():
    assert {page.stem for page in PAGES.glob("step*.md")} <= {*ON_RANKS, *ALONE}


@pytest.mark.parametrize("page", ALONE)
def test_the_page_runs(page, tmp_path):
    process = run(code_of(page), tmp_path)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said


@pytest.mark.parametrize("page", ON_RANKS)
def test_the_page_runs_on_two_ranks(page, tmp_path):
    for turn in range(TRIES):
        said, codes = run_on_two_ranks(code_of(page), tmp_path / str(turn))
        if ABORTED not in said:
            break
    assert codes == [0, 0], said


def run_on_two_ranks(code: str, folder: Path) -> tuple[str, list[int]]:
    store = f"file://{folder}/store"
    assert 'init_process_group("gloo")' in code
    code = code.replace(
        'init_process_group("gloo")',
        f'init_process_group("gloo", init_method={store!r}, world_size=2,'
        ' rank=int(__import__("os").environ["RANK"]))',
    )
    processes = []
    for rank in range(2):
        own = folder / str(rank)
        own.mkdir(parents=True)
        processes.append(run(code, own, RANK=str(rank)))
    said = "".join(process.communicate(timeout=120)[0] for process in processes)
    return said, [process.returncode for process in processes]


def test_the_pages_are_clean_to_check(tmp_path):
    for page in [*ALONE, *ON_RANKS]:
        code = code_of(page)
        if page == "step":  # one block shows a misuse on purpose
            start = code.index("try:\n    with step:")
            code = code[:start] + code[code.index("small = nn.Linear") :]
        (tmp_path / f"{page}.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zerograd", "check", "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
