"""Ten ways to break a training loop, each as one small textual edit.

Every mutation takes a `Subject` and yields mutants with the codes and lines a checker must
give. The line is the one a reader has to change, or the step that comes to harm where the line
to change is no longer there:

- a clear that was deleted, hoisted or put under a condition: the step, as ZG101. With several
  steps of that optimizer any of them is right; with a closure its backward too, before which
  the clear belongs. Where several optimizers step, ZG201 says the same of a loss that reaches
  both, and asks for the same clear.
- a clear between backward and step: that clear, as ZG102.
- a clear in every batch under a step that is not: that clear, as ZG501.
- a step before its backward: that step. ZG401 and ZG102 differ in whether a clear has thrown
  the gradients away by then, which depends on where the clear stands; both ask for the order.
- a call without its parentheses, a clip without its unscale, a scaler's step without its
  update: the call itself, as ZG103, ZG301 and ZG302.

No other code and no other line counts, whatever the trail of the finding tells.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Iterator, Mapping

from benchmarks.accuracy.edit import CannotEdit, Editor
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.surroundings import (
    bound_inside,
    counter,
    guard_between,
    is_between,
    shared_loop,
    shares_its_loss,
)
from benchmarks.accuracy.training_code import Act

Mutation = Callable[[Subject], Iterator[Mutant]]
MUTATIONS: dict[str, Mutation] = {}
PERIOD = 4


def _mutation(kind: str) -> Callable[[Mutation], Mutation]:
    def register(function: Mutation) -> Mutation:
        MUTATIONS[kind] = function
        return function

    return register


def takes_closure(step: Act) -> bool:
    assert step.call is not None
    names = [ast.unparse(a) for a in step.call.args] + [k.arg or "" for k in step.call.keywords]
    return any("closure" in n for n in names) or any(
        isinstance(a, ast.Lambda) for a in step.call.args
    )


def lines_of(acts: list[Act]) -> list[int]:
    """Return the lines at which these acts may be reported: statement or call."""
    found = {a.statement.lineno for a in acts}
    return sorted(found | {a.call.lineno for a in acts if a.call is not None})


def plain(clear: Act) -> bool:
    return isinstance(clear.statement, ast.Expr) and clear.statement.value is clear.call


def _deleted(clears: list[Act], editor: Editor) -> list[list[str]]:
    """Delete these clears, and return their texts, each once: `encoder`'s, and `decoder`'s."""
    texts: dict[str, list[str]] = {}
    for clear in clears:
        lines = editor.text(clear.statement)
        texts.setdefault(ast.unparse(clear.statement), lines)
        editor.delete(clear.statement)
    return list(texts.values())


def kept(subject: Subject) -> list[str]:
    """Return the codes of gradients that were not cleared: one's own, or another's loss."""
    return ["ZG101", "ZG201"] if len(subject.owners) > 1 else ["ZG101"]


def _step_lines(subject: Subject, owner: str) -> list[int]:
    """Return the step's lines; with a closure the backward inside it is as right."""
    steps = subject.steps(owner)
    lines = lines_of(steps)
    if any(takes_closure(s) for s in steps):
        lines += lines_of(subject.unit.of("backward"))
    return lines


@_mutation("clear-deleted")
def clear_deleted(subject: Subject) -> Iterator[Mutant]:
    """Delete every clear of a unit that steps one optimizer."""
    if len(subject.owners) != 1:
        return
    owner = subject.owners[0]
    editor = subject.editor()
    for clear in subject.unit.of("clear"):
        editor.delete(clear.statement)
    yield subject.mutant("clear-deleted", owner, editor, ["ZG101"], _step_lines(subject, owner))


@_mutation("one-of-two-clears-deleted")
def one_clear_deleted(subject: Subject) -> Iterator[Mutant]:
    """Delete the clears of one optimizer where the unit steps several."""
    if len(subject.owners) < 2:
        return
    for owner in subject.owners:
        clears = subject.clears(owner)
        if not clears or subject.has_foreign_clear(owner):
            continue
        editor = subject.editor()
        for clear in clears:
            editor.delete(clear.statement)
        yield subject.mutant(
            "one-of-two-clears-deleted",
            owner,
            editor,
            kept(subject),
            _step_lines(subject, owner),
        )


@_mutation("clear-between-backward-and-step")
def clear_between(subject: Subject) -> Iterator[Mutant]:
    """Move the clear, or each of several, to right before the step."""
    for owner in subject.owners:
        clears, steps = subject.clears(owner), subject.steps(owner)
        if not clears or subject.has_foreign_clear(owner):
            continue
        if not all(map(plain, clears)) or any(takes_closure(s) for s in steps):
            continue
        editor = subject.editor()
        moved = _deleted(clears, editor)
        marks: list[str] = []
        for step in steps:
            for lines in moved:
                marks.append(f"clear{len(marks)}")
                editor.insert_before(step.statement, lines, marks[-1])
        yield subject.mutant(
            "clear-between-backward-and-step",
            owner,
            editor,
            ["ZG102"],
            marks,
        )


