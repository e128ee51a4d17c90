"""One program rewritten and checked before and after."""

from __future__ import annotations

import random
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.accuracy.rewrites.catalogue import HIDING, REWRITES
from benchmarks.accuracy.rewrites.programs import Program
from benchmarks.accuracy.rewrites.sketch import (
    Sketch,
    Unfit,
    copy_of,
    lines_now,
    open_sketch,
)
from zerograd import check_source

Said = Set[tuple[str, int]]


@dataclass(slots=True)
class Outcome:
    """What became of one rewritten program."""

    program: Program
    rewrites: list[str]
    text: str
    before: Said
    after: Said
    invented: Said  # said now, and nothing like it before
    lost: Said  # said before, by the lines of the original
    hidden: bool  # a rewrite took something out of sight


@lru_cache(maxsize=2048)
def said(text: str) -> frozenset[tuple[str, int]]:
    """Return what the checker says of a text."""
    return frozenset((each.rule.code, each.spot.line) for each in check_source(text))


def rewrite(sketch: Sketch, name: str) -> Sketch | None:
    """Apply one rewrite to a copy; None if the program has no place for it."""
    made = copy_of(sketch)
    try:
        REWRITES[name](made)
    except Unfit:
        return None
    return made


def attempt(
    program: Program, names: list[str], chance: random.Random, most: int = 100
) -> Outcome | None:
    """Apply those of the named rewrites that fit, at most so many, and compare what is said."""
    sketch = open_sketch(program.text, chance)
    done: list[str] = []
    for name in names:
        made = rewrite(sketch, name) if len(done) < most else None
        if made is not None:
            sketch = made
            done.append(name)
    if not done or not _compiles(sketch.text()):
        return None
    return compare(program, sketch, done)


def _compiles(text: str) -> bool:
    try:
        compile(text, "rewritten.py", "exec")
    except SyntaxError:
        return False  # `nonlocal` of a name that is bound nowhere, say
    return True


def compare(program: Program, sketch: Sketch, done: list[str]) -> Outcome:
    text = sketch.text()
    before, after = said(program.text), said(text)
    where = lines_now(sketch) if before else {}
    places = {(code, line): where.get(line, set()) for code, line in before}
    invented = {
        (code, line)
        for code, line in after
        if not any(line in lines and code == was[0] for was, lines in places.items())
    }
    lost = {was for was, lines in places.items() if not any((was[0], n) in after for n in lines)}
    hidden = any(name in HIDING for name in done)
    return Outcome(program, done, text, before, after, invented, lost, hidden)


def at_random(programs: list[Program], seed: int) -> Outcome | None:
    """Choose a program and one to five rewrites; more than half of the time it is one."""
    chance = random.Random(seed)
    program = chance.choice(programs)
    alone = chance.random() < 0.6
    names = chance.sample(list(REWRITES), 12)
    most = 1 if alone else chance.randint(2, 5)
    return attempt(program, names, chance, most)
