"""Remedies around a gradient scaler: what it unscales, steps and updates, and when."""

from __future__ import annotations

import ast
from functools import partial

from zerograd.static.fixing.plans import Plans, together
from zerograd.static.fixing.scene import Scene, is_method, unique


def unscale_first(scene: Scene) -> Plans:
    """ZG301: unscale right before the clip; one that comes too late is moved there."""
    scaler, clip = scene.scaler(), scene.here
    if clip is None or scaler is None or not scene.owner:
        return
    code = f"{scaler}.unscale_({scene.owner})"
    parent = scene.layout.parent(clip)
    places = [clip, *([parent] if isinstance(parent, ast.If) else [])]
    for place in places:
        late = [each for each in scene.layout.after(place) if scene.layout.text(each) == code]
        for unscale in late[:1]:
            message = f"move `{code}` before line {scene.line(place)}"
            yield message, partial(scene.layout.move_before, unscale, place)
    message = f"insert `{code}` before line {scene.line(clip)}"
    yield message, partial(scene.layout.insert_before, clip, code)
    if isinstance(parent, ast.stmt):
        yield message, partial(scene.layout.insert_before, parent, code)


def update_behind(scene: Scene) -> Plans:
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
    if _may_update_later(scene, last):
        return
    elsewhere = [each for after in _rest(scene, last) for each in _updates_in(scene, after, code)]
    for anchor in unique([last, here]):
        insert = partial(scene.layout.insert_after, anchor, code)
        if elsewhere:
            lines = " and ".join(str(scene.line(each)) for each in elsewhere)
            message = f"move `{code}` of line {lines} after line {scene.line(anchor)}"
            removals = [partial(scene.dropped, scene.alone(each)) for each in elsewhere]
            yield message, partial(together, [insert, *removals])
        yield f"insert `{code}` after line {scene.line(anchor)}", insert


def _rest(scene: Scene, step: ast.stmt) -> list[ast.stmt]:
    """Return what comes after a step in its function, up to another step or unscale."""
    found: list[ast.stmt] = []
    at: ast.AST = step
    while isinstance(at, ast.stmt):
        for each in scene.layout.after(at):
            if scene.has_call(each, "step", "unscale_") and scene.is_scaler_step(each):
                return found
            found.append(each)
        at = scene.layout.parent(at)
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
            break
    return found


def _updates_in(scene: Scene, statement: ast.stmt, code: str) -> list[ast.stmt]:
    """Return the updates that stand under a condition within a statement."""
    return [
        each
        for each in ast.walk(statement)
        if isinstance(each, ast.Expr) and scene.layout.text(each) == code
    ]


def _may_update_later(scene: Scene, step: ast.stmt) -> bool:
    """Does a function that is called after the step update a scaler, under a condition perhaps?"""
    called = {
        each.func.attr if isinstance(each.func, ast.Attribute) else scene.layout.text(each.func)
        for after in scene.layout.after(step)
        for each in ast.walk(after)
        if isinstance(each, ast.Call)
    }
    return any(
        isinstance(each, ast.FunctionDef) and each.name in called and scene.has_call(each, "update")
        for each in ast.walk(scene.source.tree)
    )


def through_scaler(scene: Scene) -> Plans:
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
            together,
            [
                partial(scene.layout.replace, here, call),
                partial(scene.layout.insert_after, here, update),
            ],
        ),
    )


def update_last(scene: Scene) -> Plans:
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
        yield "remove the early update", partial(scene.dropped, update)
    if not scalers:
        yield "remove the update that finds nothing", partial(scene.dropped, update)
