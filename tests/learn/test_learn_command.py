"""`zerograd learn` as a person and as a script use it: a real process, a real terminal."""

import os
import subprocess
import sys
import time

import pytest

pexpect = pytest.importorskip("pexpect")

SOLVED = "def zero_grad(grads):\n    return [0.0] * len(grads)\n"
COMMAND = [sys.executable, "-m", "zerograd", "learn"]


def learn(*words, cwd, **env):
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def terminal(tmp_path):
    """A terminal in which the course has just been started."""
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "course"],
        cwd=str(tmp_path),
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        encoding="utf-8",
        timeout=180,
        dimensions=(40, 100),
    )
    yield child
    child.close(force=True)


def test_a_sitting_from_the_first_key_to_the_second_exercise(terminal, tmp_path):
    terminal.expect("Each save runs its checks")
    terminal.expect("Exercise 1: Clear a list of gradients")
    terminal.expect("Not written yet")
    terminal.expect(r"\[q\] quit")

    for level in (1, 2, 3):
        terminal.send("h")
        terminal.expect(f"Hint {level} of 3")
        terminal.expect(r"\[q\] quit")

    file = tmp_path / "course" / "01_zero_gradients.py"
    file.write_text("def zero_grad(grads):\n    return [g * 0 for g in grads]\n")
    terminal.expect("became nan")
    terminal.expect(r"\[q\] quit")

    file.write_text(SOLVED)
    terminal.expect("Solved: Clear a list of gradients")
    terminal.expect("A clear does not look at what it clears")
    terminal.expect_exact("[#---------] 1 of 10 done")
    terminal.expect(r"\[q\] quit")

    terminal.send("n")
    terminal.expect("Exercise 2")
    terminal.expect(r"\[q\] quit")

    terminal.send("l")
    terminal.expect(r"\[x\]  1  zero-gradients")
    terminal.expect(r"> \[ \]  2  none-safe-clear")
    terminal.expect("go to")
    terminal.send("1")
    terminal.expect("Solved")
    terminal.expect(r"\[q\] quit")

    terminal.send("r")
    terminal.expect("Press r again")
    terminal.send("r")
    terminal.expect("The starter is back. Your text is in 01_zero_gradients.1.bak")
    terminal.expect("Not written yet")
    assert (file.parent / "01_zero_gradients.1.bak").read_text() == SOLVED

    terminal.send("q")
    terminal.expect("0 of")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


HANGS = """\
import os, pathlib, time
(pathlib.Path(__file__).parent / "pid").write_text(str(os.getpid()))
time.sleep(300)
"""


def wait_for(path):
    until = time.monotonic() + 120
    while not (path.exists() and path.read_text()) and time.monotonic() < until:
        time.sleep(0.1)
    return path.read_text()


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_keys_are_answered_while_checks_run(terminal, tmp_path):
    terminal.expect("Not written yet")
    folder = tmp_path / "course"
    (folder / "01_zero_gradients.py").write_text(HANGS)
    wait_for(folder / "pid")
    terminal.send("h")
    terminal.expect("Hint 1 of 3")
    os.kill(int((folder / "pid").read_text()), 0)  # the checks go on
    terminal.send("r")
    terminal.expect("Press r again")
    terminal.send("r")
    terminal.expect("The starter is back")
    terminal.expect("Not written yet")
    # What is saved now is not touched by keys that were pressed before.
    (folder / "01_zero_gradients.py").write_text(SOLVED)
    terminal.expect("Solved")
    assert (folder / "01_zero_gradients.py").read_text() == SOLVED


def test_quitting_and_saving_do_not_wait_for_the_checks(terminal, tmp_path):
    terminal.expect("Not written yet")
    folder = tmp_path / "course"
    (folder / "01_zero_gradients.py").write_text(HANGS)
    wait_for(folder / "pid")
    (folder / "pid").unlink()
    (folder / "01_zero_gradients.py").write_text(SOLVED)
    terminal.expect("Solved")
    (folder / "01_zero_gradients.py").write_text(HANGS)
    pid = int(wait_for(folder / "pid"))
    terminal.send("q")
    terminal.expect(pexpect.EOF, timeout=120)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_editor_that_replaces_the_file_is_seen_too(terminal, tmp_path):
    terminal.expect(r"\[q\] quit")
    folder = tmp_path / "course"
    (folder / "swap").write_text(SOLVED)
    os.replace(folder / "swap", folder / "01_zero_gradients.py")
    terminal.expect("Solved")
    terminal.send("q")
    terminal.expect(pexpect.EOF)


def test_the_terminal_is_given_back_as_it_was(tmp_path):
    shell = pexpect.spawn("/bin/sh", cwd=str(tmp_path), encoding="utf-8", timeout=180)
    shell.sendline("stty -a > before; " + " ".join(COMMAND) + "; stty -a > after; echo DO''NE")
    shell.expect(r"\[q\] quit")
    shell.sendintr()  # Ctrl-C is a way to leave
    shell.expect("goes on from here")
    shell.expect("DONE")
    shell.close(force=True)
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


def test_check_answers_scripts_by_exit_code(tmp_path):
    assert learn("--check", "1", cwd=tmp_path).returncode == 1
    (tmp_path / "zerograd-learn" / "01_zero_gradients.py").write_text(SOLVED)
    passed = learn("--check", "zero-gradients", cwd=tmp_path)
    assert passed.returncode == 0
    assert "Solved" in passed.stdout
    assert "[x]  1" in learn("--list", cwd=tmp_path).stdout


def test_an_unknown_name_is_exit_2_and_leaves_no_folder(tmp_path):
    answer = learn("--check", "nothing", cwd=tmp_path)
    assert answer.returncode == 2
    assert "no exercise is called 'nothing'" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_it_names_the_way_for_scripts(tmp_path):
    answer = learn(cwd=tmp_path)
    assert answer.returncode == 2
    assert "--check" in answer.stderr


def test_what_is_refused_leaves_the_bookmark_where_it_was(tmp_path):
    assert learn("--start", "7", cwd=tmp_path).returncode == 2
    assert "> [ ]  1" in learn("--list", cwd=tmp_path).stdout


def test_the_list_makes_no_folder(tmp_path):
    answer = learn("--list", cwd=tmp_path)
    assert answer.returncode == 0 and "10  six-faults" in answer.stdout
    assert list(tmp_path.iterdir()) == []


def test_output_is_safe_where_only_ascii_can_be_shown(tmp_path):
    answer = learn("--check", "1", cwd=tmp_path, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert answer.returncode == 1
    assert answer.stdout.isascii()


def test_hint_and_reset_work_from_scripts(tmp_path):
    assert "Hint 1 of 3" in learn("--hint", "1", cwd=tmp_path).stdout
    assert "Hint 2 of 3" in learn("--hint", "1", cwd=tmp_path).stdout
    (tmp_path / "zerograd-learn" / "01_zero_gradients.py").write_text("mine")
    assert "starter is back" in learn("--reset", "1", cwd=tmp_path).stdout


def test_a_child_that_never_ends_is_gone_after_the_sitting(terminal, tmp_path):
    terminal.expect(r"\[q\] quit")
    file = tmp_path / "course" / "01_zero_gradients.py"
    file.write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "time.sleep(300)\n"
    )
    wait_for(tmp_path / "pid")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    child = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 60
    while is_alive(child) and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_alive(child)
