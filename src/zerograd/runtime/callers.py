"""Who called: whether backwards from one line are the micro-batches of one loop, and whether
a counter decides when the step comes.

A line of a function may be reached from several places, with a different loss from each,
and a loop over tasks or heads runs through the same line once for each of them. Their sum
is meant. Micro-batches come from a loop that also holds the step, or from one that only
counts, or from one over the pieces of a batch.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from collections import deque
from dataclasses import dataclass
from types import CodeType, FrameType

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.pieces import makes_pieces
from zerograd.runtime.call_site import kind_of_is_machinery, kind_of_is_user

MOST_SPOTS = 1024
MOST_FRAMES = 16
_Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp
_ASKS_FOR_THE_WINDOW = re.compile(r"accumulat|sync_grad", re.IGNORECASE)

_ASKS_FOR_A_GRADIENT = re.compile(r"\w+\.grad( is not None)?")
# what comes in each turn of the loop around it, clears among them
_PLAIN = (ast.With, ast.AsyncWith, ast.Expr, ast.Assign, ast.Delete)

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Caller:
    """One of the user's frames."""

    code: CodeType
    at: int
    line: int


Chain = tuple[Caller, ...]  # the innermost first


def chain_here(*, with_libraries: bool = False) -> Chain:
    """Return the user's frames around the call that is going on, and those of libraries if asked.

    Machinery of Python and torch is never among them.
    """
    found: list[Caller] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < MOST_FRAMES:
        path = frame.f_code.co_filename
        if not kind_of_is_machinery(path) if with_libraries else kind_of_is_user(path):
            found.append(Caller(frame.f_code, frame.f_lasti, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


class Callers:
    """Remembers from where each line that calls backward was reached."""

    def __init__(self) -> None:
        self._chains: dict[Spot, Chain | None] = {}  # None: from several places

    def note(self, spot: Spot) -> None:
        """Take note of who calls the backward at `spot` now."""
        chain = chain_here()
        if len(self._chains) >= MOST_SPOTS:
            self._chains.clear()
        if self._chains.setdefault(spot, chain) != chain:
            self._chains[spot] = None

    def are_several(self, spot: Spot) -> bool:
        """Is the backward at `spot` reached from several places?"""
        return self._chains.get(spot, ()) is None

    def are_micro_batches(self, spot: Spot) -> bool:
        """Are the backwards at `spot` the micro-batches of the step that is going on?"""
        chain = self._chains.get(spot)
        if not chain:
            return False
        steps = {each.code: each.line for each in reversed(chain_here())}
        shared = next((each for each in chain if each.code in steps), None)
        if shared is None:
            return False
        loop = _loop_around(shared.code, shared.line)
        if loop is None:
            return False
        step = steps[shared.code]
        if loop.lineno <= step <= (loop.end_lineno or loop.lineno):
            return True
        return isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) and makes_pieces(loop)


def is_counted() -> bool:
    """Does a counter decide whether the call that goes on is reached?

    A remainder (`i % k == 0`), a number that is counted up, a question by name whether to
    accumulate, or a loop before it that fills and clears in each of its turns. The loop may
    be a library's, as a trainer's is. Where a branch goes backward too, its counter decides
    whose turn it is, and not when a window ends.
    """
    for caller in chain_here(with_libraries=True):
        around = nodes_around(caller.code, caller.line)
        tests = [
            node.test
            for node in around
            if isinstance(node, ast.If) and not _goes_backward(node, caller.line)
        ]
        loops = loops_among(around)
        if loops:  # what `continue` keeps from the rest of the turn
            innermost = loops[-1]
            tests += [
                each.test
                for each in innermost.body
                if isinstance(each, ast.If)
                and each.lineno < caller.line
                and isinstance(each.body[-1], ast.Continue)
            ]
        known = _Counted(around, caller.code.co_filename)
        if any(known.counts(test) for test in tests):
            return True
        if loops:  # farther out, a counter decides on whole loops
            return any(map(_clears_each_turn, _before(loops[-1].body, caller.line)))
    return False


def loops_among(nodes: list[ast.AST]) -> list[ast.For | ast.AsyncFor | ast.While]:
    """Return the loops that are statements."""
    return [node for node in nodes if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]


def _goes_backward(branches: ast.If, line: int) -> bool:
    """Does the branch that holds this line go backward before it?"""
    taken = branches.body if line <= (branches.body[-1].end_lineno or 0) else branches.orelse
    return any(
        isinstance(node, ast.Attribute) and node.attr.endswith("backward") and node.lineno < line
        for part in taken
        for node in ast.walk(part)
    )


def is_in_every_turn(clear: Spot, fill: Spot) -> bool:
    """Does the loop that fills at one line reach the clear at the other in each of its turns?

    Then no guard has chosen what to throw away.
    """
    if clear.path != fill.path or clear.cell != fill.cell:
        return False
    nested = [node for node in nodes_at(clear) if isinstance(node, ast.stmt)]
    loops = [
        node
        for node in nested
        if isinstance(node, (ast.For, ast.AsyncFor)) and not _is_over_parameters(node)
    ]
    if not loops or not loops[-1].lineno <= fill.line <= (loops[-1].end_lineno or 0):
        return False
    inner = nested[nested.index(loops[-1]) + 1 :]
    if not all(isinstance(node, _PLAIN) or _is_for_each_gradient(node) for node in inner):
        return False
    return not any(
        isinstance(node, (ast.Continue, ast.Break)) and node.lineno < clear.line
        for node in ast.walk(loops[-1])
    )


def _is_for_each_gradient(node: ast.stmt) -> bool:
    """Does it go through what is there: a loop over parameters, `if p.grad is not None`?"""
    if isinstance(node, ast.If):
        return _ASKS_FOR_A_GRADIENT.fullmatch(ast.unparse(node.test)) is not None
    return _is_over_parameters(node)


def _is_over_parameters(node: ast.stmt) -> bool:
    return isinstance(node, ast.For) and "param" in ast.unparse(node.iter)


def has_remainder(test: ast.expr) -> bool:
    """Is it a condition on a number modulo another?"""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mod)
        and not isinstance(node.left, (ast.Constant, ast.JoinedStr))
        for node in ast.walk(test)
    )


