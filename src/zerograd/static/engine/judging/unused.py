"""ZG203: an optimizer that is cleared and filled in a loop, and that nothing ever steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.flow.filled import is_filled, without_comments
from zerograd.static.engine.identity.ir import FILLS, Happening
from zerograd.static.engine.identity.keys import touches
from zerograd.static.engine.identity.shown import code_of, in_rounds, name_of
from zerograd.static.engine.identity.taken import is_taken_by_hand
from zerograd.static.engine.judging.handovers import Handed, handed_on, last_part
from zerograd.static.engine.judging.heirs import asks_heirs
from zerograd.static.engine.text.words import is_scheduler_name

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

_MEASURING = re.compile(
    r"timeit|perf_counter|synchronize\(|profil|memory_allocated"
    r"|(?<!cudnn[._])benchmark"  # cudnn's switch of that name is set in any training
    r"|(?<!autograd)\.grad\b|clip_grad_norm_?\([^\n]*\binf\b"
)
_BETWEEN_RANKS = re.compile(r"\w*(?:reduce|broadcast)\w*\([^\n]*")  # in place, for a step
_SAVING = re.compile(
    r"\bsave_\w*(?:models?|checkpoints?|state|weights|pretrained)\(|\btorch\.save\("
)
NEVER_STEPPED = "{owner} is cleared in every iteration, but never stepped"


def unused(
    program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
) -> Iterator[Finding]:
    """Yield the optimizers of one root that are never stepped, if nobody else can step them.

    One that is stepped under a condition only, which is the same in every round, may be one too.
    """
    steps: dict[str, list[Happening]] = {}
    for each in buckets.happenings:
        if each.kind is EventKind.STEP and each.optimizer is not None:
            steps.setdefault(each.optimizer.key, []).append(each)
    picked = {key for key, own in steps.items() if any(_is_picked(each) for each in own)}
    fixed = _fixed(program, buckets, atoms)
    told: set[str] = set()
    for node in buckets.happenings:
        optimizer = node.optimizer
        if node.kind is not EventKind.CLEAR or optimizer is None or optimizer.key in told:
            continue
        # `opts[0].step()` is one of those that `for opt in opts: opt.zero_grad()` clears.
        keys = [key for key in steps if touches(key, optimizer.key)]
        own = [each for key in keys for each in steps[key]]
        is_normal = any(not each.rescues for each in own)  # and not only where something fails
        if is_normal and not _may_never_run(node, own, flow, fixed):
            continue
        held = set(buckets.holdings[optimizer.key])
        if any(held & set(buckets.holdings[each]) for each in picked):
            continue  # one of several is stepped, and it may be this one
        others = steps.keys() - {optimizer.key, *keys}
        shared = any(held & set(buckets.holdings[other]) for other in others)
        if not (_is_for_others(node, buckets) if shared else is_filled(node, buckets)):
            continue
        needed = _needed(node, own, flow, fixed)
        instead = any(_is_without_scheduler(each, program, atoms) for each in needed)
        handed = Handed.TO_A_CLASS if own and not instead else handed_on(program, node, own)
        if handed is not Handed.AWAY and not asks_heirs(program, node):
            told.add(optimizer.key)  # say it once
            text = without_comments(node.unit.source.lines)
            certain = handed is Handed.TO_NOBODY and not _measures(text) and not program.entrusted
            certain = certain and not is_taken_by_hand(node)  # a worker's, that others step on
            certain = certain and not _only_clears(node, buckets)
            found = _finding(node, name_of(node), certain, instead)
            if shared:
                yield replace(found, message=NEVER_STEPPED.format(owner=name_of(node)))
            else:
                found = replace(found, trail=_trail(node, buckets))
                yield in_rounds(found, buckets.happenings, program.entrances)
    for owner in buckets.optimizers.keys() - steps.keys() - told:
        yield from _cleared_among_others(owner, buckets)
    for owner, own in steps.items():
        if owner not in told and len(steps) == 1:
            yield from _waits_in_vain(owner, own, buckets, flow, fixed)


def _is_picked(step: Happening) -> bool:
    return step.optimizer is not None and step.optimizer.picked


def _only_clears(clear: Happening, buckets: Buckets) -> bool:
    """Is it there to clear a network, through which another one trains an input or a mask?

    The network is what is explained, or attacked: to step it would be the mistake. Such a clear
    comes last in the round: a loss behind it would be its own.
    """
    here = [each for each in buckets.happenings if each.loop is clear.loop]
    used = [at for at, each in enumerate(here) if each.kind in (*FILLS, EventKind.STEP)]
    known = [
        each.optimizer.keys or ()
        for each in here
        if each.kind is EventKind.STEP and each.optimizer is not None
    ]
    return (
        bool(known)
        and here.index(clear) > used[-1]
        and not any(touches(k, n) for keys in known for k in keys for n in buckets.networks)
    )


def _is_for_others(clear: Happening, buckets: Buckets) -> bool:
    """Is the next thing in the loop a loss that surely fills other weights than those it holds?

    The loss is its own, one would think, and it was given another's weights by mistake.
    """
    here = [each for each in buckets.happenings if each.loop is clear.loop]
    loss = next(iter(here[here.index(clear) + 1 :]), None)
    return (
        clear.loop is not None
        and not clear.loop.pseudo
        and loss is not None
        and loss.kind is EventKind.BACKWARD
        and loss.guards == clear.guards
        and clear.event is not None
        and loss.sure
        and bool(loss.keys)
        and not any(touches(key, b) for key in loss.keys or () for b in clear.event.buckets)
    )


def _cleared_among_others(owner: str, buckets: Buckets) -> Iterator[Finding]:
    """Yield the clear of several optimizers, as a loop over a list has, if this one is filled."""
    held = set(buckets.holdings[owner])
    filled = any(
        each.kind is EventKind.BACKWARD and each.event is not None and owner in each.event.fills
        for each in buckets.happenings
    )
    for node in buckets.happenings:
        if (
            filled
            and node.kind is EventKind.CLEAR
            and node.event is not None
            and node.loop is not None
            and held < set(node.event.buckets)
        ):
            yield _finding(node, last_part(owner), False)
            return


def _waits_in_vain(
    owner: str, steps: list[Happening], buckets: Buckets, flow: Flow, fixed: set[int]
) -> Iterator[Finding]:
    """Yield the backward that fills it, if a condition may keep every step and clear away."""
    clears = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.CLEAR
        and each.event is not None
        and not set(each.event.buckets).isdisjoint(buckets.holdings[owner])
    ]
    for node in buckets.happenings:
        if (
            node.kind is EventKind.BACKWARD
            and node.event is not None
            and owner in node.event.fills
            and node.loop is not None
            and not node.loop.pseudo
            and _may_never_run(node, [*steps, *clears], flow, fixed)
        ):
            yield _finding(node, name_of(steps[0]), False)
            return


def _finding(node: Happening, owner: str, certain: bool, instead: bool = False) -> Finding:
    rule = BY_CODE["ZG203"]
    owner = owner or _receiver(node)
    message = rule.summary.format_map({"owner": owner})
    if instead:
        message = f"{owner} is cleared and filled, but not stepped where there is a scheduler"
    return Finding(
        rule=rule,
        spot=node.spot,
        message=message,
        advice=rule.advice.format_map({"owner": owner}),
        owner=owner,
        certain=certain,
    )


def _receiver(node: Happening) -> str:
    """Return what has no name of its own as it is written: `self.optimizers()`."""
    called = node.node.func if isinstance(node.node, ast.Call) else None
    if isinstance(called, ast.Attribute):
        return node.unit.source.segment(called.value)
    return "the optimizer"


def _trail(clear: Happening, buckets: Buckets) -> tuple[TrailStep, ...]:
    """Return the stations: what fills it, and what throws that away."""
    assert clear.optimizer is not None
    fills = [each for each in buckets.happenings if _fills(each, clear.optimizer.key)]
    losses = [each for each in buckets.happenings if each.kind is EventKind.BACKWARD]
    filled = (fills or losses)[0]
    return tuple(
        TrailStep(each.spot, text, code_of(each))
        for each, text in ((filled, "fills its gradients"), (clear, "throws them away"))
    )


def _fills(node: Happening, owner: str) -> bool:
    event = node.event
    return node.kind is EventKind.BACKWARD and event is not None and owner in event.fills


def _fixed(program: Program, buckets: Buckets, atoms: dict[str, int]) -> set[int]:
    """Return the conditions that are the same in all rounds of every loop here."""
    loops = {id(each.loop): each.loop for each in buckets.happenings if each.loop is not None}
    return {
        number
        for key, number in atoms.items()
        if not any(program.varies(loop, key) for loop in loops.values())
    }


def _may_never_run(clear: Happening, steps: list[Happening], flow: Flow, fixed: set[int]) -> bool:
    """Is there a fixed condition without which no step is reached, but the clear is?"""
    if not any(map(flow.known_at, steps)):
        return True  # behind a jump that always comes first
    return bool(_needed(clear, steps, flow, fixed))


def _needed(
    clear: Happening, steps: list[Happening], flow: Flow, fixed: set[int]
) -> frozenset[int]:
    """Return the fixed conditions without which no step is reached, but the clear is."""
    paths = [path for step in steps for path in flow.known_at(step)]
    if not paths:
        return frozenset()
    needed = {each for each in frozenset.intersection(*paths) if each >= 0 and each // 2 in fixed}
    cleared = flow.known_at(clear)
    return frozenset(each for each in needed if any(each not in path for path in cleared))


def _is_without_scheduler(literal: int, program: Program, atoms: dict[str, int]) -> bool:
    """Does it say that there is no scheduler? With one, that alone is stepped then: a mistake."""
    key = next(key for key, number in atoms.items() if number == literal // 2)
    atom = program.atoms.get(key)
    return atom is not None and literal % 2 == 0 and is_scheduler_name(atom.text)


def _measures(text: str) -> bool:
    """Is it about the time, the memory or the gradients themselves, not about training?

    Who saves the model afterwards has trained it, whatever else is measured.
    """
    text = _BETWEEN_RANKS.sub("", text)
    return _MEASURING.search(text) is not None and _SAVING.search(text) is None
