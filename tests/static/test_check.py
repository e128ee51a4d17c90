"""The two entry points, and how many files become one result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import zerograd
from zerograd.errors import UnknownRuleError, UnreadableSourceError
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static import check as module
from zerograd.static.check import Asked, Checker, check_all, check_paths, check_source
from zerograd.static.engine import Outcome
from zerograd.static.source import Source

WRONG = """\
import torch
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:
    model(x).sum().backward()
    opt.step()
"""
RIGHT = WRONG + "    opt.zero_grad()\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(found: object) -> list[tuple[str, str, int]]:
    return [(each.rule.code, each.spot.path, each.spot.line) for each in found]  # type: ignore[attr-defined]


def test_the_public_names() -> None:
    assert zerograd.check_source is check_source
    assert zerograd.check_paths is check_paths


def test_a_text_is_checked_under_its_name() -> None:
    assert places(check_source(WRONG, filename="loop.py")) == [("ZG101", "loop.py", 5)]
    assert check_source(RIGHT) == []


def test_a_text_that_does_not_parse_raises() -> None:
    with pytest.raises(UnreadableSourceError, match=r"^x.py:1: not checked"):
        check_source("for x in", "x.py")


def test_a_rule_that_does_not_exist_raises() -> None:
    with pytest.raises(UnknownRuleError):
        check_source(WRONG, select=["ZG999"])


def test_selected_and_ignored_rules() -> None:
    assert check_source(WRONG, ignore=["stale-gradient"]) == []
    assert check_source(WRONG, select=["ZG2"]) == []
    assert len(check_source(WRONG, select=["ALL"])) == 1
    assert len(check_source(WRONG, select="ZG101")) == 1
    assert check_source(WRONG, ignore="ZG101,tail-lost") == []


def test_paths_are_checked_and_counted(tree: Path) -> None:
    (tree / "a").mkdir()
    (tree / "a" / "wrong.py").write_text(WRONG)
    (tree / "right.py").write_text(RIGHT)
    (tree / "other.py").write_text("print(1)\n")
    (tree / "broken.py").write_text("opt.zero_grad(")
    result = check_paths([tree])
    assert places(result) == [("ZG101", "a/wrong.py", 5)]
    assert (result.files, result.analysed, len(result)) == (3, 2, 1)
    assert len(result.problems) == 1
    assert result.problems[0].startswith("broken.py:1: not checked")


def test_one_path_needs_no_list(tree: Path) -> None:
    (tree / "wrong.py").write_text(WRONG)
    for one in ("wrong.py", Path("wrong.py"), "."):
        assert places(check_paths(one)) == [("ZG101", "wrong.py", 5)]


def test_files_outside_the_current_folder_are_named_whole(tree: Path) -> None:
    (tree / "here").mkdir()
    (tree / "wrong.py").write_text(WRONG)
    os.chdir(tree / "here")
    assert places(check_paths([".."])) == [("ZG101", str(tree / "wrong.py"), 5)]


def test_the_settings_of_the_project_hold(tree: Path) -> None:
    (tree / "a").mkdir()
    (tree / "a" / "wrong.py").write_text(WRONG)
    (tree / "b.py").write_text(WRONG)
    (tree / "pyproject.toml").write_text(
        '[tool.zerograd.per-file-ignores]\n"a/*" = ["stale-gradient"]\n'
    )
    assert places(check_paths(["."])) == [("ZG101", "b.py", 5)]
    (tree / "pyproject.toml").write_text('[tool.zerograd]\nignore = ["ZG1"]\n')
    assert places(check_paths(["."])) == []
    assert len(check_paths(["."], select=["ZG101"])) == 2  # who selects, wants
    assert len(check_paths(["."], select="ZG101", exclude="b.py")) == 1


def test_two_stars_between_slashes_are_any_number_of_folders(tree: Path) -> None:
    for name in ("a/b.py", "a/x/b.py", "a/x/y/b.py", "c/a/b.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(WRONG)
    settings = '[tool.zerograd.per-file-ignores]\n"{}" = ["ZG101"]\n'
    (tree / "pyproject.toml").write_text(settings.format("a/**/b.py"))
    assert places(check_paths(["."])) == [("ZG101", "c/a/b.py", 5)]
    (tree / "pyproject.toml").write_text(settings.format("a/**/x/**/b.py"))
    assert [path for _, path, _ in places(check_paths(["."]))] == ["a/b.py", "c/a/b.py"]


def test_all_stands_for_all_rules(tree: Path) -> None:
    (tree / "wrong.py").write_text(WRONG)
    (tree / "gen.py").write_text(WRONG)
    (tree / "pyproject.toml").write_text(
        '[tool.zerograd]\nselect = ["ALL"]\n[tool.zerograd.per-file-ignores]\n"gen.py" = ["ALL"]\n'
    )
    assert places(check_paths(["."])) == [("ZG101", "wrong.py", 5)]
    assert places(check_paths(["."], ignore=["all"])) == []


def test_the_projects_own_words_are_looked_for(tree: Path) -> None:
    (tree / "a.py").write_text("push(loss)\n")
    assert check_paths(["."]).analysed == 0
    (tree / "pyproject.toml").write_text('[tool.zerograd]\nbackward = ["engine.push"]\n')
    assert check_paths(["."]).analysed == 1


def test_several_processes_find_the_same(tree: Path) -> None:
    for number in range(40):
        (tree / f"w{number:02}.py").write_text(WRONG if number % 3 else RIGHT)
    (tree / "broken.py").write_text("opt.zero_grad(")
    one = check_paths(["."])
    two = check_paths(["."], jobs=2)
    assert one.findings == two.findings
    assert [each.rule for each in two] == [each.rule for each in one]
    assert all(each.rule is one.findings[0].rule for each in two)  # not a copy from elsewhere
    assert (one.files, one.analysed, one.problems) == (two.files, two.analysed, two.problems)
    assert len(one) == 26


def test_processes_can_be_spawned(tree: Path) -> None:
    """Where other threads run, fork is not safe, and the code must not need it."""
    for number in range(4):
        (tree / f"w{number}.py").write_text(WRONG)
    script = (
        "import threading, zerograd\n"
        "if __name__ == '__main__':\n"
        "    stop = threading.Event()\n"
        "    threading.Thread(target=stop.wait).start()\n"
        "    print(len(zerograd.check_paths(['.'], jobs=2)))\n"
        "    stop.set()\n"
    )
    (tree / "run.txt").write_text(script)
    done = subprocess.run(
        [sys.executable, "run.txt"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("4", "")


def test_a_fault_of_ours_costs_one_file_only(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "a.py").write_text(WRONG)
    (tree / "b.py").write_text(WRONG)
    real = Checker.everything

    def faulty(self: Checker, source: object, settings: object) -> object:
        if source.path == "a.py":  # type: ignore[attr-defined]
            raise KeyError("ours")
        return real(self, source, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(module.Checker, "everything", faulty)
    result = check_paths(["."])
    assert places(result) == [("ZG101", "b.py", 5)]
    assert len(result.crashes) == 1
    assert "KeyError" in result.crashes[0]
    assert "Traceback" in result.crashes[0]


@pytest.mark.parametrize(("more", "is_ours"), [("", True), (" + ".join(["x"] * 3000), False)])
def test_who_goes_round_and_round_in_code_that_is_not_deep_is_at_fault(
    tree: Path, monkeypatch: pytest.MonkeyPatch, more: str, is_ours: bool
) -> None:
    (tree / "a.py").write_text(f"{WRONG}    total = {more or 0}\n")

    def endless(self: Checker, source: object, settings: object) -> object:
        return endless(self, source, settings)

    monkeypatch.setattr(module.Checker, "everything", endless)
    result = check_paths(["."])
    assert (len(result.crashes), len(result.problems)) == ((1, 0) if is_ours else (0, 1))


def test_nothing_that_is_read_is_run(tree: Path) -> None:
    (tree / "evil.py").write_text("open('ran', 'w')\n" + WRONG)
    (tree / "train.py").write_text("import evil\n" + WRONG)
    assert len(check_paths(["."])) == 2
    assert not (tree / "ran").exists()
    assert "evil" not in sys.modules


def test_torch_is_not_needed(tree: Path) -> None:
    (tree / "wrong.py").write_text(WRONG)
    script = (
        "import sys; sys.modules['torch'] = None; import zerograd; "
        "print(len(zerograd.check_paths(['.'])))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("1", "")


def test_deeply_nested_training_code_is_checked(tree: Path) -> None:
    chain = "    if x == 0: pass\n" + "".join(f"    elif x == {n}: pass\n" for n in range(1, 700))
    text = WRONG.replace("    opt.step()\n", chain + "    opt.step()\n")
    (tree / "deep.py").write_text(text)
    result = check_paths(["."])
    assert result.crashes == []
    assert result.files + len(result.problems) == 1


def test_a_long_sum_is_checked(tree: Path) -> None:
    (tree / "long.py").write_text(WRONG + "    total = " + " + ".join(["x"] * 3000) + "\n")
    result = check_paths(["."])
    assert result.crashes == []
    assert result.files + len(result.problems) == 1


def test_progress_hears_of_every_file(tree: Path) -> None:
    (tree / "wrong.py").write_text(WRONG)
    (tree / "other.py").write_text("print(1)\n")
    heard: list[str] = []

    class Ear:
        def read(self) -> None:
            heard.append("read")

        def found(self) -> None:
            heard.append("found")

        def checked(self, number: int) -> None:
            heard.append(f"checked {number}")

    check_all(["."], Asked(), progress=Ear())
    assert heard == ["read", "read", "found", "checked 1"]


HELPER = """\
def update(opt, loss):
    loss.backward()
    opt.step(){comment}
