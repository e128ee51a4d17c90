"""The judge of the brute-force interpreter: one history in, its faults out."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.history import Event, faults

NET = frozenset({"net"})
OTHER = frozenset({"other"})
BOTH = NET | OTHER


def history(*words: str) -> list[Event]:
    """Build events from words such as `backward`, `step`, `scaler.step`, one line a word."""
    events = []
    spots = {word: line for line, word in enumerate(dict.fromkeys(words), 1)}
    for word in words:
        scaler = "scaler" if word.startswith("scaler.") else None
        events.append(Event(word.removeprefix("scaler."), spots[word], NET, "opt", scaler))
    return events


def codes(*words: str) -> set[str]:
    return {fault.code for fault in faults(history(*words))}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("clear backward step clear backward step", set()),
        ("backward step clear backward step clear", set()),
        ("clear backward backward step clear backward backward step", set()),
        ("backward step backward step", {"ZG101"}),
        ("clear backward step backward step", {"ZG101"}),
        ("backward clear step backward clear step", {"ZG102"}),
        ("clear step clear step", {"ZG401"}),
        ("backward step step", {"ZG402"}),
        ("clear backward clear backward step", {"ZG501"}),
        ("backward step clip", {"ZG304"}),
    ],
)
def test_orders_of_plain_events(words: str, expected: set[str]) -> None:
    assert codes(*words.split()) == expected


def test_a_window_cleared_early_is_named_at_the_clear() -> None:
    events = [Event("backward", 1, NET), Event("clear", 2, NET)]
    events += [Event("backward", 1, NET), Event("step", 3, NET, "opt")]
    assert [(f.code, f.lines) for f in faults(events)] == [("ZG501", (2, 3))]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("scaler.backward scaler.step scaler.update", set()),
        ("scaler.backward unscale clip scaler.step scaler.update", set()),
        ("scaler.backward clip scaler.step scaler.update", {"ZG301"}),
        ("scaler.backward scaler.step clear scaler.backward scaler.step", {"ZG302"}),
        ("scaler.backward step scaler.update", {"ZG303"}),
        ("scaler.backward unscale scaler.update scaler.step scaler.update", {"ZG305"}),
    ],
)
def test_orders_with_a_scaler(words: str, expected: set[str]) -> None:
    assert codes(*words.split()) == expected


def test_a_single_empty_step_is_none_and_two_in_a_row_are_sure() -> None:
    assert faults(history("clear", "step", "backward")) == []
    assert [f.sure for f in faults(history(*["clear", "step"] * 2))] == [True]


def test_an_empty_step_at_the_start_of_each_epoch_is_not_sure() -> None:
    epoch = ["clear", "step", "clear", "backward", "step", "clear"]
    assert [(f.code, f.sure) for f in faults(history(*epoch * 2))] == [("ZG401", False)]


def test_what_another_optimizer_left_behind_is_a_leak() -> None:
    events = [
        Event("clear", 1, BOTH),
        Event("backward", 2, BOTH),  # the generator's loss fills the discriminator too
        Event("step", 3, OTHER, "opt_g"),
        Event("backward", 4, NET),
        Event("step", 5, NET, "opt_d"),
    ]
    assert [(f.code, f.lines[0]) for f in faults(events)] == [("ZG201", 5)]


def test_a_clear_before_the_own_backward_ends_the_leak() -> None:
    events = [
        Event("backward", 2, BOTH),
        Event("step", 3, OTHER, "opt_g"),
        Event("clear", 4, NET),
        Event("backward", 5, NET),
        Event("step", 6, NET, "opt_d"),
    ]
    assert "ZG201" not in {f.code for f in faults(events)}


def test_one_loss_with_two_optimizers_is_no_leak() -> None:
    one = [Event("clear", 1, BOTH), Event("backward", 2, BOTH)]
    one += [Event("step", 3, NET, "a"), Event("step", 4, OTHER, "b")]
    assert faults(one * 3) == []
