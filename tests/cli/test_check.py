"""`zerograd check`: options, exit codes, and what is said where."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.static.notebooks import notebook
from zerograd.cli.main import main

HEAD = """\
import torch
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """\
for x in data:
    model(x).sum().backward()
    opt.step()
"""
WRONG = HEAD + LOOP
RIGHT = WRONG + "    opt.zero_grad()\n"
PLACE = "wrong.py:5:5: ZG101 stale-gradient"
PYTHON = "Python {}.{}".format(*sys.version_info)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("wrong.py").write_text(WRONG)
    return tmp_path


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]):
    def run(*words: str) -> Said:
        code = main(["check", *words])
        shown = capsys.readouterr()
        return Said(code, shown.out, shown.err)

    return run


def test_findings_are_shown_and_exit_1(check):
    said = check(".")
    assert said.code == 1
    assert said.out.startswith(PLACE)
    assert "Found 1 error, 1 fixable with --fix. (1 file read, 1 with training code)" in said.out
    assert said.err == ""


def test_the_current_folder_is_the_default(check):
    assert check().out.startswith(PLACE)


def test_clean_code_exits_0(check):
    Path("wrong.py").write_text(RIGHT)
    said = check(".")
    assert said.code == 0
    assert said.out == "No findings. (1 file read, 1 with training code)\n"


def test_exit_zero_hides_the_code_not_the_findings(check):
    said = check("--exit-zero", ".")
    assert said.code == 0
    assert PLACE in said.out


@pytest.mark.parametrize("form", ["concise", "json", "sarif", "github"])
def test_formats_for_programs_keep_the_summary_out(check, form):
    said = check(".", "--format", form)
    assert said.code == 1
    assert "ZG101" in said.out
    assert "files read" not in said.out
    assert said.err == "1 finding (1 file read, 1 with training code)\n"
    if form in ("json", "sarif"):
        json.loads(said.out)


def test_json_carries_the_fix(check):
    (finding,) = json.loads(check(".", "--format", "json").out)
    assert finding["fix"]["edits"][0]["content"] == "\n    opt.zero_grad()"


def test_an_empty_result_is_an_empty_array(check):
    Path("wrong.py").write_text(RIGHT)
    assert json.loads(check(".", "--format", "json").out) == []


def test_output_goes_to_a_file(check):
    said = check(".", "--output", "found.txt")
    assert said.out == ""
    assert said.err == "1 finding (1 file read, 1 with training code)\n"
    assert Path("found.txt").read_text().startswith(PLACE)


def test_output_that_cannot_be_written_is_said(check):
    said = check(".", "--output", "no/where.txt")
    assert said.code == 2
    assert "--output no/where.txt: cannot be written" in said.err


def test_output_does_not_replace_a_source(check):
    said = check("--output", "wrong.py")
    assert (said.code, said.out) == (2, "")
    assert said.err == "zerograd: --output wrong.py: is source code, which it would replace\n"
    assert Path("wrong.py").read_text() == WRONG


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no /dev/stdout")
def test_output_to_where_standard_output_goes_is_added_there(check):
    words = [sys.executable, "-m", "zerograd", "check", "-q", "--format", "concise", "wrong.py"]
    words += ["--output", "/dev/stdout"]
    Path("log").write_text("before\n")
    with open("log", "ab") as log:
        assert subprocess.run(words, stdout=log).returncode == 1
    before, found = Path("log").read_text().splitlines()
    assert (before, found.startswith(PLACE)) == ("before", True)
    said = subprocess.run(words, capture_output=True, text=True)  # through a pipe
    assert said.stdout.startswith(PLACE)


def test_options_may_stand_between_the_paths(check):
    Path("b.py").write_text(WRONG)
    said = check("wrong.py", "--format", "concise", "b.py", "-q")
    assert [line.partition(":")[0] for line in said.out.splitlines()] == ["b.py", "wrong.py"]
    said = check("wrong.py", "-q", "b.py", "--nope")
    assert (said.code, said.err.splitlines()[0]) == (
        2,
        "zerograd: check: unrecognized arguments: --nope.",
    )