class _Counted:
    """What the flags of a function stand for, and which of its numbers are counted up."""

    def __init__(self, around: list[ast.AST], path: str) -> None:
        function = next((each for each in around if isinstance(each, _Function)), None)
        self._scope = function if function is not None else _tree(path)

    def counts(self, test: ast.expr) -> bool:
        if has_remainder(test):
            return True
        names = {_last_name(node) for node in ast.walk(test)} - {""}
        if any(map(_ASKS_FOR_THE_WINDOW.search, names)):  # a trainer counts in a method of its own
            return True
        return any(self._is_told_by(node, names) for node in ast.walk(self._scope))

    @staticmethod
    def _is_told_by(node: ast.AST, names: set[str]) -> bool:
        if isinstance(node, ast.AugAssign):
            return isinstance(node.op, ast.Add) and _last_name(node.target) in names
        return (
            isinstance(node, ast.Assign)
            and any(_last_name(target) in names for target in node.targets)
            and has_remainder(node.value)
        )


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _before(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    return [each for each in body if (each.end_lineno or each.lineno) < line]


def _clears_each_turn(statement: ast.stmt) -> bool:
    """Is it a loop with a backward in it that clears in every turn, whatever it finds?"""
    if not isinstance(statement, (ast.For, ast.AsyncFor)):
        return False
    own = [each.value for each in statement.body if isinstance(each, ast.Expr)]
    clears = [each for each in own if _is_call_of(each, "zero_grad")]
    return bool(clears) and any(_is_call_of(each, "backward") for each in ast.walk(statement))


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == name


def _tree(path: str) -> ast.Module:
    return _parsed("".join(linecache.getlines(path)))


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


@functools.lru_cache(maxsize=32)
def _parsed_block(text: str, first: int) -> ast.Module | None:
    """Return the tree of a function that begins in line `first` of its file."""
    is_indented = text[:1].isspace()
    try:
        tree = ast.parse(f"if True:\n{text}" if is_indented else text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return ast.increment_lineno(tree, first - 2 if is_indented else first - 1)


def nodes_around(code: CodeType, line: int) -> list[ast.AST]:
    """Return the nodes that reach over this line of `code`, the outermost first.

    Of a function that is parsed alone, if it can be: the file around it may be long.
    """
    lines = linecache.getlines(code.co_filename)
    if not code.co_name.startswith("<"):
        text = "".join(_block(lines, code))
        if _parsed_block(text, code.co_firstlineno) is not None:
            return _over(text, code.co_firstlineno, line)
    return _over("".join(lines), 0, line)


def nodes_at(spot: Spot) -> list[ast.AST]:
    """Return the nodes that reach over a line of a file, in the function that it is in."""
    return _over("".join(linecache.getlines(spot.path)), 0, spot.line)


def unscaled_below(clip: Spot) -> str:
    """Return the call that unscales below a clip, before any step, in the function it is in."""
    below = [
        each
        for node in nodes_at(clip)[:1]
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        and each.lineno > clip.line
        and _last_name(each.func) in ("unscale_", "step")
    ]
    first = min(below, key=lambda each: each.lineno, default=None)
    return ast.unparse(first) if first is not None and _is_call_of(first, "unscale_") else ""


def _block(lines: list[str], code: CodeType) -> list[str]:
    """Return the lines of a function, up to the next one that is indented no deeper."""
    first = code.co_firstlineno - 1
    stop = max((line for _, _, line in code.co_lines() if line is not None), default=first)
    depth = _depth(lines[first]) if first < len(lines) else 0
    while stop < len(lines) and (not lines[stop].strip() or _depth(lines[stop]) > depth):
        stop += 1
    return lines[first:stop]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


@functools.lru_cache(maxsize=64)
def _over(text: str, first: int, line: int) -> list[ast.AST]:
    tree = _parsed_block(text, first) if first else None
    found: list[ast.stmt | ast.expr] = []
    around: deque[ast.AST] = deque([tree or _parsed(text)])
    while around:
        for node in ast.iter_child_nodes(around.popleft()):
            first, last = getattr(node, "lineno", line), getattr(node, "end_lineno", line)
            decorators = getattr(node, "decorator_list", ())  # which stand above it
            if min([first, *(each.lineno for each in decorators)]) <= line <= (last or first):
                around.append(node)
                if isinstance(node, (ast.stmt, ast.expr)) and first <= line:
                    found.append(node)
    functions = [node for node in found if isinstance(node, _Function)]
    start = functions[-1].lineno if functions else 0
    return [node for node in found if node.lineno >= start]


def _loop_around(code: CodeType, line: int) -> _Loop | None:
    around = [node for node in nodes_around(code, line) if isinstance(node, _Loop)]
    return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)