"""
CALLER = """\
import torch
from helper import update

opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:
    update(opt, model(x).sum())
"""


def test_a_fault_in_a_module_is_told_once_and_allowed_there(tree: Path) -> None:
    (tree / "a_train.py").write_text(CALLER)
    (tree / "z_train.py").write_text(CALLER)
    (tree / "helper.py").write_text(HELPER.format(comment=""))
    assert places(check_paths(["."])) == [("ZG101", "helper.py", 3)]
    comment = "  # zerograd: allow[stale-gradient] the caller clears"
    (tree / "helper.py").write_text(HELPER.format(comment=comment))
    assert places(check_paths(["."])) == []
    assert places(check_paths(["."], jobs=2)) == []


def test_a_text_is_checked_without_a_look_at_the_disk(tree: Path) -> None:
    (tree / "helper.py").write_text(HELPER.format(comment=""))
    (tree / "pyproject.toml").write_text('[tool.zerograd]\nignore = ["ZG1"]\n')
    assert places(check_source(CALLER, "train.py")) == []
    assert len(check_source(WRONG, "train.py")) == 1


Given = dict[str, list[Finding]]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Return a table, path to findings, that stands in for the analysis."""
    given: Given = {}

    def analyze(source: Source, project: object, wrappers: object) -> Outcome:
        return Outcome(given.get(source.path, []), 0)

    monkeypatch.setattr("zerograd.static.engine.analyze", analyze)
    return given


