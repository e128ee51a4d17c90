"""Execute small training programs concretely, without torch, along every path.

    explore(text, (("train", 0),))  ->  which faults occur on some path, on every path

Loops run a few rounds, counters count, `if` on known values is decided. An unknown
condition is decided both ways, one run for each combination: it keeps its truth as long
as its operands keep their identity, which makes a flag fixed, a test of the batch new in
each iteration, and a call new each time. The event history of each run is judged by
`history.faults`. Nothing here reasons about sets of states; it only runs.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.accuracy.execution import Break, Continue, Execution, Raw, Return, Stop
from benchmarks.accuracy.history import Event, Fault, faults
from benchmarks.accuracy.relevance import Relevance
from benchmarks.accuracy.training_code import parse
from benchmarks.accuracy.values import Thing, related

MOST_ENUMERATED = 40  # past this many decisions on one path, paths are drawn
MOST_STEPS = 600_000  # of all runs together; past that the outcome is not complete

Chain = tuple[tuple[str, int], ...]  # names from the outermost, each with its number


@dataclass(slots=True)
class Outcome:
    """What one exploration saw."""

    faults: dict[tuple[str, int], Fault] = field(default_factory=dict)
    every_path: set[tuple[str, int]] = field(default_factory=set)  # faults of all paths
    paths: int = 0
    complete: bool = True  # every combination of unknown conditions was run
    truncated: int = 0  # runs that hit the limit of one run
    steps: int = 0  # statements and expressions of all runs

    @property
    def codes(self) -> set[str]:
        return {code for code, _ in self.faults}


def resolve(raw: list[Raw], *, given: bool = False) -> list[Event]:
    """Say which parameters each event touched, now that every optimizer is known.

    `given`: a function is run, with arguments of which nothing is known.
    """
    optimizers = {e.subjects[0] for e in raw if e.kind == "step" and _thing(e.subjects[0])}
    buckets: dict[Thing, frozenset[Thing]] = {
        opt: frozenset(opt.holds) or frozenset([opt]) for opt in optimizers
    }
    every = frozenset().union(*buckets.values()) if buckets else frozenset()
    anonymous = frozenset(b for b in every if b in optimizers)
    events = [e for e in (_event(r, buckets, every, anonymous) for r in raw) if e is not None]
    return _filled(events, buckets) if given else events


def _filled(events: list[Event], buckets: dict[Thing, frozenset[Thing]]) -> list[Event]:
    """Let each optimizer be filled by something.

    Where no loss is seen to come from what it holds, the way there is not seen: the network is
    an argument, or went into one. Then any loss may be its own.
    """
    known = frozenset().union(*(e.buckets for e in events if e.kind in ("backward", "assign")))
    unfilled = frozenset().union(*(held for held in buckets.values() if known.isdisjoint(held)))
    if not unfilled:
        return events
    return [replace(e, buckets=e.buckets | unfilled) if e.kind == "backward" else e for e in events]


def _thing(value: Any) -> bool:
    return isinstance(value, Thing)


def _event(
    raw: Raw,
    buckets: dict[Thing, frozenset[Thing]],
    every: frozenset[Thing],
    anonymous: frozenset[Thing],
) -> Event | None:
    things = [s for s in raw.subjects if isinstance(s, Thing)]
    if raw.kind == "uncalled":
        return None
    if raw.kind == "update":
        return Event("update", raw.line, scaler=things[0])
    if raw.kind in ("step", "unscale"):
        touched = buckets.get(things[0], frozenset()) if things else frozenset()
        scaler = things[1] if raw.kind == "step" and len(things) > 1 else None
        return Event(raw.kind, raw.line, touched, things[0] if things else None, scaler)
    if raw.kind == "backward":
        roots = frozenset().union(*(t.made_of for t in things)) if things else frozenset()
        filled = frozenset(b for b in every if any(related(r, b) for r in roots)) | anonymous
        if not filled and not any(node.is_network for root in roots for node in root.ancestors()):
            filled = every  # nothing is known of where this loss comes from
        filled = frozenset(b for b in filled if b.born < raw.at)
        scaler = next((t.scaler for t in things if t.scaler is not None), None)
        return Event("backward", raw.line, filled, None, scaler)
    touched = frozenset()
    for thing in things:
        touched |= _touched(thing, buckets, every)
    return Event(raw.kind, raw.line, touched or anonymous)


def _touched(
    thing: Thing, buckets: dict[Thing, frozenset[Thing]], every: frozenset[Thing]
) -> frozenset[Thing]:
    """Return the parameters of an optimizer, of a network, or of something inside one."""
    for node in thing.ancestors():
        if node in buckets:
            return buckets[node]
    sources = thing.holds or (thing,)
    return frozenset(b for b in every if any(related(s, b) for s in sources))


def explore(
    text: str,
    chain: Chain = (),
    limit: int = 256,
    until: Callable[[Fault], bool] | None = None,
) -> Outcome:
    """Run a program along every combination of unknown conditions, at most `limit` runs.

    `chain` names the root: a function, or a class and its method; empty is the module.
    `until` ends the search at the first fault it accepts. If the combinations are too
    many to run all, the same number of runs is drawn at random (by a seed), and the outcome
    is not complete: a fault seen is real, a fault not seen is not disproved.
    """
    tree = parse(text)
    assert tree is not None
    relevance = Relevance(tree)
    nodes = find_chain(tree, chain)
    outcome = Outcome()
    decisions: list[bool] = []
    for decisions in (_AllFalse(), []):
        if _run(tree, relevance, nodes, decisions, outcome, until):
            return outcome
    if len(decisions) > MOST_ENUMERATED:
        generator = random.Random(0)
        for _ in range(limit):
            if _run(tree, relevance, nodes, _Drawn(generator), outcome, until):
                return outcome
            if outcome.steps > MOST_STEPS:
                break
        outcome.complete = False
        return outcome
    outcome.paths, outcome.every_path = 0, set()
    decisions = []
    while True:
        if _run(tree, relevance, nodes, decisions, outcome, until):
            return outcome
        while decisions and not decisions[-1]:
            decisions.pop()
        if not decisions or outcome.paths >= limit or outcome.steps > MOST_STEPS:
            outcome.complete = not decisions and not outcome.truncated
            return outcome
        decisions[-1] = False


class _AllFalse(list[bool]):
    """Decisions that are new are taken as false."""

    def append(self, value: bool) -> None:
        super().append(False)


class _Drawn(list[bool]):
    """Decisions that are new are drawn."""

    def __init__(self, generator: random.Random) -> None:
        super().__init__()
        self._generator = generator

    def append(self, value: bool) -> None:
        super().append(self._generator.random() < 0.5)


def _run(
    tree: ast.Module,
    relevance: Relevance,
    nodes: list[ast.AST],
    decisions: list[bool],
    outcome: Outcome,
    until: Callable[[Fault], bool] | None,
) -> bool:
    """Run one path and keep what it shows; tell whether the search may end."""
    execution = Execution(tree, relevance, decisions)
    try:
        execution.run_root(nodes)
    except (Stop, Return, Break, Continue) as stop:
        outcome.truncated += stop.args == ("too long",)
    except RecursionError:
        outcome.truncated += 1
    outcome.steps += execution.steps
    del decisions[execution.taken :]
    return _keep(outcome, resolve(execution.raw, given=bool(nodes)), execution, until)


def _keep(
    outcome: Outcome,
    events: list[Event],
    execution: Execution,
    until: Callable[[Fault], bool] | None,
) -> bool:
    found = faults(events)
    found += [Fault("ZG103", (r.line,)) for r in execution.raw if r.kind == "uncalled"]
    keys = {(fault.code, fault.lines[0]) for fault in found if fault.sure}
    outcome.every_path = keys if outcome.paths == 0 else outcome.every_path & keys
    for fault in found:
        key = (fault.code, fault.lines[0])
        known = outcome.faults.get(key)
        outcome.faults[key] = fault if known is None else known.merged(fault)
    outcome.paths += 1
    return until is not None and any(until(fault) for fault in found)


def find_chain(tree: ast.Module, chain: Chain) -> list[ast.AST]:
    """Return the nodes named by the chain, from the outermost."""
    nodes: list[ast.AST] = []
    inside: ast.AST = tree
    for name, index in chain:
        wanted = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        matches = [n for n in ast.walk(inside) if isinstance(n, wanted) and n.name == name]
        if index >= len(matches):
            raise KeyError(f"no function or class named {name}")
        inside = matches[index]
        nodes.append(inside)
    return nodes
