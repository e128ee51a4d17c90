"""Claims that nothing was filled, or nothing new: what may have happened unseen.

ZG102, ZG401 and ZG402 say what did *not* happen between two events. A backward
that was not recognised refutes them, so they are certain only where none can hide.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.verdicts import Verdict
from zerograd.static.engine.flow.marks import happens_wherever
from zerograd.static.engine.identity.acting import COMMENTS, acts
from zerograd.static.engine.identity.conditions import RAISED
from zerograd.static.engine.identity.endings import leaves
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.keys import touches
from zerograd.static.engine.judging.bare import is_for_runs_without_scaler
from zerograd.static.engine.judging.between import is_trained_between
from zerograd.static.engine.judging.heirs import is_left_to_heirs
from zerograd.static.engine.judging.same import is_the_same_one
from zerograd.static.engine.judging.workers import has_workers
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import is_loss_name, is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program

NEEDS_CERTAINTY = frozenset(("ZG102", "ZG401", "ZG402"))  # not judged behind unseen calls
_LOSS = re.compile(r"loss|criterion|objective|cross_entropy|logits|predict|output|\bpreds?\b")
_TOLD = re.compile(r"\b\w*(?:backward|backprop)\w*\s*=")
_HANDED = re.compile(r"\b\w*(?:schedule|pipe\w*|runner)\.step\(\s*\w")
# methods of what losses are collected in
_OF_RECORDS = frozenset(
    ("update", "append", "extend", "add", "get", "pop", "item", "mean", "sum", "to", "detach")
)


def is_open(
    step: Happening,
    verdict: Verdict,
    buckets: Buckets,
    program: Program,
    varies: Callable[[str], bool],
) -> bool:
    """May the verdict be wrong because of something that cannot be seen?"""
    code = verdict.rule.code
    assert step.event is not None
    picked = step.optimizer is not None and step.optimizer.picked
    if code in NEEDS_CERTAINTY and (picked or "[*]" in step.event.owner):
        # one of several, and not always the same one
        return code != "ZG102" or not is_the_same_one(step, verdict, buckets)
    raised = verdict.condition is not None and verdict.condition[0].startswith(RAISED)
    if raised and code in NEEDS_CERTAINTY:
        return True  # who catches, and drops what there was, lets the round go on with nothing
    if code == "ZG303":
        return is_for_runs_without_scaler(step, verdict, buckets)
    if code == "ZG305":
        # What another's loss is not proved to have left here is not carried over an update.
        return not any(
            each.early is not None and step.event.owner in each.fills
            for each in verdict.state.contributions
        )
    if code == "ZG402":
        another = "[*]" in step.name or _is_told_which(step) or _picks_another(step, buckets)
        # who makes the gradients by hand may use them twice, though not in one breath
        meant = _is_assigned(verdict, buckets) and not _is_written_twice(step, verdict)
        return another or meant or _is_a_part(step, buckets)
    if code in ("ZG102", "ZG401") and is_trained_between(step, buckets):
        return True
    if code == "ZG102" and _is_called_off(step, verdict, buckets):
        return True
    if code == "ZG102" and verdict.condition is not None:
        # A flag that keeps the loss away: what was cleared is what another loss had left.
        return not varies(verdict.condition[0]) and _keeps_losses_away(step, verdict, buckets)
    if code == "ZG401":
        # A flag that switches training off: the step is then harmless, and meant.
        switched = verdict.condition is not None and not varies(verdict.condition[0])
        switched = switched and not _is_about_a_term(step, verdict, buckets)
        return switched or not _is_surely_empty(step, buckets, program)
    return False


def _is_called_off(step: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """Is it a step on nothing in a branch that ends the round, where another would have come?

    `if norm > limit: opt.zero_grad(); scaler.step(opt); scaler.update(); continue` skips an
    update, and lets the scaler know.
    """
    lost = verdict.state.lost
    if lost is None or lost.clear.path != step.spot.path or lost.clear.line > step.spot.line:
        return False
    for node in step.unit.statements():
        if not isinstance(node, ast.If) or not leaves(step.unit, node.body):
            continue
        first, last = node.body[0].lineno, node.body[-1].lineno
        if not first <= lost.clear.line <= step.spot.line <= last:
            continue
        same_file = lost.backward.path == step.spot.path
        if same_file and first <= lost.backward.line <= last:
            continue
        return any(
            each.kind is EventKind.STEP
            and each.optimizer is step.optimizer
            and each.loop is step.loop
            and each.spot.path == step.spot.path
            and each.spot.line > last
            for each in buckets.happenings
        )
    return False


def _keeps_losses_away(step: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """Is there a loss for this step that the condition leaves out, and another that is lost?"""
    assert step.event is not None and verdict.condition is not None
    mine = set(step.event.buckets)
    asked = [
        each.spot
        for each in buckets.happenings
        if each.kind is EventKind.BACKWARD
        and each.event is not None
        and verdict.condition[0] in each.guards
        and each.loop is step.loop
        and not mine.isdisjoint(each.event.buckets)
    ]
    lost = verdict.state.lost
    return bool(asked) and lost is not None and lost.backward not in asked


def _is_about_a_term(step: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """Is the flag asked for a term of the loss, with the backward in one of its branches?

    `if penalize: loss += penalty; loss.backward()`: the loss is there either way.
    """
    assert verdict.condition is not None
    for each in buckets.happenings:
        if (
            each.kind is not EventKind.BACKWARD
            or verdict.condition[0] not in each.guards
            or each.loop is not step.loop
            or each.unit is not step.unit
        ):
            continue
        sent = set(names_below(each.node))
        for branch in step.unit.statements():
            if (
                isinstance(branch, ast.If)
                and branch.lineno < each.spot.line <= (branch.end_lineno or 0) < step.spot.line
                and any(_adds_a_term(part, sent) for part in statements_in([branch]))
                and not any(
                    isinstance(part, ast.Assign)
                    and not _adds_a_term(part, sent)
                    and sent & {path_of(to) for to in part.targets}
                    for part in statements_in([branch])
                )
            ):
                return True
    return False


def _adds_a_term(part: ast.AST, names: set[str]) -> bool:
    """`loss += penalty`, `loss = loss + penalty`"""
    if isinstance(part, ast.AugAssign):
        return isinstance(part.op, ast.Add) and path_of(part.target) in names
    if not isinstance(part, ast.Assign) or not isinstance(part.value, ast.BinOp):
        return False
    if not isinstance(part.value.op, ast.Add):
        return False
    own = names & {path_of(to) for to in part.targets}
    return any(isinstance(each, ast.Name) and each.id in own for each in parts_below(part.value))


def _is_told_which(step: Happening) -> bool:
    """`optimizers.step(name)`: is it one of several that is told more than torch's own take?"""
    call, owner = step.node, step.optimizer
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    if owner is None or owner.of_torch or call.func.attr != "step":
        return False
    told = bool(call.args) or any(word.arg != "closure" for word in call.keywords)
    return told and not is_scaler_name(path_of(call.func.value))


