"""Which files are looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zerograd.static import files
from zerograd.static.files import find_files, may_train, read_bytes
from zerograd.static.settings import SettingsFinder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str, text: str = "x = 1\n") -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(*paths: str, **options: object) -> list[str]:
    """Return what is found and not ignored; problems end the list, marked with a !."""
    problems: list[str] = []
    listing = find_files(
        paths or (".",),
        settings=SettingsFinder(),
        tell=problems.append,
        **options,  # type: ignore[arg-type]
    )
    return [each.path for each in listing if not each.is_ignored()] + [f"!{p}" for p in problems]


def test_sources_and_notebooks_of_a_tree_are_found_in_order() -> None:
    write("b.py", "a.py", "n.ipynb", "notes.txt", "z/c.py", "m/d.py", "script")
    assert found() == ["a.py", "b.py", "n.ipynb", "m/d.py", "z/c.py"]


def test_a_named_file_is_taken_whatever_it_is_called() -> None:
    write("script", "build/a.py", ".gitignore", text="script\n")
    assert found("script", "build/a.py", "build") == ["script", "build/a.py"]


def test_each_file_comes_once() -> None:
    write("a/b.py")
    assert found("a", "a/b.py", "./a/../a", ".") == ["a/b.py"]


@pytest.mark.parametrize("name", [".venv", "node_modules", ".git", "build", "site-packages"])
def test_folders_that_hold_no_own_code_are_left_out(name: str) -> None:
    write(f"{name}/a.py", "kept/a.py")
    assert found() == ["kept/a.py"]


def test_a_virtual_environment_of_any_name_is_left_out() -> None:
    write("myenv/pyvenv.cfg", "myenv/lib/a.py")
    assert found() == []
    assert found("myenv") == ["myenv/lib/a.py"]  # but for who asks


def test_other_hidden_folders_are_looked_into() -> None:
    write(".hidden/a.py")
    assert found() == [".hidden/a.py"]


def test_gitignore_is_respected() -> None:
    write("a.py", "gen/b.py", "keep/c.py", "d_local.py", "sub/e.py", "sub/f.py")
    Path(".gitignore").write_text("# c\ngen/\n*_local.py\n/sub/e.py\n")
    assert found() == ["a.py", "keep/c.py", "sub/f.py"]


def test_a_deeper_gitignore_overrules_one_above() -> None:
    write("a_gen.py", "sub/b_gen.py", "sub/c.py")
    Path(".gitignore").write_text("*_gen.py\n")
    Path("sub/.gitignore").write_text("!b_gen.py\nc.py\n")
    assert found() == ["sub/b_gen.py"]


def test_the_repositorys_outer_gitignore_counts_in_its_folders() -> None:
    write(".git/HEAD", "pkg/a.py", "pkg/out/b.py", "pkg/c.py")
    Path(".gitignore").write_text("out/\n")
    Path(".git/info").mkdir()
    Path(".git/info/exclude").write_text("c.py\n")
    assert found("pkg") == ["pkg/a.py"]


def test_an_ignored_folder_that_is_named_is_looked_into() -> None:
    write(".git/HEAD", "out/a.py", "out/b.pyc.py")
    Path(".gitignore").write_text("out/\n")
    assert found("out") == ["out/a.py", "out/b.pyc.py"]
    assert found() == []


def test_a_gitignore_outside_any_repository_has_no_say() -> None:
    write("p/a.py")
    Path(".gitignore").write_text("*.py\n")
    assert found("p") == ["p/a.py"]


def test_a_broken_gitignore_is_passed_by() -> None:
    write("a.py")
    Path(".gitignore").write_bytes(b"\xff\xfe\x00[\n!\n")
    assert found() == ["a.py"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("gen.py", ["a.py", "p/a.py", "p/q/b.py"]),
        ("q", ["a.py", "gen.py", "p/a.py"]),
        ("p/*", ["a.py", "gen.py"]),
        ("p/a.py", ["a.py", "gen.py", "p/q/b.py"]),
        ("./p/q/", ["a.py", "gen.py", "p/a.py"]),
        ("**/q", ["a.py", "gen.py", "p/a.py"]),
        ("**/q/b.py", ["a.py", "gen.py", "p/a.py"]),
        ("*.py", []),
        ("p/[ab].py", ["a.py", "gen.py", "p/q/b.py"]),
    ],
)
def test_exclude(pattern: str, left: list[str]) -> None:
    write("a.py", "gen.py", "p/a.py", "p/q/b.py")
    assert found(exclude=[pattern]) == left


def test_exclude_of_the_settings_is_relative_to_their_folder() -> None:
    write("proj/a.py", "proj/data/b.py", "data/c.py")
    Path("proj/pyproject.toml").write_text('[tool.zerograd]\nexclude = ["data/*.py"]\n')
    assert found() == ["data/c.py", "proj/a.py"]


def test_a_named_file_wins_over_exclude_unless_forced() -> None:
    write("gen/a.py")
    assert found("gen/a.py", exclude=["gen"]) == ["gen/a.py"]
    assert found("gen/a.py", exclude=["gen"], force_exclude=True) == []


def test_symbolic_links_make_no_loops_and_no_doubles() -> None:
    write("p/a.py", "outside/b.py")
    os.symlink("..", "p/up")
    os.symlink("a.py", "p/again.py")
    os.symlink("../outside/b.py", "p/b.py")
    os.symlink("self.py", "p/self.py")
    result = found("p")
    assert result == ["p/a.py", "p/b.py", "p/self.py"]
    problems: list[str] = []
    assert read_bytes("p/self.py", problems.append) is None
    assert len(problems) == 1


def test_a_named_link_is_followed() -> None:
    write("real/a.py")
    os.symlink("real", "link")
    assert found("link") == ["link/a.py"]


def test_a_path_that_does_not_exist_is_told_and_the_rest_goes_on() -> None:
    write("a.py")
    assert found("nowhere", "a.py") == ["a.py", "!nowhere: no such file or folder"]


def test_a_path_with_a_null_byte_is_told() -> None:
    assert len(found("a\0b")) == 1


def test_a_pipe_is_no_source() -> None:
    os.mkfifo("pipe.py")
    assert found("pipe.py") == ["!pipe.py: not checked, it is neither a file nor a folder"]


def test_a_pipe_in_a_tree_is_not_waited_for() -> None:
    os.mkfifo("pipe.py")
    write("a.py")
    read = (
        "from zerograd.static.files import read_bytes\n"
        "assert read_bytes('pipe.py', print) is None\n"
        "from zerograd.static.neighbours import read_module\n"
        "assert read_module('pipe.py') is None and read_module('a.py') == b'x = 1\\n'\n"
    )
    said = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, timeout=20)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "pipe.py: not checked, it is neither a file nor a folder\n"


def test_what_the_system_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    write("a.py")
    monkeypatch.setattr(files.os, "open", refuse)
    problems: list[str] = []
    assert read_bytes("a.py", problems.append) is None
    assert problems == ["a.py: not checked, permission denied"]
    monkeypatch.setattr(files.os, "scandir", refuse)
    assert found() == ["!.: not checked, permission denied"]


def test_a_file_of_50_megabytes_is_not_read() -> None:
    with open("huge.py", "wb") as file:
        file.truncate(50_000_000)
    problems: list[str] = []
    assert read_bytes("huge.py", problems.append) is None
    assert problems == ["huge.py: not checked, 50 MB are too large for a source file"]


def test_pathspec_is_imported_only_for_a_gitignore() -> None:
    write("a.py")
    script = (
        "import sys; from zerograd.static.files import find_files; "
        "from zerograd.static.settings import SettingsFinder; "
        "list(find_files(['.'], settings=SettingsFinder(), tell=print)); "
        "print('pathspec' in sys.modules)"
    )

    def imported() -> str:
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert imported() == "False"
    Path(".gitignore").write_text("build/\n")
    assert imported() == "True"


@pytest.mark.parametrize(
    "text",
    [
        "opt.zero_grad",
        "loss.backward()\nopt.step()",
        "self.manual_backward(loss)\nscaler.step(opt); scaler.update()",
        "loss.backward()\nxm.optimizer_step(opt)",
        "loss.backward()\nw -= lr * w.grad",
        "accelerator.backward(loss)\nx.grad.sign()",
        "# zerograd: allow[ZG101] idle",
        "loss.backward\nopt.step",
        "backward(loss)\nopt.step()",
        "amp_backward(loss)\nopt.step()",
        "opt = optim.SGD(net.parameters())\nfor x in data: update(opt, x)",
        "loss.backward()\napply_update(optimizer)",
        "class Net(pl.LightningModule):\n    clip_grad_norm_(self.parameters(), 1.0)",
    ],
)
def test_training_code_is_recognised_by_its_words(text: str) -> None:
    assert may_train(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "env.step()",
        "def backward(): ...",
        "steps = 3; grad = 1",
        "class F(Function):\n    def backward(ctx, g): return g.step",
        "x.backward()\ntorch.autograd.grad(y, x)",
    ],
)
def test_other_code_is_left_unparsed(text: str) -> None:
    assert not may_train(text.encode())


def test_the_projects_own_names_count() -> None:
    assert not may_train(b"engine.push(loss)")
    assert may_train(b"engine.push(loss)", [b"push"])
