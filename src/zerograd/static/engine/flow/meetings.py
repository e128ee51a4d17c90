"""Which events one run may come to both of, and which a condition keeps apart for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.identity.ir import Happening, Loop
    from zerograd.static.engine.reading.program import Program


class Meetings:
    """The events of one root, by the conditions that they are reached under."""

    __slots__ = ("_atoms", "_fixed", "_flow", "_program", "_under")

    def __init__(self, program: Program, flow: Flow, atoms: dict[str, int]) -> None:
        self._program = program
        self._flow = flow
        self._atoms = atoms
        self._fixed: dict[int, frozenset[int]] = {}  # id of a loop -> the literals that stay in it
        self._under: dict[tuple[int, frozenset[int]], set[frozenset[int]]] = {}

    def may_meet(self, one: Happening, other: Happening) -> bool:
        """May one run come to both: does no condition that stays keep them apart?

        What stays is asked of the loop around the first of them.
        """
        loop = one.loop
        assert loop is not None
        fixed = self._fixed_in(loop)
        here, there = self._reached_under(one, fixed), self._reached_under(other, fixed)
        return any(
            under.isdisjoint([each ^ 1 for each in mine]) for mine in here for under in there
        )

    def _fixed_in(self, loop: Loop) -> frozenset[int]:
        """Return the literals of the conditions that stay as they are in a loop."""
        fixed = self._fixed.get(id(loop))
        if fixed is None:
            atoms = [n for key, n in self._atoms.items() if not self._program.varies(loop, key)]
            fixed = frozenset(each for n in atoms for each in (2 * n, 2 * n + 1))
            self._fixed[id(loop)] = fixed
        return fixed

    def _reached_under(self, node: Happening, fixed: frozenset[int]) -> set[frozenset[int]]:
        """Return under which of these literals an event is reached, for each way to it."""
        key = (id(node), fixed)
        under = self._under.get(key)
        if under is None:
            under = {literals & fixed for literals in self._flow.known_at(node)}
            self._under[key] = under
        return under