@_mutation("clear-hoisted-before-loop")
def clear_hoisted(subject: Subject) -> Iterator[Mutant]:
    """Move the clear out of the loop that steps, to just before it."""
    for owner in subject.owners:
        shared = shared_loop(subject, owner)
        if shared is None or subject.has_foreign_clear(owner):
            continue
        loop, clears, steps = shared
        if not all(plain(c) and not bound_inside(loop, c.owner) for c in clears):
            continue
        if any(takes_closure(s) for s in steps):
            continue
        editor = subject.editor()
        for lines in _deleted(clears, editor):
            editor.insert_before(loop, lines)
        yield subject.mutant(
            "clear-hoisted-before-loop", owner, editor, kept(subject), lines_of(steps)
        )


@_mutation("call-parentheses-dropped")
def parentheses_dropped(subject: Subject) -> Iterator[Mutant]:
    """Write `opt.zero_grad`, `opt.step` or `loss.backward` without calling it."""
    for kind in ("clear", "step", "backward"):
        for act in subject.unit.of(kind):
            call = act.call
            if call is None or not plain(act):
                continue
            if call.args or (call.keywords and kind == "step"):
                continue
            if ast.unparse(call.func).split(".")[-1] == "manual_backward":
                continue
            end = call.func.end_col_offset or 0
            if call.end_lineno != call.func.end_lineno or call.end_lineno is None:
                continue
            editor = subject.editor()
            line = editor.line(call.end_lineno).encode()
            tail = line[end : call.end_col_offset].decode()
            head = line[:end].decode()
            anchor = ast.Pass(lineno=call.end_lineno, col_offset=0)
            editor.replace_span(anchor, head + tail, head)
            yield subject.mutant(
                "call-parentheses-dropped",
                f"{kind} {act.owner}",
                editor,
                ["ZG103"],
                [*lines_of([act]), call.end_lineno],
            )
            break


@_mutation("step-guarded-clear-not")
def step_guarded(subject: Subject) -> Iterator[Mutant]:
    """Step every few batches while the clear stays in every batch."""
    for owner in subject.owners:
        steps = subject.steps(owner)
        shared = shared_loop(subject, owner)
        if shared is None or len(steps) != 1 or takes_closure(steps[0]):
            continue
        loop, clears, _ = shared
        step = steps[0]
        if step.loops[-1] is not loop or subject.has_foreign_clear(owner):
            continue
        if shares_its_loss(subject, owner, loop):
            continue
        if not any(b.loops and b.loops[-1] is loop for b in subject.unit.of("backward")):
            continue
        guard = guard_between(subject, step.statement, loop)
        editor = subject.editor()
        if guard is None:
            if any(guard_between(subject, c.statement, loop) for c in clears):
                continue
            place = subject.at[step.statement]
            wrapped = [step.statement]
            updates = {u.statement for u in subject.unit.of("update")}
            for following in place.block[place.index + 1 :]:
                if following not in updates:
                    break
                wrapped.append(following)
            count = counter(loop, editor)
            editor.wrap(wrapped, f"if {count} % {PERIOD} == 0:")
            lines: list[int | str] = [*lines_of(clears)]
        else:
            same = [c for c in clears if subject.at[c.statement].owner is guard]
            # With its backward under the guard too, the clear may run as often as it likes.
            inside = set(ast.walk(guard))
            backwards = [b for b in subject.unit.of("backward") if loop in b.loops]
            is_window = "%" in ast.unparse(guard.test) and not guard.orelse
            is_window = is_window and not any(b.statement in inside for b in backwards)
            if len(same) != len(clears) or not is_window or not plain(clears[0]):
                continue
            if subject.common_child(step.statement, clears[0].statement) is None:
                continue
            for clear in clears:
                editor.delete(clear.statement)
            editor.insert_after(guard, editor.text(clears[0].statement), "clear")
            lines = ["clear"]
        yield subject.mutant("step-guarded-clear-not", owner, editor, ["ZG501"], lines)


def only_measures(clip: Act) -> bool:
    """Is the limit None or infinite? Then the norm is asked for, and nothing is clipped."""
    call = clip.call
    assert call is not None
    limits = [*call.args[1:2], *(k.value for k in call.keywords if k.arg != "norm_type")]
    return any(re.search(r"\bNone\b|\binf\b", ast.unparse(each)) for each in limits)


