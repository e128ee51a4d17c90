"""The lanes of a recorded run: contents follow from the events by the rules' own machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from tests.report.recorded_runs import Happening, event, forgetful, gan, lossy, record, right
from zerograd.lifecycle.events import Event
from zerograd.lifecycle.events import EventKind as K
from zerograd.report.timeline import Content, ProcessTimeline, build_timeline
from zerograd.report.trace_text import write_timeline
from zerograd.trace.format import Happened
from zerograd.trace.reader import read_trace


def timeline(
    tmp_path: Path, loop: Callable[..., Iterator[Happening]], steps: int
) -> ProcessTimeline:
    trace = read_trace(record(tmp_path / "t.jsonl", steps, loop))
    return build_timeline("run", trace.sections[0].happened)


def contents(process: ProcessTimeline, owner: str) -> list[str]:
    lane = next(lane for lane in process.lanes if lane.owner == owner)
    return [mark.content.value for mark in lane.marks]


def test_a_right_loop_goes_empty_fresh_spent(tmp_path: Path) -> None:
    process = timeline(tmp_path, right, 3)
    assert contents(process, "opt") == ["empty", "fresh", "spent"] * 3
    assert [window.backwards for window in process.lanes[0].windows] == [1, 1, 1]


def test_one_of_a_thing_is_not_called_several(tmp_path: Path) -> None:
    out = StringIO()
    write_timeline([timeline(tmp_path, right, 1)], out)
    assert "run: 1 iteration\n" in out.getvalue()
    assert "opt: 1 window of 1 backward\n" in out.getvalue()


def test_a_forgotten_clear_shows_as_stale_and_the_level_grows(tmp_path: Path) -> None:
    process = timeline(tmp_path, forgetful, 16)
    lane = process.lanes[0]
    assert [mark.content for mark in lane.marks].count(Content.STALE) == 4
    assert max(mark.level for mark in lane.marks) == 8
    assert [window.backwards for window in lane.windows] == [4, 4, 4, 4]


def test_what_a_clear_throws_away_shows_as_lost_before_it(tmp_path: Path) -> None:
    assert contents(timeline(tmp_path, lossy, 2), "opt")[:3] == ["lost", "empty", "empty"]


def test_what_another_loss_left_shows_as_foreign_from_the_others_step_on(tmp_path: Path) -> None:
    process = timeline(tmp_path, gan, 1)
    assert contents(process, "opt_d") == ["fresh", "foreign", "foreign", "spent", "empty"]
    lane = next(lane for lane in process.lanes if lane.owner == "opt_d")
    assert [mark.is_own for mark in lane.marks] == [True, False, True, True, True]


def test_one_loss_with_two_optimizers_is_not_foreign() -> None:
    both = frozenset({"a", "b"})
    events = [
        event(K.BACKWARD, 1, "a", buckets=("a", "b"), fills=both),
        event(K.STEP, 2, "a"),
        event(K.STEP, 3, "b"),
    ]
    process = build_timeline("run", [Happened(each, 0, 0.0) for each in events])
    assert Content.FOREIGN not in [mark.content for lane in process.lanes for mark in lane.marks]


def test_a_bucket_of_no_optimizer_gets_a_lane_of_its_own() -> None:
    events = [
        event(K.STEP, 2, "opt"),
        event(K.BACKWARD, 1, "", buckets=("opt", "extra")),
    ]
    process = build_timeline("run", [Happened(each, 0, 0.0) for each in events])
    assert [(lane.owner, lane.is_owned) for lane in process.lanes] == [
        ("opt", True),
        ("extra", False),
    ]


def test_curves_come_from_the_numbers_in_the_trace(tmp_path: Path) -> None:
    process = timeline(tmp_path, right, 3)
    # three events a round, of which the second is the backward
    assert process.curves == {"loss": [(1, 1.0), (4, 0.5), (7, pytest.approx(1 / 3))]}


def test_each_loss_and_each_optimizer_has_a_curve_of_its_own() -> None:
    def happened(each: Event, **extra: float) -> Happened:
        return Happened(each, 0, 0.0, extra=extra)

    losses = [
        happened(event(K.BACKWARD, 3, "opt_d"), loss=1.0),
        happened(event(K.STEP, 4, "opt_d"), grad_norm=2.0),
        happened(event(K.BACKWARD, 6, "opt_g"), loss=3.0),
        happened(event(K.STEP, 7, "opt_g"), grad_norm=4.0),
    ]
    curves = build_timeline("run", losses).curves
    names = ["loss of opt_d", "loss of opt_g", "grad_norm of opt_d", "grad_norm of opt_g"]
    assert list(curves) == names
    again = replace(event(K.BACKWARD, 9, "opt_d"), text="errors.fake.backward()")
    curves = build_timeline("run", [losses[0], happened(again, loss=5.0)]).curves
    assert curves == {"loss, line 3": [(0, 1.0)], "loss, errors.fake, line 9": [(1, 5.0)]}


def test_a_loss_that_is_not_finite_stays_in_its_curve(tmp_path: Path) -> None:
    def diverges(iteration: int, path: str) -> Iterator[Happening]:
        loss = 1.0 if iteration < 2 else math.nan if iteration == 2 else math.inf
        yield event(K.BACKWARD, 8, path=path, fills=frozenset({"opt"})), {"loss": loss}

    values = [value for _, value in timeline(tmp_path, diverges, 4).curves["loss"]]
    assert values[:2] == [1.0, 1.0] and math.isnan(values[2]) and math.isinf(values[3])


def test_the_text_joins_iterations_that_look_alike(tmp_path: Path) -> None:
    out = StringIO()
    write_timeline([timeline(tmp_path, right, 2_000)], out)
    text = out.getvalue()
    assert "2,000 iterations, 875 of them folded" in text
    assert (
        "0-1992  opt clear (train.py:7) → opt backward (train.py:8) → opt step (train.py:10)"
        in text
    )
    assert "1,125 windows of 1 backward\n" in text
