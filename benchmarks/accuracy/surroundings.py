"""What stands around the acts of a training unit: loops, conditions, counters."""

from __future__ import annotations

import ast

from benchmarks.accuracy.edit import CannotEdit, Editor
from benchmarks.accuracy.mutants import Subject
from benchmarks.accuracy.training_code import Act


def shared_loop(subject: Subject, owner: str) -> tuple[ast.stmt, list[Act], list[Act]] | None:
    """Return the innermost loop that holds a clear, a step and a backward, with the first two."""
    for step in subject.steps(owner):
        for loop in reversed(step.loops):
            clears = [c for c in subject.clears(owner) if loop in c.loops]
            filled = any(loop in b.loops for b in subject.unit.of("backward"))
            if clears and filled:
                return loop, clears, [s for s in subject.steps(owner) if loop in s.loops]
    return None


def bound_inside(loop: ast.stmt, text: str) -> bool:
    root = text.split(".")[0].split("[")[0].split("(")[0]
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == root
        for node in ast.walk(loop)
    )


def counter(loop: ast.stmt, editor: Editor) -> str:
    """Return an expression that counts the iterations of a loop from one, adding it if needed."""
    if isinstance(loop, ast.For):
        target, source = loop.target, ast.unparse(loop.iter)
        counts = "enumerate(" in source and ", start" not in source
        if counts and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            return f"({_lasting(loop, target.elts[0])} + 1)"
        ranged = source.startswith(("range(", "trange(", "tqdm(range("))
        if ranged and isinstance(target, ast.Name) and "," not in source:
            return f"({_lasting(loop, target)} + 1)"
        line = editor.line(loop.lineno)
        old_target = ast.get_source_segment("\n".join([line]), _on_first_line(target))
        old_iter = ast.get_source_segment("\n".join([line]), _on_first_line(loop.iter))
        one_line = loop.iter.end_lineno == loop.lineno
        if not one_line or not old_target or not old_iter or counts:
            raise CannotEdit("the loop's header is spread over several lines")
        inner = f"({old_target})" if isinstance(target, ast.Tuple) else old_target
        inner = inner.replace("((", "(").replace("))", ")") if old_target[:1] == "(" else inner
        head, tail = line.split(old_target, 1)[0], line.rsplit(old_iter, 1)[1]
        new = f"{head}batch_count, {inner} in enumerate({old_iter}){tail}"
        editor.replace_span(loop, line, new)
        return "(batch_count + 1)"
    assert isinstance(loop, ast.While)
    editor.insert_before(loop, ["batch_count = 0"])
    editor.insert_before(loop.body[0], ["batch_count += 1"])
    return "batch_count"


def _lasting(loop: ast.For, name: ast.Name) -> str:
    """Return the name of a counter; one that the loop itself gives another value counts nothing."""
    if any(bound_inside(each, name.id) for each in loop.body):
        raise CannotEdit("the loop's counter is given another value inside")
    return name.id


def _on_first_line(node: ast.expr) -> ast.expr:
    moved = ast.Name(id="", ctx=ast.Load())
    moved.lineno, moved.end_lineno = 1, 1
    moved.col_offset, moved.end_col_offset = node.col_offset, node.end_col_offset
    return moved


def guard_between(subject: Subject, statement: ast.stmt, loop: ast.stmt) -> ast.If | None:
    """Return the innermost `if` around a statement inside the loop."""
    for ancestor in subject.ancestors(statement):
        if ancestor is loop:
            return None
        if isinstance(ancestor, ast.If):
            return ancestor
    return None


def shares_its_loss(subject: Subject, owner: str, loop: ast.stmt) -> bool:
    """Do several optimizers step on the loop's one loss?

    Then what is cleared has been used by another's step: one of them is trained less often,
    which is no window cut short.
    """
    losses = [b for b in subject.unit.of("backward") if loop in b.loops]
    others = [s for s in subject.unit.of("step") if loop in s.loops and s.owner != owner]
    return len(losses) == 1 and bool(others)


def is_between(subject: Subject, branch: ast.stmt, steps: list[Act]) -> bool:
    """Does a branch stand between a loss and its step? A clear there is another mutation."""
    here = subject.at[branch].index

    def where(acts: list[Act]) -> list[int]:
        around = [subject.common_child(act.statement, branch) for act in acts]
        return [subject.at[each].index for each in around if each is not None]

    after_a_loss = any(index < here for index in where(subject.unit.of("backward")))
    return after_a_loss and any(index > here for index in where(steps))
