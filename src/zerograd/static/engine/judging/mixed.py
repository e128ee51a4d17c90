"""ZG303: a loss that goes backward unscaled, into gradients that a scaler has scaled.

The scaler divides both by its scale before it steps, so what the plain loss has left is as good
as nothing: an adversarial loss beside the scaled one, a penalty, a second head.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.state import BucketState
from zerograd.rules.scaler_bypassed import MIXED
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.taken import is_taken_by_hand
from zerograd.static.engine.judging.unscaled import (
    Unscaled,
    are_on_one_way,
    stepped_unscaled,
)

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow

# A plain loss under one of these is for the runs that scale none.
_OF_PRECISION = re.compile(
    r"amp|scal|fp_?16|bf_?16|fp_?32|float|half|precision|mixed|apex|cuda|device", re.IGNORECASE
)


def stepped_on_plain(step: Happening, buckets: Buckets, flow: Flow) -> Unscaled | None:
    """Return a loss that the scaler which steps has not scaled, alone or among others."""
    alone = stepped_unscaled(step, buckets, flow)
    among = None if alone is not None else _plain_among_scaled(step, buckets, flow)
    return alone if among is None else Unscaled(among, MIXED, True)


def _plain_among_scaled(step: Happening, buckets: Buckets, flow: Flow) -> Happening | None:
    """Return a loss that the scaler which steps divides, beside those that it has scaled.

    What goes backward after `unscale_` is right as it is: the scaler does not divide again.
    """
    assert step.event is not None
    if not step.scaler:
        return None
    owner, mine = step.event.owner, set(step.event.buckets)
    losses = {
        each.spot: each
        for each in buckets.happenings
        if each.kind is EventKind.BACKWARD and each.event is not None and not each.leaf
    }
    dividing = [
        each
        for each in buckets.happenings
        if each is step
        or (
            each.kind is EventKind.UNSCALE
            and each.scaler == step.scaler
            and each.event is not None
            and each.event.owner == owner
        )
    ]
    for each in dividing:
        for bucket, pairs in flow.reached.get(id(each), {}).items():
            if bucket not in mine:
                continue
            for state in {flow.states[number][0] for number, _ in pairs}:
                found = _plain_in(state, bucket, step, losses, flow)
                if found is not None:
                    return found
    return None


def _plain_in(
    state: BucketState,
    bucket: str,
    step: Happening,
    losses: dict[Spot, Happening],
    flow: Flow,
) -> Happening | None:
    assert step.event is not None
    if state.unknown or not state.scaled:
        return None
    held = [
        losses[each.spot]
        for each in state.contributions
        if each.spot in losses and step.event.owner not in each.used_by
    ]
    scaled = [each for each in held if _is_scaled(each)]
    return next(
        (
            loss
            for loss in held
            if _is_surely_plain(loss, bucket)
            and any(_are_of_one_round(loss, other, step, flow) for other in scaled)
        ),
        None,
    )


def _is_surely_plain(loss: Happening, bucket: str) -> bool:
    """Is it `loss.backward()` through this network, of a loss that nobody scales by hand?"""
    func = loss.node.func if isinstance(loss.node, ast.Call) else None
    if _is_scaled(loss) or not loss.sure or not isinstance(func, ast.Attribute):
        return False
    if bucket in loss.doubted or bucket in loss.maybe or is_taken_by_hand(loss):
        return False
    parts = [each for each in ast.walk(func.value) if isinstance(each, ast.Name | ast.Attribute)]
    names = {re.escape(path) for each in parts if (path := path_of(each))}
    if any("scal" in each for each in names):
        return False
    given = re.compile(
        rf"\b(?:{'|'.join(sorted(names))})\s*(?:\*=|=(?!=)).*(?:scal|amp)", re.IGNORECASE
    )
    return bool(names) and not any(given.search(line) for line in loss.unit.source.lines)


def _are_of_one_round(loss: Happening, scaled: Happening, step: Happening, flow: Flow) -> bool:
    """Do both go backward in one round of the step's loop, whatever the precision?"""
    if loss.unit is not scaled.unit or not (loss.loop is scaled.loop is step.loop):
        return False
    if any(_OF_PRECISION.search(atom) for atom in loss.guards - scaled.guards):
        return False
    return are_on_one_way(loss, scaled, flow)


def _is_scaled(loss: Happening) -> bool:
    return bool(loss.scaler or (loss.event and loss.event.scaler))
