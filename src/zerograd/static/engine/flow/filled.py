"""Whether an optimizer that is cleared is filled again, in the same loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.keys import frame_of
from zerograd.static.engine.text.words import is_scheduler_name

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets

# calls that by their name may step an optimizer that they were not given
_STEPPING = re.compile(
    r"(?P<owner>\w+)\.\w*step\w*\s*\(|\b(?P<function>\w*(?:optimi[sz]e|apply_grad|minimize)\w*)\s*\("
)
# and calls that may do so by whoever is registered with them
_HOOKS = re.compile(r"(?i)hook|callback|\b(?:on|after|post)_\w+\(|\w*(?:_end|update\w*)\(")


def is_filled(node: Happening, buckets: Buckets) -> bool:
    """Is it cleared in a loop, and filled in that loop, in one around it or in one inside?"""
    optimizer = node.optimizer
    if optimizer is None or node.event is None or node.loop is None:
        return False
    if node.loop.pseudo and not _is_made_around(node):
        return False
    if _is_cleared_for_a_loss(node, buckets):
        return True
    if optimizer.keys is None and not _is_alone(node, buckets):
        return False
    return _goes_back_at_once(node, buckets) or any(
        each.kind is EventKind.BACKWARD
        and each.loop is not None
        and (node.loop in loops_around(each.loop) or each.loop in loops_around(node.loop))
        and each.event is not None
        and optimizer.key in each.event.fills
        for each in buckets.happenings
    )


def _is_made_around(node: Happening) -> bool:
    """Is it seen to be made by what stands around the function that clears it?

    Whoever calls that function, also an engine of elsewhere, it is the same one each time.
    """
    optimizer = node.optimizer
    assert optimizer is not None
    local = frame_of(optimizer.key) == max(node.frames, default=0)
    return optimizer.made and not local and "." not in optimizer.key and node.scope is not None


def _goes_back_at_once(clear: Happening, buckets: Buckets) -> bool:
    """Is the next thing a loss that may fill it, on which no other optimizer steps?"""
    here = [each for each in buckets.happenings if each.loop is clear.loop]
    after = [
        each
        for each in here[here.index(clear) + 1 :] + here[: here.index(clear)]
        if each.kind in (EventKind.CLEAR, EventKind.BACKWARD, EventKind.STEP)
    ]
    if not after or after[0].kind is not EventKind.BACKWARD or after[0].guards != clear.guards:
        return False
    loss, *then = after
    assert clear.optimizer is not None and loss.event is not None
    held = buckets.holdings[clear.optimizer.key]
    used = bool(then) and then[0].kind is EventKind.STEP
    return not used and not set(held).isdisjoint(loss.event.buckets)


def _is_cleared_for_a_loss(clear: Happening, buckets: Buckets) -> bool:
    """Is it cleared with another one, for a loss of which only that is known that the other steps?

    Who clears both before it means both to be filled; what the loss is made of stands elsewhere.
    """
    optimizer, loop = clear.optimizer, clear.loop
    assert optimizer is not None and loop is not None
    if not optimizer.made or loop.pseudo:
        return False
    here = [each for each in buckets.happenings if each.loop is loop]
    others = {
        each.optimizer.key
        for each in here
        if each.kind is EventKind.CLEAR and each.optimizer is not None and each.optimizer.made
    } - {optimizer.key}
    stepped = any(
        each.kind is EventKind.STEP
        and each.optimizer is not None
        and each.optimizer.key in others
        and not each.guards > clear.guards
        for each in here
    )
    losses = [each for each in here if each.kind is EventKind.BACKWARD and each.event is not None]
    if not stepped or len(losses) != 1 or not losses[0].guards <= clear.guards:
        return False
    assert losses[0].event is not None
    return not set(buckets.holdings[optimizer.key]).isdisjoint(losses[0].event.buckets)


def _is_alone(node: Happening, buckets: Buckets) -> bool:
    """Is it a function's only optimizer, a parameter, and does its loop call nothing that steps?

    Or one of the object itself, whose step stands there as a comment.
    """
    given = any(
        node.name == argument.arg
        for each in node.unit.every_function()
        if each.lineno < node.spot.line <= (each.end_lineno or 0)
        for argument in (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)
    )
    loops = (
        [each.text for each in loops_around(node.loop) if each.node is not None]
        if node.loop
        else []
    )
    text = loops[-1] if loops else ""
    if len(buckets.optimizers) > 1 or not (given or _is_commented_out(node.name, text)):
        return False
    text = without_comments(text.splitlines())
    return bool(text) and not any(
        each["function"] or not (each["owner"] == node.name or is_scheduler_name(each["owner"]))
        for each in _STEPPING.finditer(text)
    )


def _is_commented_out(name: str, text: str) -> bool:
    """Is the step of `self.opt` there, but as a comment, and is no hook called that may do it?"""
    step = rf"(?m)^\s*#\s*{re.escape(name)}\.step\(\)"
    return (
        name.startswith("self.")
        and re.search(step, text) is not None
        and _HOOKS.search(without_comments(text.splitlines())) is None
    )


def without_comments(lines: list[str]) -> str:
    return "\n".join(line.split("#", 1)[0] for line in lines)
