"""What the tool's own machine says about a loop that repeats the same calls.

The order puzzle is graded by this and by nothing else: the same events, the
same rules, the same judge as `zerograd check` and `zerograd run`.
"""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.judge import judge
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.state import INITIAL, BucketState
from zerograd.rules import ALL_RULES

CALLS = ("clear", "forward", "backward", "step")
SCALER_CALLS = ("clear", "scaled_backward", "unscale", "clip", "step", "update")

_KINDS = {
    "clear": EventKind.CLEAR,
    "backward": EventKind.BACKWARD,
    "scaled_backward": EventKind.BACKWARD,
    "unscale": EventKind.UNSCALE,
    "clip": EventKind.CLIP,
    "step": EventKind.STEP,
    "update": EventKind.SCALER_UPDATE,
}


def machine_codes(order: tuple[str, ...], rounds: int) -> list[str]:
    """Return the codes of the rules that a loop of these calls breaks, each once.

    >>> machine_codes(("clear", "forward", "backward", "step"), 4)
    []
    >>> machine_codes(("forward", "backward", "step"), 4)
    ['ZG101']
    """
    through = "scaler" if "scaled_backward" in order else ""
    events = []
    for _ in range(rounds):
        for line, call in enumerate(order, 1):
            if call in _KINDS:
                scaler = "" if call in ("clear", "clip") else through
                spot = Spot("loop.py", line)
                events.append(Event(_KINDS[call], "optimizer", spot, scaler=scaler))
    return sorted({finding.rule.code for finding in judge(events, ALL_RULES)})


def phase_table() -> dict[str, str]:
    """Return the phase of a bucket after every short history, for the page's first panel.

    A history is written with b, s and c for backward, step and clear. Four letters
    reach every phase by every last call, and longer ones are looked up by their phase.

    >>> table = phase_table()
    >>> table["b"], table["bs"], table["bsb"], table["bsbc"]
    ('fresh', 'spent', 'stale', 'empty')
    """
    kinds = {"b": EventKind.BACKWARD, "s": EventKind.STEP, "c": EventKind.CLEAR}
    table: dict[str, str] = {}
    reached: dict[str, BucketState] = {"": INITIAL}
    for _ in range(4):
        longer = {}
        for history, state in reached.items():
            for letter, kind in kinds.items():
                spot = Spot("loop.py", len(history) + 1)
                after = advance(state, Event(kind, "optimizer", spot), "optimizer")
                longer[history + letter] = after
                table[history + letter] = after.phase("optimizer").value
        reached = longer
    return table


def phase_moves() -> dict[str, dict[str, str]]:
    """Return phase -> call -> next phase, read off the machine."""
    table = phase_table()
    moves: dict[str, dict[str, str]] = {"empty": {}}
    for history, phase in table.items():
        before = table.get(history[:-1], "empty")
        known = moves.setdefault(before, {}).setdefault(history[-1], phase)
        assert known == phase, f"the phase alone does not decide what {history} leads to"
    return moves
