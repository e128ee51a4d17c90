"""Rounds in a row: each came to the step, and in none of them was anything caught.

A round between two steps may have cleared and left: `if bad: opt.zero_grad(); continue`. So a
step is judged over those rounds as well that follow one which stepped.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.verdicts import Verdict, judge_set
from zerograd.static.engine.identity.ir import FILLS, Happening
from zerograd.static.engine.judging.periodic import judged_by_count
from zerograd.static.engine.judging.plausible import BEFORE, CAUGHT, are_about_the_same, is_repeated
from zerograd.static.engine.judging.unscaled import States
from zerograd.static.engine.text.stores import statements_in, targets

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program


class Rows:
    """The rounds that lead to one step."""

    def __init__(
        self, program: Program, buckets: Buckets, step: Happening, varies: Callable[[str], bool]
    ) -> None:
        self._program = program
        self._buckets = buckets
        self._step = step
        self._varies = varies

    def judged(self, held: dict[str, States], verdict: Verdict) -> Verdict:
        """Return the verdict over rounds in a row, or over one in so many, if that is certain."""
        step = self._step
        if verdict.rule.code == "ZG102" and step.event is not None:
            return judged_by_count(self._program, held, verdict, step.event, self._varies)
        settled = verdict.certain and verdict.condition is None
        if settled or verdict.rule.code != "ZG101" or step.event is None or step.rescues:
            return verdict
        rules = [verdict.rule]
        calm = judge_set(_after(held, frozenset()), step.event, rules, self._varies)
        found = [each for each in calm if each.certain]
        # every other round may be one that clears
        every_other = any("%" in self._program.atoms[key].text for key in step.behind)
        if not every_other and all(each.condition is not None for each in found):
            alike = _after(held, step.guards | step.behind)
            in_a_row = judge_set(alike, step.event, rules, self._varies)
            found = [each for each in in_a_row if self._is_sure(each)] + found
        return found[0] if found else verdict

    def _is_sure(self, verdict: Verdict) -> bool:
        condition = verdict.condition
        return verdict.certain and (condition is None or self._is_apart(condition[0]))

    def _is_apart(self, condition: str) -> bool:
        """Has a condition nothing to do with which rounds are skipped, or with what they fill?

        Else it may tell where a window begins, which the rounds that are skipped add to.
        """
        step, atom = self._step, self._program.atoms.get(condition)
        if atom is None or atom.counter or condition.startswith(BEFORE) or not step.behind:
            return False
        losses = [
            each
            for each in self._buckets.happenings
            if each.kind in FILLS and each.loop is step.loop
        ]
        skips = [self._program.atoms.get(key) for key in step.behind]
        names = frozenset().union(*(each.names for each in skips if each is not None))
        return (
            all(step.behind <= each.behind for each in losses)
            and None not in skips
            and atom.names.isdisjoint(names)
            and not are_about_the_same(condition, step.behind, self._program)
            and not self._is_set_after(atom.names)
        )

    def _is_set_after(self, names: frozenset[str]) -> bool:
        """Does what comes after the step set one of these names, for the next round to ask?"""
        loop = self._step.loop.node if self._step.loop is not None else None
        if loop is None:
            return True
        later = [
            each
            for each in statements_in([loop])
            if isinstance(each, ast.stmt) and each.lineno > self._step.spot.line
        ]
        stored = {
            each.id if isinstance(each, ast.Name) else f".{each.attr}"
            for each in targets(later)
            if isinstance(each, ast.Name | ast.Attribute)
        }
        return not stored.isdisjoint(name.partition("#")[0] for name in names)


def needs_an_exception(held: dict[str, States], verdict: Verdict, event: Event) -> bool:
    """Is the rule broken only after a round in which something was caught?

    What the exception kept from running may be all that was to come: an input made anew, a clear.
    """
    met = {literals for states in held.values() for under in states.values() for literals in under}
    caught = any(truth and key.startswith(CAUGHT) for each in met for key, truth in each)
    return caught and not judge_set(_after(held, frozenset()), event, [verdict.rule])


def _after(held: dict[str, States], passed: frozenset[str]) -> dict[str, States]:
    """Return the states after a round in which nothing was caught, and these were the same."""
    met = {each for states in held.values() for under in states.values() for each in under}
    repeated = {each for each in met if is_repeated(each, passed)}
    return {
        bucket: {
            state: kept
            for state, under in states.items()
            if (kept := [each for each in under if each in repeated])
        }
        for bucket, states in held.items()
    }
