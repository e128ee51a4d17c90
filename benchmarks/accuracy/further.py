"""Further ways to break a training loop, for the rules that the ten of `mutations` hardly reach.

They are measured apart (`measure --ways further`), so that the figures of the ten stay what they
are. The lines are again the one to change, or the step that comes to harm:

- a step that was deleted: a clear or backward of that optimizer, or where it is made, as ZG203.
- a step twice in a row: either, as ZG402; through a scaler torch raises, which ZG302 tells too.
- a backward that was deleted: the step, as ZG401.
- a loss that is not scaled, or a step past its scaler: the backward or the step, as ZG303.
- an update before its step: either, as ZG305.
- a clip after the step, or before the backward: the clip, as ZG304; before the unscale: ZG301.
- another optimizer cleared in place of one's own, a clear in a handler, behind a `continue` or in
  the first batch only: the step or that clear, as ZG101 or ZG201.
- a loop that becomes a window, with a guard that is wrong: the guard, as ZG504; or with a clear
  that is: the clear, as ZG501, or the step, as ZG101.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.accuracy.edit import Editor
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.mutations import (
    PERIOD,
    Mutation,
    kept,
    lines_of,
    only_measures,
    plain,
    takes_closure,
)
from benchmarks.accuracy.surroundings import counter, guard_between, shared_loop
from benchmarks.accuracy.training_code import Act

FURTHER: dict[str, Mutation] = {}


def _mutation(kind: str) -> Callable[[Mutation], Mutation]:
    def register(function: Mutation) -> Mutation:
        FURTHER[kind] = function
        return function

    return register


class Round(NamedTuple):
    """One plain clear and one plain step of an optimizer, and the loop that both are in."""

    owner: str
    loop: ast.stmt
    clear: Act
    step: Act


def _rounds(subject: Subject) -> Iterator[Round]:
    for owner in subject.owners:
        shared = shared_loop(subject, owner)
        if shared is None or subject.has_foreign_clear(owner):
            continue
        loop, clears, steps = shared
        if len(clears) != 1 or len(steps) != 1 or takes_closure(steps[0]):
            continue
        if plain(clears[0]) and plain(steps[0]):
            yield Round(owner, loop, clears[0], steps[0])


def _made(subject: Subject, owner: str) -> list[int]:
    """Return the lines at which an optimizer is made."""
    return [
        each.lineno
        for each in ast.walk(subject.unit.tree)
        if isinstance(each, ast.Assign) and any(ast.unparse(to) == owner for to in each.targets)
    ]


def _by_scaler(subject: Subject) -> list[Act]:
    return [
        act
        for act in subject.unit.of("step")
        if act.call is not None
        and act.call.args
        and isinstance(act.call.func, ast.Attribute)
        and "scaler" in ast.unparse(act.call.func.value).lower()
    ]


def _level(editor: Editor, statement: ast.stmt) -> str:
    return "\t" if "\t" in editor.indent(statement) else "    "


@_mutation("step-deleted")
def step_deleted(subject: Subject) -> Iterator[Mutant]:
    """Delete every step of one optimizer."""
    for owner in subject.owners:
        steps, clears = subject.steps(owner), subject.clears(owner)
        if not clears or subject.has_foreign_clear(owner):
            continue
        if not all(map(plain, steps)) or any(map(takes_closure, steps)):
            continue
        editor = subject.editor()
        for act in [*steps, *(subject.unit.of("update") if len(subject.owners) == 1 else [])]:
            editor.delete(act.statement)
        lines = [*lines_of(clears), *lines_of(subject.unit.of("backward")), *_made(subject, owner)]
        yield subject.mutant("step-deleted", owner, editor, ["ZG203"], lines)


@_mutation("step-twice")
def step_twice(subject: Subject) -> Iterator[Mutant]:
    """Write a step a second time, right behind the first."""
    for owner, _, _, step in _rounds(subject):
        editor = subject.editor()
        editor.insert_after(step.statement, editor.text(step.statement), "again")
        codes = ["ZG402", "ZG302"] if step in _by_scaler(subject) else ["ZG402"]
        yield subject.mutant("step-twice", owner, editor, codes, ["again", *lines_of([step])])


@_mutation("backward-deleted")
def backward_deleted(subject: Subject) -> Iterator[Mutant]:
    """Delete every backward where one optimizer steps once."""
    losses = subject.unit.of("backward")
    for owner, _, _, step in _rounds(subject):
        if len(subject.owners) == 1 and all(map(plain, losses)):
            editor = subject.editor()
            for loss in losses:
                editor.delete(loss.statement)
            yield subject.mutant("backward-deleted", owner, editor, ["ZG401"], lines_of([step]))


@_mutation("loss-not-scaled")
def loss_not_scaled(subject: Subject) -> Iterator[Mutant]:
    """Write `loss.backward()` for `scaler.scale(loss).backward()`, and let the scaler step."""
    for loss in subject.unit.of("backward"):
        func = loss.call.func if loss.call is not None else None
        scaled = func.value if isinstance(func, ast.Attribute) else None
        if not isinstance(scaled, ast.Call) or len(scaled.args) != 1:
            continue
        inner = scaled.args[0]
        is_scale = isinstance(scaled.func, ast.Attribute) and scaled.func.attr == "scale"
        if not is_scale or not isinstance(inner, ast.Name | ast.Attribute):
            continue
        editor = subject.editor()
        editor.replace_span(loss.statement, ast.unparse(scaled), ast.unparse(inner))
        lines = lines_of([loss, *_by_scaler(subject)])
        yield subject.mutant("loss-not-scaled", loss.owner, editor, ["ZG303"], lines)


@_mutation("scaler-passed-by")
def scaler_passed_by(subject: Subject) -> Iterator[Mutant]:
    """Write `opt.step()` for `scaler.step(opt)`, where nothing unscales before."""
    if subject.unit.of("unscale"):
        return
    for step in _by_scaler(subject):
        assert step.call is not None
        editor = subject.editor()
        editor.replace_span(step.statement, ast.unparse(step.call), f"{step.owner}.step()")
        yield subject.mutant("scaler-passed-by", step.owner, editor, ["ZG303"], lines_of([step]))


@_mutation("update-before-step")
def update_before_step(subject: Subject) -> Iterator[Mutant]:
    """Move the scaler's update in front of the step that it belongs to."""
    for update in subject.unit.of("update"):
        earlier = [
            step
            for step in _by_scaler(subject)
            if step.statement.lineno < update.statement.lineno
            and subject.common_child(update.statement, step.statement) is update.statement
        ]
        if earlier:
            step = earlier[-1]
            editor = subject.editor()
            editor.delete(update.statement)
            editor.insert_before(step.statement, editor.text(update.statement), "update")
            lines: list[int | str] = ["update", *lines_of([step])]
            yield subject.mutant("update-before-step", step.owner, editor, ["ZG305"], lines)


