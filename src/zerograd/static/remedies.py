"""For each rule, the edits that may cure it, the most natural first.

A remedy only has to be a sensible guess: it is offered to no one before the
checker has found that it cures the finding and breaks nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from zerograd.lifecycle.findings import Edit, Finding
from zerograd.static.edits import CannotEdit
from zerograd.static.scene import Scene, is_method, unique
from zerograd.static.source import Source


@dataclass(frozen=True, slots=True)
class Remedy:
    """Edits that may cure a finding, in rows of `Source.text`, and what they do in words."""

    message: str
    edits: tuple[Edit, ...]


_STEPS = ("step", "optimizer_step", "apply", "apply_gradients")  # the last two of Keras

Plan = Callable[[], list[Edit]]
Plans = Iterator[tuple[str, Plan]]


def remedies(source: Source, finding: Finding) -> Iterator[Remedy]:
    """Yield what may cure `finding`, best first."""
    cure = _CURES.get(finding.rule.code)
    if cure is None:
        return
    seen: set[tuple[Edit, ...]] = set()
    for message, plan in cure(Scene(source, finding)):
        try:
            edits = tuple(plan())
        except CannotEdit:
            continue
        if edits not in seen:
            seen.add(edits)
            yield Remedy(message, edits)


def _clear_after_step(scene: Scene) -> Plans:
    """ZG101: clear behind the step, which is right in every loop, windows included."""
    yield from _clear_in_closure(scene)
    for step in unique([scene.here, *scene.trail]):
        if not any(scene.has_call(step, name) for name in _STEPS):
            continue
        anchor = scene.behind_step(step)
        code = scene.clear_text()
        message = f"insert `{code}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.insert_after, anchor, code)
    yield from _clear_after_all_steps(scene)
    yield from _clear_by_hand(scene)


def _clear_after_all_steps(scene: Scene) -> Plans:
    """One step of several is not enough to clear behind, or another loss comes later."""
    if scene.here is None or not scene.has_call(scene.here, "step"):
        return
    code = scene.clear_text()
    own = [scene.behind_step(step) for step in scene.steps_of_owner(scene.here)]
    if len(own) > 1:
        lines = " and ".join(str(scene.line(anchor)) for anchor in own)
        plans = [partial(scene.layout.insert_after, anchor, code) for anchor in own]
        yield f"insert `{code}` after lines {lines}", partial(_all, plans)
    others = [each for each in scene.layout.after(scene.here) if scene.has_call(each, "step")]
    if others:
        anchor = scene.behind_step(others[-1])
        message = f"insert `{code}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.insert_after, anchor, code)


def _clear_in_closure(scene: Scene) -> Plans:
    """An optimizer that calls back clears at the start of the closure, not behind the step."""
    if scene.here is None:
        return
    names = {
        argument.id
        for call in scene.calls(scene.here, "step")
        for argument in call.args
        if isinstance(argument, ast.Name)
    }
    for node in ast.walk(scene.source.tree):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = node.body[0]
            if _is_docstring(first) and len(node.body) > 1:
                first = node.body[1]
            code = scene.clear_text()
            message = f"insert `{code}` at the start of `{node.name}`"
            yield message, partial(scene.layout.insert_before, first, code)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _clear_by_hand(scene: Scene) -> Plans:
    """Weights updated without an optimizer: `w.grad = None` behind the last use of `w.grad`."""
    if scene.here is None or any(scene.has_call(scene.here, name) for name in _STEPS):
        return
    used = {
        scene.layout.text(node.value)
        for node in ast.walk(scene.here)
        if isinstance(node, ast.Attribute) and node.attr == "grad"
    }
    names = [scene.owner] if scene.owner in used else sorted(used)
    if len(names) != 1 or names[0] in _names_inside(scene.here):
        return
    uses = [scene.here]
    for statement in scene.layout.after(scene.here):
        if f"{names[0]}.grad" in scene.layout.text(statement):
            uses.append(statement)
    code = f"{names[0]}.grad = None"
    message = f"insert `{code}` after line {scene.line(uses[-1])}"
    yield message, partial(scene.layout.insert_after, uses[-1], code)
    # With gradients switched off for the update alone, the clear may stand behind that block.
    parent = scene.layout.parent(scene.here)
    if isinstance(parent, ast.With):
        yield message, partial(scene.layout.insert_after, parent, code)


def _move_clear(scene: Scene) -> Plans:
    """ZG102, ZG501: the clear goes behind the step."""
    backward, clear, step = None, scene.here, None
    for statement in scene.trail:
        if scene.has_call(statement, "backward"):
            backward = statement
    if clear is None:
        return
    steps = [each for each in scene.trail if each is not clear and each is not backward]
    steps = [each for each in steps if scene.has_call(each, "step")] or scene.steps_of_owner(clear)
    if clear in steps:  # the step stands above its backward: see _move_step
        yield from _move_step(scene)
        return
    clear = scene.whole_clear(clear)
    steps = [each for each in steps if not scene.is_behind_data(clear, each)]
    for step in steps:
        anchor = scene.behind_step(step)
        text = scene.layout.text(clear) if not hasattr(clear, "body") else "the clear"
        message = f"move `{text}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.move_after, clear, anchor)
    if backward is not None and backward in scene.layout.block(clear):
        message = f"move the clear before line {scene.line(backward)}"
        yield message, partial(scene.layout.move_before, clear, backward)


def _move_step(scene: Scene) -> Plans:
    """ZG401: a step that stands before its backward goes behind it."""
    step = scene.here
    if step is None or not scene.has_call(step, "step"):
        return
    for statement in reversed(scene.layout.after(step)):
        if scene.has_call(statement, "backward") or scene.has_call(statement, "manual_backward"):
            message = f"move `{scene.layout.text(step)}` after line {scene.line(statement)}"
            yield message, partial(scene.layout.move_after, step, statement)
            return


def _call_it(scene: Scene) -> Plans:
    """ZG103: the parentheses."""
    here = scene.here
    if not isinstance(here, ast.Expr) or not isinstance(here.value, ast.Attribute):
        return
    node = here.value
    if node.attr == "step" and "scaler" in scene.layout.text(node.value).lower():
        return  # it needs an optimizer, and only the user knows which
    text = scene.layout.text(node)
    yield f"write `{text}()`", partial(scene.layout.replace, node, f"{text}()")


def _guard_use(scene: Scene) -> Plans:
    """ZG104: a clear by hand that asks first whether there is anything to clear."""
    here = scene.here
    if here is None or not is_method(here, "zero_"):
        return
    assert isinstance(here, ast.Expr)
    gradient: ast.AST = here.value
    while not (isinstance(gradient, ast.Attribute) and gradient.attr == "grad"):
        if isinstance(gradient, ast.Call):
            gradient = gradient.func
        elif isinstance(gradient, ast.Attribute):
            gradient = gradient.value
        else:
            return
    text = scene.layout.text(gradient)
    if _is_rebound(scene.source.tree, scene.layout.text(gradient.value)):
        return  # `w = w - lr * w.grad` wants an update in place, not a guard
    yield (
        f"clear only where `{text} is not None`",
        partial(scene.layout.guard, here, f"{text} is not None"),
    )
    yield f"write `{text} = None`", partial(scene.layout.replace, here, f"{text} = None")


def _is_rebound(tree: ast.AST, name: str) -> bool:
    """Is the name given to something computed from its own gradient?"""
    return any(
        isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
        and f"{name}.grad" in ast.unparse(each.value)
        for each in ast.walk(tree)
    )


def _clear_leak(scene: Scene) -> Plans:
    """ZG201: clear what the other optimizer's loss left, right behind that optimizer's step."""
    code = scene.clear_text()
    for step in scene.trail:
        if step is scene.here or not scene.has_call(step, "step"):
            continue
        anchor = scene.behind_step(step)
        message = f"insert `{code}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.insert_after, anchor, code)


def _unscale(scene: Scene) -> Plans:
    """ZG301: unscale right before the clip."""
    scaler = scene.scaler()
    if scene.here is None or scaler is None or not scene.owner:
        return
    code = f"{scaler}.unscale_({scene.owner})"
    message = f"insert `{code}` before line {scene.line(scene.here)}"
    here = scene.here
    yield message, partial(scene.layout.insert_before, here, code)
    parent = scene.layout.parent(here)
    if isinstance(parent, ast.stmt):
        yield message, partial(scene.layout.insert_before, parent, code)


def _update(scene: Scene) -> Plans:
    """ZG302: update behind the last step of that scaler in the block."""
    here = scene.here
    if here is None:
        return
    call = next((each for each in scene.calls(here, "step") if each.args), None)
    if call is None or not isinstance(call.func, ast.Attribute):
        return
    scaler = scene.layout.text(call.func.value)
    last = here
    for statement in scene.layout.after(here):
        if any(
            isinstance(each.func, ast.Attribute) and scene.layout.text(each.func.value) == scaler
            for each in scene.calls(statement, "step")
        ):
            last = statement
    code = f"{scaler}.update()"
    for anchor in unique([last, here]):
        message = f"insert `{code}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.insert_after, anchor, code)


def _through_scaler(scene: Scene) -> Plans:
    """ZG303: the step goes through the scaler, and the scaler is updated behind it."""
    here, scaler = scene.here, scene.scaler()
    if (
        scaler is None
        or here is None
        or not isinstance(here, ast.Expr)
        or not isinstance(here.value, ast.Call)
        or here.value.args
        or here.value.keywords
        or scene.layout.text(here.value.func) != f"{scene.owner}.step"
    ):
        return
    call = f"{scaler}.step({scene.owner})"
    update = f"{scaler}.update()"
    yield f"write `{call}`", partial(scene.layout.replace, here, call)
    yield (
        f"write `{call}` and `{update}`",
        partial(
            _all,
            [
                partial(scene.layout.replace, here, call),
                partial(scene.layout.insert_after, here, update),
            ],
        ),
    )


def _clip_first(scene: Scene) -> Plans:
    """ZG304: the clip goes before the step."""
    clip = scene.here
    if clip is None:
        return
    block = scene.layout.block(clip)
    before = block[: block.index(clip)]
    steps = [each for each in scene.trail if each is not clip and each in before]
    steps = steps or [each for each in before if scene.has_call(each, "step")][-1:]
    scaler = scene.scaler()
    for step in steps:
        message = f"move the clip before line {scene.line(step)}"
        yield message, partial(scene.layout.move_before, clip, step)
        if scaler is not None and scene.is_scaler_step(step) and scene.owner:
            code = f"{scaler}.unscale_({scene.owner})"
            yield (
                f"{message}, after `{code}`",
                partial(
                    _all,
                    [
                        partial(scene.layout.insert_before, step, code),
                        partial(scene.layout.move_before, clip, step),
                    ],
                ),
            )


def _update_last(scene: Scene) -> Plans:
    """ZG305: the update goes behind the last step of its scaler."""
    update = scene.here
    if update is None or not scene.has_call(update, "update"):
        return
    block = scene.layout.block(update)
    following = block[block.index(update) + 1 :]
    steps = [each for each in following if scene.has_call(each, "step")]
    scalers = [each for each in steps if scene.is_scaler_step(each)]
    for step in scalers[-1:]:
        message = f"move `{scene.layout.text(update)}` after line {scene.line(step)}"
        yield message, partial(scene.layout.move_after, update, step)
    if scalers and any(is_method(each, "update") for each in following):
        # a second update stands in the right place already
        yield "remove the early update", partial(scene.layout.remove, update)


def _better_guard(scene: Scene) -> Plans:
    """ZG504: the condition that the advice names, in place of the one that the message names."""
    better = re.fullmatch(r"write `(.+)`", scene.finding.advice)
    wrong = re.search(r"condition `(.+?)` around", scene.finding.message)
    if better is None or wrong is None:
        return
    row = scene.source.row(scene.finding.spot)
    for node in ast.walk(scene.source.tree):
        if (
            isinstance(node, ast.expr)
            and node.lineno <= row <= (node.end_lineno or 0)
            and scene.layout.text(node) == wrong[1]
        ):
            yield (
                f"write `{better[1]}`",
                partial(scene.layout.replace, node, better[1]),
            )
            return


def _remove_comment(scene: Scene) -> Plans:
    """ZG901: an idle comment goes, if it is the last thing on its line."""
    if scene.finding.advice != scene.finding.rule.advice:
        return
    row = scene.source.row(scene.finding.spot)
    column = scene.finding.spot.column
    rest = scene.source.lines[row - 1][column - 1 :]
    if rest.count("#") == 1:
        yield "remove the comment", partial(scene.layout.remove_comment, row, column)


def _names_inside(statement: ast.stmt) -> set[str]:
    """Return the names that only a comprehension in it knows."""
    return {
        name.id
        for each in ast.walk(statement)
        if isinstance(each, ast.comprehension)
        for name in ast.walk(each.target)
        if isinstance(name, ast.Name)
    }


def _all(plans: Sequence[Plan]) -> list[Edit]:
    return [edit for plan in plans for edit in plan()]


_CURES: dict[str, Callable[[Scene], Plans]] = {
    "ZG101": _clear_after_step,
    "ZG102": _move_clear,
    "ZG103": _call_it,
    "ZG104": _guard_use,
    "ZG201": _clear_leak,
    "ZG202": _clear_by_hand,
    "ZG301": _unscale,
    "ZG302": _update,
    "ZG303": _through_scaler,
    "ZG304": _clip_first,
    "ZG305": _update_last,
    "ZG401": _move_step,
    "ZG501": _move_clear,
    "ZG504": _better_guard,
    "ZG901": _remove_comment,
}
