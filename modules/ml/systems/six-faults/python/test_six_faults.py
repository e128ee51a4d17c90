"""The solution passes; with any one of the six faults left in, it does not."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import six_faults  # noqa: E402

from zerograd import check_source, watch  # noqa: E402
from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure, grade_file, load  # noqa: E402

EXERCISE = find("six-faults")
SOLUTION = Path(six_faults.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(six_faults)


def test_the_starter_runs_and_looks_harmless(capsys):
    space = {"__name__": "starter"}
    exec(compile(EXERCISE.starter(), "starter.py", "exec"), space)
    space["main"]()
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[4] < losses[3] < losses[2] < losses[1] < losses[0]


SEEN_BY_BOTH = {"ZG101", "ZG102", "ZG201", "ZG301", "ZG501"}


def test_the_static_witness_names_six_faults_of_six_rules():
    codes = [finding.rule.code for finding in check_source(EXERCISE.starter(), "starter.py")]
    assert sorted(codes) == sorted(SEEN_BY_BOTH | {"ZG103"})


def test_the_live_witness_names_them_too(tmp_path, capsys):
    file = tmp_path / "starter.py"
    file.write_text(EXERCISE.starter(), encoding="utf-8")
    with watch(policy="collect") as seen:
        load(file).main()
    codes = [finding.rule.code for finding in seen.findings]
    # a clear that is never called is, in a run, simply a clear that is not there: ZG101
    assert sorted(codes) == sorted([*SEEN_BY_BOTH, "ZG101"])


# what a learner may leave as it was, or change for the worse
LEFT_OVER = {
    "pretrain": (
        "        for inputs, targets in batches:\n            optimizer.zero_grad()\n",
        "        optimizer.zero_grad()\n        for inputs, targets in batches:\n",
    ),
    "warm_up": (
        "optimizer.zero_grad()\n        mse(model(inputs), targets).backward()",
        "optimizer.zero_grad\n        mse(model(inputs), targets).backward()",
    ),
    "train_scaled": (
        "        scaler.unscale_(optimizer)\n        nn.utils.clip_grad_norm_("
        "model.parameters(), max_norm)\n",
        "        nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n"
        "        scaler.unscale_(optimizer)\n",
    ),
    "train_in_windows": (
        "        loss = mse(model(inputs), targets) / window\n",
        "        optimizer.zero_grad()\n        loss = mse(model(inputs), targets) / window\n",
    ),
    "train_gan, netD": (
        "        optD.zero_grad()\n        lossD.backward()\n        optD.step()\n",
        "        lossD.backward()\n        optD.step()\n        optD.zero_grad()\n",
    ),
    "distil": (
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n\n\n",
        "        loss.backward()\n        optimizer.zero_grad()\n        optimizer.step()\n\n\n",
    ),
}
WORSE = {
    "no clip at all": (
        "        nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
        "",
        "train_scaled: the weights",
    ),
    "not divided": (" / window", "", "train_in_windows: the weights"),
    "another step size": ("lr=0.02", "lr=0.03", "pretrain: the weights"),
    "a stage thrown out": ("def distil(", "def distill(", "no function called distil"),
    "a parameter renamed": ("teacher: nn.Module", "other: nn.Module", "teacher"),
}


def failure_with(old, new, tmp_path):
    assert SOLUTION.count(old) == 1, "the edit must hit one place"
    file = tmp_path / "wrong.py"
    file.write_text(SOLUTION.replace(old, new), encoding="utf-8")
    return first_failure(EXERCISE, load(file))


@pytest.mark.parametrize("stage", LEFT_OVER)
def test_a_fault_left_in_is_caught_and_its_stage_named(stage, tmp_path):
    failure = failure_with(*LEFT_OVER[stage], tmp_path)
    assert failure is not None
    assert failure.message.startswith(f"{stage}: ")


def test_the_learner_sees_which_stages_are_mended(tmp_path):
    def states(text):
        file = tmp_path / "attempt.py"
        file.write_text(text, encoding="utf-8")
        return [outcome.state for outcome in grade_file(EXERCISE, file)]

    assert states(EXERCISE.starter()) == ["failed"] * 8 + ["passed"]
    assert states(SOLUTION.replace(*LEFT_OVER["warm_up"]))[:6] == [
        "passed", "failed", "passed", "passed", "passed", "passed",
    ]  # fmt: skip


@pytest.mark.parametrize("name", WORSE)
def test_a_mend_that_breaks_something_else_is_caught(name, tmp_path):
    old, new, says = WORSE[name]
    failure = failure_with(old, new, tmp_path)
    assert failure is not None
    assert says in failure.message
