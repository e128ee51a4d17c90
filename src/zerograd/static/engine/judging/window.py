"""A step that a counter lets through once in a while, and what it collects until then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.conditions import SYNC
from zerograd.static.engine.identity.ir import FILLS, Happening, Loop
from zerograd.static.engine.judging.counted import Counted, counted_in
from zerograd.static.engine.reading.counters import counter_of
from zerograd.static.engine.text import sizes
from zerograd.static.engine.text.parts import names_below, parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.identity.atoms import Atom
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program


class Window:
    """A step that a count lets through once in a while, and the backwards it collects."""

    __slots__ = (
        "asked",
        "backwards",
        "by_hand",
        "cleared",
        "divisor",
        "emptied",
        "flushed",
        "guard",
        "index",
        "left",
        "sides",
        "single",
        "step",
        "steps",
        "test",
        "unit",
        "within",
    )

    def __init__(
        self,
        step: Happening,
        guard: str,
        unit: Unit,
        test: ast.expr,
        counted: Counted,
        sides: set[bool],
        backwards: list[Happening],
    ) -> None:
        self.step = step
        self.guard = guard
        self.unit = unit  # where the guard stands, which may be another file than the step
        self.test = test
        self.asked = counted.asked
        self.left = counted.left
        self.divisor = counted.size
        self.by_hand = counted.by_hand
        self.sides = sides  # the truths of the guard with which the step is reached
        self.within = sides  # those where nothing else lets it through: the loop's last round
        self.backwards = backwards
        self.steps = [step]  # the last of each optimizer that the guard lets through
        self.cleared = False  # under the same guard as the step
        self.flushed: dict[
            str, ast.expr | None
        ] = {}  # tests that let the last round through as well
        self.emptied = False  # at every micro-batch: what it holds is no sum, and has no tail
        self.single = False  # one round of each window alone has a loss: it holds no sum either
        self.index = counter_of(step.loop) if step.loop is not None else None

    def text(self, node: ast.AST) -> str:
        return self.unit.source.segment(node)

    @property
    def shown(self) -> ast.expr:
        """The test as it stands around the step: the same may have been asked before, or its
        opposite, for whether to synchronise say."""
        asked, line = ast.dump(self.asked), self.step.spot.line
        if self.unit is self.step.unit:
            for each in self.unit.statements():
                if isinstance(each, ast.If) and each.lineno <= line <= (each.end_lineno or 0):
                    for part in parts_below(each.test):
                        if isinstance(part, ast.Compare) and ast.dump(part.left) == asked:
                            return part
        return self.test


def windows(
    program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
) -> Iterator[Window]:
    """Yield the windows of one root."""
    for step in buckets.happenings:
        if step.kind is not EventKind.STEP or step.event is None or step.loop is None:
            continue
        if step.rescues:
            continue  # the data ran out: what is left of the last window, and no window's end
        if id(step) not in flow.reached:
            continue
        for key in sorted(_asked_around(program, step) - step.turns):
            atom = program.atoms.get(key)
            number = atoms.get(key)
            if key == SYNC or atom is None or atom.node is None or number is None:
                continue
            counted = counted_in(atom, step.loop)
            if counted is None:
                continue
            ends = _ends_beside(program, key, counted, step.loop, atoms)
            if key not in step.guards | step.behind and not ends:
                continue  # what else lets it through is not known
            steps = {
                each.event.owner: each
                for each in buckets.happenings
                if each.kind is EventKind.STEP
                and each.event is not None
                and each.loop is step.loop
                and key in _asked_around(program, each)
            }
            losses = [
                each
                for each in buckets.happenings
                if each.kind is EventKind.BACKWARD
                and each.event is not None
                and each.loop is step.loop
                and step.event.owner in each.event.fills <= steps.keys()
            ]
            collected = [each for each in losses if key not in each.guards | each.behind]
            unit = atom.unit or step.unit  # where the guard stands, which may be another file
            size = unit.source.segment(counted.size)
            if not collected and (is_divided_by(step, size) or _is_kept_from_ranks(step)):
                # written out on both sides: without synchronising, and with
                taken = {_side(each, number, ends, flow) for each in losses}
                collected = losses if taken == {True, False} else []
            if not collected:
                continue
            if _is_whole(step, key, buckets):
                continue
            reached = [
                literals
                for each in buckets.happenings
                if each.kind is EventKind.STEP
                and each.optimizer is step.optimizer
                and each.loop is step.loop
                for literals in flow.known_at(each)
            ]
            asked = {number * 2, number * 2 + 1}
            sides = {number * 2 + 1 in literals for literals in reached}
            if all(_comes_with(each, number, sides, flow) for each in collected):
                continue
            window = Window(step, key, unit, atom.node, counted, sides, collected)
            window.steps = list(steps.values())
            window.single = _is_of_one_round(window, number, flow)
            if ends:
                window.flushed = {own: program.atoms[own].node for own in ends.values()}
                window.within = {
                    number * 2 + 1 in literals
                    for literals in reached
                    if literals.isdisjoint(ends) and not asked.isdisjoint(literals)
                }
            window.cleared = any(
                each.kind is EventKind.CLEAR
                and key in _asked_around(program, each)
                and each.event is not None
                and not set(each.event.buckets).isdisjoint(step.event.buckets)
                for each in buckets.happenings
            )
            window.emptied = any(
                each.kind is EventKind.CLEAR
                and each.loop is step.loop
                and not any(program.varies(step.loop, own) for own in each.inner | each.behind)
                and each.event is not None
                and set(step.event.buckets) <= set(each.event.buckets)
                for each in buckets.happenings
            )
            yield window


def _asked_around(program: Program, node: Happening) -> frozenset[str]:
    """Return the conditions that let an event through, each part of `a or b` too."""
    around = node.guards | node.behind
    wholes = [program.atoms[key] for key in around if key in program.atoms]
    return around.union(*(each.parts for each in wholes if each.parts))


def _ends_beside(
    program: Program, guard: str, counted: Counted, loop: Loop, atoms: dict[str, int]
) -> dict[int, str]:
    """Return the literals by which a guard lets the last round through as well: `… or i == n`."""
    names = set(names_below(counted.left))
    if counted.by_hand and isinstance(loop.node, ast.For):  # the loop has a counter of its own
        names.update(names_below(loop.node.target))
    found: dict[int, str] = {}
    for whole in program.atoms.values():
        for key in whole.parts if guard in whole.parts else ():
            node = program.atoms[key].node
            if key == guard or node is None or key not in atoms:
                continue
            truth = _truth_at_the_end(node, names)
            if truth is not None:
                found[atoms[key] * 2 + truth] = key
    return found


def _truth_at_the_end(test: ast.expr, counted: set[str]) -> bool | None:
    """Return the truth that the atom of `i + 1 == n`, or `i < n`, has in the last round."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    names = [
        {each.id for each in parts_below(side) if isinstance(each, ast.Name)}
        for side in (test.left, *test.comparators)
    ]
    if isinstance(test.ops[0], ast.Eq | ast.NotEq):
        return None if names[0].isdisjoint(counted) and names[1].isdisjoint(counted) else True
    if names[0].isdisjoint(counted):
        return None
    if isinstance(test.ops[0], ast.Lt | ast.GtE):
        return False
    return True if isinstance(test.ops[0], ast.Gt | ast.LtE) else None


