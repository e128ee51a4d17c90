"""ZG302 once: one update is due for all optimizers that are stepped through a scaler."""

from __future__ import annotations

from collections.abc import Iterable

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.identity.ir import Happening


class Owed:
    """The loops that are told to owe a scaler its update."""

    def __init__(self) -> None:
        self._told: set[tuple[int, str]] = set()

    def once(self, found: Iterable[Finding], step: Happening) -> Iterable[Finding]:
        """Leave out an update that was told to be missing at an earlier step of the loop."""
        assert step.event is not None
        update = id(step.loop), step.event.scaler
        for each in found:
            if each.rule.code != "ZG302" or update not in self._told:
                yield each
            if each.rule.code == "ZG302" and each.certain:
                self._told.add(update)
