"""Find the functions that train something: the denominator of every recall figure.

A unit is a function, or the statements of a module outside its functions and classes,
that holds a backward, an optimizer step and a clear. Units are found by spelling alone
and share no code with the checker, so the checker cannot shrink what it is measured on.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NO_OPTIMIZER = re.compile(r"sched|^lr|_lr$|^env|envs?$|prof|bar$|game|sim$|timer|warmup|anneal")
_OTHER_FRAMEWORK = re.compile(r"^\s*(?:import|from) (?:mxnet|paddle|jittor|tinygrad)", re.M)
_OPTIMIZER = re.compile(r"opt|scaler|solver|trainer|adam|sgd", re.IGNORECASE)


@dataclass(slots=True)
class Act:
    """One statement of the user's loop that touches gradients."""

    kind: str  # "clear", "backward", "step", "unscale", "update", "clip"
    statement: ast.stmt
    owner: str  # receiver or optimizer argument as written: "optD", "self.opt", "net"
    call: ast.Call | None
    loops: tuple[ast.stmt, ...]  # enclosing loops of this unit, outermost first


@dataclass(slots=True)
class Unit:
    """One training function, or the top level of one module."""

    path: Path
    name: str
    line: int
    node: ast.AST
    tree: ast.Module
    acts: list[Act] = field(default_factory=list)

    def of(self, kind: str) -> list[Act]:
        return [act for act in self.acts if act.kind == kind]

    @property
    def trains(self) -> bool:
        kinds = {act.kind for act in self.acts}
        return {"backward", "step", "clear"} <= kinds


def read_source(path: Path) -> str | None:
    """Return the text of a Python file, or of a notebook's code cells, or None."""
    raw = path.read_bytes()
    if path.suffix == ".ipynb":
        return _notebook_text(raw)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return raw.decode("latin-1").replace("\r\n", "\n")


def _notebook_text(raw: bytes) -> str | None:
    try:
        cells = json.loads(raw)["cells"]
    except (ValueError, KeyError, TypeError):
        return None
    lines: list[str] = []
    for cell in cells:
        if cell.get("cell_type") == "code":
            text = "".join(cell["source"]).splitlines()
            magic = bool(text) and text[0].lstrip().startswith("%%")
            for line in text:
                bare = line.lstrip()
                lines.append(f"# {line}" if magic or bare[:1] in ("%", "!", "?") else line)
            lines.append("")
    return "\n".join(lines)


def parse(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return ""


def is_optimizer_step(call: ast.Call, receiver: ast.expr) -> bool:
    name = _last_name(receiver).lower()
    if _NO_OPTIMIZER.search(name):
        return False
    arguments = [_last_name(a).lower() for a in call.args]
    if not arguments:
        return True
    return bool(_OPTIMIZER.search(name)) or "closure" in arguments or "opt" in arguments[0]


def _act_of_call(call: ast.Call) -> tuple[str, str] | None:
    """Return (kind, owner) of a call that touches gradients, by its spelling."""
    func = call.func
    if isinstance(func, ast.Name):
        return ("clip", "") if func.id.startswith("clip_grad") else None
    if not isinstance(func, ast.Attribute):
        return None
    receiver = ast.unparse(func.value)
    first = ast.unparse(call.args[0]) if call.args else ""
    if func.attr == "zero_grad":
        return "clear", receiver
    if func.attr in ("backward", "manual_backward"):
        return "backward", receiver
    if func.attr == "unscale_":
        return "unscale", first
    if func.attr == "update" and "scaler" in receiver.lower():
        return "update", receiver
    if func.attr.startswith("clip_grad"):
        return "clip", receiver
    if func.attr == "step" and is_optimizer_step(call, func.value):
        return "step", first if "scaler" in receiver.lower() and first else receiver
    return None


def _hand_clear(statement: ast.stmt) -> str | None:
    """Return the receiver of `p.grad = None` or `p.grad.zero_()`, if this is one."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target, value = statement.targets[0], statement.value
        if target.attr == "grad" and isinstance(value, ast.Constant) and value.value is None:
            return ast.unparse(target.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        text = ast.unparse(statement.value.func)
        match = re.fullmatch(r"(.+)\.grad(\.data)?\.zero_", text)
        if match:
            return match[1]
    return None


def _calls(statement: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of a statement's own expressions, not those of nested blocks."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.Lambda):
                continue
            if isinstance(child, ast.Call):
                yield child
            stack.append(child)


class _Finder:
    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.units: list[Unit] = []

    def visit_body(self, node: ast.AST, name: str, line: int, parent: Unit | None) -> None:
        unit = Unit(self.path, name, line, node, self.tree)
        before = len(self.units)
        for statement in getattr(node, "body", []):
            self._statement(statement, unit, (), name)
        # A closure's clear and backward belong to the function that steps with it.
        if parent is not None and not unit.trains:
            parent.acts.extend(unit.acts)
        if unit.trains:
            self.units.insert(before, unit)

    def _statement(
        self, statement: ast.stmt, unit: Unit, loops: tuple[ast.stmt, ...], name: str
    ) -> None:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            in_function = not isinstance(unit.node, ast.Module | ast.ClassDef)
            parent = unit if in_function else None
            self.visit_body(statement, f"{name}.{statement.name}", statement.lineno, parent)
            return
        if isinstance(statement, ast.ClassDef):
            for child in statement.body:
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    inner = f"{name}.{statement.name}.{child.name}"
                    self.visit_body(child, inner, child.lineno, None)
            return
        owner = _hand_clear(statement)
        if owner is not None:
            unit.acts.append(Act("clear", statement, owner, None, loops))
        for call in _calls(statement):
            act = _act_of_call(call)
            if act is not None:
                unit.acts.append(Act(act[0], statement, act[1], call, loops))
        inside = (*loops, statement) if isinstance(statement, ast.For | ast.While) else loops
        for block in ("body", "orelse", "finalbody"):
            for child in getattr(statement, block, []):
                self._statement(child, unit, inside, name)
        for handler in getattr(statement, "handlers", []):
            for child in handler.body:
                self._statement(child, unit, inside, name)
        for case in getattr(statement, "cases", []):
            for child in case.body:
                self._statement(child, unit, inside, name)


def find_units(text: str, path: Path) -> list[Unit]:
    """Return the training units of one source text, outermost first."""
    tree = parse(text)
    if tree is None:
        return []
    finder = _Finder(path, tree)
    try:
        finder.visit_body(tree, path.stem, 1, None)
    except RecursionError:
        return []
    return finder.units


def training_files(folder: Path) -> Iterator[tuple[Path, str, list[Unit]]]:
    """Yield (path, text, units) of each file under `folder` that trains something."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".py", ".ipynb") or not path.is_file():
            continue
        raw = path.read_bytes()
        if b"backward" not in raw or b"step" not in raw:
            continue
        text = read_source(path)
        if text is None or (_OTHER_FRAMEWORK.search(text) and "torch" not in text):
            continue
        units = find_units(text, path)
        if units:
            yield path, text, units
