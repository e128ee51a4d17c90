"""What a reporter is, and the names under which the command line offers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TextIO

from zerograd.errors import UsageError

if TYPE_CHECKING:  # `--help` asks for the names alone, and need not wait for these
    from zerograd.lifecycle.findings import Finding
    from zerograd.report.excerpt import Source

# name -> what it is for, as `--help` tells it
FORMATS = {
    "text": "for people: the source, how it came about, what to do",
    "concise": "one line a finding",
    "json": "an array of objects, a superset of ruff's",
    "sarif": "SARIF 2.1.0, for code scanning",
    "github": "annotations for GitHub Actions",
}


class Closing(NamedTuple):
    """What the last line of `text` says beside the count."""

    words: str = ""  # what was read, or watched
    hidden: int = 0  # notes that were found and not asked for
    ended: str = ""  # how the script ended, if not well: "The script ended with NameError"
    new: bool = False  # only what a baseline does not hold was shown


NOTHING_MORE = Closing()


class Reporter(Protocol):
    """Writes findings in the order given. It sorts nothing, hides nothing, decides nothing."""

    def write(self, findings: Sequence[Finding], out: TextIO) -> None: ...


def make_reporter(
    name: str,
    *,
    color: bool = False,
    width: int = 100,
    source: Source | None = None,
    closing: Closing = NOTHING_MORE,
) -> Reporter:
    """Return the reporter of that name.

    Args:
        source: where excerpts come from, the files unless told; called only for lines
            that are shown.
        closing: what the last line of `text` says beside the count. The formats
            that programs read do not carry it.
    """
    if name == "text":
        from zerograd.report.excerpt import read_source
        from zerograd.report.terminal import TerminalReporter

        source = source or read_source
        return TerminalReporter(color=color, width=width, source=source, closing=closing)
    if name == "concise":
        from zerograd.report.concise import ConciseReporter

        return ConciseReporter()
    if name == "json":
        from zerograd.report.json import JsonReporter

        return JsonReporter()
    if name == "sarif":
        from zerograd.report.sarif import SarifReporter

        return SarifReporter()
    if name == "github":
        from zerograd.report.github import GithubReporter

        return GithubReporter()
    raise UsageError(f"--format {name}: there is no such format.\n  Choose: {', '.join(FORMATS)}.")
