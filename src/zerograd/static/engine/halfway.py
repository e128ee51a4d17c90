"""An unscale whose update is called off later in the iteration, for a bad norm, say."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.ir import Happening

if TYPE_CHECKING:
    from zerograd.static.engine.buckets import Buckets
    from zerograd.static.engine.program import Program


def updates_after(unscale: Happening, buckets: Buckets) -> list[Happening]:
    """Return the updates that follow the unscale in its function and loop."""
    return [
        each
        for each in buckets.happenings
        if each.kind is EventKind.SCALER_UPDATE
        and each.scaler == unscale.scaler
        and each.loop is unscale.loop
        and each.unit is unscale.unit
        and each.spot.line > unscale.spot.line
    ]


def are_called_off(updates: list[Happening], unscale: Happening, program: Program) -> bool:
    """Does each of them stand under a condition that is made up after the unscale?

    What is decided before may be the same condition in other words; what is decided
    later cannot.
    """
    return all(
        any(_is_made_up_after(unscale, atom, program) for atom in each.guards - unscale.guards)
        for each in updates
    )


def is_second_of_a_round(unscale: Happening, buckets: Buckets) -> bool:
    """Does another unscale of it come in the same round, where this one may be left out?"""
    return any(
        each.kind is EventKind.UNSCALE
        and each is not unscale
        and each.optimizer is unscale.optimizer
        and not unscale.guards <= each.guards
        for each in buckets.happenings
    )


def _is_made_up_after(unscale: Happening, key: str, program: Program) -> bool:
    atom = program.atoms.get(key)
    if atom is None or atom.node is None:
        return False
    asked = {each.id for each in ast.walk(atom.node) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Store)
        and each.id in asked
        and unscale.spot.line < each.lineno < atom.node.lineno
        for each in ast.walk(unscale.unit.source.tree)
    )