def _clips(subject: Subject) -> list[Act]:
    return [act for act in subject.unit.of("clip") if not only_measures(act)]


@_mutation("clip-moved")
def clip_moved(subject: Subject) -> Iterator[Mutant]:
    """Move a clip behind its step, or in front of its backward or its unscale."""
    for clip in _clips(subject):
        here = clip.statement
        beside = [
            act
            for act in subject.unit.acts
            if act.kind in ("backward", "unscale", "step", "clear")
            and not (act.kind == "step" and takes_closure(act))
            and subject.at[act.statement].block is subject.at[here].block
        ]
        before = [act for act in beside if act.statement.lineno < here.lineno]
        after = [act for act in beside if act.statement.lineno > here.lineno]
        moves: list[tuple[Act, str]] = []
        if after and after[0].kind == "step":
            moves.append((after[0], "ZG304"))
        if before and before[-1].kind == "unscale":
            moves.append((before[-1], "ZG301"))
        elif before and before[-1].kind == "backward":
            moves.append((before[-1], "ZG304"))
        for act, code in moves:
            editor = subject.editor()
            editor.delete(here)
            insert = editor.insert_after if act.kind == "step" else editor.insert_before
            insert(act.statement, editor.text(here), "clip")
            yield subject.mutant("clip-moved", f"to {act.kind}", editor, [code], ["clip"])


@_mutation("another-cleared")
def another_cleared(subject: Subject) -> Iterator[Mutant]:
    """Clear another optimizer, or network, where its own is to be cleared."""
    for owner in subject.owners:
        clears = subject.clears(owner)
        if not clears or subject.has_foreign_clear(owner) or not all(map(plain, clears)):
            continue
        others = [
            act.owner
            for each in subject.owners
            if each != owner
            for act in subject.clears(each)
            if act.call is not None
        ]
        if others:
            editor = subject.editor()
            for act in clears:
                old, new = f"{act.owner}.zero_grad", f"{others[0]}.zero_grad"
                editor.replace_span(act.statement, old, new)
            lines = lines_of([*subject.steps(owner), *clears])
            yield subject.mutant("another-cleared", owner, editor, kept(subject), lines)


@_mutation("clear-hardly-reached")
def clear_hardly_reached(subject: Subject) -> Iterator[Mutant]:
    """Put the clear behind a `continue` of most rounds, in the first round, or in a handler."""
    for owner, loop, clear, step in _rounds(subject):
        if guard_between(subject, clear.statement, loop) is not None:
            continue
        steps = lines_of([step])
        if clear.loops[-1] is loop:
            editor = subject.editor()
            editor.wrap([clear.statement], f"if {counter(loop, editor)} == 1:")
            detail = f"{owner} in the first round"
            yield subject.mutant("clear-hardly-reached", detail, editor, kept(subject), steps)
        last = loop.body[-1]  # type: ignore[attr-defined]
        if step.loops[-1] is loop and not isinstance(last, ast.Return | ast.Break | ast.Continue):
            editor = subject.editor()
            count, text = counter(loop, editor), editor.text(clear.statement)
            level = _level(editor, last)
            editor.delete(clear.statement)
            editor.insert_after(last, [f"if {count} % 50 != 0:", f"{level}continue", *text])
            detail = f"{owner} behind a continue"
            yield subject.mutant("clear-hardly-reached", detail, editor, kept(subject), steps)
        editor = subject.editor()
        level = _level(editor, step.statement)
        stepped, cleared = editor.text(step.statement), editor.text(clear.statement)
        editor.delete(clear.statement)
        editor.delete(step.statement)
        editor.insert_before(step.statement, ["try:"])
        editor.insert_before(step.statement, [level + each for each in stepped], "step")
        handler = ["except RuntimeError:", *(level + each for each in cleared)]
        editor.insert_before(step.statement, handler)
        detail = f"{owner} in a handler"
        yield subject.mutant("clear-hardly-reached", detail, editor, kept(subject), ["step"])


