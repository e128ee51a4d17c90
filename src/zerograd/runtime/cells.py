"""Notebooks: which cell a piece of code is of, and where in that cell it begins.

A cell magic takes its line off the cell and runs the rest: `%%capture` as a cell of its own, with
the number that the next one will have, `%%time` as code of no file at all.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from dataclasses import dataclass
from types import CodeType
from typing import Any

# What `%%time` calls the code that it runs.
TIMED = re.compile(r"<timed (?:exec|eval)>")


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of code in a notebook."""

    notebook: str
    number: int
    above: int = 0  # lines of the cell that stand above it
    lines: tuple[str, ...] = ()  # its own, where it has no file that Python knows of


def cell_of(code: CodeType) -> Cell | None:
    """Return the cell that the code is of, None outside notebooks."""
    path = code.co_filename
    shell = sys.modules.get("IPython")
    if shell is None:
        return None
    ipython: Any = shell.get_ipython()
    numbers = getattr(getattr(ipython, "compile", None), "_filename_map", None) or {}
    is_timed = TIMED.fullmatch(path) is not None
    if not numbers or not (is_timed or path in numbers):
        return None
    named = ipython.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    name = str(named or "notebook")
    typed = list(getattr(getattr(ipython, "history_manager", None), "input_hist_raw", ()))
    if is_timed:
        number = next((n for n in reversed(range(len(typed))) if _may_hold(typed[n], code)), 0)
        above, rest = _without_magics(typed[number]) if typed else (0, "")
        return Cell(name, number, above, tuple(rest.splitlines(keepends=True)))
    number = int(numbers[path])
    text = "".join(linecache.getlines(path)).strip()
    for before in (number, number - 1):
        above, rest = _without_magics(typed[before] if before < len(typed) else "")
        if text and _as_run(rest, ipython) == text:
            return Cell(name, before, above)
    return Cell(name, number)


def _may_hold(typed: str, code: CodeType) -> bool:
    """Is it a cell that `%%time` may have run this code of? A function may be called later."""
    above, rest = _without_magics(typed)
    is_function = not code.co_name.startswith("<")
    return above > 0 and (not is_function or f"def {code.co_name}(" in rest)


def _as_run(typed: str, ipython: Any) -> str:
    try:
        return str(ipython.transform_cell(typed)).strip()
    except Exception:  # a transformer of the user's own
        return ""


def _without_magics(typed: str) -> tuple[int, str]:
    """Return how many lines a cell begins with that are magics or empty, and the rest.

    >>> _without_magics("%%capture\\n%%time\\nfit()"), _without_magics("\\nfit()")
    ((2, 'fit()'), (0, '\\nfit()'))
    """
    lines = typed.splitlines(keepends=True)
    above = next((n for n, line in enumerate(lines) if line.strip()[:2] not in ("", "%%")), 0)
    has_magic = any(line.startswith("%%") for line in lines[:above])
    return (above, "".join(lines[above:])) if has_magic else (0, typed)
