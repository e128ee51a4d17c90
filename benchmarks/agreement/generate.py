"""A seed in, a small training program out: a right one, changed a little in random places.

The surroundings give it `loader`, a list of batches, `args`, with the flags `flag` and
`other`, and `tools`, a package that only the live witness can look into. The same seed
gives the same program.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.accuracy import generate_loops
from benchmarks.agreement import beside
from benchmarks.agreement.changes import change
from benchmarks.agreement.daily_themes import DAILY
from benchmarks.agreement.draft import Draft
from benchmarks.agreement.faulty_themes import THEMES
from benchmarks.agreement.idioms import HELPERS, Idioms
from benchmarks.agreement.shapes import SHAPES
from benchmarks.agreement.tree import render, tags

HEADER = ["import torch", "import torch.nn as nn"]


@dataclass(frozen=True, slots=True)
class Program:
    """One generated program."""

    seed: int
    text: str
    theme: str
    idioms: frozenset[str]


def generate(seed: int, *, daily: bool = False) -> Program:
    """Return the program of this seed, of the usual themes or of the daily ones."""
    chance = random.Random(seed)
    themes = DAILY if daily else THEMES
    if chance.random() < 0.05 and not daily:
        text = generate_loops.generate(seed).replace("'cuda'", "'cpu', init_scale=8.0")
        return Program(seed, text, "exhaustive", frozenset())
    make = chance.choices(list(themes), list(themes.values()))[0]
    shape = chance.choices(list(SHAPES), [weight for _, weight in SHAPES.values()])[0]
    draft = Draft(
        chance, Idioms(chance), make.__name__, "self." if shape in ("class", "driven") else ""
    )
    make(draft)
    beside.add(draft)
    changes = [change(draft) for _ in range(chance.choices([0, 1, 2, 3], [2, 6, 4, 2])[0])]
    nodes = SHAPES[shape][0](draft)
    functions: list[str] = []
    for name in draft.write.needs:
        functions += ["", "", *HELPERS[name]]
    lines = [*HEADER, *draft.imports, *functions, "", "", *render(nodes)]
    idioms = {*tags(nodes), f"shape: {shape}", *(f"change: {each}" for each in changes if each)}
    return Program(seed, "\n".join(lines) + "\n", make.__name__, frozenset(idioms))
