"""Whether a path that breaks a rule is one that the program can take, and does not mean to."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.verdicts import Literal, Verdict
from zerograd.static.engine.identity.conditions import RAISED
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.taken import takes
from zerograd.static.engine.judging.updaters import may_be_updated_outside
from zerograd.static.engine.text.provided import ways_of, ways_to
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.lifecycle.state import Drop
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program
    from zerograd.static.engine.text.classes import FunctionNode

BEFORE = "one iteration back: "
CAUGHT = f"{BEFORE}{RAISED}"
_NAMES = re.compile(r"[A-Za-z_]\w*")
_DOTTED = re.compile(r"[A-Za-z_][\w.]*")
_AT_START = re.compile(r"^(?:not )?([\w.]+)\s*(?:(?:==|!=|>)\s*0)?$")
_TAKEN = re.compile(r"(?m)^[ \t]*(\w+) = \w[\w.]*\([\w.]+\.grad\)$")
_WHEN = re.compile(r"_(?:before|after)_\w")
_CLEARING = frozenset(("zero", "zeros", "zerograd", "clear", "reset", "retain", "keep"))


def is_plausible(node: Happening, verdict: Verdict, buckets: Buckets, program: Program) -> bool:
    """A condition that guards the clear but not the step must not hide one that guards both.

    If the step has a guard of its own that the clear has not, the two may be
    the same condition in other words: that is not for us to say.
    """
    if verdict.rule.code == "ZG302" and may_be_updated_outside(node, buckets, program):
        return False
    if verdict.rule.after_step and program.is_cleared_unasked():
        return False
    if verdict.rule.code == "ZG101" and _may_be_cleared_by_stranger(node, buckets):
        return False
    if verdict.rule.code == "ZG101" and _is_among_those_cleared(node, buckets):
        return False
    if verdict.rule.code == "ZG202" and _is_emptied_by_another_name(node):
        return False
    if verdict.rule.code == "ZG303" and _may_be_scaled_for_another(node, verdict, buckets):
        return False
    if verdict.condition is None:
        return True
    if _is_not_there(node, verdict.condition, program):
        return False
    own = node.guards
    condition, truth = verdict.condition
    if node.rescues or (truth and condition.removeprefix(BEFORE).startswith(RAISED)):
        return False  # an exception comes from anywhere, and what it left may be anything
    if condition in own:
        return True
    condition = condition.removeprefix(BEFORE)
    if _is_about_clearing(condition, program) or _turns_around(condition, node, program):
        return False
    missed = EventKind.SCALER_UPDATE if verdict.rule.code == "ZG302" else EventKind.CLEAR
    clears = [
        each
        for each in buckets.happenings
        if each.kind is missed and condition in each.guards | each.behind
    ]
    if missed is EventKind.SCALER_UPDATE and not any(
        each.kind is missed for each in buckets.happenings
    ):
        return True  # there is none to be kept from running
    if not clears and condition != verdict.condition[0]:
        # what was so one iteration back must have kept a clear from running
        return verdict.rule.code == "ZG101" and not is_ever_cleared(node, buckets)
    fixed = {
        key for key in (*own, condition) if node.loop is None or not program.varies(node.loop, key)
    }
    if condition in fixed and not are_about_the_same(condition, own - fixed, program):
        return True  # what never changes is no other word for what does
    return not clears or any(own - fixed <= each.guards for each in clears)


def _is_not_there(node: Happening, literal: Literal, program: Program) -> bool:
    """Is there no such optimizer where that holds? It was made under the opposite of it alone.

    A file that makes it nowhere says nothing of this.
    """
    atom = program.atoms.get(literal[0])
    if atom is None or atom.node is None or not node.name:
        return False
    opposite = ways_of(atom.node, not literal[1])
    whole = node.unit.source.tree.body
    if "." in node.name:
        ways = ways_to(whole, f".{node.name.rpartition('.')[2]}")
    else:
        line = node.node.lineno  # type: ignore[attr-defined]
        around = [each.body for each in reversed(node.unit.functions_around(line))]
        found = (ways_to(body, node.name) for body in (*around, whole))
        ways = next(filter(None, found), frozenset())
    return not opposite.isdisjoint(ways)


def _may_be_cleared_by_stranger(node: Happening, buckets: Buckets) -> bool:
    """Is what is moved by hand perhaps held by an optimizer that is cleared, made out of sight?

    `p.add_(rho * p.grad); opt.zero_grad()` climbs, and lets the optimizer it is handed go on.
    """
    return (
        node.optimizer is not None
        and node.optimizer.is_by_hand
        and any(
            each.kind is EventKind.CLEAR
            and each.loop is node.loop
            and each.optimizer is not None
            and each.optimizer.keys is None
            for each in buckets.happenings
        )
    )


def _may_be_scaled_for_another(node: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """Is no scaled loss proved to fill this one, and does the scaler step another?"""
    assert node.event is not None
    owner = node.event.owner
    scaled = {
        each.spot for each in buckets.happenings if each.event is not None and each.event.scaler
    }
    if any(owner in each.fills and each.spot in scaled for each in verdict.state.contributions):
        return False
    return any(
        each.kind is EventKind.STEP
        and each.event is not None
        and each.event.scaler == verdict.state.scaled
        and each.event.owner != owner
        for each in buckets.happenings
    )


def _is_among_those_cleared(node: Happening, buckets: Buckets) -> bool:
    """Does a method that goes through the very dict or list stepped from clear items of it?

    `self.clear("D"); loss.backward(); self.optims["net"]["D"].step()`: which items those are, as
    they are gone through, is less sure than that this one is meant.
    """
    attribute, bracket, _ = node.name.partition("[")
    if not bracket or not attribute.startswith("self."):
        return False
    goes_through = re.compile(rf"\bin {re.escape(attribute)}\b")
    own = node.unit.functions_around(node.spot.line)[-1:]  # whose loops are seen as they are
    return any(
        each.kind is EventKind.CLEAR
        and each.unit is node.unit
        and any(
            goes_through.search(each.unit.text_of(method))
            for method in _methods_clearing(each)
            if method not in own
        )
        for each in buckets.happenings
    )


def _methods_clearing(clear: Happening) -> list[FunctionNode]:
    """Return the function a clear stands in, or those of the object's that are called there."""
    if clear.name != "self":
        return clear.unit.functions_around(clear.spot.line)[-1:]
    line = clear.unit.source.lines[clear.spot.line - 1]
    return [each for each in clear.unit.every_function() if f"self.{each.name}(" in line]