def test_quiet_leaves_the_findings(check):
    said = check(".", "--quiet")
    assert said.out.startswith(PLACE)
    assert "file read" not in said.out + said.err
    Path("wrong.py").write_text(RIGHT)
    said = check(".", "--quiet")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_select_and_ignore(check):
    assert check(".", "--ignore", "ZG101,ZG102").code == 0
    assert check(".", "--select", "ZG2", "--select", "ZG3").code == 0
    assert check(".", "--select", "stale-gradient").code == 1
    said = check(".", "--select", "ZG999")
    assert said.code == 2
    assert "ZG999: there is no such rule" in said.err


def test_notes_are_shown_with_all_or_when_selected_and_then_count(check):
    Path("wrong.py").write_text(
        HEAD
        + "for i, x in enumerate(data):\n"
        + "    model(x).sum().backward()\n"
        + "    if (i + 1) % 4 == 0:\n"
        + "        opt.step()\n"
        + "        opt.zero_grad()\n"
    )
    said = check(".")
    assert said.code == 0
    assert said.out.startswith("No findings (2 notes hidden; --all shows them).")
    said = check(".", "--all", "--format", "concise")
    assert said.code == 1
    assert "ZG502" in said.out and "ZG503" in said.out
    assert "1 note hidden" in check(".", "--ignore", "ZG503").out
    assert "hidden" not in check(".", "--select", "ZG101").out
    assert check(".", "--select", "ZG503").code == 1


def test_statistics(check):
    Path("again.py").write_text(WRONG + LOOP)
    said = check(".", "--statistics")
    assert (said.code, said.out) == (1, "    3  ZG101  stale-gradient\n")
    counts = json.loads(check(".", "--statistics", "--format", "json").out)
    assert counts == [{"code": "ZG101", "name": "stale-gradient", "count": 3}]
    assert check(".", "--statistics", "--format", "sarif").code == 2


def test_fix_writes_and_says_so(check):
    os.chmod("wrong.py", 0o750)
    said = check(".", "--fix")
    assert said.code == 0
    assert Path("wrong.py").read_text() == RIGHT
    assert stat.S_IMODE(os.stat("wrong.py").st_mode) == 0o750
    assert said.out == "No findings. (1 file read, 1 with training code; 1 fixed)\n"
    assert os.listdir() == ["wrong.py"]  # no draft is left behind


def test_fix_follows_a_link_and_keeps_it(check):
    os.mkdir("real")
    os.rename("wrong.py", "real/wrong.py")
    os.symlink("real/wrong.py", "link.py")
    assert check("link.py", "--fix").code == 0
    assert os.path.islink("link.py")
    assert Path("real/wrong.py").read_text() == RIGHT


def test_a_read_only_file_is_left_alone(check, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.W_OK)  # root may all
    said = check("wrong.py", "--fix")
    assert (said.code, said.err) == (2, "zerograd: wrong.py: not changed, it is read-only\n")
    assert said.out.startswith(PLACE)
    assert Path("wrong.py").read_text() == WRONG


