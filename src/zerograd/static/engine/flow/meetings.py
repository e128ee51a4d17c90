"""Which events one run may come to both of, and which a condition keeps apart for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.identity.ir import Happening
    from zerograd.static.engine.reading.program import Program


class Meetings:
    """The events of one root, by the conditions that they are reached under."""

    __slots__ = ("_atoms", "_flow", "_program")

    def __init__(self, program: Program, flow: Flow, atoms: dict[str, int]) -> None:
        self._program = program
        self._flow = flow
        self._atoms = atoms

    def may_meet(self, one: Happening, other: Happening) -> bool:
        """May one run come to both: does no condition that stays keep them apart?

        What stays is asked of the loop around the first of them.
        """
        loop = one.loop
        assert loop is not None
        fixed = {n for key, n in self._atoms.items() if not self._program.varies(loop, key)}
        here, there = (
            {
                frozenset(each for each in literals if each >= 0 and each // 2 in fixed)
                for pairs in self._flow.reached.get(id(node), {}).values()
                for _, literals in pairs
            }
            for node in (one, other)
        )
        return any(all(each ^ 1 not in under for each in mine) for mine in here for under in there)