def flushes_by_number(window: Window) -> bool:
    """Is some round let through as well by its number, `or i == 1`: the first one perhaps?"""
    return any(
        isinstance(side, ast.Constant)
        for each in window.flushed.values()
        if isinstance(each, ast.Compare)
        for side in (each.left, *each.comparators)
    )


def looks_like_a_window(window: Window) -> bool:
    """Is it cleared where it is stepped, or the divisor named as a number of micro-batches?"""
    if window.cleared:
        return True
    divisor = window.text(window.divisor)
    named = re.search(r"acc|grad|micro|update|iter_size", divisor, re.IGNORECASE)
    text = window.step.loop.text if window.step.loop is not None else ""
    return bool(named) or bool(re.search(rf"(?<!/)/=?\s*{re.escape(divisor)}\b", text))


def is_divided_by(step: Happening, size: str) -> bool:
    """Does the loop divide something, a loss one would think, by the size of the window?"""
    return sizes.is_divided_by(step.loop.text if step.loop is not None else "", size)


def _is_kept_from_ranks(step: Happening) -> bool:
    """Does its loop keep some of its backwards from the other ranks, as who collects them does?"""
    return step.loop is not None and "no_sync()" in step.loop.text


def _side(node: Happening, number: int, ends: dict[int, str], flow: Flow) -> bool | None:
    """Return the truth of a condition with which a node is reached, if it is one only.

    Rounds that another test, of the last one, lets through are no window's end.
    """
    truths = {
        number * 2 + 1 in literals for literals in flow.known_at(node) if literals.isdisjoint(ends)
    }
    return truths.pop() if len(truths) == 1 else None


