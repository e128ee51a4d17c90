"""Staying silent: the part of the page about code that nobody broke."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.accuracy.corpus import read_corpus
from benchmarks.accuracy.page.inputs import PARTS, load, of_part, read_labels

_REMARKS = (
    "One file of sixth-held-out (lucidrains/audiolm-pytorch, `trainer.py`) also stood in the "
    "sixth set of bug reports, was flagged there falsely and mended an hour before the run. It "
    "is counted in the figure for 500 files, beside the one that was said.",
    "Of the 23 false ones of eighth-held-out 16 are one cause in one repository: a closure "
    "whose backward its own optimizer switches on. Of the 4 of ninth-held-out two are one "
    "notebook and its copy. Of the 7 of tenth-held-out two are a fault that another error hides: "
    "the function ends with a NameError before it could show. The 17 of eleventh-development "
    "stand in 12 files of 7 repositories, eleven of them by two causes; of the 10 of "
    "eleventh-held-out eight are one cause in one repository: a base class that was written with "
    "its module, and whose loop clears, was not read.",
    "Of the 5 of twelfth-held-out two are one loop, repeated as often as a setting of 1 says, and "
    "two stand behind a line that raises; of those two one of the readers called both arguable. "
    "Of the 3 of thirteenth-held-out two are one pair of optimizers; nine of the 11 arguable ones "
    "are benchmarks of one repository that time a step, or warm up, on purpose. The 4 of "
    "fifteenth-held-out are one notebook and one cause: columns of a gradient that are zeroed by "
    "hand, all but this round's; two of its true ones stand behind another error.",
    "Nothing was said of sixteenth-held-out, which is small: a checker with ten false alarms "
    "in 500 files would be silent on one such part in twenty. The five newest held-out parts, "
    "the fifteenth to the twenty-first, together give 3.3 in 500 (7 in 1,045 files, of four "
    "causes). Other code was first read on the way, by the author of the mending: older "
    "commits of 214 repositories, most of which stand in the corpus at a later one (22 "
    "findings, one of them false, in 885 files), and 289 packages as they are published (18 "
    "findings, 3 of them false, in 626 files).",
    "Of the 3 of nineteenth-development two are one cause: optimizers in one of two dicts "
    "that a function may return. The eight arguable ones of twentieth-held-out are one shape "
    "in one repository, a clear before the backward under Accelerate's `accumulate()`, which "
    "drops windows of more than one round; it is configured for one. Of its two false ones "
    "one stands where a window is known to be of one round, and is silent since, the other in "
    "a function that cannot run.",
    "The one of twenty-first-held-out is a schedule called `transition_optim_secheduler`, known "
    "by what makes it since. Of its arguable ones the two readers gave two a different verdict "
    "(a gradient read before the first backward, in a notebook that an early release ran). Nine "
    "of the 15 true ones are one line in nine trainers of one repository.",
)

_LABELLED = (
    "What is said now, after that served to mend the checker too. Findings are read and labelled "
    "by someone who did not write the rules, given the file and the question only; those of the "
    "third parts and of most development parts from the fourth on by the one who then mended "
    "the checker, and so were three that came up later (prot-bert-finetune cell 22:59, fastformers "
    "815, DynaBERT 415). Each row is from the last time that part was run."
)


def silence_section() -> list[str]:
    """Return the table of first runs, and what is said of each part now."""
    lines = ["## Staying silent", "", *_first_runs(load("originals_first_run.json") or [])]
    lines += [_LABELLED, ""]
    lines += [
        "| part | repositories | training files | findings | true | arguable | false | unread |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    labels = read_labels()
    for part in PARTS:
        result = of_part("originals", part)
        if result is None:
            continue
        found = [labels.get(_place_and_code(text)) for text in result["findings"]]
        tally = Counter(label.verdict if label else "unread" for label in found)
        cells = " | ".join(str(tally[each]) for each in ("true", "arguable", "false", "unread"))
        lines.append(
            f"| {part} | {result['repositories']} | {result['training_files']} "
            f"| {len(found)} | {cells} |"
        )
    return [*lines, ""]


def labelled(verdict: str) -> list[str]:
    """Return a row for each finding on untouched code that has this verdict."""
    labels = read_labels()
    commits = {r.folder: (r.name, r.commit[:10]) for r in read_corpus()}
    rows = []
    for part in PARTS:
        for text in (of_part("originals", part) or {"findings": []})["findings"]:
            label = labels.get(_place_and_code(text))
            if label is None or label.verdict != verdict:
                continue
            folder, _, inside = label.place.partition("/")
            name, commit = commits.get(folder, (folder, ""))
            rows.append(f"- **{name}** `{commit}` `{inside}` {label.code}: {label.reason}")
    return rows or ["None labelled."]


def false_per_500(run: dict[str, Any]) -> float:
    """Return the false findings in 500 files, with those that were known and mended before."""
    wrong = run["labels"]["false"] + run.get("mended_beforehand", 0)
    return float(500 * wrong / run["training_files"])


def _first_runs(runs: list[dict[str, Any]]) -> list[str]:
    """Return the table of first runs, on code that nobody had run the checker on before."""
    lines = [
        "What the checker said the first time it was run on code that nobody had run it on before; "
        "each run was followed by mending what it showed.",
        "",
        "| first run on | repositories | training files | findings | true | arguable | false "
        "| false in 500 files | labelled by |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for run in runs:
        labels = run["labels"]
        lines.append(
            f"| {run['part']} | {run['repositories']} | {run['training_files']} "
            f"| {run['findings']} | {labels['true']} | {labels['arguable']} | {labels['false']} "
            f"| {false_per_500(run):.1f} | {run['labelled_by']} |"
        )
    for remark in _REMARKS:
        lines += ["", remark]
    return [*lines, ""]


def _place_and_code(text: str) -> tuple[str, str]:
    """Return the two of `path:line: code message` that labels are kept by."""
    place, rest = text.split(": ", 1)
    return place, rest.split(" ", 1)[0]
