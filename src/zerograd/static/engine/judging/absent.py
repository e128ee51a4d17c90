"""What leaves None where a gradient is used: ZG104 in words."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.lifecycle.state import BucketState
from zerograd.rules.absent_gradient_used import USE_LATER, WIPES
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.shown import code_of, in_rounds

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program


def told_of_absence(
    finding: Finding, use: Happening, state: BucketState, buckets: Buckets, program: Program
) -> Finding:
    """Return it with what leaves None, a clear or nothing yet, and a mend that fits the use."""
    called = use.node.func if isinstance(use.node, ast.Call) else None
    if not (isinstance(called, ast.Attribute) and called.attr in WIPES):
        finding = replace(finding, advice=USE_LATER)
    clear = _clear_before(use, buckets) if state.seen else None
    if clear is None:
        first = "finds None in the first iteration" if use.loop is not None else "finds None"
        stations = [(use, f"{first}: no backward() has filled it yet")]
    else:
        stations = [(clear, "sets it to None"), (use, "uses it before another backward() fills it")]
    trail = tuple(TrailStep(each.spot, text, code_of(each)) for each, text in stations)
    return in_rounds(replace(finding, trail=trail), buckets.happenings, program.entrances)


def _clear_before(use: Happening, buckets: Buckets) -> Happening | None:
    """Return the last clear to None before a use, be it in the round before."""
    assert use.event is not None
    mine, at = set(use.event.buckets), buckets.happenings.index(use)
    clears = [
        each
        for each in (*buckets.happenings[at:], *buckets.happenings[:at])
        if each.kind is EventKind.CLEAR
        and each.to_none
        and each.event is not None
        and not mine.isdisjoint(each.event.buckets)
    ]
    return clears[-1] if clears else None
