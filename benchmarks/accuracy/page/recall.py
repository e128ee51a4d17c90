"""Finding faults: the part of the page about code that was broken on purpose."""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy.page.inputs import PARTS, of_part, percent

INTRODUCTION = """\
## Finding faults

Every function with a backward, a step and a clear is broken in ten ways, each a small edit of
whole lines. Which functions count is decided by a script that shares no code with the checker;
copies of a function count once. A mutant is found only if the right rule is named at the right
line, which is the line to change, or the step that comes to harm where that line is gone:

| how it is broken | rule | line |
|---|---|---|
| clear deleted | ZG101 | a step; with a closure its backward |
| clear hoisted, put under a condition | ZG101; ZG201 where another's loss leaks in | a step |
| one of two clears deleted | ZG101; ZG201 where another's loss leaks in | a step of its own |
| clear between backward and step | ZG102 | the clear |
| call parentheses dropped | ZG103 | the call |
| step guarded, clear not | ZG501 | the clear |
| unscale deleted before a clip | ZG301 | the clip |
| update deleted | ZG302 | the scaler's step |
| step before backward | ZG102 after a clear has thrown them away, else ZG401 | the step |

Nothing else counts, whatever the trail of a finding tells; nor does a finding that is there
without the mutation. Two edits are not made. A clear is not put under a branch between a loss and
its step: that is another row of the table. And a step is not given a window where another
optimizer steps on the same single loss: what is cleared there has been used.

A mutant is left out of the filtered figure only if a brute-force interpreter has executed it on
every path and the fault does not occur. Executions are bounded by counts, so that every machine
comes to the same verdict; what is past the bound is *undecided* and stays in.
"""


def recall_section() -> list[str]:
    """Return the newest part whole, and a row for each of the others."""
    measured = [(part, result) for part in PARTS if (result := of_part("accuracy", part))]
    if not measured:
        return []
    newest, result = measured[-1]
    return [INTRODUCTION, *_whole(newest, result), *_rows(measured)]


def _whole(part: str, result: dict[str, Any]) -> list[str]:
    total = result["recall"]["all"]
    equivalent = len(result["equivalent"])
    before = len(result.get("said_before", ()))
    lines = [
        f"The newest part, {part}, measured before any of its misses was read: "
        f"{result['training_files']} training files, {result['training_units']} distinct training "
        f"functions ({result['copies_left_out']} copies left out), {total['mutants']} mutants. "
        f"{result.get('sample', '')}".rstrip(),
        "",
        "| how it is broken | mutants | found | raw | equivalent | filtered |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind, row in result["recall"].items():
        if row["mutants"]:
            name = "**all**" if kind == "all" else kind.replace("-", " ")
            lines.append(
                f"| {name} | {row['mutants']} | {row['found']} | {percent(row['raw_recall'])} "
                f"| {row['equivalent']} | {percent(row['filtered_recall'])} |"
            )
    lines += [
        "",
        f"Left out as equivalent: {equivalent} "
        f"({percent(equivalent / max(1, total['mutants']))}). "
        f"Undecided, and kept: {total.get('undecided', 0)}."
        + (f" Said without the mutation too, and in neither figure: {before}." if before else ""),
        "",
    ]
    return lines


def _rows(measured: list[tuple[str, dict[str, Any]]]) -> list[str]:
    kinds = [kind for kind in measured[-1][1]["recall"] if kind != "all"]
    short = [kind.replace("-", " ").replace("backward and step", "both") for kind in kinds]
    lines = [
        "All parts that were measured, filtered, in percent, each with the checker of its day; "
        "misses of earlier parts have served to mend it. What was left out as equivalent is "
        "listed in `benchmarks/results/accuracy_PART.json`.",
        "",
        f"| part | mutants | all, raw | all | {' | '.join(short)} |",
        "|---|--:|--:|--:|" + "--:|" * len(kinds),
    ]
    for part, result in measured:
        table = result["recall"]
        total = table["all"]
        cells = [
            f"{100 * row['filtered_recall']:.1f}" if row["mutants"] else ""
            for row in (table.get(kind, {"mutants": 0}) for kind in kinds)
        ]
        lines.append(
            f"| {part} | {total['mutants']} | {100 * total['raw_recall']:.1f} "
            f"| {100 * total['filtered_recall']:.1f} | {' | '.join(cells)} |"
        )
    return [*lines, ""]
