"""Decide by execution whether a mutant is really broken.

`real`: a run of the interpreter shows an expected fault at an expected line.
`equivalent`: every path was run and none shows it; only these are left out of the
filtered figures, and each is listed. `undecided`: too many paths to run them all;
these stay in.
"""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path

from benchmarks.accuracy.history import Fault
from benchmarks.accuracy.interpreter import Chain, explore
from benchmarks.accuracy.mutants import Mutant
from benchmarks.accuracy.training_code import Unit

LIMIT = 48
# what `history` tells; of the others it is not known whether they happen
JUDGED = frozenset(
    (
        *("ZG101", "ZG102", "ZG201", "ZG301", "ZG302", "ZG303", "ZG304", "ZG305"),
        *("ZG401", "ZG402", "ZG501"),
    )
)
_SOURCES = (
    "history",
    "values",
    "arithmetic",
    "expressions",
    "relevance",
    "execution",
    "interpreter",
    "verdict",
)


def chain_of(unit: Unit) -> Chain:
    """Return the way to a unit: each name, and which of its like-named neighbours it is."""
    path = _path_to(unit.tree, unit.node)
    chain: list[tuple[str, int]] = []
    inside: ast.AST = unit.tree
    for node in path:
        alike = [n for n in ast.walk(inside) if _name(n) == _name(node)]
        chain.append((_name(node), alike.index(node)))
        inside = node
    return tuple(chain)


def _name(node: ast.AST) -> str:
    named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return node.name if named else ""  # type: ignore[attr-defined]


def _path_to(tree: ast.AST, target: ast.AST) -> list[ast.AST]:
    if tree is target:
        return []
    stack: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while stack:
        node, path = stack.pop()
        for child in ast.iter_child_nodes(node):
            here = [*path, child] if _name(child) else path
            if child is target:
                return here
            stack.append((child, here))
    raise ValueError("the unit is not in its tree")


class Verdicts:
    """Verdicts by execution, kept in a file so that a second measurement is quick."""

    def __init__(self, folder: Path | None, name: str = "") -> None:
        """Keep the verdicts of the file called `name` in a folder, or nowhere."""
        own = hashlib.sha1(name.encode("utf-8", "surrogatepass")).hexdigest()
        self._cache = cache = folder / f"{own}.json" if folder is not None else None
        digest = hashlib.sha1()
        for name in _SOURCES:
            digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
        self._version = digest.hexdigest()
        self._known: dict[str, str] = {}
        if cache is not None and cache.exists():
            self._known = json.loads(cache.read_text())

    def of(self, mutant: Mutant, chain: Chain) -> str:
        if mutant.codes == {"ZG103"}:
            return "real"  # a method without its call is wrong on any path, or on none it runs
        if not mutant.codes <= JUDGED:
            return "not executed"
        key = repr((self._version, mutant.text, chain, sorted(mutant.codes), sorted(mutant.lines)))
        name = hashlib.sha1(key.encode("utf-8", "surrogatepass")).hexdigest()
        if name not in self._known:
            self._known[name] = _execute(mutant, chain)
        return self._known[name]

    def save(self) -> None:
        if self._cache is not None:
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            self._cache.write_text(json.dumps(self._known))


def _execute(mutant: Mutant, chain: Chain) -> str:
    def wanted(fault: Fault) -> bool:
        return fault.code in mutant.codes and not mutant.lines.isdisjoint(fault.lines)

    outcome = explore(mutant.text, chain, LIMIT, wanted)
    if any(wanted(fault) for fault in outcome.faults.values()):
        return "real"
    return "equivalent" if outcome.complete else "undecided"