def test_fix_that_cannot_be_written_is_said(check, monkeypatch):
    def refuse(path: str, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("zerograd.cli.changes.write_whole", refuse)
    said = check(".", "--fix")
    assert said.code == 2
    assert "wrong.py: not changed, Permission denied" in said.err
    assert said.out.startswith(PLACE)
    assert "Found 1 error. (1 file read, 1 with training code)\n" in said.out


def test_what_could_be_written_is_fixed_beside_what_could_not(check, monkeypatch):
    from zerograd.static.writing import write_whole

    def refuse(path: str, data: bytes) -> None:
        if path == "wrong.py":
            raise PermissionError(13, "Permission denied")
        write_whole(path, data)

    monkeypatch.setattr("zerograd.cli.changes.write_whole", refuse)
    Path("other.py").write_text(WRONG)
    said = check(".", "--fix", "--jobs", "2", "--format", "concise")
    assert said.code == 2
    assert said.out.splitlines() == [line for line in said.out.splitlines() if PLACE in line] != []
    assert "1 finding (2 files read, 2 with training code; 1 fixed)" in said.err
    assert Path("other.py").read_text() == RIGHT


def test_diff_shows_and_changes_nothing(check):
    said = check(".", "--diff")
    assert said.code == 1
    assert said.out.splitlines()[-1] == "+    opt.zero_grad()"
    assert said.err == "1 fix in 1 file, none applied\n"
    assert Path("wrong.py").read_text() == WRONG
    Path("wrong.py").write_text(RIGHT)
    said = check(".", "--diff")
    assert (said.code, said.out) == (0, "")


def test_a_diff_can_be_applied_by_patch(check):
    for name, ends in (("crlf.py", "\r\n"), ("bare.py", "\n")):
        text = WRONG.replace("\n", ends)
        Path(name).write_bytes((text if name == "crlf.py" else text.rstrip("\n")).encode())
    diff = check(".", "--diff").out
    done = subprocess.run(
        ["patch", "-p0", "--binary"], input=diff.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert Path("crlf.py").read_bytes() == RIGHT.replace("\n", "\r\n").encode()
    assert Path("bare.py").read_text() == RIGHT.rstrip("\n")
    assert check(".").code == 0


def test_a_diff_of_a_notebook_goes_by_cells(check):
    os.remove("wrong.py")
    Path("a.ipynb").write_bytes(notebook(HEAD, LOOP.rstrip("\n")))
    said = check(".", "--diff")
    assert said.out.startswith("--- a.ipynb:cell 2\n+++ a.ipynb:cell 2\n")


def test_a_notebook_is_fixed_in_place(check):
    os.remove("wrong.py")
    Path("a.ipynb").write_bytes(notebook(HEAD, LOOP.rstrip("\n")))
    assert "a.ipynb:cell 2:3:5: ZG101" in check(".").out
    assert check(".", "--fix").code == 0
    assert Path("a.ipynb").read_bytes() == notebook(HEAD, LOOP + "    opt.zero_grad()")


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_standard_input_is_read(check, monkeypatch):
    feed(monkeypatch, WRONG)
    said = check("--stdin-filename", "src/mine.py", "-")
    assert said.code == 1
    assert said.out.startswith("src/mine.py:5:5: ZG101 stale-gradient")
    assert "5 |     opt.step()" in said.out  # the excerpt is that of the text


def test_standard_input_is_fixed_to_standard_output(monkeypatch, capfdbinary):
    feed(monkeypatch, WRONG)
    assert main(["check", "--fix", "-"]) == 0
    shown = capfdbinary.readouterr()
    assert shown.out == RIGHT.encode()
    feed(monkeypatch, RIGHT)
    assert main(["check", "--fix", "-"]) == 0
    assert capfdbinary.readouterr().out == RIGHT.encode()


def test_standard_input_that_does_not_parse_exits_2(check, monkeypatch):
    feed(monkeypatch, "for x in")
    said = check("-")
    assert said.code == 2
    assert said.err.startswith("zerograd: stdin.py:1: not checked")


def test_a_name_for_standard_input_means_that_it_is_read(check, monkeypatch):
    feed(monkeypatch, WRONG)
    assert check("--stdin-filename", "x.py").out.startswith("x.py:5:5: ZG101")
    said = check("--stdin-filename", "x.py", "wrong.py")
    assert (said.code, said.out) == (2, "")
    assert "leave out the paths" in said.err


def test_what_is_excluded_by_force_is_so_on_standard_input(check, monkeypatch):
    Path("pyproject.toml").write_text('[tool.zerograd]\nexclude = ["gen"]\n')
    for words, code in (((), 1), (("--force-exclude",), 0)):
        feed(monkeypatch, WRONG)
        assert check("--stdin-filename", "gen/x.py", "-", *words).code == code


def test_a_folder_that_has_gone_is_told(check):
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    said = check()
    assert said.code == 2
    assert said.err == "zerograd: the current folder is gone.\n  Go to one that is there.\n"


def test_standard_input_stands_alone(check):
    assert check("-", "wrong.py").code == 2


def test_the_settings_of_the_stdin_name_hold(check, monkeypatch):
    Path("pyproject.toml").write_text('[tool.zerograd]\nignore = ["ZG101"]\n')
    feed(monkeypatch, WRONG)
    assert check("--stdin-filename", "a.py", "-").code == 0


def test_add_allow_silences_what_is_there(check):
    Path("b.ipynb").write_bytes(notebook(HEAD, LOOP.replace("step()", "step(\n    )") + "!ls"))
    said = check(".", "--add-allow")
    assert said.code == 0
    assert said.err == "2 comments added. Say the reason in each.\n"
    comment = "  # zerograd: allow[stale-gradient] TODO: say why this is right\n"
    assert Path("wrong.py").read_text() == WRONG.replace("opt.step()\n", f"opt.step(){comment}")
    assert f"    ){comment}" in "".join(
        json.loads(Path("b.ipynb").read_text())["cells"][1]["source"]
    )
    assert check(".").code == 0
    assert check(".", "--add-allow").err == "0 comments added.\n"


def test_a_baseline_is_written_once_and_hides_what_it_holds(check):
    said = check(".", "--baseline", "known.json")
    assert said.code == 0
    assert said.err == "known.json written with 1 finding\n"
    Path("wrong.py").write_text(f"# moved\n{WRONG}")
    assert check(".", "--baseline", "known.json").code == 0
    Path("new.py").write_text(WRONG)
    said = check(".", "--baseline", "known.json")
    assert said.code == 1
    assert "wrong.py" not in said.out
    Path("wrong.py").write_text(RIGHT)
    os.remove("new.py")
    said = check(".", "--baseline", "known.json")
    assert said.code == 0
    assert said.out == (
        "No new findings. (1 file read, 1 with training code; 0 known in the baseline; "
        "1 of it no longer there: delete it to write it anew)\n"
    )


@pytest.mark.parametrize(
    "words", [["wrong.py"], [".", "--exclude", "other.py"], [".", "--select", "ZG2"]]
)
def test_what_a_run_did_not_look_for_is_not_called_gone(check, words):
    Path("other.py").write_text(WRONG)
    assert check(".", "--baseline", "known.json").code == 0
    said = check(*words, "--baseline", "known.json")
    assert said.code == 0
    assert "no longer there" not in said.out
    known = 0 if "--select" in words else 1
    assert f"; {known} known in the baseline)\n" in said.out


def test_fixes_and_comments_are_only_for_what_the_baseline_does_not_hold(check):
    assert check(".", "--baseline", "known.json").code == 0
    Path("new.py").write_text(WRONG)
    both = WRONG + WRONG.replace("opt", "other").replace("model", "critic")
    Path("wrong.py").write_text(both)
    said = check("wrong.py", "--baseline", "known.json", "--diff")
    assert "+    other.zero_grad()" in said.out
    assert "+    opt.zero_grad()" not in said.out
    assert check("new.py", "--baseline", "known.json", "--add-allow").code == 0
    assert "allow[" in Path("new.py").read_text()
    assert check("wrong.py", "--baseline", "known.json", "--fix").code == 0
    assert Path("wrong.py").read_text() == f"{both}    other.zero_grad()\n"


def test_standard_input_has_its_lines_in_the_baseline(check, monkeypatch):
    assert check(".", "--baseline", "known.json").code == 0
    for text, code in ((WRONG, 0), (WRONG + LOOP, 1)):
        feed(monkeypatch, text)
        said = check("-", "--stdin-filename", "wrong.py", "--baseline", "known.json")
        assert said.code == code, said.out


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("word", ["", " , "])
def test_an_option_that_names_no_rule_is_a_slip(check, option, word):
    said = check(".", option, word)
    assert (said.code, said.out) == (2, "")
    assert f"{option[2:]} {word.strip() or repr('')}: there is no such rule" in said.err


def test_empty_standard_input_is_no_training_code(check, monkeypatch):
    feed(monkeypatch, "")
    assert check("-").out == "No findings. (1 file read, 0 with training code)\n"


def test_settings_of_what_is_not_there_are_not_shown(check):
    said = check("--show-settings", "nofile.py")
    assert (said.code, said.out) == (2, "")
    assert said.err == "zerograd: --show-settings nofile.py: no such file or folder\n"


def test_show_settings(check):
    Path("pyproject.toml").write_text(
        '[tool.zerograd]\nselect = ["ZG1"]\nstep = ["advance"]\n'
        '[tool.zerograd.per-file-ignores]\n"t/*" = ["ZG101"]\n'
    )
    said = check("--show-settings", "wrong.py")
    assert said.code == 0
    if sys.version_info >= (3, 11):
        import tomllib

        table = tomllib.loads(said.out)["tool"]["zerograd"]
        assert table["select"] == ["ZG1"]
        assert table["step"] == ["advance"]
        assert table["per-file-ignores"] == {"t/*": ["ZG101"]}


def test_a_broken_setting_is_one_line_and_exits_2(check):
    Path("pyproject.toml").write_text("[tool.zerograd]\nselct = []\n")
    said = check(".")
    assert said.code == 2
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "has no key 'selct'; did you mean 'select'?" in said.err


def test_exclude(check):
    assert check(".", "--exclude", "wrong.py").code == 0
    assert check("wrong.py", "--exclude", "wrong.py").code == 1
    assert check("wrong.py", "--exclude", "wrong.py", "--force-exclude").code == 0


def test_a_missing_path_alone_exits_2_and_among_others_does_not(check):
    said = check("nowhere.py")
    assert (said.code, said.out) == (2, "")
    assert said.err == "zerograd: nowhere.py: no such file or folder\n"
    assert check("nowhere.py", "wrong.py").code == 1
    Path("wrong.py").write_text(RIGHT)
    assert check("nowhere.py", "wrong.py").code == 0


def test_problems_are_folded_after_five(check):
    for number in range(9):
        Path(f"broken{number}.py").write_text("opt.zero_grad(\n")
    said = check(".")
    assert said.code == 1
    lines = said.err.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith(f"zerograd: broken0.py:1: not checked, {PYTHON} cannot parse it")
    assert lines[5] == "zerograd: and 4 more files could not be checked"


RELIABILITY = {
    "invalid.py": (b"for x in zero_grad\n", f"{PYTHON} cannot parse it"),
    "python2.py": (b'print "zero_grad", `x`\n', "it is written for Python 2"),
    "latin.py": (b"# zero_grad gr\xfcn\n", "the bytes are not utf-8"),
    "unknown.py": (b"# coding: klingon\n# zero_grad\n", "unknown encoding"),
    "null.py": (b"zero_grad\x00\n", "null bytes"),
    "deep.py": (b"zero_grad = " + b"(" * 9000 + b")" * 9000, "not checked"),
    "broken.ipynb": (b'{"cells": [zero_grad', "it is no notebook"),
    "empty.ipynb": (b'["zero_grad"]', "it is no notebook"),
}


@pytest.mark.parametrize("name", RELIABILITY)
def test_what_cannot_be_read_is_one_line_and_the_rest_is_checked(check, name):
    data, reason = RELIABILITY[name]
    Path(name).write_bytes(data)
    said = check(".", "--format", "concise")
    assert said.code == 1
    assert said.out.startswith(PLACE)
    (problem, _) = said.err.splitlines()
    assert problem.startswith(f"zerograd: {name}")
    assert reason in problem
    assert check(name).code == 2


@pytest.mark.parametrize(
    "data",
    [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf" + RIGHT.encode(), RIGHT.replace("\n", "\r\n").encode()],
    ids=["empty", "only a mark", "mark", "crlf"],
)
def test_what_can_be_read_says_nothing(check, data):
    Path("wrong.py").write_bytes(data)
    said = check("wrong.py")
    assert (said.code, said.err) == (0, "")


def test_a_huge_file_is_refused(check):
    with open("huge.py", "wb") as file:
        file.write(b"zero_grad")
        file.truncate(50_000_000)
    said = check(".")
    assert said.code == 1
    assert said.err == ("zerograd: huge.py: not checked, 50 MB are too large for a source file\n")


def test_a_loop_of_links_ends(check):
    os.mkdir("a")
    os.symlink("..", "a/up")
    os.symlink("me.py", "me.py")
    said = check(".")
    assert said.code == 1
    assert said.err.startswith("zerograd: me.py: not checked, too many levels of symbolic links")


def test_a_folder_without_python_says_so(check):
    os.mkdir("empty")
    said = check("empty")
    assert said.code == 0
    assert said.err == "zerograd: no Python files there\n"


def zerograd(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zerograd", "check", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


AS_ANOTHER = """
import os, sys
from zerograd.cli.main import main
main(["check", "wrong.py", "--quiet", "--output", os.devnull])  # imports what is needed
if os.geteuid() == 0:
    os.seteuid(65534)
sys.exit(main(["check", ".", "--format", "concise"]))
"""


def test_files_that_may_not_be_read_are_told(here):
    """As another user than root, who may read everything."""
    Path("secret.py").write_text(WRONG)
    os.mkdir("closed")
    Path("closed/a.py").write_text(WRONG)
    os.chmod("secret.py", 0)
    os.chmod("closed", 0)
    for folder in (here, *list(here.parents)[:2]):
        os.chmod(folder, 0o755)
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    finally:
        os.chmod("closed", 0o755)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(PLACE)
    assert "zerograd: secret.py: not checked, permission denied" in done.stderr
    assert "closed: not checked, permission denied" in done.stderr


def test_as_a_process_it_ends_like_the_function():
    done = zerograd(".")
    assert done.returncode == 1
    assert done.stdout.startswith(PLACE)
    assert done.stderr == ""


def test_a_reader_that_goes_away_is_no_fault():
    for number in range(300):
        Path(f"w{number}.py").write_text(WRONG)
    done = subprocess.run(
        f"{sys.executable} -m zerograd check . | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("w0.py:5:5")
    assert done.stderr == ""


def test_a_fault_of_ours_shows_its_traceback_and_exits_2(check, monkeypatch):
    def fail(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("zerograd.static.check.Checker.everything", fail)
    said = check(".")
    assert said.code == 2
    assert "wrong.py: zerograd failed here (KeyError in " in said.err
    assert "Traceback" in said.err
    assert "please report it" in said.err


def test_the_progress_bar_waits_a_second_and_leaves_no_trace(monkeypatch):
    from zerograd.cli import progress as module

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    out = Terminal()
    with module.Progress(out) as progress:
        progress.found()
        progress.read()
        assert out.getvalue() == ""
        now[0] = 1.5
        progress.checked(1)
        assert "1 of 1 checked, 1 files read" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[K")
    plain = io.StringIO()
    with module.Progress(plain) as progress:
        now[0] = 9.0
        progress.read()
    assert plain.getvalue() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends signals differently")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_is_one_line_from_all_processes_together(jobs):
    slow = (
        "import sys, time, zerograd.cli.main as cli, zerograd.static.check as static\n"
        "def check(*_): print('up', flush=True); time.sleep(60)\n"
        "static.Checker.check = check\n"
        "raise SystemExit(cli.main(['check', '--jobs', sys.argv[1], '.']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow, jobs],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.5)  # the other worker, which has nothing to do, comes up too
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "zerograd: interrupted\n")


def test_comments_that_could_not_be_written_are_not_called_added(check, monkeypatch):
    def refuse(path: str, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("zerograd.cli.changes.write_whole", refuse)
    said = check(".", "--add-allow")
    assert (said.code, said.err) == (2, "zerograd: wrong.py: not changed, Permission denied\n")