def _picks_another(step: Happening, buckets: Buckets) -> bool:
    """Does a loop that goes nowhere back take another item of a list each time?"""
    loop = step.loop.node if step.loop is not None else None
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    if any(
        each.kind is EventKind.BACKWARD and each.loop is step.loop for each in buckets.happenings
    ):
        return False
    counted = set(names_below(loop.target))
    return any(
        isinstance(each, ast.Subscript) and not counted.isdisjoint(names_below(each.slice))
        for statement in loop.body
        for each in parts_below(statement)
    )


def _is_a_part(step: Happening, buckets: Buckets) -> bool:
    """`opt.step_muon(); opt.step_adamw()`: each may be for parameters of its own."""
    names = {
        path_of(each.node.func).rsplit(".", 1)[-1]
        for each in buckets.happenings
        if each.kind is EventKind.STEP
        and each.optimizer is step.optimizer
        and each.loop is step.loop
        and isinstance(each.node, ast.Call)
    }
    return len(names) > 1 and "step" not in names


def _is_assigned(verdict: Verdict, buckets: Buckets) -> bool:
    assigned = {each.spot for each in buckets.happenings if each.kind is EventKind.ASSIGN}
    return any(each.spot in assigned for each in verdict.state.contributions)


def _is_written_twice(step: Happening, verdict: Verdict) -> bool:
    """Is the line of the step before it the same, with nothing between the two?"""
    used = verdict.state.contributions[-1].used_at if verdict.state.contributions else None
    if used is None or used.path != step.spot.path or used.line >= step.spot.line:
        return False
    rows = step.unit.source.lines[used.line - 1 : step.spot.line]
    first, *between, last = (each.split("#", 1)[0].rstrip() for each in rows)
    return first == last and not any(between)


def _is_surely_empty(step: Happening, buckets: Buckets, program: Program) -> bool:
    """A backward that seems to fill others only may be one whose loss was not understood."""
    assert step.event is not None
    mine = set(step.event.buckets)
    backwards = [each for each in buckets.happenings if each.kind is EventKind.BACKWARD]
    if not backwards:
        if step.loop is None or step.loop.pseudo:
            return False  # it only moves a scheduler, or somebody else goes back
        return not _may_hide_a_backward(step)
    if _is_beside_its_training(step, backwards, buckets):
        return False
    if _trains_elsewhere(step, backwards) and _may_hide_a_backward(step):
        return False  # here it only moves a schedule
    order = _since_clear(step, mine, buckets)
    asked = any(touches(key, bucket) for key in program.asked for bucket in mine)
    since = [each for each in order if each.kind is EventKind.BACKWARD and each.event is not None]
    if asked and not all(_fills(each, mine) for each in since):
        return False  # a method of the network may have given what that loss is made of
    if not any(_fills(each, mine) for each in backwards):
        # Of code that runs, that is more often a loss that was not understood than one that
        # trains another network; one through the network itself, which is frozen, or through
        # a copy of it, was.
        through = frozenset[str]().union(*(each.through for each in backwards))
        copied = _copied(through, buckets, program)
        if not any(touches(key, bucket) for key in through | copied for bucket in mine):
            return False
        before = backwards
    else:
        before = [each for each in order if _comes_before(each, step, mine)]
    return all(each.sure and each.through and each.through <= program.made for each in before)


