"""Which modules import what, read from the source and not by importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path


class When(Enum):
    """When an import statement is executed."""

    AT_IMPORT = auto()
    GUARDED = auto()  # at import, but inside `try` or `if`
    IN_FUNCTION = auto()
    NEVER = auto()  # under TYPE_CHECKING


@dataclass(frozen=True)
class Import:
    """One import statement of one module."""

    module: str  # "zerograd.static.flow"
    line: int
    target: str  # "zerograd.lifecycle.events"
    when: When

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Yield every module under a package folder, by its dotted name."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(package: Path) -> list[Import]:
    """Return every import statement under a package folder."""
    return [each for name, path in modules(package) for each in _imports_of(name, path)]


def _imports_of(module: str, path: Path) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node, when in _walk(tree, When.AT_IMPORT):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name, when)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, module, package, when)


def _from(node: ast.ImportFrom, module: str, package: str, when: When) -> Iterator[Import]:
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
    source = ".".join(part for part in (base, node.module or "") if part)
    if source == module.split(".")[0]:  # `from zerograd import static` imports the submodule
        for alias in node.names:
            yield Import(module, node.lineno, f"{source}.{alias.name}", when)
    else:
        yield Import(module, node.lineno, source, when)


def _walk(node: ast.AST, when: When) -> Iterator[tuple[ast.AST, When]]:
    for child in ast.iter_child_nodes(node):
        inner = when
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inner = When.IN_FUNCTION if when is not When.NEVER else when
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inner = When.NEVER
        elif isinstance(child, (ast.If, ast.Try)) and when is When.AT_IMPORT:
            inner = When.GUARDED
        yield child, inner
        yield from _walk(child, inner)
