"""How the command line starts and how it ends."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from zerograd.cli import main as cli
from zerograd.errors import UsageError

CLI = [sys.executable, "-m", "zerograd"]


def run(*words, **options):
    options.setdefault("capture_output", True)
    return subprocess.run([*CLI, *words], text=True, timeout=180, check=False, **options)


def imported_by(*words):
    """Return the modules that a command has imported when it ends."""
    code = (
        "import sys; from zerograd.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return set(done.stderr.split())


def test_help_lists_every_command():
    done = run("--help")
    assert done.returncode == 0
    for name, text in cli.COMMANDS.items():
        assert name in done.stdout
        assert text.split(",")[0][:30] in done.stdout


def test_no_words_at_all_is_help():
    assert run().stdout == run("--help").stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_imports_nothing_heavy(words):
    baseline = set(
        subprocess.run(
            [sys.executable, "-c", "import sys, argparse; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )
    added = imported_by(*words) - baseline
    ours = {name for name in added if name.startswith("zerograd")}
    assert ours == {
        "zerograd",
        "zerograd.cli",
        "zerograd.cli.main",
        "zerograd.cli.streams",
        "zerograd.errors",
    }
    # what argparse and gettext bring along, and little else
    assert len(added - ours) < 40, sorted(added - ours)


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_the_help_of_a_command_needs_no_torch(name):
    imported = imported_by(name, "--help")
    assert not {"torch", "numpy"} & imported


def test_the_version_is_the_package_version():
    from zerograd import __version__

    assert run("--version").stdout.strip() == f"zerograd {__version__}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc", "."], "chekc: there is no such command.\n  Did you mean `zerograd check`?"),
        (["train.py"], "Did you mean `zerograd check train.py`, or `zerograd run train.py`?"),
        (["nonsense"], "There are: check, run, "),
        (["rules", "--frmat", "json"], "rules: unrecognized arguments: --frmat"),
        (["demo", "more"], "demo: unrecognized arguments: more.\n  `zerograd demo --help` lists"),
        (["--frmat"], "zerograd: unrecognized arguments: --frmat.\n  `zerograd --help` lists"),
        (["check", "--jobs", "0"], "--jobs: must be a number from 1 to 60, not '0'."),
        (["check", "--jobs", "9999999999"], "must be a number from 1 to 60, not '9999999999'."),
        (["check", "--jobs", "two"], "must be a number from 1 to 60, not 'two'."),
        (["explain", ""], "'': there is no such rule."),
        (["report", "no.jsonl"], "no.jsonl: cannot be read (No such file or directory).\n  Record"),
        (["rules", "--form", "json"], "unrecognized arguments: --form"),
        (["rules", "--format", "xml"], "rules: argument --format: invalid choice: 'xml'"),
        (["explain"], "explain: the following arguments are required: RULE"),
    ],
)
def test_words_that_make_no_sense_are_one_clear_message_and_exit_2(words, said):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("zerograd: ")
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("option", ["--output", "--baseline"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(option):
    done = run("check", option, "no/where.json", "no/such/file.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"zerograd: {option} no/where.json: cannot be written (No such file or directory); "
        "name a file that can be, in a folder that exists\n"
    )


def test_an_error_is_one_line_and_its_exit_code(monkeypatch, capsys):
    def fail(words, asked):
        raise UsageError("train.py: no such file.\n  Name one that exists.")

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert cli.main(["rules"]) == 2
    assert capsys.readouterr().err == (
        "zerograd: train.py: no such file.\n  Name one that exists.\n"
    )


def test_our_own_faults_keep_their_traceback(monkeypatch):
    def fail(words, asked):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_dispatch", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["rules"])


def test_an_interrupt_is_130_without_a_traceback(monkeypatch, capsys):
    def interrupted(words, asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupted)
    assert cli.main(["rules"]) == 130
    assert capsys.readouterr().err == "zerograd: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends signals differently")
def test_a_real_interrupt_is_130():
    slow = (
        "import time, zerograd.cli.main as cli\n"
        "cli._dispatch = lambda *_: (print('up', flush=True), time.sleep(30))\n"
        "raise SystemExit(cli.main(['rules']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "zerograd: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes of this kind")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["rules", "ZG1"], ["rules", "--format", "json"]])
def test_a_reader_that_leaves_is_no_traceback(words, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [*CLI, *words],
            stdout=gone,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=180,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_run_leaves_the_users_streams_and_interrupts_alone(monkeypatch):
    def interrupted(words, asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupted)
    before = sys.stdout
    with pytest.raises(KeyboardInterrupt):
        cli.main(["run", "train.py"])
    assert sys.stdout is before


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1", "utf-8"])
def test_no_stream_refuses_a_character(encoding, tmp_path):
    code = (
        "import sys; from zerograd.cli.streams import make_safe; make_safe()\n"
        "print('a → b … 模 \\udcff ✓'); print('→', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        check=True,
    )
    text = done.stdout.decode(encoding)
    arrow = "→" if encoding == "utf-8" else "->"
    assert text.startswith(f"a {arrow} b ")
    assert r"\udcff" in text
    assert done.stderr.decode(encoding).strip() == arrow


@pytest.mark.parametrize("locale", ["C", "POSIX", ""])
@pytest.mark.parametrize("words", [["rules"], ["explain", "ZG101"], ["--help"]])
def test_every_locale_gets_its_output(locale, words):
    env = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run(*words, env=env, encoding="utf-8", errors="replace")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def in_shell(redirection):
    words = " ".join(map(shlex.quote, CLI))
    return subprocess.run(
        ["sh", "-c", f"{words} {redirection}"],
        capture_output=True, text=True, timeout=180, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sh")
@pytest.mark.parametrize("words", ["rules", "explain ZG101", "learn --list", "rules --format json"])
@pytest.mark.parametrize("gone", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written_is_one_clear_line(words, gone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if gone == ">/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("macOS has no /dev/full")
    done = in_shell(f"{words} {gone}")
    assert done.returncode == 2
    assert done.stderr.startswith("zerograd: standard output: cannot be written (")
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sh")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("rules >/dev/null 2>&-", 0),
        ("explain nothing 2>&-", 2),
        ("explain nothing 2</dev/null", 2),  # open, but not for writing
        ("explain nothing >&- 2>&-", 2),
        ("--help >&-", 0),
        ("check - <&-", 2),
        ("learn <&-", 2),
    ],
)
def test_streams_that_are_closed_leave_the_exit_code(words, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # `learn` makes a folder
    done = in_shell(words)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
