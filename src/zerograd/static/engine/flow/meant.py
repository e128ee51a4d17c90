"""Whose a loss must be: the only one between an optimizer's own clear and its step.

What it comes from need not be seen: the architecture's weights stand in the edges of a graph,
and a step that came after its clear and this one loss is about this loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.ir import FILLS, Happening


def meant_for(happenings: Sequence[Happening]) -> dict[int, set[str]]:
    """Return, by the backward's id, the owners that clear before it and step after it at once."""
    found: dict[int, set[str]] = {}
    since: dict[str, tuple[Happening, list[Happening]]] = {}  # the clear, and the losses after it
    for each in happenings:
        owner = each.optimizer.key if each.optimizer is not None else ""
        if each.kind is EventKind.CLEAR and owner:
            since[owner] = each, []
        elif each.kind in FILLS:
            for _, losses in since.values():
                losses.append(each)
        elif each.kind is EventKind.STEP and owner in since:
            clear, losses = since.pop(owner)
            if len(losses) == 1 and _are_beside((clear, *losses, each)):
                found.setdefault(id(losses[0]), set()).add(owner)
    return found


def _are_beside(events: Sequence[Happening]) -> bool:
    """Do they come one after the other, wherever one of them comes?"""
    one = events[0]
    return all(
        each.loop is one.loop and each.unit is one.unit and each.guards == one.guards
        for each in events
    )


def must_fill(happenings: list[Happening], loss: Happening, bucket: str) -> bool:
    """Is a leaf updated after the only loss of the loop, and nothing else? That has filled it."""
    held = {each.optimizer for each in happenings if each.optimizer is not None}
    alone = frozenset((bucket,))
    if loss.loop is None or any(one.keys != alone for one in held if not one.is_by_hand):
        return False
    beside = [each for each in happenings if each.loop is loss.loop]
    return sum(each.kind is EventKind.BACKWARD for each in beside) == 1 and any(
        each.kind is EventKind.STEP
        and each.sure
        and each.unit is loss.unit
        and each.spot.line > loss.spot.line
        and each.optimizer is not None
        and each.optimizer.keys == alone
        for each in beside
    )