def _comes_with(node: Happening, number: int, sides: set[bool], flow: Flow) -> bool:
    """Is a condition known, by another counter, to be as at the step wherever a node is reached?

    Then the node comes in the step's rounds only: `if (i + 1) % 2 == 0`, and `if i % 2 == 1`.
    """
    asked = {number * 2 + side for side in sides}
    reached = flow.reached.get(id(node), {}).values()
    return len(asked) == 1 and all(asked <= each for pairs in reached for _, each in pairs)


def _is_of_one_round(window: Window, number: int, flow: Flow) -> bool:
    """Does a window of two have its losses in one and the same of its rounds?

    `if i % 2 == 0` around the loss, `if (i + 1) % 2 == 0` around the step.
    """
    if not isinstance(window.divisor, ast.Constant) or window.divisor.value != 2:
        return False
    return any(
        all(_comes_with(each, number, {side}, flow) for each in window.backwards)
        for side in (True, False)
    )


def _is_whole(step: Happening, guard: str, buckets: Buckets) -> bool:
    """Do the clear, the loss and the step of one update all stand under the guard, in this order?

    Then no window is collected outside it: a critic that is trained in every fifth round. The
    gradient may be given by hand as well, to parameters that go by another name.
    """
    assert step.event is not None
    mine = set(step.event.buckets)
    cleared = False
    for each in buckets.happenings:
        if each is step:
            return False
        if each.event is None or guard not in each.guards:
            continue
        beside = each.loop is step.loop
        if beside and each.kind is EventKind.CLEAR and mine <= set(each.event.buckets):
            cleared = True
        elif cleared and each.kind in FILLS and mine & {*each.event.buckets, *each.doubted}:
            return True
    return False


def must_be_one(unit: Unit, text: str) -> bool:
    """Is a program that asks for a longer window turned away: `assert accumulate == 1`?"""
    found = re.search(r"%\s*\(?\s*(?:\w+\.)*(\w+)", text)
    if found is None or "1" not in unit.source.text:
        return False
    name = rf"(?:\w+\.)*{found[1]}"
    asserted = rf"assert\s+{name}\s*(?:==|<=)\s*1\b"
    refused = rf"if\s+{name}\s*(?:!=|>)\s*1\s*:\s*raise\b"
    return re.search(f"{asserted}|{refused}", unit.source.text) is not None


def is_before_the_window(clear: Happening) -> bool:
    """Is it a clear of what Accelerate prepared, outside its `accumulate`?

    There it does nothing but after a round that has stepped: what it drops has been used.
    """
    return clear.optimizer is not None and clear.optimizer.windowed and SYNC not in clear.guards


def starts_a_window(clear: Happening, owner: str, guard: Atom | None, buckets: Buckets) -> bool:
    """Is what the guard asks of an object counted up between the clear and the owner's step?

    `if self.n % k == 0: clear`, then `self.n += 1`, then `if self.n % k == 0: step` are two tests:
    the one holds at the start of a window, and the other at its end.
    """
    steps = [
        each.spot.line
        for each in buckets.happenings
        if each.kind is EventKind.STEP and each.event is not None and each.event.owner == owner
        if each.unit is clear.unit
    ]
    counted = [
        each.lineno
        for each in clear.unit.statements()
        if isinstance(each, ast.AugAssign)
        and isinstance(each.target, ast.Attribute)
        and guard is not None
        and f".{each.target.attr}" in guard.names
    ]
    return any(clear.spot.line < line < step for line in counted for step in steps)
