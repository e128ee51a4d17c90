"""When two findings, one of each witness, are one.

Same code and same line, or one of the pairs listed here, each with its reason. A pair of
codes is listed only where the two witnesses see the same fault and rightly know different
things about it.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerograd.lifecycle.findings import Finding

UNSTEPPED = "nothing steps "  # as the advice at a step of the wrong one of two optimizers ends


@dataclass(frozen=True, slots=True)
class Said:
    """A finding, reduced to what the two witnesses share."""

    code: str
    line: int
    certain: bool
    lines: frozenset[int]  # its own and those of its trail
    owner: str = ""
    meant: str = ""  # the optimizer that nothing steps, and that was meant at this step

    @classmethod
    def of(cls, finding: Finding, path: str) -> Said:
        """Take the lines of the program; its line is 0 where it stands in another file."""
        spots = [finding.spot, *(step.spot for step in finding.trail)]
        lines = frozenset(spot.line for spot in spots if spot.path == path)
        line = finding.spot.line if finding.spot.path == path else 0
        _, _, meant = finding.advice.partition(UNSTEPPED)
        return cls(finding.rule.code, line, finding.certain, lines, finding.owner, meant)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two names of one fault."""

    read: str  # what the checker calls it
    seen: str  # what the live witness calls it
    # "line": both point at it; "trail": they name a line both; "owner": they name one optimizer;
    # "meant": reading advises to step the one that the run names; "code": nothing
    shares: str
    why: str
    confirms: bool = True  # is what was read seen live by this? If not, it only explains what was

    @property
    def name(self) -> str:
        return f"{self.read} read, {self.seen} seen"


PAIRS = (
    Pair(
        "ZG102",
        "ZG401",
        "trail",
        "the same empty step: reading knows of a path on which a loss was thrown away before it, "
        "this run took another",
        confirms=False,
    ),
    Pair(
        "ZG401",
        "ZG102",
        "trail",
        "the same empty step: this run threw a loss away before it, on every path that is not so",
        confirms=False,
    ),
    Pair(
        "ZG102",
        "ZG102",
        "trail",
        "a clear by hand leaves no call, so its line is looked up in the source near by: where "
        "several are written, another of them may be named, or the step",
    ),
    Pair(
        "ZG501",
        "ZG501",
        "trail",
        "the same: a clear by hand may be named by the line of another one",
    ),
    Pair(
        "ZG102",
        "ZG501",
        "line",
        "a clear of what a step, left out in some rounds, has not used: two such rounds alike look "
        "like windows to the run",
        confirms=False,
    ),
    Pair(
        "ZG302",
        "ZG302",
        "owner",
        "an update that is owed: of several steps of one optimizer either may be named",
    ),
    Pair(
        "ZG303",
        "ZG303",
        "owner",
        "a scale that is left in: reading names the unscale_ that came too late for the last "
        "loss, the run the step that leaves it in",
    ),
    Pair(
        "ZG203",
        "ZG203",
        "code",
        "of several clears of one optimizer either may be named",
    ),
    Pair(
        "ZG505",
        "ZG505",
        "code",
        "of several backwards of one window either may be named",
    ),
    Pair(
        "ZG504",
        "ZG203",
        "code",
        "a guard that never holds: reading names the guard, the run only sees that nothing steps",
    ),
    *(
        Pair(
            code,
            "ZG203",
            "meant",
            "a step of the wrong one of two optimizers: reading tells it once, where the other is "
            "stepped twice, the run also tells that this one is never stepped",
            confirms=False,
        )
        for code in ("ZG101", "ZG402")
    ),
    Pair(
        "ZG101",
        "ZG201",
        "line",
        "a step on leftovers of two kinds: in the first round only another optimizer's, from "
        "the second on its own too, and reading tells the lasting fault",
    ),
)
EXACT = "same code and line"


def sameness(read: Said, seen: Said, *, confirming: bool = False) -> str:
    """Return why these two are one finding, or nothing if they are not.

    With `confirming` it is asked whether what was read has been seen, else whether what was seen
    has been read.
    """
    if read.code == seen.code and read.line == seen.line:
        return EXACT
    for pair in PAIRS:
        if (read.code, seen.code) != (pair.read, pair.seen):
            continue
        if not pair.confirms and (confirming or (read.certain and read.code == "ZG401")):
            continue
        if pair.shares == "code":
            return pair.name
        if pair.shares == "line" and read.line == seen.line:
            return pair.name
        if pair.shares == "owner" and read.owner == seen.owner:
            return pair.name
        if pair.shares == "meant" and read.meant and read.meant == seen.owner:
            return pair.name
        if pair.shares == "trail" and read.lines & seen.lines:
            return pair.name
    return ""
