"""Kinds: classes that only tell some cases apart by name, `class Phase(Enum)` and the like."""

from __future__ import annotations

import ast


def kinds_of(node: ast.ClassDef) -> dict[str, object]:
    """Return the names that an enumeration gives, and what each stands for.

    A class without methods is one too, if its names are given texts, or numbers one after
    the other: those of a configuration are of many sorts.
    """
    given = {
        target.id: each.value
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    }
    if any(ast.unparse(base).endswith(("Enum", "Flag")) for base in node.bases):
        return {name: f"{node.name}.{name}" for name in given}
    values = [each.value for each in given.values() if isinstance(each, ast.Constant)]
    plain = all(isinstance(each, ast.Assign | ast.Expr | ast.Pass) for each in node.body)
    if node.bases or not plain or not 1 < len(values) == len(given) == len(set(values)):
        return {}
    numbers = sorted(each for each in values if type(each) is int)
    in_a_row = numbers in (list(range(len(values))), list(range(1, len(values) + 1)))
    if in_a_row or all(isinstance(each, str) for each in values):
        return dict(zip(given, values, strict=True))
    return {}
