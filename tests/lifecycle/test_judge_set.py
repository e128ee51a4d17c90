"""What is said of a line that is reached in many states, each under its conditions."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import pytest

from tests.lifecycle.histories import read_event
from zerograd.lifecycle.events import Event
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.state import INITIAL, UNKNOWN, BucketState
from zerograd.lifecycle.verdicts import Literals, Verdict, judge_set
from zerograd.rules import ALL_RULES, BY_CODE

HELD = {"opt": ["net"], "both": ["net", "head"], "opt_g": ["gen"], "opt_d": ["disc"]}

Paths = dict[str, str]  # conditions -> what has happened under them


def literals(conditions: str) -> Literals:
    """Return "amp, not train" as literals."""
    words = [each.strip() for each in conditions.split(",") if each.strip()]
    return frozenset((word.removeprefix("not "), not word.startswith("not ")) for word in words)


def run(history: str, bucket: str) -> BucketState:
    if history == "unknown":
        return UNKNOWN
    lines = [line.strip() for line in history.split(";") if line.strip()]
    events = [read_event(line, number, HELD) for number, line in enumerate(lines, 1)]
    return reduce(lambda state, event: advance(state, event, bucket), events, INITIAL)


def judged(paths: Paths, event: Event) -> list[Verdict]:
    buckets: dict[str, dict[BucketState, list[Literals]]] = {}
    for bucket in event.reach:
        for conditions, history in paths.items():
            for each in history.split("|"):
                state = run(each.strip(), bucket)
                buckets.setdefault(bucket, {}).setdefault(state, []).append(literals(conditions))
    return judge_set(buckets, event, ALL_RULES)


def certain(paths: Paths, text: str) -> set[tuple[str, tuple[str, bool] | None]]:
    verdicts = judged(paths, read_event(text, 99, HELD))
    return {(each.rule.code, each.condition) for each in verdicts if each.certain}


def possible(paths: Paths, text: str) -> set[str]:
    verdicts = judged(paths, read_event(text, 99, HELD))
    return {each.rule.code for each in verdicts}


LOOP = "backward net; step opt"
CLEARED = f"{LOOP}; clear opt; backward net"
KEPT = f"{LOOP}; backward net"
FIRST = "backward net"
SCALED = "backward net scaler=s"
LOST = "clear opt; backward net scaler=s; clear opt"
LEAK = "backward gen disc fills=opt_g,opt_d; step opt_g; backward disc fills=opt_d; step opt_d"

CASES: dict[str, tuple[Paths, str, set[tuple[str, tuple[str, bool] | None]]]] = {
    "nothing clears: iteration one is innocent, the others are not": (
        {"": f"{FIRST} | {KEPT}"},
        "step opt",
        {("ZG101", None)},
    ),
    "a clear on every path": ({"": f"{FIRST} | {CLEARED}"}, "step opt", set()),
    "a clear on one branch only": (
        {"amp": CLEARED, "not amp": KEPT},
        "step opt",
        {("ZG101", ("amp", False))},
    ),
    "a clear on one branch of two conditions": (
        {
            "amp, last": CLEARED,
            "amp, not last": CLEARED,
            "not amp, last": KEPT,
            "not amp, not last": KEPT,
        },
        "step opt",
        {("ZG101", ("amp", False))},
    ),
    "two conditions that both spare it: no one literal breaks it": (
        {
            "amp, last": CLEARED,
            "amp, not last": CLEARED,
            "not amp, last": CLEARED,
            "not amp, not last": KEPT,
        },
        "step opt",
        set(),
    ),
    "a flag that guards clear and step alike": (
        {"train": f"{FIRST} | {CLEARED}"},
        "step opt",
        set(),
    ),
    "a path that does not know the flag could be on either side of it": (
        {"not amp": KEPT, "": CLEARED},
        "step opt",
        set(),
    ),
    "a window's guard: the step is reached where it is true, and cleared there": (
        {
            "i % 4 == 3": "backward net | backward net; backward net; backward net | "
            f"{LOOP}; clear opt; backward net; backward net",
        },
        "step opt",
        set(),
    ),
    "a window that is never cleared": (
        {"i % 4 == 3": f"{LOOP}; backward net; backward net"},
        "step opt",
        {("ZG101", None)},
    ),
    "an unknown state is never judged to break": (
        {"": f"unknown | {KEPT}"},
        "step opt",
        {("ZG101", None)},
    ),
    "only unknown": ({"": "unknown"}, "step opt", set()),
    "cleared between backward and step": (
        {"": "backward net; clear opt"},
        "step opt",
        {("ZG102", None)},
    ),
    "the step before its backward: some state has lost something, all are empty": (
        {"": "clear opt | clear opt; backward net; clear opt"},
        "step opt",
        {("ZG102", None)},
    ),
    "the step first of all: iteration one has seen nothing, later ones lost all": (
        {"": "step opt | step opt; backward net; clear opt"},
        "step opt",
        {("ZG102", None)},
    ),
    "a guard that clears a bad batch, and the step is made all the same": (
        {"finite": "clear opt; backward net", "not finite": "clear opt; backward net; clear opt"},
        "step opt",
        set(),
    ),
    "a loss that is not always there": (
        {"loss > 0": "clear opt; backward net", "not loss > 0": "clear opt"},
        "step opt",
        set(),
    ),
    "nothing fills": ({"": "clear opt"}, "step opt", {("ZG401", None)}),
    "a demo that only steps": ({"": "step opt"}, "step opt", set()),
    "a rotated loop: the step of the last batch comes first": (
        {"": "step opt; clear opt; backward net | clear opt; backward net"},
        "step opt",
        set(),
    ),
    "an unused head": (
        {"": "clear both; backward net"},
        "step both",
        set(),
    ),
    "all buckets empty, one of them lost": (
        {"": "backward net; clear both"},
        "step both",
        {("ZG102", None)},
    ),
    "a head that is not cleared, where the body is": (
        {"": "backward net head; step both; clear opt; backward net head"},
        "step both",
        {("ZG101", None)},
    ),
    "two steps on the same gradients": (
        {"": "clear opt; backward net; step opt"},
        "step opt",
        {("ZG402", None)},
    ),
    "the second step under a flag that also fills": (
        {"twice": "clear opt; backward net; step opt; backward net", "not twice": "clear opt"},
        "clip opt",
        set(),
    ),
    "clipped with the scale in, on the scaler's branch only": (
        {"amp": "backward net scaler=s", "not amp": "backward net"},
        "clip opt",
        {("ZG301", ("amp", True))},
    ),
    "unscaled under the same flag as the clip": (
        {"amp": "backward net scaler=s; unscale opt scaler=s", "not amp": "backward net"},
        "clip opt",
        set(),
    ),
    "scaler and plain step on two branches": (
        {"not amp": "clear opt; backward net"},
        "step opt",
        set(),
    ),
    "clipped after the step": ({"": LOOP}, "clip opt", {("ZG304", None)}),
    "no scaler update: iteration one is innocent": (
        {"": f"{SCALED} | {SCALED}; step opt scaler=s; clear opt; {SCALED}"},
        "step opt scaler=s",
        {("ZG302", None)},
    ),
    "a scaler update on one branch only": (
        {
            "ok": f"{SCALED}; step opt scaler=s; update s; clear opt; {SCALED}",
            "not ok": f"{SCALED}; step opt scaler=s; clear opt; {SCALED}",
        },
        "step opt scaler=s",
        {("ZG302", ("ok", False))},
    ),
    "D polluted by G's loss, told at the next backward: iteration one is innocent": (
        {"": f"clear opt_d | clear opt_d; {LEAK}; clear opt_d"},
        "backward gen disc",
        {("ZG201", None)},
    ),
    "D cleared after G's step": (
        {"": f"clear opt_d | {LEAK.replace('step opt_g', 'step opt_g; clear opt_d')}"},
        "backward gen disc",
        set(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_certain_only_where_one_condition_or_none_makes_every_state_break_it(
    name: str,
) -> None:
    paths, text, expected = CASES[name]
    assert certain(paths, text) == expected


@pytest.mark.parametrize(
    ("paths", "text", "code"),
    [
        ({"not amp": KEPT, "": CLEARED}, "step opt", "ZG101"),
    ],
)
def test_a_rule_that_only_some_state_breaks_is_possible_not_certain(
    paths: Paths, text: str, code: str
) -> None:
    assert certain(paths, text) == set()
    assert possible(paths, text) == {code}


def test_a_step_that_finds_nothing_under_a_fixed_flag_is_certain() -> None:
    event = read_event("step opt", 99, HELD)
    flagged = {
        run("clear opt; backward net", "net"): [literals("not amp")],
        run("clear opt; backward net; clear opt", "net"): [literals("amp")],
    }
    (verdict,) = judge_set({"net": flagged}, event, ALL_RULES, varies=lambda condition: False)
    assert (verdict.rule.code, verdict.condition, verdict.certain) == ("ZG102", ("amp", True), True)
    (verdict,) = judge_set({"net": flagged}, event, ALL_RULES)
    assert (verdict.rule.code, verdict.certain) == ("ZG102", False)


SPENT = run("clear both; backward net head; step both", "net")
FRESH = run("clear both; backward net head; step both; clear both; backward net head", "net")


@pytest.mark.parametrize(
    ("spent_under", "certain_under"),
    [
        (("amp", "amp"), ("amp", True)),
        (("amp", ""), ("amp", True)),
        (("", ""), None),
        (("amp", "not amp"), False),
        (("amp", "last"), False),
    ],
)
def test_two_buckets_break_a_rule_together_only_under_one_condition(
    spent_under: tuple[str, str], certain_under: tuple[str, bool] | bool | None
) -> None:
    buckets = {}
    for name, conditions in zip(("net", "head"), spent_under, strict=True):
        buckets[name] = {SPENT: [literals(conditions)]}
        if conditions:
            other = conditions.removeprefix("not ")
            otherwise = other if conditions.startswith("not ") else f"not {other}"
            buckets[name][FRESH] = [literals(otherwise)]
    (verdict,) = judge_set(buckets, read_event("step both", 99, HELD), ALL_RULES)
    assert verdict.rule.code == "ZG402"
    assert verdict.certain is (certain_under is not False)
    if verdict.certain:
        assert verdict.condition == certain_under


def test_a_rule_that_must_hold_in_all_buckets_is_silent_where_one_cannot_break_it() -> None:
    buckets = {"net": {SPENT: [literals("")]}, "head": {FRESH: [literals("")]}}
    assert judge_set(buckets, read_event("step both", 99, HELD), ALL_RULES) == []


def test_a_rule_that_must_hold_in_all_buckets_is_possible_where_one_is_in_doubt() -> None:
    doubt = {SPENT: [literals("")], FRESH: [literals("")]}
    buckets = {"net": {SPENT: [literals("")]}, "head": doubt}
    (verdict,) = judge_set(buckets, read_event("step both", 99, HELD), ALL_RULES)
    assert (verdict.rule.code, verdict.certain) == ("ZG402", False)


def test_an_empty_step_keeps_its_plain_name_where_the_better_rule_is_not_asked_for() -> None:
    lost = run("backward net; clear opt", "net")
    event = read_event("step opt", 99, HELD)
    (verdict,) = judge_set({"net": {lost: [literals("")]}}, event, [BY_CODE["ZG401"]])
    assert (verdict.rule.code, verdict.certain) == ("ZG401", True)


def test_other_faults_of_a_step_are_told_beside_the_lost_gradient() -> None:
    paths = {"": f"{SCALED}; step opt scaler=s; clear opt | {SCALED}; step opt scaler=s; {LOST}"}
    assert certain(paths, "step opt scaler=s") == {("ZG102", None), ("ZG302", None)}


def test_the_state_of_a_verdict_is_one_that_breaks_the_rule() -> None:
    event = read_event("step opt", 99, HELD)
    (verdict,) = judged({"amp": CLEARED, "not amp": KEPT}, event)
    assert verdict.rule.broken_by(verdict.state, event)


@pytest.mark.parametrize(
    "histories",
    [
        (KEPT, f"{KEPT}; backward net", f"backward net; {KEPT}"),
        (LOST, "clear opt; backward net; clear opt", "clear opt"),
        (KEPT, f"{LOOP}; step opt; backward net", CLEARED),
    ],
)
def test_which_state_is_told_does_not_depend_on_which_was_met_first(
    histories: tuple[str, ...],
) -> None:
    step = read_event("step opt", 99, HELD)
    told = {
        tuple((each.rule.code, each.state) for each in judged({"": "|".join(order)}, step))
        for order in permutations(histories)
    }
    assert len(told) == 1 and told != {()}
