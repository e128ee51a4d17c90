"""Where a rewrite works: statements and calls that have to do with gradients come first."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from benchmarks.accuracy.rewrites.binding import leaves
from benchmarks.accuracy.rewrites.sketch import Block, Place, Sketch, Unfit, places

EVENTS = frozenset({"backward", "step", "zero_grad", "grad", "unscale_", "update", "scale"})
LONGEST = 5


@dataclass(slots=True)
class Run:
    """Neighbouring statements of one block."""

    place: Place
    start: int
    end: int

    @property
    def statements(self) -> Block:
        return self.place.block[self.start : self.end]

    def replace(self, by: Block) -> None:
        self.place.block[self.start : self.end] = by


def has_event(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in EVENTS for n in ast.walk(node))


def is_plain(statement: ast.stmt) -> bool:
    return not isinstance(
        statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Pass
    )


def choose_run(
    sketch: Sketch, *, longest: int = LONGEST, loops: bool = True, in_loop: bool = False
) -> Run:
    """Choose neighbouring statements with an event that do not jump away."""
    found = []
    for place in places(sketch):
        if in_loop and place.loop is None:
            continue
        for start in range(len(place.block)):
            if has_event(place.block[start]) and is_plain(place.block[start]):
                found.append((place, start))
    if not found:
        raise Unfit
    for _ in range(8):
        place, at = sketch.random.choice(found)
        start = max(0, at - sketch.random.choice([0, 0, 1, 2]))
        end = min(len(place.block), max(at + 1, start + sketch.random.randint(1, longest)))
        run = Run(place, start, end)
        if all(map(is_plain, run.statements)) and not leaves(run.statements, loops=loops):
            return run
    raise Unfit


@dataclass(slots=True)
class Site:
    """A statement that only calls a method: `opt.step()`."""

    place: Place
    at: int
    call: ast.Call
    method: str
    receiver: ast.expr

    def replace(self, by: Block) -> None:
        """Put these in its place; the first keeps what is known of where it came from."""
        old = self.place.block[self.at]
        for each in by:
            vars(each).setdefault("origin", vars(old).get("origin", 0))
        self.place.block[self.at : self.at + 1] = by


def choose_site(sketch: Sketch, *methods: str) -> Site:
    """Choose a statement that calls one of these methods."""
    wanted = methods or ("backward", "step", "zero_grad", "zero_grad", "update", "unscale_")
    found = []
    for place in places(sketch):
        for at, statement in enumerate(place.block):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                continue
            call = statement.value
            if isinstance(call.func, ast.Attribute) and call.func.attr in wanted:
                found.append(Site(place, at, call, call.func.attr, call.func.value))
    if not found:
        raise Unfit
    return sketch.random.choice(found)


def simple(site: Site) -> bool:
    """Is the receiver a name or an attribute, which may be read twice?"""
    return isinstance(site.receiver, ast.Name) or (
        isinstance(site.receiver, ast.Attribute) and isinstance(site.receiver.value, ast.Name)
    )
