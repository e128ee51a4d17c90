"""A finding in its source: the statements its trail passes, and what stands around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Edit, Finding
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.fixing.edits import CannotEdit, Layout
from zerograd.static.source import Source

_GRADIENT = re.compile(r"\.grad\b(?!\s*=\s*None|(?:\.data)?\.(?:zero_|fill_|detach_)\()")
_READIES = re.compile(r"(^|\.)(unscale_|clip_grad\w*)$")
# words for the parts of what one step is for
_PARTS = ("micro", "chunk", "split", "accum", "part", "view", "task", "mini", "sub", "batch_size")


class Scene:
    """A finding in its source, with the statements that its trail passes."""

    def __init__(self, source: Source, finding: Finding) -> None:
        self.source = source
        self.finding = finding
        self.layout = Layout(source)
        self.here = self._statement(finding.spot)
        self.trail = [
            statement
            for station in finding.trail
            if station.spot.path == source.path
            and (statement := self._statement(station.spot)) is not None
        ]

    @property
    def owner(self) -> str:
        return self.finding.owner

    def _statement(self, spot: Spot) -> ast.stmt | None:
        if spot.path != self.source.path:
            return None
        return self.layout.at(self.source.row(spot), spot.column)

    def line(self, statement: ast.stmt) -> int:
        row = statement.lineno
        return row if self.source.notebook is None else self.source.notebook.place(row)[1]

    def function(self, statement: ast.stmt) -> ast.AST:
        """Return the function around a statement, or the module."""
        at: ast.AST = statement
        while isinstance(at, ast.stmt):
            at = self.layout.parent(at)
            if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
        return at

    def loop(self, statement: ast.stmt) -> ast.AST:
        """Return the innermost loop around a statement, or the module."""
        at = self.layout.parent(statement)
        while isinstance(at, ast.stmt) and not isinstance(at, ast.For | ast.While):
            at = self.layout.parent(at)
        return at

    def calls(self, node: ast.AST, *methods: str) -> Iterator[ast.Call]:
        """Yield the calls of these methods anywhere below `node`."""
        for inner in ast.walk(node):
            if (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Attribute)
                and inner.func.attr in methods
            ):
                yield inner

    def has_call(self, node: ast.AST, *methods: str) -> bool:
        return next(self.calls(node, *methods), None) is not None

    def readies_gradients(self, statement: ast.stmt) -> bool:
        """Does it unscale or clip what the next step uses?"""
        called = (each.func for each in ast.walk(statement) if isinstance(each, ast.Call))
        return any(_READIES.search(self.layout.text(each)) for each in called)

    def clear_text(self) -> str:
        """Return the clear of the owner, spelled as it is elsewhere in this file if it is."""
        for call in self.calls(self.source.tree, "zero_grad"):
            assert isinstance(call.func, ast.Attribute)
            if self.layout.text(call.func.value) == self.owner and call.lineno == call.end_lineno:
                return self.layout.text(call)
        return f"{self.owner}.zero_grad()"

    def clear_like(self, step: ast.stmt) -> str | None:
        """Return a clear that goes over the same as a step does, where its name says too little.

        `opts[k].step()` means more than the `opts["a"]` of the finding, and the name in
        `[o.step() for o in opts]` is known in there alone.
        """
        for node in ast.walk(step):
            if isinstance(node, ast.ListComp) and len(node.generators) == 1:
                [over] = node.generators
                if self.layout.text(over.target) == self.owner and self.has_call(node.elt, "step"):
                    names = f"for {self.owner} in {self.layout.text(over.iter)}"
                    return None if over.ifs else f"[{self.owner}.zero_grad() {names}]"
        mapped = self._clear_mapped(step)
        if mapped is not None:
            return mapped
        for call in self.calls(step, "step"):
            assert isinstance(call.func, ast.Attribute)
            stepped = call.args[0] if call.args else call.func.value
            if isinstance(stepped, ast.Subscript) and self.owner.startswith(
                f"{self.layout.text(stepped.value)}["
            ):
                return f"{self.layout.text(stepped)}.zero_grad()"
        return None

    def _clear_mapped(self, step: ast.stmt) -> str | None:
        """Return `list(map(lambda o: o.zero_grad(), opts))`, where a step is written so."""
        calls = [each for each in self.calls(step, "step") if not each.args and not each.keywords]
        lambdas = [each.body for each in ast.walk(step) if isinstance(each, ast.Lambda)]
        if not isinstance(step, ast.Expr) or len(calls) != 1 or lambdas != calls:
            return None
        first, second = self.layout.text(step), self.layout.text(calls[0].func)
        return first.replace(f"{second}()", f"{second.removesuffix('step')}zero_grad()")

    def scaler(self) -> str | None:
        """Return the scaler that steps the owner, as the user names it."""
        tree = self.source.tree
        for call in self.calls(tree, "step"):
            assert isinstance(call.func, ast.Attribute)
            if call.args and self.layout.text(call.args[0]) == self.owner:
                return self.layout.text(call.func.value)
        for call in self.calls(tree, "scale"):
            assert isinstance(call.func, ast.Attribute)
            return self.layout.text(call.func.value)
        return None

    def steps_of_owner(self, near: ast.stmt) -> list[ast.stmt]:
        """Return the statements of the function around that step the owner."""
        found = []
        for call in self.calls(self.function(near), "step"):
            assert isinstance(call.func, ast.Attribute)
            texts = [self.layout.text(call.func.value), *map(self.layout.text, call.args[:1])]
            statement = self.layout.at(
                call.lineno, self.source.column(call.lineno, call.col_offset)
            )
            if self.owner in texts and statement is not None:
                found.append(statement)
        return unique(found)

    def backward_of(self, step: ast.stmt) -> ast.stmt | None:
        """Return the first backward in the block that leads to this step and to none before it."""
        block = self.layout.block(step)
        first = None
        for statement in reversed(block[: block.index(step)]):
            if self.has_call(statement, "step"):
                break
            if self.has_call(statement, "backward", "manual_backward"):
                first = statement
        return first

    def behind_step(self, step: ast.stmt) -> ast.stmt:
        """Return where a clear goes: the step, or the scaler's update if that comes next."""
        following = self.layout.after(step)
        if self.is_scaler_step(step) and following and is_method(following[0], "update"):
            return following[0]
        return step

    def is_read_behind(self, anchor: ast.stmt) -> bool:
        """Are gradients looked at after it, in the same round, before another loss fills them?

        A clear put there would leave nothing to look at, or None.
        """
        at: ast.AST = anchor
        while isinstance(at, ast.stmt):
            for each in self.layout.after(at):
                if self.has_call(each, "backward", "manual_backward"):
                    return False
                if self._reads_gradients(each):
                    return True
            at = self.layout.parent(at)
            if isinstance(at, ast.For | ast.AsyncFor | ast.While | ast.FunctionDef):
                return False
        return False

    def _reads_gradients(self, statement: ast.stmt) -> bool:
        if _GRADIENT.search(self.layout.text(statement)):
            return True
        called = {
            each.func.attr if isinstance(each.func, ast.Attribute) else self.layout.text(each.func)
            for each in ast.walk(statement)
            if isinstance(each, ast.Call)
        }
        return any(
            isinstance(each, ast.FunctionDef)
            and each.name in called
            and _GRADIENT.search(self.layout.text(each)) is not None
            and not self.has_call(each, "backward")
            for each in statements_in(self.source.tree.body)
        )

    def is_scaler_step(self, step: ast.stmt) -> bool:
        return any(call.args for call in self.calls(step, "step"))

    def is_behind_data(self, clear: ast.stmt, step: ast.stmt) -> bool:
        """Does the step come after a loop over all the data that the clear stands in?

        Then the step may belong into that loop, and to add all of it up is not what was meant.
        """
        loop = self.loop(clear)
        if not isinstance(loop, ast.For) or any(each is step for each in ast.walk(loop)):
            return False
        text = self.layout.text(loop.iter).lower()
        return not any(word in text for word in _PARTS)

    def whole_clear(self, clear: ast.stmt) -> ast.stmt:
        """Return the outermost loop over parameters that a clear by hand stands in, else it."""
        whole = at = clear
        while True:
            parent = self.layout.parent(at)
            alone = len(self.layout.block(at)) == 1
            if not alone or not isinstance(parent, (ast.For, ast.If)) or parent.orelse:
                return whole
            if isinstance(parent, ast.For):
                if not self._over_parameters(parent):
                    return whole
                whole = parent
            at = parent

    def alone(self, statement: ast.stmt) -> ast.stmt:
        """Return the condition that a statement is all there is under, else the statement."""
        parent = self.layout.parent(statement)
        only = isinstance(parent, ast.If) and len(parent.body) == 1 and not parent.orelse
        return parent if only and isinstance(parent, ast.If) else statement

    def dropped(self, statement: ast.stmt) -> list[Edit]:
        """Take a statement out for good; what its comments say would be lost with it."""
        rows = self.source.lines[statement.lineno - 1 : statement.end_lineno]
        if any("#" in row for row in rows):
            raise CannotEdit
        return self.layout.remove(statement)

    def _over_parameters(self, loop: ast.For) -> bool:
        text = self.layout.text(loop.iter)
        return "parameters" in text or "param_groups" in text or "params" in text


def is_method(statement: ast.stmt, *names: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr in names
    )


def unique(statements: list[ast.stmt | None] | list[ast.stmt]) -> list[ast.stmt]:
    return list(dict.fromkeys(each for each in statements if each is not None))
