"""Remedies that write a clear where one is missing, or guard one that may find nothing."""

from __future__ import annotations

import ast
from functools import partial

from zerograd.static.engine.text.parts import parts_below
from zerograd.static.fixing.plans import STEPS, Plans, together
from zerograd.static.fixing.scene import Scene, is_method, unique


def clear_after_step(scene: Scene) -> Plans:
    """ZG101: clear behind the step, which is right in every loop, windows included."""
    yield from _clear_in_closure(scene)
    if _is_cleared_by_count(scene):
        return  # a window, whose step may be what is misplaced: only its author knows
    for step in unique([scene.here, *scene.trail]):
        if not any(scene.has_call(step, name) for name in STEPS):
            continue
        anchor = scene.behind_step(step)
        if scene.is_read_behind(anchor):
            continue
        for code in (scene.clear_text(), scene.clear_like(step)):
            if code is not None:
                message = f"insert `{code}` after line {scene.line(anchor)}"
                yield message, partial(scene.layout.insert_after, anchor, code)
    yield from _clear_after_call(scene)
    yield from _clear_after_all_steps(scene)
    yield from _clear_before_backward(scene)
    yield from clear_by_hand(scene)


def _is_cleared_by_count(scene: Scene) -> bool:
    """Is the owner cleared under a counter that does not let the step through?"""
    step = scene.here
    if step is None:
        return False
    return any(
        isinstance(each, ast.If)
        and any(isinstance(part, ast.Mod) for part in ast.walk(each.test))
        and not each.lineno <= step.lineno <= (each.end_lineno or 0)
        and any(
            scene.layout.text(call.func.value) == scene.owner  # type: ignore[attr-defined]
            for call in scene.calls(each, "zero_grad")
        )
        for each in parts_below(scene.function(step))
    )


def _clear_after_call(scene: Scene) -> Plans:
    """A step in `update = lambda: opt.step()`: the clear stands behind the call of that name."""
    here = scene.here
    if not isinstance(here, ast.Assign) or not isinstance(here.value, ast.Lambda):
        return
    name = scene.layout.text(here.targets[0])
    given = {each.arg for each in ast.walk(here.value) if isinstance(each, ast.arg)}
    calls = [
        each
        for each in ast.walk(scene.source.tree)
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and scene.layout.text(each.value.func) == name
    ]
    if len(calls) == 1 and scene.owner.split(".")[0] not in given:
        if scene.is_read_behind(calls[0]):
            return
        code = scene.clear_text()
        message = f"insert `{code}` after line {scene.line(calls[0])}"
        yield message, partial(scene.layout.insert_after, calls[0], code)


def _clear_after_all_steps(scene: Scene) -> Plans:
    """One step of several is not enough to clear behind, or another loss comes later."""
    if scene.here is None or not scene.has_call(scene.here, "step"):
        return
    code = scene.clear_text()
    own = [scene.behind_step(step) for step in scene.steps_of_owner(scene.here)]
    if len(own) > 1 and not any(map(scene.is_read_behind, own)):
        lines = " and ".join(str(scene.line(anchor)) for anchor in own)
        plans = [partial(scene.layout.insert_after, anchor, code) for anchor in own]
        yield f"insert `{code}` after lines {lines}", partial(together, plans)
    others = [each for each in scene.layout.after(scene.here) if scene.has_call(each, "step")]
    if others:
        anchor = scene.behind_step(others[-1])
        message = f"insert `{code}` after line {scene.line(anchor)}"
        if not scene.is_read_behind(anchor):
            yield message, partial(scene.layout.insert_after, anchor, code)


def _clear_before_backward(scene: Scene) -> Plans:
    """Where another loss fills the gradients too, the clear stands before the step's own."""
    if scene.here is None or not any(scene.has_call(scene.here, name) for name in STEPS):
        return  # weights moved by hand may be a tensor's, which has no such method
    backward = scene.backward_of(scene.here)
    if backward is not None:
        code = scene.clear_text()
        message = f"insert `{code}` before line {scene.line(backward)}"
        yield message, partial(scene.layout.insert_before, backward, code)


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
    for node in parts_below(scene.source.tree):
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


def clear_by_hand(scene: Scene) -> Plans:
    """Weights updated without an optimizer: `w.grad = None` behind the last use of `w.grad`."""
    if scene.here is None or any(scene.has_call(scene.here, name) for name in STEPS):
        return
    used = {
        scene.layout.text(node.value)
        for node in parts_below(scene.here)
        if isinstance(node, ast.Attribute) and node.attr == "grad"
    }
    moved = isinstance(scene.here, ast.AugAssign) and not used
    if moved and scene.layout.text(scene.here.target) == scene.owner:  # type: ignore[attr-defined]
        used = {scene.owner}  # `g = w.grad` stands before it
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


def _names_inside(statement: ast.stmt) -> set[str]:
    """Return the names that only a comprehension in it knows."""
    return {
        name.id
        for each in parts_below(statement)
        if isinstance(each, ast.comprehension)
        for name in parts_below(each.target)
        if isinstance(name, ast.Name)
    }


def clear_leak(scene: Scene) -> Plans:
    """ZG201: clear what the other optimizer's loss left, right behind that optimizer's step."""
    code = scene.clear_text()
    if scene.here is None:
        return
    for step in scene.trail:
        if step is scene.here or not scene.has_call(step, "step"):
            continue
        anchor = scene.behind_step(step)
        if scene.is_read_behind(anchor):
            continue
        # one that comes before the other loss has gone back is of no use there
        block = scene.layout.block(step)
        for clear in block[: block.index(step)]:
            if scene.layout.text(clear) == code and clear in scene.layout.after(scene.here):
                message = f"move `{code}` after line {scene.line(anchor)}"
                yield message, partial(scene.layout.move_after, clear, anchor)
        message = f"insert `{code}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.insert_after, anchor, code)
    yield from _clear_before_backward(scene)


def guard_use(scene: Scene) -> Plans:
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
        for each in parts_below(tree)
    )
