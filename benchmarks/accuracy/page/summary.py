"""The figures in short: what was aimed at, what was measured, and on what."""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy.page.inputs import PARTS, load, of_part, percent
from benchmarks.accuracy.page.reports import found_at_once, reports_of, wholly_new
from benchmarks.accuracy.page.silence import false_per_500

FEW = 10  # mutants of a kind: below that a share says nothing
ENOUGH = 100  # reports, for a figure of them


def summary() -> list[str]:
    """Return one row for each question, from the newest code that the checker had not met."""
    lines = [
        "## In short",
        "",
        "| asked | aim | measured | on |",
        "|---|---|---|---|",
        *_silence(),
        *_recall(),
        *_reports(),
        *_speed(),
    ]
    return [*lines, ""]


def _silence() -> list[str]:
    runs = [run for run in load("originals_first_run.json") or [] if "held-out" in run["part"]]
    if not runs:
        return []
    files = sum(run["training_files"] for run in runs)
    wrong = sum(false_per_500(run) * run["training_files"] / 500 for run in runs)
    last = runs[-1]
    return [
        f"| false alarms in 500 training files | 1 | {false_per_500(last):.1f} | {last['part']}, "
        f"first run ({last['findings']} findings in {last['training_files']} files) |",
        f"| the same | 1 | {500 * wrong / files:.1f} | all {len(runs)} held-out parts, each on its "
        f"first run ({files} files) |",
    ]


def _recall() -> list[str]:
    measured = [(part, result) for part in PARTS if (result := of_part("accuracy", part))]
    if not measured:
        return []
    part, result = measured[-1]
    rows = {kind: row for kind, row in result["recall"].items() if row["mutants"] >= FEW}
    least = min(rows, key=lambda kind: rows[kind]["filtered_recall"])
    return [
        f"| broken loops found at the line | 98 % of each kind "
        f"| {percent(rows['all']['filtered_recall'])} of all, "
        f"{percent(rows[least]['filtered_recall'])} of the hardest kind "
        f"({least.replace('-', ' ')}) | {part}, before its misses were read |"
    ]


def _reports() -> list[str]:
    """Return what the newest sets gave that hold a hundred reports together: one is too small."""
    result = load("bug_reports.json")
    if result is None:
        return []
    last = first = max(each["set"] for each in result["reports"])
    rows = wholly_new(reports_of(result, last, "held-out"))
    while len(rows) < ENOUGH and first > 1:
        first -= 1
        rows += wholly_new(reports_of(result, first, "held-out"))
    tricky = [result["tricky"][str(number)]["held-out"] for number in range(first, last + 1)]
    flagged, files = (sum(each[key] for each in tricky) for key in ("flagged", "files"))
    sets = f"sets {first} to {last}, held out, each on its first run"
    return [
        f"| real bug reports found at the line | three in four | {found_at_once(rows)} "
        f"| {sets}, wholly new |",
        f"| correct but tricky files flagged | none | {flagged} of {files} | {sets} |",
    ]


def _speed() -> list[str]:
    result: dict[str, Any] | None = load("check_speed.json")
    if result is None:
        return []
    examples = result["examples"]["timings"]["zerograd"]["cpu_median_s"]
    mixed = result["mixed"]["timings"]
    return [
        f"| pytorch/examples, CPU seconds with start-up | 0.5 | {examples} "
        f"| {_files(result, 'examples')} |",
        f"| training files a second and core | 150 | {result['training']['files_per_cpu_second']} "
        f"| {_files(result, 'training')} |",
        f"| mixed tree, wall seconds | ruff's {mixed['ruff check --no-cache']['wall_median_s']} "
        f"| {mixed['zerograd']['wall_median_s']} | {_files(result, 'mixed')} |",
    ]


def _files(result: dict[str, Any], part: str) -> str:
    return f"{result[part]['files']} files"
