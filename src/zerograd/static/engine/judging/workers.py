"""Processes and threads: what they fill may be shared with whoever steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zerograd.static.engine.reading.candidates import spawned_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit

# a thread that begins or ends, an answer from afar, a pool that is handed work
_ASKED = re.compile(r"\.(?:start|join)\(\)|\.(?:recv|remote)\(|\b(?:pool|executor)\.\w+\(")


def has_workers(unit: Unit, loop: str) -> bool:
    """May others go back for the step of a loop with this text?

    They are asked in it, or begin elsewhere in the file and go back there, or out of sight. What is
    neither written nor imported here is data: `mse_loss(outputs, target=labels)`.
    """
    if _ASKED.search(loop):
        return True
    written = {each.name: each for each in unit.functions_saying("def ")}
    return any(
        "backward" in unit.text_of(written[name])
        if name in written
        else name in unit.imports or bool(unit.stars)
        for name in spawned_in(unit)
    )
