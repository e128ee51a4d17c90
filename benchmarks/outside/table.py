"""The tables of docs/explanation/outside-proof.md, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.outside.programs import CASES, CLEAN, EXAMPLES, NOT_RUN, PROGRAMS

_ROOT = Path(__file__).resolve().parents[2]
PAGE = _ROOT / "docs" / "explanation" / "outside-proof.md"
RESULTS = _ROOT / "benchmarks" / "results" / "outside.json"


def write_tables(results: Mapping[str, Any]) -> None:
    """Put the tables between the marks of the page."""
    PAGE.write_text(page_of(results), encoding="utf-8")


def page_of(results: Mapping[str, Any]) -> str:
    """Return the page with its tables as these results have them."""
    text = PAGE.read_text(encoding="utf-8")
    for group in (CLEAN, CASES, EXAMPLES):
        begin, end = f"<!-- {group} -->\n", f"<!-- end of {group} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + begin + "\n" + _table(group, results) + "\n" + end + after
    return text


def _table(group: str, results: Mapping[str, Any]) -> str:
    lines = ["| program | findings | exit code | output |", "|---|---|---|---|"]
    left_out = list(NOT_RUN[group])
    for program in PROGRAMS:
        result = results.get(f"{group}: {program.name}")
        if program.group != group:
            continue
        if result is None or "why" in result:
            why = result["why"] if result else "not run yet"
            left_out.append(f"`{program.name}`: {why}.")
            continue
        cells = (f"`{program.name}`", _findings(result), _codes(result), _output(result))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", "Not run:", "", *(f"- {each}" for each in left_out), ""])


def _findings(result: Mapping[str, Any]) -> str:
    found = result["findings"] or ()
    return "; ".join(f"{code} at `{place}`, {n} times" for code, place, n in found) or "none"


def _codes(result: Mapping[str, Any]) -> str:
    plain, watched = result["plain"], result["watched"]
    if plain != watched:
        return f"{plain}, watched {watched}"
    why = f" (`{result['last'][0][:60]}`)" if result.get("last") else ""
    return f"{plain}{why}, the same"


def _output(result: Mapping[str, Any]) -> str:
    if result["same"] is None:
        return "not compared: no two runs are alike"
    return "the same" if result["same"] else "DIFFERS"
