"""For each rule, the edits that may cure it, the most natural first.

A remedy only has to be a sensible guess: it is offered to no one before the
checker has found that it cures the finding and breaks nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from zerograd.lifecycle.findings import Edit, Finding
from zerograd.static.fixing.clears import clear_after_step, clear_by_hand, clear_leak, guard_use
from zerograd.static.fixing.edits import CannotEdit
from zerograd.static.fixing.iterators import make_a_list
from zerograd.static.fixing.order import better_guard, clip_first, move_clear, move_step
from zerograd.static.fixing.plans import Plans
from zerograd.static.fixing.scaling import (
    through_scaler,
    unscale_first,
    update_behind,
    update_last,
)
from zerograd.static.fixing.scene import Scene
from zerograd.static.source import Source


@dataclass(frozen=True, slots=True)
class Remedy:
    """Edits that may cure a finding, in rows of `Source.text`, and what they do in words."""

    message: str
    edits: tuple[Edit, ...]


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


def _remove_comment(scene: Scene) -> Plans:
    """ZG901: an idle comment goes, if it is the last thing on its line."""
    if scene.finding.advice != scene.finding.rule.advice:
        return
    row = scene.source.row(scene.finding.spot)
    column = scene.finding.spot.column
    rest = scene.source.lines[row - 1][column - 1 :]
    if rest.count("#") == 1:
        yield "remove the comment", partial(scene.layout.remove_comment, row, column)


def _either(*cures: Callable[[Scene], Plans]) -> Callable[[Scene], Plans]:
    return lambda scene: chain.from_iterable(cure(scene) for cure in cures)


_CURES: dict[str, Callable[[Scene], Plans]] = {
    "ZG101": _either(make_a_list, clear_after_step),
    "ZG102": move_clear,
    "ZG103": _call_it,
    "ZG104": guard_use,
    "ZG201": clear_leak,
    "ZG202": clear_by_hand,
    "ZG301": unscale_first,
    "ZG302": update_behind,
    "ZG303": through_scaler,
    "ZG304": _either(make_a_list, clip_first),
    "ZG305": update_last,
    "ZG401": move_step,
    "ZG501": move_clear,
    "ZG504": better_guard,
    "ZG901": _remove_comment,
}