def _copied(keys: frozenset[str], buckets: Buckets, program: Program) -> frozenset[str]:
    """Return what these were copied from, if no gradients are handed from the one to the other."""
    given = [each for each in buckets.happenings if each.kind is EventKind.ASSIGN]
    return frozenset(
        of
        for key in keys
        for of in program.copied.get(key, ())
        if not any(
            touches(key, one) for each in given for one in (*(each.keys or ()), *each.lender)
        )
    )


def _fills(backward: Happening, mine: set[str]) -> bool:
    return backward.event is not None and not mine.isdisjoint(backward.event.buckets)


def _trains_elsewhere(step: Happening, backwards: list[Happening]) -> bool:
    """Does it go back before or after the loop that is written around the step, not in it?"""
    outer = step.loop
    return (
        outer is not None
        and bool(outer.text)
        and not any(_is_in(each.loop, outer) for each in backwards)
    )


def _is_in(loop: Loop | None, outer: Loop) -> bool:
    while loop is not None and loop is not outer:
        loop = loop.parent
    return loop is not None


def _since_clear(step: Happening, mine: set[str], buckets: Buckets) -> list[Happening]:
    """Return what happens from the last clear on that each step is made after.

    What a loss before it may have filled, and was not understood to, is gone as well.
    """
    order = buckets.happenings[: buckets.happenings.index(step)]
    for place in range(len(order) - 1, -1, -1):
        each = order[place]
        if (
            each.kind is EventKind.CLEAR
            and each.loop is step.loop
            and each.event is not None
            and mine <= set(each.event.buckets)
            and happens_wherever(each, step)
        ):
            return order[place:]
    return buckets.happenings


def _comes_before(backward: Happening, step: Happening, mine: set[str]) -> bool:
    """Is it a backward in the round of the step, before it, that fills others only?"""
    return (
        backward.kind is EventKind.BACKWARD
        and backward.loop is step.loop
        and backward.spot.path == step.spot.path
        and backward.spot.line < step.spot.line
        and backward.event is not None
        and mine.isdisjoint(backward.event.buckets)
    )


def _is_beside_its_training(step: Happening, backwards: list[Happening], buckets: Buckets) -> bool:
    """Do the losses and another step of its optimizer stand in a loop inside this one?

    A step on nothing before that loop is one that a scheduler asks for.
    """
    trained = [each.loop for each in backwards if each.loop is not None]
    if len(trained) < len(backwards) or any(loop is step.loop for loop in trained):
        return False
    return any(
        each.kind is EventKind.STEP
        and each.optimizer is step.optimizer
        and each.loop is not step.loop
        and any(each.loop is loop for loop in trained)
        for each in buckets.happenings
    )


def _may_hide_a_backward(step: Happening) -> bool:
    """Does the loop call something that by its name fills gradients, or trains?

    One that computes no loss at all only moves a scheduler, a schedule of a pipeline that is
    handed data goes back by itself, a network may be told to (`replay_backprop=True`), what
    another process fills may be shared, and what an heir writes is not seen.
    """
    text = step.loop.text if step.loop is not None else ""
    told = _HANDED.search(text) or _TOLD.search(COMMENTS.sub("", text))
    return (
        acts(text, step.unit)
        or not _LOSS.search(text)
        or bool(told)
        or _gives_no_loss_back(step.loop)
        or has_workers(step.unit, text)
        or is_left_to_heirs(step.unit, step.loop)
    )


def _gives_no_loss_back(loop: Loop | None) -> bool:
    """Is something called a loss, and what it gives not kept as one? It may go back by itself.

    `stats = self.train_loss.in_shards(batch, outputs)`
    """
    for node in statements_in([loop.node]) if loop is not None and loop.node is not None else ():
        if not isinstance(node, ast.Assign | ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        called = path_of(node.value.func).split(".")
        of_loss = is_loss_name(called[-1]) or (
            isinstance(node, ast.Assign) and is_loss_name(called[-2:][0])
        )
        if not of_loss or called[-1] in _OF_RECORDS or not node.value.args:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [
            path_of(each)
            for target in targets
            for each in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        if not any(is_loss_name(name) or len(name.rsplit(".", 1)[-1]) < 3 for name in names):
            return True
    return False


def only_moves_a_schedule(node: Happening) -> bool:
    """Does the loop around it speak of no loss and call nothing that could go back?"""
    text = node.loop.text if node.loop is not None and not node.loop.pseudo else ""
    return bool(text) and not (acts(text, node.unit) or _LOSS.search(text) or _HANDED.search(text))
