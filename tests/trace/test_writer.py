"""The trace file: bounded, flushed while the run goes on, readable after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from zerograd.errors import TraceError
from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, Live, TrailStep
from zerograd.rules import BY_CODE
from zerograd.trace.format import Folded, Header, finding_from_json, is_kept
from zerograd.trace.reader import merge_parts, read_trace
from zerograd.trace.writer import TraceWriter

BACKWARD = Event(EventKind.BACKWARD, "opt", Spot("train.py", 3), fills=frozenset({"opt"}))
STEP = Event(EventKind.STEP, "opt", Spot("train.py", 4), text="opt.step()")
CLEAR = Event(EventKind.CLEAR, "opt", Spot("train.py", 5), to_none=False)


def header(**changes: object) -> Header:
    return replace(Header("0.1.0", time.time(), ("train.py",), pid=7), **changes)


def a_finding(step: int = 5) -> Finding:
    return Finding(
        BY_CODE["ZG101"],
        Spot("train.py", 4, 9),
        "message",
        "advice",
        owner="opt",
        trail=(TrailStep(Spot("train.py", 3), "adds", "loss.backward()"),),
        live=Live(step=step, ranks=(0, 1), parameters=("w",), count=3, share=0.5),
    )


def run_steps(writer: TraceWriter, steps: range) -> None:
    for iteration in steps:
        for event in (BACKWARD, STEP, CLEAR):
            writer.write(event, iteration=iteration)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header(rank=1, world=2))
    writer.write(replace(BACKWARD, backward="b7"), iteration=0, extra={"loss": 2.5})
    writer.write(STEP, iteration=0)
    writer.write(CLEAR, iteration=1)
    writer.note("not checked: x")
    writer.close(exit_code=3)
    (section,) = read_trace(path).sections
    assert [(each.event, each.iteration) for each in section.events] == [
        (replace(BACKWARD, backward="b7"), 0),
        (STEP, 0),
        (CLEAR, 1),
    ]
    assert section.events[0].extra == {"loss": 2.5}
    assert (section.header.rank, section.header.world, section.name) == (1, 2, "rank 1")
    assert section.notes == ["not checked: x"]
    assert section.end is not None and section.end["exit"] == 3
    assert section.iterations == 2


def test_every_line_is_json_and_the_first_is_a_versioned_header(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    writer.write(BACKWARD, iteration=0, extra={"loss": float("nan"), "odd": "\ud800 <b>é"})
    writer.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert (lines[0]["format"], lines[0]["version"]) == ("zerograd-trace", 1)
    event = next(line for line in lines if line["type"] == "event")
    assert event["extra"]["loss"] == "nan"  # NaN is no JSON


def test_findings_survive_the_way_through_json() -> None:
    finding = a_finding()
    assert finding_from_json(json.loads(json.dumps(finding.to_json()))) == finding


def test_a_finding_of_an_unknown_rule_keeps_its_name() -> None:
    shape = {**a_finding().to_json(), "code": "ZG777", "name": "of-tomorrow", "severity": "note"}
    rule = finding_from_json(shape).rule
    assert (rule.code, rule.name, rule.severity.value) == ("ZG777", "of-tomorrow", "note")


def test_a_long_run_is_thinned_and_nothing_goes_uncounted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header(), kept_at_first=50)
    run_steps(writer, range(20_000))
    writer.close()
    (section,) = read_trace(path).sections
    kept = sorted({each.iteration for each in section.events})
    assert kept == [number for number in range(20_000) if is_kept(number, 50)]
    assert len(kept) < 320
    assert section.iterations == 20_000
    folded = sum(each.iterations for each in section.folded)
    assert folded + len(kept) == 20_000
    steps = sum(each.events["step"] for each in section.folded)
    assert steps + sum(each.event.kind is EventKind.STEP for each in section.events) == 20_000
    assert section.end is not None and section.end["events"]["clear"] == 20_000


def test_the_iterations_around_a_finding_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header(), kept_at_first=10)
    run_steps(writer, range(1_001))
    writer.finding(a_finding(1_000), iteration=1_000)
    run_steps(writer, range(1_001, 2_000))
    writer.close()
    (section,) = read_trace(path).sections
    kept = {each.iteration for each in section.events}
    assert {997, 998, 999, 1_000, 1_001, 1_002, 1_003} <= kept
    assert 995 not in kept and 1_005 not in kept
    assert section.iterations == 2_000
    order = [
        each.first if isinstance(each, Folded) else each.iteration for each in section.happened
    ]
    assert order == sorted(order)
    assert [each.rule.code for each in section.findings] == ["ZG101"]


def test_a_finding_told_again_at_the_end_counts_once_with_its_last_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    finding = a_finding()
    writer.finding(finding, iteration=5)
    last = replace(finding, live=replace(finding.live, count=900))
    writer.update(last)
    writer.close()
    assert read_trace(path).findings == [last]


def test_memory_and_file_stay_small_when_one_iteration_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header(), kept_at_first=1)
    for _ in range(20_000):
        writer.write(BACKWARD, iteration=5)  # 5 is not kept
    assert len(writer._current) < 5_000
    writer.close()
    (section,) = read_trace(path).sections
    assert section.end is not None and section.end["events"] == {"backward": 20_000}


def test_programs_with_endless_lines_do_not_fill_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    for number in range(6_000):
        writer.write(replace(BACKWARD, spot=Spot("x.py", number)), iteration=number // 10)
    writer.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(line["type"] == "site" for line in lines) == 4_096
    assert lines[-1]["events"] == {"backward": 6_000}


def test_several_threads_may_write(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    threads = [threading.Thread(target=run_steps, args=(writer, range(300))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    (section,) = read_trace(path).sections
    assert section.end is not None and section.end["events"]["step"] == 1_200


def test_a_killed_run_leaves_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    program = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.trace.format import Header
from zerograd.trace.writer import TraceWriter
writer = TraceWriter({str(path)!r}, Header("0", time.time()))
for number in range(10**9):
    writer.write(Event(EventKind.STEP, "opt", Spot("a.py", 1)), iteration=number)
    if number == 100:
        print("running", flush=True)
    time.sleep(0.001)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    until = time.monotonic() + 60
    while len(read_trace(path).sections[0].events) <= 100 and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (section,) = read_trace(path).sections
    assert section.end is None  # it says that the run did not end by itself
    assert len(section.events) > 100


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    run_steps(writer, range(3))
    writer.close()
    path.write_bytes(path.read_bytes()[:-20])
    (section,) = read_trace(path).sections
    assert len(section.events) == 9 and section.end is None and section.skipped == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("hello\n", "no header"),
        ('{"type": "header", "format": "zerograd-trace", "version": 99}\n', "version 99"),
        ('{"a": 1}\n', "no header"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(TraceError, match=words):
        read_trace(path)


def test_damaged_lines_inside_are_counted_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    run_steps(writer, range(2))
    writer.close()
    lines = path.read_text().splitlines()
    lines[3:3] = ['{"type": "event", "site": 99}', "[1]", '{"type": "site"}', '{"type": "new"}']
    path.write_text("\n".join(lines) + "\n")
    (section,) = read_trace(path).sections
    assert len(section.events) == 6 and section.skipped == 3


def test_parts_are_read_beside_the_file_and_merged_into_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    parts = tmp_path / "t.jsonl.parts"
    parts.mkdir()
    for rank, place in ((1, path), (0, parts / "0.jsonl"), (2, parts / "2.jsonl")):
        writer = TraceWriter(place, header(rank=rank, world=3))
        run_steps(writer, range(2))
        writer.close()
    assert [each.header.rank for each in read_trace(path).sections] == [0, 1, 2]
    merge_parts(path, sorted(parts.iterdir()))
    assert not list(parts.iterdir())
    assert [each.header.rank for each in read_trace(path).sections] == [0, 1, 2]


def test_a_trace_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be written"):
        TraceWriter(tmp_path / "missing" / "t.jsonl", header())


@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_file_that_can_no_longer_be_written_is_told_of_once(
    tmp_path: Path, is_flushed: bool
) -> None:
    reasons: list[str] = []
    writer = TraceWriter(tmp_path / "t.jsonl", header(), ends=reasons.append)
    writer._stop.set()
    writer._thread.join(timeout=60)
    with open(os.devnull, "rb", buffering=0) as unwritable:
        real, writer._file = writer._file, unwritable  # type: ignore[assignment]
        if is_flushed:
            run_steps(writer, range(3))
            writer.flush()
        writer.close(exit_code=0)
    assert real is not None
    real.close()
    assert len(reasons) == 1


def test_a_signal_handler_may_close_it_in_the_midst_of_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, header())
    turn = writer._turn

    def interrupted(iteration: int) -> None:
        monkeypatch.undo()
        turn(iteration)
        writer.close(exit_code=4)  # what a handler that ends the program does

    monkeypatch.setattr(writer, "_turn", interrupted)
    thread = threading.Thread(target=writer.write, args=(STEP,), kwargs={"iteration": 1})
    thread.daemon = True
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert read_trace(path).sections[0].end is not None
