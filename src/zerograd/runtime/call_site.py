"""The user's own statement behind a call: not ours, not torch's, not a framework's."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from zerograd.lifecycle.events import Spot
from zerograd.runtime.cells import TIMED, cell_of

MOST_SITES = 2048  # past that all are forgotten; a notebook makes new code for each cell

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PATHS = sysconfig.get_paths()
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_STANDARD = tuple(os.path.abspath(_PATHS[name]) + os.sep for name in ("stdlib", "platstdlib"))
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
# "<ipython-input-1-…>" is the user's; "<frozen runpy>", "<string>" and "<eval_with_key>" are not.
_MADE_UP = re.compile(rf"<(?!ipython-input|python-input|stdin|doctest)(?!{TIMED.pattern[1:]})")
_COMMAND = "<string>"  # what `python -c` calls its program, and many a library what it writes

_USERS, _LIBRARY, _MACHINERY = range(3)
_WRAPPED = ("step", "zero_grad")
CLEARS = re.compile(r"\w*(?:zero|reset|clear)\w*grad\w*")
_TRAINING = frozenset(
    {"backward", "zero_grad", "grad", "scale", "unscale_", "clip_grad_norm_", "clip_grad_value_"}
)
_kinds: dict[str, int] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One place in the user's code, compared by identity: the same place is the same object."""

    spot: Spot
    text: str  # the statement, or the call in it
    receiver: str  # "opt" in `opt.step()`, "" where there is none
    path: str  # of the file, as the interpreter names it
    in_library: bool = False
    scope: tuple[int, int] | None = None  # first and last line of the function around it
    above: int = 0  # lines of a notebook's cell that are not in that file

    @property
    def line(self) -> int:
        """The line in the file itself."""
        return self.spot.line - self.above


def kind_of(path: str) -> int:
    """Is code of this file the user's, an installed library's, or machinery of Python and torch?"""
    found = _kinds.get(path)
    if found is None:
        if len(_kinds) > 4 * MOST_SITES:
            _kinds.clear()
        found = _kinds[path] = _classify(path)
    return found


def kind_of_is_user(path: str) -> bool:
    """Is this file the user's own?"""
    return kind_of(path) == _USERS


def kind_of_is_machinery(path: str) -> bool:
    """Is this file a part of Python, torch or zerograd?"""
    return kind_of(path) == _MACHINERY


def _classify(path: str) -> int:
    if path.startswith((_OURS, _TORCH)) or _MADE_UP.match(path):
        return _MACHINERY
    if _INSTALLED.search(path):
        return _LIBRARY
    return _MACHINERY if os.path.abspath(path).startswith(_STANDARD) else _USERS


class Sites:
    """Finds the site of the call that is going on, and remembers it."""

    def __init__(self) -> None:
        # By the identity of the code, which is held: copies of a function in two files are equal.
        self._known: dict[tuple[int, int], tuple[Site, CodeType]] = {}
        self._wrappers: dict[int, CodeType] = {}
        self.hops = 0  # from the frame asked about to the last one found
        self.code: CodeType | None = None  # of that frame, if it is the user's
        self.at = 0  # and its instruction

    def here(self, depth: int) -> Site:
        """Return the innermost statement of the user, `depth` frames up or further.

        In a program that lives in an installed package as a whole, that package's
        own statement stands for the user's.
        """
        frame: FrameType | None = sys._getframe(depth)
        library: FrameType | None = None
        wrapper: FrameType | None = None
        kinds = _kinds
        hops = 0
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(code.co_filename)
            if kind is None:
                kind = kind_of(code.co_filename)
            if kind == _USERS and id(code) not in self._wrappers:
                at = frame.f_lasti
                found = self._known.get((id(code), at))
                if found is None and _is_wrapper(frame):
                    self._wrap(code)
                else:
                    self.hops, self.code, self.at = hops, code, at
                    return found[0] if found is not None else self._new(frame, False)
            if kind == _USERS and wrapper is None:
                wrapper = frame
            if kind == _LIBRARY and library is None:
                library = frame
            frame = frame.f_back
            hops += 1
        self.code = None
        if wrapper is not None:
            found = self._known.get((id(wrapper.f_code), wrapper.f_lasti))
            return found[0] if found is not None else self._new(wrapper, False)
        where = library or _command(sys._getframe(depth))
        if where is None:
            return NOWHERE
        found = self._known.get((id(where.f_code), where.f_lasti))
        return found[0] if found is not None else self._new(where, library is not None)

    def _wrap(self, code: CodeType) -> None:
        if len(self._wrappers) >= MOST_SITES:
            self._wrappers.clear()
        self._wrappers[id(code)] = code

    def _new(self, frame: FrameType, in_library: bool) -> Site:
        if len(self._known) >= MOST_SITES:
            self._known.clear()
        code, at = frame.f_code, frame.f_lasti
        site = site_of(code, at, frame.f_lineno, in_library)
        self._known[id(code), at] = site, code
        return site


