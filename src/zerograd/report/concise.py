"""One line a finding: for editors, grep and people in a hurry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from zerograd.lifecycle.findings import Finding
from zerograd.report.excerpt import visible


class ConciseReporter:
    """Write `path:line:col: code name: message`, one line each."""

    def write(self, findings: Sequence[Finding], out: TextIO) -> None:
        for finding in findings:
            rule = finding.rule
            line = f"{finding.spot}: {rule.code} {rule.name}: {finding.message}"
            out.write(visible(line) + "\n")
