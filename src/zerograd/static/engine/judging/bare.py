"""Bare steps on scaled losses: some are for runs that have no scaler, where none is scaled."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.verdicts import Verdict
from zerograd.static.engine.identity.ir import Happening

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets


def is_for_runs_without_scaler(step: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """May a run that comes to this step have no scaler, because one steps elsewhere?"""
    return _is_stepped_by_scaler(step, buckets) and not _is_scaled_beside(step, verdict, buckets)


def _is_stepped_by_scaler(step: Happening, buckets: Buckets) -> bool:
    """Does a scaler step on the same in its place, and not in every round that comes here?"""
    mine = set(step.event.buckets) if step.event is not None else set()
    return any(
        each.kind is EventKind.STEP
        and each.scaler
        and each.event is not None
        and not mine.isdisjoint(each.event.buckets)
        and (each.loop is not step.loop or each.inner or each.behind)
        for each in buckets.happenings
    )


def _is_scaled_beside(step: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """Is the loss scaled in the very branch of the step? A run that comes there has a scaler.

    A step in no branch may be what is left where the scaler has stepped, and gone on.
    """
    line, path = step.spot.line, step.spot.path
    branches = [
        (part[0].lineno, part[-1].end_lineno or 0)
        for each in step.unit.statements()
        if isinstance(each, ast.If)
        for part in (each.body, each.orelse)
        if part
    ]
    around = [each for each in branches if each[0] <= line <= each[1]]
    by_scaler = (
        each.spot.line
        for each in buckets.happenings
        if each.kind is EventKind.STEP and each.scaler and each.unit is step.unit
    )
    before = max((each for each in by_scaler if each < line), default=0)
    first = max(around)[0] if around else before
    scaled = verdict.state.contributions
    return all(each.spot.path == path and first <= each.spot.line < line for each in scaled)