def _command(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program of `python -c`, from this one outwards."""
    while frame is not None:
        if frame.f_code.co_filename == _COMMAND and frame.f_globals.get("__name__") == "__main__":
            return frame
        frame = frame.f_back
    return None


def _is_wrapper(frame: FrameType) -> bool:
    """Is it step() or zero_grad() of an object that stands for an optimizer, or a clear?

    It does what it says; what is wrong is wrong where it is called.
    """
    code = frame.f_code
    if "backward" in code.co_names:
        return False
    holder = type(frame.f_locals.get(code.co_varnames[0])) if code.co_argcount else type(None)
    if issubclass(holder, (torch.nn.Module, torch.optim.Optimizer)):
        return False
    if CLEARS.fullmatch(code.co_name):
        return "step" not in code.co_names
    if code.co_name not in _WRAPPED:
        return False
    if all(callable(getattr(holder, name, None)) for name in _WRAPPED):
        return True
    functions = [each for each in vars(holder).values() if isinstance(each, FunctionType)]
    own = [each.__code__.co_names for each in functions]
    return bool(own) and _TRAINING.isdisjoint(name for names in own for name in names)


def site_of(code: CodeType, at: int, line: int, in_library: bool = False) -> Site:
    """Return the site of the instruction `at` in `code`."""
    path = code.co_filename
    cell = cell_of(code)
    above = cell.above if cell is not None else 0
    lines = cell.lines if cell is not None and cell.lines else linecache.getlines(path)
    first, last, column, end = line, line, 1, 0
    positions = getattr(code, "co_positions", None)  # Python 3.11 and later
    if positions is not None:
        found = _position(positions(), at // 2)
        if found is not None:
            first, last, column, end = found
    text = _text_between(lines, first, last, column, end) if end else _line(lines, first).strip()
    column, end = _character(lines, first, column), _character(lines, last, end)
    name, number = (cell.notebook, cell.number) if cell is not None else (path, None)
    spot = Spot(name, first + above, column, last + above if end else 0, end, number)
    return Site(spot, text, receiver_of(text), path, in_library, _scope(code, above), above)


def code_at(spot: Spot) -> str:
    """Return what stands there: of several statements in a line, the one that is meant."""
    if spot.cell is not None:
        return ""
    end = spot.end_column - 1 if spot.end_line == spot.line else None
    return linecache.getline(spot.path, spot.line)[spot.column - 1 : end].strip()


def _scope(code: CodeType, above: int) -> tuple[int, int] | None:
    if code.co_name == "<module>":
        return None
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return code.co_firstlineno + above, max(lines, default=code.co_firstlineno) + above


def _position(positions: Any, index: int) -> tuple[int, int, int, int] | None:
    for n, (line, end_line, column, end_column) in enumerate(positions):
        if n == index:
            if None in (line, end_line, column, end_column):
                return None
            return line, end_line, column + 1, end_column + 1
    return None


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _text_between(lines: Sequence[str], first: int, last: int, column: int, end: int) -> str:
    found = [_line(lines, number).rstrip("\n") for number in range(first, last + 1)]
    if not any(found):
        return ""
    # Positions count bytes of UTF-8.
    encoded = [line.encode(errors="replace") for line in found]
    encoded[-1] = encoded[-1][: end - 1]
    encoded[0] = encoded[0][column - 1 :]
    parts = [part.decode(errors="replace").strip() for part in encoded]
    return " ".join(part for part in parts if part)


def _character(lines: Sequence[str], number: int, column: int) -> int:
    """Return which character of the line a column is; Python counts bytes of UTF-8."""
    text = _line(lines, number)
    if column < 1 or text.isascii():
        return column
    return len(text.encode(errors="replace")[: column - 1].decode(errors="replace")) + 1


_OWN = re.compile("step|zero|clear|scale|update|optim")  # methods of optimizers and scalers
_CALL = re.compile(r"([\w.\[\]'\"]+)\.(?:step|zero_grad|backward|update|unscale_|scale)\s*\(")


def receiver_of(text: str) -> str:
    """Return what the last method of `text` is called on, if that is a plain name.

    Not of a call with a training inside: in `trainer.fit(data)` no optimizer is named.
    """
    try:
        node: ast.AST = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        found = _CALL.search(text)
        return found.group(1) if found else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("step", "unscale_") and node.args and "scaler" in text.lower():
            return ""  # scaler.step(opt): the optimizer is the argument, see `argument_of`
        return _plain(node.func.value) if _OWN.search(node.func.attr) else ""
    return ""


def argument_of(text: str) -> str:
    """Return the first argument of the call in `text`, if that is a plain name.

    Of a method that is known to take an optimizer: `scaler(loss, opt)` may take anything.
    """
    try:
        node: ast.AST = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return _plain(node.args[0]) if _OWN.search(node.func.attr) else ""
    return ""


def _plain(node: ast.expr) -> str:
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return ast.unparse(node) if isinstance(inner, ast.Name) else ""


NOWHERE = Site(Spot("<unknown>", 1), "", "", "<unknown>")