@dataclass(frozen=True, slots=True)
class Window:
    """A loop that steps in each round, about to step in each `PERIOD`-th."""

    round: Round
    editor: Editor
    count: str
    stepped: list[str]
    cleared: list[str]

    def put(self, guard: str, body: list[str], after: list[str], marks: list[str]) -> None:
        """Write the guard with its body in the place of the step; `marks` name the lines."""
        statement = self.round.step.statement
        level = _level(self.editor, statement)
        rows = [guard, *(level + each for each in body), *after]
        self.editor.delete(self.round.clear.statement)
        for each, mark in zip(rows, [*marks, *[""] * len(rows)], strict=False):
            self.editor.insert_before(statement, [each], mark)


def _windows(subject: Subject) -> Iterator[Window]:
    """Yield the loops with one loss in each round, and no guard around it, clear or step."""
    for each in _rounds(subject) if len(subject.owners) == 1 else ():
        losses = [b for b in subject.unit.of("backward") if each.loop in b.loops]
        acts = [*losses, each.clear, each.step]
        if len(losses) != 1 or losses[0].statement.lineno > each.step.statement.lineno:
            continue
        if any(act.loops[-1] is not each.loop for act in acts):
            continue
        if any(guard_between(subject, act.statement, each.loop) for act in acts):
            continue
        editor = subject.editor()
        stepped = editor.text(each.step.statement)
        editor.delete(each.step.statement)
        place = subject.at[each.step.statement]
        updates = {act.statement for act in subject.unit.of("update")}
        for following in place.block[place.index + 1 :]:
            if following not in updates:
                break
            stepped += editor.text(following)
            editor.delete(following)
        count = counter(each.loop, editor)
        yield Window(each, editor, count, stepped, editor.text(each.clear.statement))


_GUARDS = {
    "not compared": "if {count} % {size}:",
    "turned round": "if {size} % {count} == 0:",
    "never as long": "if {count} % {size} == {size}:",
    "a quotient": "if {count} // {size} == 0:",
    "opposite": "if {count} % {size} != 0:",
}


@_mutation("window-guard-wrong")
def window_guard_wrong(subject: Subject) -> Iterator[Mutant]:
    """Step and clear in windows, under a guard that is not true once in each."""
    for detail, guard in _GUARDS.items():
        for window in _windows(subject):
            test = guard.format(count=window.count, size=PERIOD)
            window.put(test, [*window.stepped, *window.cleared], [], ["guard"])
            yield subject.mutant("window-guard-wrong", detail, window.editor, ["ZG504"], ["guard"])
    for window in _windows(subject):
        window.editor.insert_before(window.round.loop, ["seen = 1"])
        body = [*window.stepped, *window.cleared]
        window.put(f"if seen % {PERIOD} == 0:", body, [], ["guard"])
        detail = "a counter that stands still"
        yield subject.mutant("window-guard-wrong", detail, window.editor, ["ZG504"], ["guard"])


@_mutation("window-cleared-wrong")
def window_cleared_wrong(subject: Subject) -> Iterator[Mutant]:
    """Step in windows, and clear by a rarer count, where no step is made, or in each round."""
    kind, owners = "window-cleared-wrong", subject.owners
    for window in _windows(subject):
        level = _level(window.editor, window.round.step.statement)
        rarer = f"if {window.count} % {2 * PERIOD} == 0:"
        guard = f"if {window.count} % {PERIOD} == 0:"
        cleared = [level + each for each in window.cleared]
        window.put(guard, window.stepped, [rarer, *cleared], ["", "step"])
        detail = f"{owners[0]} by a rarer count"
        yield subject.mutant(kind, detail, window.editor, ["ZG101"], ["step"])
    for window in _windows(subject):
        level = _level(window.editor, window.round.step.statement)
        guard = f"if {window.count} % {PERIOD} == 0:"
        cleared = [level + each for each in window.cleared]
        marks = [""] * (len(window.stepped) + 2) + ["clear"]
        window.put(guard, window.stepped, ["else:", *cleared], marks)
        yield subject.mutant(kind, f"{owners[0]} else", window.editor, ["ZG501"], ["clear"])
