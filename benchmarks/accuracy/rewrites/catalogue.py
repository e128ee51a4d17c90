"""All rewrites, by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.accuracy.rewrites.calling import CALLING
from benchmarks.accuracy.rewrites.deciding import DECIDING
from benchmarks.accuracy.rewrites.enclosing import ENCLOSING
from benchmarks.accuracy.rewrites.extracting import EXTRACTING
from benchmarks.accuracy.rewrites.foreign import FOREIGN
from benchmarks.accuracy.rewrites.holding import HOLDING
from benchmarks.accuracy.rewrites.looping import LOOPING
from benchmarks.accuracy.rewrites.making import MAKING
from benchmarks.accuracy.rewrites.sketch import Sketch
from benchmarks.accuracy.rewrites.wrapping import WRAPPING

REWRITES: dict[str, Callable[[Sketch], None]] = {
    **CALLING,
    **DECIDING,
    **ENCLOSING,
    **EXTRACTING,
    **FOREIGN,
    **HOLDING,
    **LOOPING,
    **MAKING,
    **WRAPPING,
}
# After these no reader of the file can know what happens: a finding may go, none may come.
HIDING = frozenset({*FOREIGN})
