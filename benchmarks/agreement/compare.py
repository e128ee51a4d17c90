"""What each witness says of one program, and where the two do not agree.

Two things are demanded. What `check` reports for certain is seen live, in some
surroundings in which the lines that it names ran often enough. What is seen live is
told by `check --may`, or the program holds something that `check` counts as unresolved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.agreement.live import Run, Surroundings, run, surroundings
from benchmarks.agreement.same import Said, sameness
from zerograd.lifecycle.rule import Witness
from zerograd.rules import ALL_RULES
from zerograd.static.check import Asked, Checker

NOTES = ("ZG502", "ZG503", "ZG505")
WORSE = frozenset({"ZG101", "ZG102", "ZG201", "ZG401", "ZG402", "ZG501", "ZG504"})
RAISING = ("ZG104", "ZG302")  # faults that torch itself ends the run for
MORE_DRAWS = 12  # of the data, before a finding of the checker counts as not seen
ASKED = Asked(may=True, notes=True, offer=False)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One thing that the witnesses do not agree on."""

    kind: str  # "not seen live", "not read"
    code: str
    line: int
    where: Surroundings | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.code


@dataclass(slots=True)
class Comparison:
    """All that came of one program."""

    read: list[Said] = field(default_factory=list)
    seen: list[Said] = field(default_factory=list)
    unresolved: int = 0
    runs: int = 0
    errors: list[str] = field(default_factory=list)
    confirmed: list[Said] = field(default_factory=list)  # certain, and seen live
    not_run: list[Said] = field(default_factory=list)  # certain, but that path never ran
    only_static: list[Said] = field(default_factory=list)
    only_live: list[Said] = field(default_factory=list)
    matched: list[Said] = field(default_factory=list)  # seen live, and read
    covered: list[Said] = field(default_factory=list)  # notes on what is worse anyway
    # steps on what nothing ever filled, cleared by hand only: that leaves no trace to see
    traceless: list[Said] = field(default_factory=list)
    excused: list[Said] = field(default_factory=list)  # seen live, and counted as unresolved
    ways: Counter[str] = field(default_factory=Counter)  # how findings were found to be one
    disagreements: list[Disagreement] = field(default_factory=list)


def read(text: str, path: str) -> tuple[list[Said], int]:
    """Return what the static witness says, with all that it doubts."""
    checked = Checker(ASKED).check_text(text, path)
    return [Said.of(finding) for finding in checked.findings], checked.unresolved


def compare(text: str, path: str = "program.py") -> Comparison:
    """Read and run one program."""
    result = Comparison()
    result.read, result.unresolved = read(text, path)
    text = as_meant(text, result.read)
    at: dict[tuple[str, int], Surroundings] = {}
    seen: dict[tuple[str, int], Said] = {}
    for where in surroundings(text):
        _take(run(text, path, where), where, result, seen, at)
    certain = [said for said in result.read if said.certain and said.code not in STATIC_ONLY]
    result.only_static = [said for said in result.read if said.code in STATIC_ONLY]
    missing = [said for said in certain if not _way_to_live(said, seen.values())]
    result.covered = [said for said in missing if _is_covered(said, result.read, seen.values())]
    missing = [said for said in missing if said not in result.covered]
    if missing and "x.sum() >" in text:
        for where in surroundings(text, MORE_DRAWS):
            if where.data >= 3 and missing:
                _take(run(text, path, where), where, result, seen, at)
                missing = [said for said in missing if not _way_to_live(said, seen.values())]
    told = [said for said in certain if said not in result.covered]
    result.confirmed = [said for said in told if said not in missing]
    for said in missing:
        _explain_silence(said, text, path, result)
    result.seen = list(seen.values())
    for (code, line), said in seen.items():
        way = next(filter(None, (sameness(each, said) for each in result.read)), "")
        if code in LIVE_ONLY:
            result.only_live.append(said)
        elif way:
            result.matched.append(said)
            result.ways[way] += 1
        elif _is_covered(said, result.read, result.seen):
            result.covered.append(said)
        elif result.unresolved:
            result.excused.append(said)
        else:
            result.disagreements.append(Disagreement("not read", code, line, at[code, line]))
    return result


def as_meant(text: str, read: list[Said]) -> str:
    """Return the program with every method called that was only named (ZG103).

    To all other rules it counts as called, so that is the program to run.
    """
    lines = text.splitlines()
    for said in read:
        if said.code == "ZG103":
            lines[said.line - 1] += "()"
    return "\n".join(lines) + "\n"


def _way_to_live(said: Said, seen: Iterable[Said]) -> bool:
    return any(sameness(said, each, confirming=True) for each in seen)


def _explain_silence(said: Said, text: str, path: str, result: Comparison) -> None:
    """Why was a certain finding not seen live: did its path not run, or do the two disagree?

    A program that raises at one of the lines concerned may have cut just that path short.
    """
    ran = traceless = False
    for where in surroundings(text, MORE_DRAWS):
        outcome = run(text, path, where, traced=True)
        if outcome.error_line in said.lines and said.code not in RAISING:
            result.not_run.append(said)
            return
        if _ran_often(said, outcome):
            ran = True
            traceless |= said.code == "ZG401" and said.line in outcome.never_filled
    if traceless:
        result.traceless.append(said)
    elif ran:
        result.disagreements.append(Disagreement("not seen live", said.code, said.line))
    else:
        result.not_run.append(said)


def _ran_often(said: Said, outcome: Run) -> bool:
    """Did all lines that a finding names run twice after the first, which is always innocent?

    A window that is cleared early needs steps to be one, a tail needs epochs, what is judged at
    the end needs an end, and an absent gradient ends the run.
    """
    least = {"ZG104": 1, "ZG302": 2, "ZG502": 4}.get(said.code, 3)
    if said.code == "ZG501" and max(outcome.steps.values(), default=0) < 3:
        return False
    return all(outcome.lines[line] >= least for line in said.lines)


def _take(
    outcome: Run,
    where: Surroundings,
    result: Comparison,
    seen: dict[tuple[str, int], Said],
    at: dict[tuple[str, int], Surroundings],
) -> None:
    result.runs += 1
    if outcome.error:
        result.errors.append(outcome.error)
    for finding in outcome.findings:
        said = Said.of(finding)
        if (said.code, said.line) not in seen:
            seen[said.code, said.line] = said
            at[said.code, said.line] = where


def _is_covered(said: Said, read: list[Said], seen: Iterable[Said]) -> bool:
    """Is it a note on a window that has a worse fault?

    What a window holds is not worth a word where it is never cleared, stepped twice, or guarded
    by a condition that is wrong; each witness then counts in its own way.
    """
    return said.code in NOTES and any(
        other.code in WORSE and (said.line in other.lines or said.owner == other.owner)
        for other in (*read, *seen)
    )


def _codes(by: Witness) -> frozenset[str]:
    return frozenset(rule.code for rule in ALL_RULES if rule.seen_by == by)


STATIC_ONLY = _codes(Witness.STATIC)
LIVE_ONLY = _codes(Witness.RUNTIME)
