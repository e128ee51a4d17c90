"""What a mutant is, and what one training unit offers to be broken."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.accuracy.edit import CannotEdit, Editor, Place, places
from benchmarks.accuracy.training_code import Act, Unit, parse


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken text, and what a checker must say of it."""

    kind: str
    path: Path
    unit: str
    detail: str
    text: str = field(repr=False)
    codes: frozenset[str]
    lines: frozenset[int]
    origin: frozenset[int]  # those of the lines that the original has, by its numbers


class Subject:
    """One training unit of one file, with everything the mutations ask about it."""

    def __init__(self, text: str, unit: Unit) -> None:
        self.text = text
        self.unit = unit
        self.at: dict[ast.stmt, Place] = places(unit.tree)
        self._built = _constructed(unit.tree)

    def editor(self) -> Editor:
        return Editor(self.text, self.at)

    @property
    def owners(self) -> list[str]:
        """Return the optimizers this unit steps, as written, in order."""
        return list(dict.fromkeys(act.owner for act in self.unit.of("step")))

    def steps(self, owner: str) -> list[Act]:
        return [act for act in self.unit.of("step") if act.owner == owner]

    def cleared_by(self, clear: Act) -> set[str] | None:
        """Return the stepped optimizers a clear belongs to; None if that cannot be told."""
        owners = self.owners
        if len(owners) == 1 or clear.owner in owners:
            return {clear.owner} if clear.owner in owners else set(owners)
        subject = clear.owner
        if clear.loops and isinstance(clear.loops[-1], ast.For) and clear.call is None:
            subject = ast.unparse(clear.loops[-1].iter)
        held = {
            owner
            for owner in owners
            for source in self._built.get(owner, ())
            if _mentions(source, subject) or _mentions(subject, source)
        }
        return held or None

    def clears(self, owner: str) -> list[Act]:
        """Return the clears that empty this optimizer's gradients and no other's."""
        return [c for c in self.unit.of("clear") if self.cleared_by(c) == {owner}]

    def has_foreign_clear(self, owner: str) -> bool:
        """Tell whether a clear that may concern this optimizer is not its own alone."""
        for clear in self.unit.of("clear"):
            cleared = self.cleared_by(clear)
            if cleared is None or (owner in cleared and cleared != {owner}):
                return True
        return False

    def ancestors(self, statement: ast.stmt) -> Iterator[ast.AST]:
        node: ast.AST = statement
        while isinstance(node, ast.stmt) and node in self.at:
            node = self.at[node].owner
            yield node

    def common_child(self, first: ast.stmt, second: ast.stmt) -> ast.stmt | None:
        """Return the statement around `first` that stands in the block of `second`."""
        block = self.at[second].block
        node: ast.AST = first
        while isinstance(node, ast.stmt) and node in self.at:
            if self.at[node].block is block:
                return node
            node = self.at[node].owner
        return None

    def mutant(
        self,
        kind: str,
        detail: str,
        editor: Editor,
        codes: Iterable[str],
        lines: Iterable[int | str],
    ) -> Mutant:
        """Apply the edits; `lines` are original lines or marks of inserted ones."""
        text = editor.apply()
        if parse(text) is None:
            raise CannotEdit("the result does not parse")
        wanted = list(lines)
        where = frozenset(w for w in map(editor.where, wanted) if w is not None)
        if not where:
            raise CannotEdit("no line is left to report at")
        origin = frozenset(line for line in wanted if isinstance(line, int))
        return Mutant(
            kind, self.unit.path, self.unit.name, detail, text, frozenset(codes), where, origin
        )


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text) is not None


def _constructed(tree: ast.Module) -> dict[str, list[str]]:
    """Map each assigned name to the `x` of every `x.parameters()` in its constructor."""
    built: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        sources = [
            ast.unparse(call.func.value)
            for call in ast.walk(node.value)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in ("parameters", "named_parameters")
        ]
        for target in node.targets:
            if sources:
                built.setdefault(ast.unparse(target), []).extend(sources)
    return built
