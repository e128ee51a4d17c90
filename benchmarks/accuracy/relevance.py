"""Tell which compound statements can touch a gradient, so that the others are passed over.

Running both sides of every `if verbose:` would square the number of paths for nothing.
A statement matters if it holds an event by spelling, leaves its block, or calls a
function of the program that does.
"""

from __future__ import annotations

import ast
import math
import re

from benchmarks.accuracy.values import Scope

_EVENTS = {"zero_grad", "backward", "manual_backward", "step", "unscale_", "update", "grad"}
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_EXITS = {"exit", "quit", "_exit", "abort"}
ROUNDS = 3
LONGEST_PERIOD = 8
MOST_ROUNDS = 25


class Relevance:
    """Answers for one program, remembered by node."""

    def __init__(self, tree: ast.Module) -> None:
        self._functions: dict[str, list[ast.AST]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._functions.setdefault(node.name, []).append(node)
        self._matters: dict[ast.AST, bool] = {}
        self._periods: dict[ast.AST, list[ast.expr]] = {}
        self._names: dict[str, bool] = {}
        self._stored: dict[ast.AST, list[str]] = {}
        self.receivers = {
            node.func.value.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr in ("parameters", "zero_grad", "step", "to", "train")
        }

    def matters(self, node: ast.AST) -> bool:
        """Tell whether running this statement can make a difference to gradients."""
        if node not in self._matters:
            self._matters[node] = self._look(node)
        return self._matters[node]

    def stored(self, node: ast.AST) -> list[str]:
        """Return the names that a statement assigns, in any of its parts."""
        if node not in self._stored:
            self._stored[node] = [
                child.id
                for child in ast.walk(node)
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
            ]
        return self._stored[node]

    def _look(self, node: ast.AST) -> bool:
        for child in ast.walk(node):
            if isinstance(child, _LEAVES):
                return True
            if isinstance(child, ast.Attribute) and (
                child.attr in _EVENTS or child.attr.startswith("clip_grad")
            ):
                return True
            if isinstance(child, ast.Call):
                name = _called(child)
                if name.startswith("clip_grad") or self._reaches(name) or name in _EXITS:
                    return True
                # A constructor or a preparation of networks decides who owns what.
                if re.search(r"prepare|setup|optim|parameters|scaler", name, re.IGNORECASE):
                    return True
        return False

    def _reaches(self, name: str) -> bool:
        """Tell whether a function of this program, by name, can touch a gradient."""
        if name not in self._functions:
            return False
        if name not in self._names:
            self._names[name] = False  # a recursive call adds nothing of its own
            self._names[name] = any(self._events_inside(node) for node in self._functions[name])
        return self._names[name]

    def _events_inside(self, node: ast.AST) -> bool:
        own, reached = getattr(node, "name", ""), False
        for child in ast.walk(node):
            if isinstance(child, ast.Attribute) and child.attr in _EVENTS:
                return True
            if isinstance(child, ast.Call) and _called(child) != own:
                reached = reached or self._reaches(_called(child))
        return reached

    def rounds(self, loop: ast.AST, scope: Scope) -> int:
        """Return how often a loop runs: three times, or past two periods of the modulos in it."""
        if loop not in self._periods:
            self._periods[loop] = [
                child.right
                for child in ast.walk(loop)
                if isinstance(child, ast.BinOp) and isinstance(child.op, ast.Mod)
            ]
        period = 1
        for node in self._periods[loop]:
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(node, ast.Name):
                value = scope.get(node.id)
            if isinstance(value, int) and 0 < value <= LONGEST_PERIOD:
                period = math.lcm(period, value)
        return max(ROUNDS, min(2 * period + 1, MOST_ROUNDS)) if period > 1 else ROUNDS


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_for_heirs(function: ast.AST) -> bool:
    """Does a method only raise, so that classes below it must have their own?"""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    body = [
        each
        for each in function.body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    return len(body) == 1 and isinstance(body[0], ast.Raise)