@_mutation("unscale-deleted-before-clip")
def unscale_deleted(subject: Subject) -> Iterator[Mutant]:
    """Delete `scaler.unscale_` where a clip follows."""
    unscales = subject.unit.of("unscale")
    clips = [
        clip
        for clip in subject.unit.of("clip")
        if not only_measures(clip)
        for unscale in unscales
        if unscale.statement.lineno < clip.statement.lineno
        and subject.common_child(clip.statement, unscale.statement) is not None
    ]
    if not clips:
        return
    editor = subject.editor()
    for unscale in unscales:
        editor.delete(unscale.statement)
    yield subject.mutant(
        "unscale-deleted-before-clip", unscales[0].owner, editor, ["ZG301"], lines_of(clips)
    )


@_mutation("update-deleted")
def update_deleted(subject: Subject) -> Iterator[Mutant]:
    """Delete `scaler.update()`."""
    updates = subject.unit.of("update")
    steps = [
        step
        for step in subject.unit.of("step")
        if step.call is not None
        and isinstance(step.call.func, ast.Attribute)
        and "scaler" in ast.unparse(step.call.func.value).lower()
    ]
    if not updates or not steps:
        return
    editor = subject.editor()
    for update in updates:
        editor.delete(update.statement)
    yield subject.mutant("update-deleted", updates[0].owner, editor, ["ZG302"], lines_of(steps))


@_mutation("step-before-backward")
def step_before_backward(subject: Subject) -> Iterator[Mutant]:
    """Move the step in front of the backward it belongs to."""
    for owner in subject.owners:
        steps = subject.steps(owner)
        if len(steps) != 1 or takes_closure(steps[0]) or not plain(steps[0]):
            continue
        step = steps[0]
        floor = max(
            (
                act.statement.lineno
                for act in [*subject.clears(owner), *subject.unit.of("step")]
                if act.statement.lineno < step.statement.lineno
            ),
            default=0,
        )
        filled = [
            (b, subject.common_child(b.statement, step.statement))
            for b in subject.unit.of("backward")
            if floor < b.statement.lineno < step.statement.lineno
        ]
        targets = [child for _, child in filled if child is not None]
        if not targets or len(targets) != len(filled):
            continue
        target = min(targets, key=lambda child: child.lineno)
        if target is step.statement:
            continue
        editor = subject.editor()
        editor.delete(step.statement)
        editor.insert_before(target, editor.text(step.statement), "step")
        yield subject.mutant(
            "step-before-backward",
            owner,
            editor,
            ["ZG401", "ZG102"],
            ["step"],
        )


@_mutation("clear-in-one-branch")
def clear_in_branch(subject: Subject) -> Iterator[Mutant]:
    """Move the clear under a condition the step does not stand under."""
    for owner in subject.owners:
        shared = shared_loop(subject, owner)
        if shared is None or subject.has_foreign_clear(owner):
            continue
        loop, clears, steps = shared
        if len(clears) != 1 or not plain(clears[0]) or any(takes_closure(s) for s in steps):
            continue
        clear = clears[0].statement
        if guard_between(subject, clear, loop) is not None:
            continue
        if any(guard_between(subject, s.statement, loop) for s in steps):
            continue
        busy = {act.statement for act in subject.unit.acts}
        branch = next(
            (
                other
                for other in subject.at[clear].block
                if isinstance(other, ast.If)
                and not is_between(subject, other, steps)
                and not any(node in busy for node in ast.walk(other))
                and other.body[0].lineno > other.lineno
            ),
            None,
        )
        editor = subject.editor()
        if branch is not None:
            editor.delete(clear)
            editor.insert_before(branch.body[0], editor.text(clear), "clear")
            detail = f"{owner} under an existing if"
        else:
            conditions = ["verbose", "torch.isfinite(loss)", "(batch_count + 1) % 2 == 0"]
            chosen = zlib.crc32(f"{subject.unit.path.name}{owner}".encode()) % 3
            condition = conditions[chosen]
            if chosen == 2:
                condition = f"{counter(loop, editor)} % 2 == 0"
            editor.wrap([clear], f"if {condition}:")
            detail = f"{owner} under `if {condition}`"
        yield subject.mutant("clear-in-one-branch", detail, editor, kept(subject), lines_of(steps))


def mutate(
    subject: Subject, ways: Mapping[str, Mutation] = MUTATIONS
) -> Iterator[Mutant | tuple[str, str]]:
    """Yield every mutant of a unit, or (kind, reason) where a clean edit is impossible."""
    for kind, mutation in ways.items():
        try:
            yield from mutation(subject)
        except CannotEdit as reason:
            yield kind, str(reason)
