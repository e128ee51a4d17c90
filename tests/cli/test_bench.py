"""`zerograd bench`: every policy measured, one recommendation, clear errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from zerograd.cli.main import main

FACTORY = """
import torch
from torch import nn

def model_only():
    return nn.Linear(4, 4)

def with_loss():
    model = nn.Linear(4, 1)
    x = torch.ones(2, 4)
    return model, lambda: model(x).pow(2).mean()

def frozen():
    return nn.Linear(4, 4).requires_grad_(False)

def nonsense():
    return 3

def bad_loss():
    model = nn.Linear(4, 4)
    return model, lambda: model(torch.ones(1, 4))

number = 3
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "factories.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("factories", None)


def bench(capsys, *words):
    code = main(["bench", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_text_shows_every_policy_and_ends_with_a_sentence(project, capsys):
    code, out, err = bench(
        capsys, "--model", "factories:with_loss", "--device", "cpu", "--rounds", "3"
    )
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert "fill ceiling" in lines[1]
    for policy in ("none", "none (again)", "zero", "arena", "in backward"):
        assert any(line.startswith(policy + " ") for line in lines)
    assert lines[-1].endswith(".") and "None" in lines[-1]


def test_json_holds_every_number(project, capsys):
    code, out, _ = bench(
        capsys, "--model", "factories:with_loss", "--device", "cpu", "--rounds", "3",
        "--format", "json",
    )  # fmt: skip
    report = json.loads(out)
    assert code == 0
    rows = {row["policy"]: row for row in report["rows"]}
    assert list(rows) == ["none", "none (again)", "zero", "arena", "in backward"]
    for name in ("none", "zero", "arena"):
        row = rows[name]
        assert min(row["clear"], row["norm_and_clip"], row["step"], row["step_with_clip"]) > 0
    assert rows["in backward"]["step"] > 0
    assert rows["in backward"]["step_with_clip"] is None, "a global clip is not legal there"
    assert report["gradient_bytes"] == 20 and report["tensors"] == 2
    assert report["fill_bytes_per_second"] > 0 and report["torch"] and report["machine"]
    assert report["advice"]


def test_a_model_without_a_loss_is_measured_as_far_as_it_goes(project, capsys):
    code, out, _ = bench(
        capsys, "--model", "factories:model_only", "--device", "cpu", "--rounds", "3"
    )
    assert code == 0
    assert "no loss" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "huge"], "no such model"),
        (["--model", "nowhere:model"], "cannot import nowhere"),
        (["--model", "factories:nobody"], "has no function nobody"),
        (["--model", "factories:number"], "has no function number"),
        (["--model", "factories:nonsense"], "must return a module"),
        (["--model", "factories:frozen"], "no parameter"),
        (["--model", "factories:bad_loss"], "one number"),
        (["--rounds", "1"], "at least 3"),
    ],
)
def test_what_cannot_be_measured_is_one_line_and_exit_2(project, capsys, words, said):
    code, out, err = bench(capsys, "--device", "cpu", *words)
    assert code == 2 and out == ""
    assert said in err and "Traceback" not in err


def test_a_gpu_that_is_not_there(project, capsys):
    import torch

    if torch.cuda.is_available():
        return
    code, _, err = bench(capsys, "--device", "cuda")
    assert code == 2 and "--device cpu" in err


def test_without_torch_it_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from zerograd.cli.main import main\nsys.exit(main(['bench']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "zerograd[torch]" in done.stderr


def test_the_gradients_are_gone_afterwards_and_the_hooks_too(project):
    import torch

    from zerograd.bench.policies import POLICIES
    from zerograd.bench.workloads import make_workload

    device = torch.device("cpu")
    workload = make_workload("factories:with_loss", device)
    for kind in POLICIES:
        for clip in (False, True):
            if clip and not kind.can_clip:
                continue
            policy = kind(workload, device)
            policy.step(clip)
            policy.close()
            assert all(p.grad is None for p in workload.parameters)
            assert not any(p._post_accumulate_grad_hooks for p in workload.parameters)
