"""Where findings go: streams, files, colours, widths."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

import pytest

from zerograd.cli.output import (
    add_output_arguments,
    check_writable,
    text_width,
    wants_color,
    write_file,
    write_findings,
)
from zerograd.errors import UsageError
from zerograd.report.reporter import FORMATS, Closing


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def parse(*words):
    parser = argparse.ArgumentParser()
    add_output_arguments(parser)
    return parser.parse_args(words)


def test_colour_is_for_terminals_and_can_be_refused(monkeypatch):
    assert wants_color(Terminal())
    assert not wants_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "")
    assert wants_color(Terminal()), "an empty NO_COLOR refuses nothing"
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color(Terminal())


def test_text_is_no_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert text_width(Terminal()) == 60
    assert text_width(io.StringIO()) == 100
    monkeypatch.setenv("COLUMNS", "300")
    assert text_width(Terminal()) == 100


def test_every_format_is_offered():
    for name in FORMATS:
        assert parse("--format", name).format == name
    with pytest.raises(SystemExit):
        parse("--format", "yaml")


def test_without_a_file_findings_go_to_the_stream_given(capsys):
    out = io.StringIO()
    write_findings([], parse(), stream=out, closing=Closing("Checked 3 files."))
    assert out.getvalue() == "No findings. Checked 3 files.\n"
    write_findings([], parse("--format", "json"))
    assert capsys.readouterr().out == "[]\n"


def test_a_file_gets_all_or_nothing(tmp_path):
    file = tmp_path / "findings.json"
    file.write_text("before", encoding="utf-8")
    write_findings([], parse("--format", "json", "--output", str(file)))
    assert file.read_text(encoding="utf-8") == "[]\n"
    assert os.listdir(tmp_path) == ["findings.json"]


def test_a_file_that_cannot_be_written_is_one_clear_line(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for write in (check_writable, lambda path: write_file(path, "[]")):
        for path in (tmp_path / "absent" / "a.json", file / "a.json", tmp_path):
            with pytest.raises(UsageError, match=r"--output .*: cannot be written .*; name a file"):
                write(path)
    assert os.listdir(tmp_path) == ["file"]


def test_what_can_be_written_is_left_as_it_is_until_then(tmp_path):
    there = tmp_path / "there.txt"
    there.write_text("before", encoding="utf-8")
    check_writable(there)
    check_writable(tmp_path / "new.txt")
    check_writable(None)
    assert os.listdir(tmp_path) == ["there.txt"]
    assert there.read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize("there", [True, False], ids=["goes", "comes"])
def test_ranks_that_ask_at_once_refuse_nothing_and_leave_nothing(tmp_path, monkeypatch, there):
    path, looks = tmp_path / "findings.json", []
    look = Path.exists
    if there:
        path.touch()

    def another_rank_asks_too(self, **more):
        answer = look(self, **more)
        looks.append(answer)
        if len(looks) == 2:  # the last look before it is opened
            path.unlink() if there else path.touch()
        return answer

    monkeypatch.setattr(Path, "exists", another_rank_asks_too)
    check_writable(path)
    monkeypatch.undo()
    assert looks == [there, there]
    assert path.exists() is not there  # as the other rank has left it


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check_writable(tmp_path / "link")
    write_file(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "x"


def test_undecodable_names_do_not_stop_a_file(tmp_path):
    write_file(tmp_path / "out.txt", "a\udcff → b")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "a\\udcff → b"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no /dev/stdout")
def test_a_device_is_written_and_not_replaced():
    check_writable(Path("/dev/null"))
    write_file(Path("/dev/null"), "x")
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null")
