"""Write docs/explanation/accuracy.md and accuracy-findings.md from benchmarks/results.

    python -m benchmarks.accuracy.page

The figures come from files that the benchmarks wrote; the labels of findings on untouched
code come from `labels.toml`, made by reading the code. No figure on the pages is typed by hand.
"""

from __future__ import annotations

from benchmarks.accuracy.corpus import read_corpus
from benchmarks.accuracy.page.inputs import ROOT, load
from benchmarks.accuracy.page.recall import recall_section
from benchmarks.accuracy.page.reports import report_rows, reports_section
from benchmarks.accuracy.page.rivals import rivals_section
from benchmarks.accuracy.page.silence import labelled, silence_section
from benchmarks.accuracy.page.speed import speed_section
from benchmarks.accuracy.page.summary import summary
from benchmarks.accuracy.rewrites.section import rewrites_section

DOCS = ROOT / "docs" / "explanation"

INTRODUCTION = """\
# How accurate `zerograd check` is, and how fast

Two questions, measured on public training code: does it find a fault that is there, and does it
stay silent where there is none? The corpus is {repositories} repositories in parts, named with
their commits in `benchmarks/accuracy/corpus.toml`; none of their code is in this project. The
*development* parts were open to the authors of the checker while they worked. The others were
first run when it was finished, and have served to mend it since: believe first runs.
"""
AGAIN = """\
## Doing it again

`make bench-accuracy`, `make bench-originals`, `make bench-rewrites` and `make bench-check-speed`
measure again; `python -m benchmarks.accuracy.page` writes this page. Findings that are true as
stated but harmless, false alarms and every bug report have
[a page of their own](accuracy-findings.md).
"""
FINDINGS = """\
# Every finding and every report

What [the page on accuracy](accuracy.md) counts, one by one. True bugs are listed there.
"""


def accuracy() -> str:
    """Return the page's text from whatever results are there."""
    lines = [INTRODUCTION.format(repositories=len(read_corpus())), *summary()]
    lines += [*recall_section(), *silence_section()]
    for name, section in (
        ("bug_reports.json", reports_section),
        ("rewrites.json", rewrites_section),
        ("accuracy_rivals.json", rivals_section),
        ("check_speed.json", speed_section),
    ):
        result = load(name)
        lines += section(result) if result is not None else []
    lines += [AGAIN, "## True bugs found in public code", "", *labelled("true")]
    return "\n".join(lines) + "\n"


def findings() -> str:
    """Return the text of the page that lists what the other one counts."""
    reports = load("bug_reports.json")
    lines = [FINDINGS, "## False alarms", "", *labelled("false"), ""]
    lines += ["## True as stated, but harmless or intended", "", *labelled("arguable"), ""]
    lines += ["## Bug reports", "", *(report_rows(reports) if reports is not None else [])]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    for name, text in (("accuracy.md", accuracy()), ("accuracy-findings.md", findings())):
        (DOCS / name).write_text(text, encoding="utf-8")
        print((DOCS / name).relative_to(ROOT))


if __name__ == "__main__":
    main()
