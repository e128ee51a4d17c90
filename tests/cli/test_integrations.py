"""The pre-commit hooks and the GitHub action: what they call exists and ends as they expect."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from zerograd.cli.main import build_parser

ROOT = Path(__file__).parents[2]
WRONG = """\
import torch
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:
    model(x).sum().backward()
    opt.step()
"""


def test_the_hooks_call_what_exists() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["zerograd", "zerograd-fix"]
    for hook in hooks:
        name, *words = hook["entry"].split()
        assert name == "zerograd"
        args = build_parser("check").parse_args([*words, "a.py", "b.ipynb"])
        assert args.paths == ["a.py", "b.ipynb"]
        assert args.force_exclude  # the hook is given names, and exclude must still hold


@pytest.fixture
def act(tmp_path: Path):
    """Return a function that runs the action's check step as the runner does."""
    tool = tmp_path / "runner" / "zerograd" / "bin"
    tool.mkdir(parents=True)
    (tool / "zerograd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zerograd "$@"\n')
    (tool / "zerograd").chmod(0o755)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "wrong.py").write_text(WRONG)
    (tmp_path / "repo" / "right.py").write_text(WRONG + "    opt.zero_grad()\n")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = (step for step in action["runs"]["steps"] if step.get("id") == "check")
    output = tmp_path / "output"

    def run(**given: str) -> tuple[int, str, str]:
        inputs = {name: each["default"] for name, each in action["inputs"].items()} | given
        env = dict(os.environ, RUNNER_TEMP=str(tmp_path / "runner"), GITHUB_OUTPUT=str(output))
        for name, value in step["env"].items():
            env[name] = inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        output.write_text("")
        done = subprocess.run(
            [
                shutil.which("bash") or "bash",
                "--noprofile",
                "--norc",
                "-eo",
                "pipefail",
                "-c",
                step["run"],
            ],
            cwd=tmp_path / "repo",
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, output.read_text().strip()

    return run


def test_the_action_annotates_and_fails(act) -> None:
    code, out, said = act()
    assert code == 1
    assert out.startswith("::error file=wrong.py,line=5")
    assert said == "findings=true"


def test_the_action_passes_clean_code(act) -> None:
    assert act(paths="right.py") == (0, "", "findings=false")


def test_the_action_need_not_fail_and_can_write_sarif(act, tmp_path: Path) -> None:
    code, _, said = act(fail="false", sarif="found.sarif", paths="wrong.py\nright.py")
    assert (code, said) == (0, "findings=true")
    assert "ZG101" in (tmp_path / "repo" / "found.sarif").read_text()


def test_the_action_takes_its_inputs_as_words_not_as_code(act, tmp_path: Path) -> None:
    code, _, _ = act(args="--ignore $(touch ran)", paths="; touch ran")
    assert code == 2
    assert not (tmp_path / "repo" / "ran").exists()


def test_the_action_fails_where_nothing_could_be_read(act) -> None:
    assert act(paths="nowhere")[0] == 2
