"""Remedies that put a clear, a step, a clip or its condition in the right place."""

from __future__ import annotations

import ast
import re
from functools import partial

from zerograd.static.engine.text.parts import parts_below
from zerograd.static.fixing.plans import Plans, together
from zerograd.static.fixing.scene import Scene, unique


def move_clear(scene: Scene) -> Plans:
    """ZG102, ZG501: the clear goes behind the step."""
    backward, clear, step = None, scene.here, None
    for statement in scene.trail:
        if scene.has_call(statement, "backward"):
            backward = statement
    if clear is None:
        return
    steps = [each for each in scene.trail if each is not clear and each is not backward]
    by_hand = [each for each in steps if scene.loop(each) is scene.loop(clear)]
    called = [each for each in steps if scene.has_call(each, "step")]
    steps = called or scene.steps_of_owner(clear) or by_hand
    if clear in steps:  # the step stands above its backward: see move_step
        yield from move_step(scene)
        return
    clear = scene.whole_clear(clear)
    steps = [each for each in steps if not scene.is_behind_data(clear, each)]
    for step in steps:
        anchor = scene.behind_step(step)
        if scene.is_read_behind(anchor):
            continue
        for behind in scene.layout.after(anchor)[:1]:
            if scene.layout.text(behind) == scene.layout.text(clear):
                message = f"remove the clear: line {scene.line(behind)} clears already"
                yield message, partial(scene.dropped, clear)
        text = scene.layout.text(clear) if not hasattr(clear, "body") else "the clear"
        message = f"move `{text}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.move_after, clear, anchor)
    if backward is not None and backward in scene.layout.block(clear):
        message = f"move the clear before line {scene.line(backward)}"
        yield message, partial(scene.layout.move_before, clear, backward)


def move_step(scene: Scene) -> Plans:
    """ZG401: a step that stands before its backward goes behind it, and behind its clip."""
    step = scene.here
    if step is None or not scene.has_call(step, "step"):
        return
    following = scene.layout.after(step)
    backward = [each for each in following if scene.has_call(each, "backward", "manual_backward")]
    if not backward:
        return
    ready = [each for each in scene.layout.after(backward[-1]) if scene.readies_gradients(each)]
    for anchor in unique([*ready[-1:], backward[-1]]):
        message = f"move `{scene.layout.text(step)}` after line {scene.line(anchor)}"
        yield message, partial(scene.layout.move_after, step, anchor)


def clip_first(scene: Scene) -> Plans:
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
                    together,
                    [
                        partial(scene.layout.insert_before, step, code),
                        partial(scene.layout.move_before, clip, step),
                    ],
                ),
            )


def better_guard(scene: Scene) -> Plans:
    """ZG504: the condition that the advice names, in place of the one that the message names."""
    better = re.fullmatch(r"write `(.+)`", scene.finding.advice)
    wrong = re.search(r"condition `(.+?)` around", scene.finding.message)
    if better is None or wrong is None:
        return
    row = scene.source.row(scene.finding.spot)
    for node in parts_below(scene.source.tree):
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
