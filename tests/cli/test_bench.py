"""`zerograd bench`: every policy measured, one recommendation, clear errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from zerograd.bench.measure import Row, advise
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

def fails():
    return helper()

def helper():
    raise KeyError("no such size")

def loss_fails():
    return nn.Linear(4, 4), helper

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
    assert lines[-1].endswith(".") and ("None" in lines[-1] or "Too noisy" in lines[-1])


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
    assert "apart" not in out, "nothing was compared"


@pytest.mark.parametrize(
    ("factory", "what", "frames"),
    [("fails", "fails()", ["fails", "helper"]), ("loss_fails", "the loss", ["helper"])],
)
def test_code_of_the_user_that_raises_is_named_with_its_own_frames(
    project, capsys, factory, what, frames
):
    code, out, err = bench(capsys, "--model", f"factories:{factory}", "--device", "cpu")
    assert code == 2 and out == ""
    first, *rest = err.splitlines()
    assert first == (
        f"zerograd: --model factories:{factory}: {what} raised KeyError: 'no such size'"
    )
    assert [line.split()[-1] for line in rest if line.startswith("  File ")] == frames


def test_a_module_that_raises_is_named_with_its_own_frame(project, capsys):
    (project / "broken_model.py").write_text("size = {}['width']\n")
    code, _, err = bench(capsys, "--model", "broken_model:model", "--device", "cpu")
    assert code == 2
    assert "importing broken_model raised KeyError: 'width'" in err
    assert err.count("  File ") == 1


def rows(arena: float, arena_with_clip: float) -> list[Row]:
    return [
        Row("none", 1.0, None, 1.0, 1.0, 1.0, None),
        Row("zero", 1.0, None, 1.0, 1.0, 1.0, None),
        Row("arena", 1.0, None, 1.0, arena, arena_with_clip, None),
    ]


def test_advice_is_not_given_on_noise():
    assert "use Step(" in advise(rows(1.0, 0.8), 0.01, 0.01)
    assert "1.25x faster" in advise(rows(1.0, 0.8), 0.01, 0.01)
    for spreads in ((0.01, 0.06), (0.06, 0.01)):
        said = advise(rows(1.0, 0.8), *spreads)
        assert said.startswith("Too noisy to say: two equal measurements lay 6% apart")
        assert "use Step(" not in said and "None" not in said
    # within twice the noise of its own column a difference is none
    assert advise(rows(1.0, 0.93), 0.0, 0.04).startswith("Clear to None, the torch default")


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