def finding(path: str, line: int, *, certain: bool = True, message: str = "m") -> Finding:
    return Finding(BY_CODE["ZG101"], Spot(path, line), message, "a", certain=certain)


def test_what_is_wrong_on_some_paths_only_is_shown_when_asked(tree: Path, engine: Given) -> None:
    (tree / "a.py").write_text(WRONG)
    engine["a.py"] = [finding("a.py", 5, certain=False)]
    assert len(check_paths(["."])) == 0
    assert len(check_paths(["."], may=True)) == 1


def test_of_two_reports_of_one_fault_the_surer_is_told(tree: Path, engine: Given) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tree / name).write_text(RIGHT)
    engine["a.py"] = [finding("b.py", 5, certain=False, message="maybe")]
    engine["b.py"] = [finding("b.py", 5, certain=False, message="perhaps")]
    engine["c.py"] = [finding("b.py", 5, message="surely")]
    assert [each.message for each in check_paths(["."], may=True)] == ["surely"]


def test_a_comment_that_another_files_check_needs_is_not_idle(tree: Path, engine: Given) -> None:
    comment = "  # zerograd: allow[ZG101] the callers clear"
    (tree / "a.py").write_text(RIGHT)
    (tree / "b.py").write_text(RIGHT.replace("step()", f"step(){comment}"))
    assert [each.rule.code for each in check_paths(["."])] == ["ZG901"]
    engine["a.py"] = [finding("b.py", 5)]
    assert check_paths(["."]).findings == []


def test_a_file_is_read_with_the_modules_that_its_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "lib" / "steps.py").write_text(
        "def learn(net, opt, x):\n    net(x).mean().backward()\n    opt.step()\n"
    )
    (tmp_path / "tools" / "train.py").write_text(
        "import torch\nfrom lib.steps import learn\n"
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for x in torch.randn(10, 4, 2):\n    learn(net, opt, x)\n"
    )
    monkeypatch.chdir(tmp_path)
    alone = zerograd.check_paths(["tools/train.py"])
    assert [(each.rule.code, each.spot.line) for each in alone] == [("ZG101", 3)]
    monkeypatch.chdir("/")
    assert not list(zerograd.check_paths([tmp_path / "tools" / "train.py"]))


def test_what_is_said_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        """\
import torch
from torch import nn, optim

def train(net, head, data, args, log):
    opt = optim.SGD(net.parameters(), lr=0.1)
    other = optim.SGD(head.parameters(), lr=0.1)
    for i, x in enumerate(data):
        loss = head(net(x)).sum()
        if args.warm:
            net(x).mean().backward()
        if i % args.every == 0 and log.is_on():
            net(x).std().backward()
        loss.backward()
        if args.both or args.first:
            opt.step()
        other.step()
        if args.clear and not args.keep:
            opt.zero_grad()
"""
    )
    said = {
        subprocess.run(
            [sys.executable, "-m", "zerograd", "check", "--may", "--format", "json", "train.py"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "7")
    }
    assert len(said) == 1 and "ZG101" in said.pop()
