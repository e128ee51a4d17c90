"""A program as a tree that is rewritten: where its statements stand, and where they came from."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

Scope = ast.Module | ast.FunctionDef
Block = list[ast.stmt]
_BLOCKS = ("body", "orelse", "finalbody")


class Unfit(Exception):
    """The program has no place for this rewrite."""


@dataclass(slots=True)
class Place:
    """A list of statements, and what it stands in."""

    block: Block
    scope: Scope
    loop: ast.For | ast.While | None  # the loop whose body this is, at any depth below
    in_class: bool  # the scope is a method


@dataclass(slots=True)
class Sketch:
    """A program while it is being rewritten; each node of the original knows its line."""

    tree: ast.Module
    random: random.Random
    made: int = 0
    imports: dict[str, None] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """Return a name that the program does not have."""
        self.made += 1
        return f"{stem}_{self.made}"

    def need(self, line: str) -> None:
        """Remember an import."""
        self.imports[line] = None

    def on_top(self, statements: Block) -> None:
        """Put statements after the imports."""
        at = 0
        for number, statement in enumerate(self.tree.body):
            if isinstance(statement, ast.Import | ast.ImportFrom) or _is_text(statement):
                at = number + 1
        self.tree.body[at:at] = statements

    def text(self) -> str:
        """Return the program, imports first."""
        return ast.unparse(self.finished())

    def finished(self) -> ast.Module:
        known = {ast.unparse(each) for each in self.tree.body}
        lines = [line for line in self.imports if line not in known]
        at = 0
        body = self.tree.body
        while at < len(body) and (
            _is_text(body[at])
            or (isinstance(body[at], ast.ImportFrom) and vars(body[at])["module"] == "__future__")
        ):
            at += 1
        added = ast.parse("\n".join(lines)).body
        tree = ast.Module([*body[:at], *added, *body[at:]], [])
        return ast.fix_missing_locations(tree)


def open_sketch(text: str, chance: random.Random) -> Sketch:
    """Read a program; every node remembers the line it stands on."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            vars(node)["origin"] = node.lineno
    return Sketch(tree, chance)


def copy_of(sketch: Sketch) -> Sketch:
    return Sketch(copy.deepcopy(sketch.tree), sketch.random, sketch.made, dict(sketch.imports))


def lines_now(sketch: Sketch) -> dict[int, set[int]]:
    """Return, for each line of the original, the lines where its parts stand now."""
    tree = sketch.finished()
    found: dict[int, set[int]] = {}
    for old, new in zip(ast.walk(tree), ast.walk(ast.parse(ast.unparse(tree))), strict=False):
        if type(old) is not type(new):
            break
        if "origin" in vars(old) and hasattr(new, "lineno"):
            found.setdefault(vars(old)["origin"], set()).add(new.lineno)
    return found


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def places(sketch: Sketch) -> list[Place]:
    """Return every list of statements outside class bodies."""
    return list(_places(sketch.tree.body, sketch.tree, None, in_class=False))


def _places(
    block: Block, scope: Scope, loop: ast.For | ast.While | None, *, in_class: bool
) -> Iterator[Place]:
    yield Place(block, scope, loop, in_class)
    for statement in block:
        if isinstance(statement, ast.FunctionDef):
            yield from _places(statement.body, statement, None, in_class=False)
        elif isinstance(statement, ast.ClassDef):
            for each in statement.body:
                if isinstance(each, ast.FunctionDef):
                    yield from _places(each.body, each, None, in_class=True)
        else:
            inside = statement if isinstance(statement, ast.For | ast.While) else loop
            for part in _BLOCKS:
                inner = getattr(statement, part, None)
                if inner:
                    yield from _places(inner, scope, inside, in_class=in_class)
            for handler in getattr(statement, "handlers", ()):
                yield from _places(handler.body, scope, loop, in_class=in_class)


class _Fill(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.expr | Block | str]) -> None:
        self.parts = parts

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        if isinstance(node.value, ast.Name) and isinstance(self.parts.get(node.value.id), list):
            return self.parts[node.value.id]  # type: ignore[return-value]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        part = self.parts.get(node.id)
        if isinstance(part, ast.AST):
            part = copy.deepcopy(part)
            if isinstance(part, ast.Name | ast.Attribute | ast.Subscript | ast.Tuple):
                set_context(part, node.ctx)
            return part
        if isinstance(part, str):
            node.id = part
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        part = self.parts.get(node.name)
        node.name = part if isinstance(part, str) else node.name
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        part = self.parts.get(node.name)
        node.name = part if isinstance(part, str) else node.name
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        part = self.parts.get(node.name)
        node.name = part if isinstance(part, str) else node.name
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        part = self.parts.get(node.arg)
        node.arg = part if isinstance(part, str) else node.arg
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        part = self.parts.get(node.attr)
        node.attr = part if isinstance(part, str) else node.attr
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        part = self.parts.get(node.arg or "")
        node.arg = part if isinstance(part, str) else node.arg
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        part = self.parts.get(node.value) if isinstance(node.value, str) else None
        if isinstance(part, str):
            node.value = part
        return node


def set_context(node: ast.expr, context: ast.expr_context) -> None:
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Tuple):
        node.ctx = type(context)()
    if isinstance(node, ast.Tuple):
        for each in node.elts:
            set_context(each, context)


def fill(template: str, **parts: ast.expr | Block | str) -> Block:
    """Return the statements of a template, its capital names replaced by these parts."""
    tree = _Fill(parts).visit(ast.parse(template))
    body: Block = tree.body
    return body


def expression(template: str, **parts: ast.expr | str) -> ast.expr:
    """Return the expression of a template, its capital names replaced by these parts."""
    only = fill(template, **parts)[0]
    assert isinstance(only, ast.Expr)
    return only.value
