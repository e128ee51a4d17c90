"""Draws the machine's table as text, for docs and lessons.

The drawing is made from the table, so it cannot say anything else.
"""

from __future__ import annotations

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.machine import AFTER
from zerograd.lifecycle.state import Phase

CALLS = {
    EventKind.CLEAR: "zero_grad()",
    EventKind.BACKWARD: "backward()",
    EventKind.ASSIGN: "p.grad = g",
    EventKind.UNSCALE: "scaler.unscale_()",
    EventKind.CLIP: "clip_grad_norm_()",
    EventKind.STEP: "step()",
    EventKind.STEP_SKIPPED: "step() skipped",
    EventKind.SCALER_UPDATE: "scaler.update()",
    EventKind.TOUCH: "p.grad used",
}

HOLDS = {
    Phase.EMPTY: "nothing since the last clear",
    Phase.FRESH: "gradients that no step has used",
    Phase.SPENT: "gradients that a step has used",
    Phase.STALE: "new gradients on top of used ones",
}


def draw_table() -> str:
    """Return the whole table: a row an event, a column a phase, each cell the phase after it.

    >>> print(draw_table().splitlines()[0].split())
    ['after', 'EMPTY', 'FRESH', 'SPENT', 'STALE']
    """
    width = max(map(len, CALLS.values()))
    head = ["after".ljust(width), *(phase.name for phase in Phase)]
    rows = [
        [CALLS[kind].ljust(width), *(AFTER[kind][phase].name for phase in Phase)]
        for kind in EventKind
    ]
    return "\n".join("  ".join(row).rstrip() for row in [head, *rows]) + "\n"


def draw_moves() -> str:
    """Return each phase with what it holds and the calls that lead out of it.

    >>> print(draw_moves().split("\\n\\n")[0])
    EMPTY  nothing since the last clear
      backward()  -> FRESH
      p.grad = g  -> FRESH
    """
    return "\n\n".join(_moves_from(phase) for phase in Phase) + "\n"


def _moves_from(phase: Phase) -> str:
    moves = [
        (CALLS[kind], AFTER[kind][phase])
        for kind in EventKind
        if AFTER[kind][phase] is not phase and kind is not EventKind.STEP_SKIPPED
    ]
    width = max((len(call) for call, _ in moves), default=0)
    lines = [f"  {call.ljust(width)}  -> {after.name}" for call, after in moves]
    return "\n".join([f"{phase.name}  {HOLDS[phase]}", *lines])
