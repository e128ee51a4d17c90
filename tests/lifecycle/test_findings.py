"""What a finding says: its message, its trail, its place in a list."""

from __future__ import annotations

import pytest

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, Live, in_order
from zerograd.lifecycle.judge import judge
from zerograd.rules import ALL_RULES, BY_CODE


def history(*steps: tuple[EventKind, int, str]) -> list[Event]:
    return [Event(kind, "opt", Spot("train.py", line), text=text) for kind, line, text in steps]


STALE = history(
    (EventKind.BACKWARD, 11, "loss.backward()"),
    (EventKind.STEP, 12, "opt.step()"),
    (EventKind.BACKWARD, 11, "loss.backward()"),
    (EventKind.STEP, 12, "opt.step()"),
)


def test_a_stale_step_tells_where_the_gradients_come_from() -> None:
    (finding,) = judge(STALE, ALL_RULES)
    assert finding.message == "opt.step() uses gradients that an earlier step already used"
    assert finding.advice == "call opt.zero_grad() between one step and the next backward()"
    assert [(step.spot.line, step.text) for step in finding.trail] == [
        (12, "steps; nothing clears the gradients it used"),
        (11, "next iteration: adds onto them"),
        (12, "steps on both"),
    ]


def test_a_lost_window_tells_what_threw_it_away() -> None:
    lost = history(
        (EventKind.BACKWARD, 3, "loss.backward()"),
        (EventKind.CLEAR, 4, "opt.zero_grad()"),
        (EventKind.STEP, 5, "opt.step()"),
    )
    (finding,) = judge(lost * 2, ALL_RULES)
    assert (finding.rule.code, finding.spot.line) == ("ZG102", 4)
    assert [(step.spot.line, step.text) for step in finding.trail] == [
        (3, "fills the gradients"),
        (4, "throws them away, unused"),
        (5, "steps on nothing"),
    ]


def test_a_window_cleared_early_tells_at_the_clear() -> None:
    window = history(
        (EventKind.CLEAR, 1, ""),
        (EventKind.BACKWARD, 2, ""),
        (EventKind.CLEAR, 1, ""),
        (EventKind.BACKWARD, 2, ""),
        (EventKind.STEP, 3, ""),
    )
    (finding,) = judge(window * 2, ALL_RULES)
    assert (finding.rule.code, finding.spot.line) == ("ZG501", 1)
    assert [step.spot.line for step in finding.trail] == [2, 1]


def test_an_unowned_gradient_in_a_clip_is_a_warning_and_without_one_a_note() -> None:
    fill = Event(EventKind.BACKWARD, "", Spot("train.py", 2), ("body", "head"))
    step = Event(EventKind.STEP, "opt", Spot("train.py", 4), ("head",))
    clear = Event(EventKind.CLEAR, "opt", Spot("train.py", 1), ("head",))
    clip = Event(EventKind.CLIP, "opt", Spot("train.py", 3), ("body", "head"))
    held = {"opt": ["head"]}
    (plain,) = judge([clear, fill, step] * 4, ALL_RULES, held)
    (clipped,) = judge([clear, fill, clip, step] * 4, ALL_RULES, held)
    assert (plain.rule.code, plain.rule.severity.value) == ("ZG105", "note")
    assert (clipped.rule.code, clipped.rule.severity.value) == ("ZG105", "warning")


SCALER_TEXTS = {
    "ZG301": (
        [EventKind.BACKWARD, EventKind.CLIP],
        "gradients are clipped while they still carry the scaler's factor",
        "call scaler.unscale_(opt) before the clip",
    ),
    "ZG302": (
        [EventKind.BACKWARD, EventKind.STEP],
        "scaler.step(opt) is not followed by scaler.update()",
        "call scaler.update() once after the last scaler.step() of an iteration",
    ),
    "ZG305": (
        [EventKind.BACKWARD, EventKind.UNSCALE, EventKind.SCALER_UPDATE, EventKind.STEP],
        "scaler.update() comes before scaler.step(opt), which then unscales a second time",
        "call scaler.update() once, after the last scaler.step() of the iteration",
    ),
}


@pytest.mark.parametrize("code", SCALER_TEXTS)
def test_a_fault_with_a_scaler_names_the_users_own_scaler(code: str) -> None:
    kinds, message, advice = SCALER_TEXTS[code]
    events = [
        Event(
            kind, "opt", Spot("train.py", line), scaler="" if kind is EventKind.CLIP else "scaler"
        )
        for line, kind in enumerate(kinds, 1)
    ]
    finding = next(each for each in judge(events, ALL_RULES) if each.rule.code == code)
    assert (finding.message, finding.advice) == (message, advice)


def test_a_step_past_the_scaler_names_the_scaler_to_step_through() -> None:
    scaled = Event(EventKind.BACKWARD, "opt", Spot("train.py", 1), scaler="amp")
    (finding,) = judge([scaled, Event(EventKind.STEP, "opt", Spot("train.py", 2))], ALL_RULES)
    assert finding.advice == "write amp.step(opt), then amp.update()"


def test_a_fault_that_stays_is_one_finding_in_order() -> None:
    often = list(judge(STALE * 5, ALL_RULES))
    assert len(often) > 1
    (once,) = in_order(often)
    assert once is often[0]


@pytest.mark.parametrize(
    ("code", "count", "words"),
    [
        ("ZG101", 1, ""),
        ("ZG101", 1_200, "1,200 times"),
        ("ZG102", 9, "at least 9 times"),  # the first window proves nothing yet
        ("ZG501", 5, "at least 5 times"),
    ],
)
def test_a_count_that_began_late_is_a_lower_bound(code: str, count: int, words: str) -> None:
    live = Live(step=1, count=count)
    assert Finding(BY_CODE[code], Spot("a.py", 1), "m", "a", live=live).often == words


def test_findings_are_in_order_of_place() -> None:
    (finding,) = judge(STALE, ALL_RULES)
    places = [("b.py", 1), ("a.py", 9), ("a.py", 2)]
    moved = [type(finding)(BY_CODE["ZG101"], Spot(path, line), "", "") for path, line in places]
    assert [(each.spot.path, each.spot.line) for each in in_order(moved)] == sorted(places)