def _is_emptied_by_another_name(node: Happening) -> bool:
    """Is what a call made of some `.grad` alone zeroed in the same loop? It may be the same.

    `grad = none_throws(x.grad); kept.append(grad.clone()); grad.zero_()`
    """
    text = node.loop.text if node.loop is not None else ""
    return any(
        re.search(rf"\b{name}(?:\.data)?\.(?:zero_\(|fill_\(0)", text)
        for name in _TAKEN.findall(text)
    )


def is_put_elsewhere(lost: Drop | None, buckets: Buckets) -> bool:
    """Is a gradient read by hand before it is dropped by hand? A step may look for it elsewhere."""
    return lost is not None and any(
        each.kind is EventKind.CLEAR
        and each.spot == lost.clear
        and not isinstance(each.node, ast.Call)
        and takes("\n".join(each.unit.source.lines[lost.backward.line - 1 : lost.clear.line]))
        for each in buckets.happenings
    )


def are_about_the_same(condition: str, others: frozenset[str], program: Program) -> bool:
    """Is a name in a condition one of those that others ask for, or is nothing known of it?"""
    names = [_dotted(key, program) for key in (condition, *others)]
    return not all(names) or not names[0].isdisjoint(frozenset().union(*names[1:]))


def _dotted(key: str, program: Program) -> frozenset[str]:
    """Return the names in a condition, as they are written: `args.accum`."""
    atom = program.atoms.get(key)
    return frozenset(_DOTTED.findall(atom.text)) if atom is not None else frozenset()


def is_ever_cleared(node: Happening, buckets: Buckets, *, in_its_loop: bool = False) -> bool:
    """May anything at all clear what this step uses, but for who handles an exception?

    Args:
        in_its_loop: ask only for clears in the rounds of the loop that steps.
    """
    if node.loop is None or node.loop.pseudo:
        return True  # by whom it is called, for all one knows
    if node.optimizer is not None and (node.optimizer.picked or "[" in node.optimizer.key):
        return True  # or another of several is what was filled
    mine = set(node.event.buckets) if node.event is not None else set()
    return any(
        each.kind in (EventKind.CLEAR, EventKind.ASSIGN)
        and not each.rescues
        and not (in_its_loop and each.loop is not node.loop and not _is_in(each.loop, node.loop))
        and (each.event is None or not mine.isdisjoint((*each.event.buckets, *each.partial)))
        for each in buckets.happenings
    )


def _is_in(loop: Loop | None, outer: Loop | None) -> bool:
    """Does a loop stand somewhere inside another?"""
    while loop is not None and loop is not outer:
        loop = loop.parent
    return loop is outer


def _is_about_clearing(condition: str, program: Program) -> bool:
    """Is it a switch whose name says that gradients are kept, or cleared? Then it is meant.

    One that says when, `zero_grad_before_forward`, does not say whether.
    """
    atom = program.atoms.get(condition)
    if atom is None or not isinstance(atom.node, ast.Name | ast.Attribute | ast.Call):
        return False
    words = {word for name in _NAMES.findall(atom.text) for word in words_of(name)}
    when = any(map(_WHEN.search, _NAMES.findall(atom.text)))
    cleared = not words.isdisjoint(_CLEARING) and not when
    return cleared or any(word.startswith("accum") for word in words)


def _turns_around(condition: str, node: Happening, program: Program) -> bool:
    """Is it asked whether `n = (n + 1) % size` is at its start, and more than once?

    Asked at the clear, before it is counted, it says what was so at the last step.
    """
    atom = program.atoms.get(condition)
    asked = _AT_START.match(atom.text) if atom is not None else None
    if asked is None:
        return False
    name, text = re.escape(asked[1]), node.unit.source.text
    counted = rf"(?<![\w.]){name}\s*=\s*\(\s*{name}\s*\+\s*1\s*\)\s*%"
    return bool(re.search(counted, text)) and len(re.findall(rf"\bif .*\b{name}\b", text)) > 1


def is_repeated(literals: frozenset[Literal], conditions: frozenset[str]) -> bool:
    """Were the conditions one iteration back what they are now, as far as is known?

    And was no exception caught then? Who handles one may clear what it left.
    """
    return not any(
        (f"{BEFORE}{key}", not truth) in literals
        if key in conditions
        else truth and key.startswith(CAUGHT)
        for key, truth in literals
    )
