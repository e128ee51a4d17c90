"""What came of a check: the findings, and everything else that there is to tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding, in_order
from zerograd.rules.stale_gradient import told_where_cleared
from zerograd.static.allow import Use, without_used


@dataclass(slots=True)
class Fixed:
    """A file with its fixes, and what it takes to do without them."""

    data: bytes  # the new content
    count: int  # fixes in it
    before: list[Finding]
    after: list[Finding]


@dataclass(slots=True, repr=False)
class Checked:
    """What came of one file, or of many: iterate over it for the findings."""

    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # what could not be checked, a line each
    crashes: list[str] = field(default_factory=list)  # our own faults, with their tracebacks
    files: int = 0  # read
    paths: set[str] = field(default_factory=set)  # of these, those that were looked into
    analysed: int = 0  # of these, with training code
    unresolved: int = 0  # calls that could not be told
    fixed: dict[str, Fixed] = field(default_factory=dict)  # by path
    used: set[Use] = field(default_factory=set)  # allow comments that silenced something
    hidden: set[tuple[str, Spot]] = field(default_factory=set)  # notes that nobody asked for
    unshown: list[Finding] = field(default_factory=list)  # all that nobody asked for

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        counts = {"findings": len(self), "files": self.files, "problems": len(self.problems)}
        counts["crashes"] = len(self.crashes)
        told = [f"{name}={number}" for name, number in counts.items() if number or name == "files"]
        return f"<Checked {' '.join(told)}>"

    @property
    def fixes(self) -> int:
        return sum(each.count for each in self.fixed.values())

    def add(self, other: Checked) -> None:
        self.findings += other.findings
        self.problems += other.problems
        self.crashes += other.crashes
        self.files += other.files
        self.paths |= other.paths
        self.analysed += other.analysed
        self.unresolved += other.unresolved
        self.fixed |= other.fixed
        self.used |= other.used
        self.hidden |= other.hidden
        self.unshown += other.unshown

    def put_in_order(self) -> None:
        """Bring what came of several files together: each fault once, by its place."""
        findings = without_used(self.findings, self.used)
        # A fault in a module is found from each file that uses it: the surest is told, and of
        # these one that can be fixed.
        findings.sort(key=lambda finding: (not finding.certain, finding.fix is None))
        self.findings = in_order(told_where_cleared(findings))
        self.problems = sorted(dict.fromkeys(self.problems))

    def unfix(self, path: str) -> None:
        """Take back the fixes of a file that could not be written: it is as it was."""
        fixed = self.fixed.pop(path)
        self.findings = [each for each in self.findings if each not in fixed.after]
        self.findings += fixed.before
        self.put_in_order()
