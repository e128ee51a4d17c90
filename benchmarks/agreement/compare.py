"""What each witness says of one program, and where the two do not agree.

Two things are demanded. What `check` reports for certain is seen live, in some
surroundings in which the lines that it names ran often enough. What is seen live is
told by `check --may`, or the program holds something that `check` counts as unresolved.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.agreement.draft import OVERFLOW
from benchmarks.agreement.live import Run, Surroundings, run, surroundings
from benchmarks.agreement.same import Said, sameness
from zerograd.lifecycle.rule import Severity, Witness
from zerograd.lifecycle.window import SURE_OF_NO_GUARD
from zerograd.rules import ALL_RULES, BY_CODE
from zerograd.runtime.ledger import SURE_OF_A_WINDOW
from zerograd.static.check import Asked, Checker

NOTES = ("ZG502", "ZG503", "ZG505")
WORSE = frozenset({"ZG101", "ZG102", "ZG201", "ZG401", "ZG402", "ZG501", "ZG504"})
# With a wrong guard the windows are not those that are meant, nor does a step come that a scaler
# could have its say in; a clip for no step is in vain.
COVERING = {
    "ZG303": frozenset({"ZG504"}),
    "ZG304": frozenset({"ZG203"}),
    "ZG501": frozenset({"ZG504"}),
}
AT_THE_END = ("ZG203",)  # judged then, if the program ends by itself
RAISING = ("ZG104", "ZG302")  # faults that torch itself ends the run for
MORE_DRAWS = 12  # of the data, before a finding of the checker counts as not seen
# The faults that only the order of two acts makes: of a clear and a use, or of two uses.
ORDERED = ("ZG102", "ZG402")
ASKS_FOR_BAD_ONES = re.compile(r"\bis(nan|inf|finite)\(")
OF_FINITE_VALUES = ("ZG101", "ZG102", "ZG303", "ZG304", "ZG501")
MADE = re.compile(r"torch\.optim\.|Holder\(|\bdef |\btrain\w*\(")
COUNTED = re.compile(r"% \d|\bi > 0")
BY_HAND = re.compile(r"[-+]=.*\.grad\b|\.grad = g\b")
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
    # Done by hand, in a way that leaves no trace to see: steps on what nothing ever filled, and
    # in which order a gradient was cleared and used.
    traceless: list[Said] = field(default_factory=list)
    # Losses beside another one, dropped and never used: the run's own events show it. It says
    # nothing, since whoever reads `.grad` before the clear leaves no trace.
    wasted: list[Said] = field(default_factory=list)
    excused: list[Said] = field(default_factory=list)  # seen live, and counted as unresolved
    ways: Counter[str] = field(default_factory=Counter)  # how findings were found to be one
    disagreements: list[Disagreement] = field(default_factory=list)


def read(text: str, path: str) -> tuple[list[Said], int]:
    """Return what the static witness says, with all that it doubts."""
    checked = Checker(ASKED).check_text(text, path)
    return [Said.of(finding, path) for finding in checked.findings], checked.unresolved


def compare(text: str, path: str = "program.py") -> Comparison:
    """Read and run one program."""
    result = Comparison()
    result.read, result.unresolved = read(text, path)
    text = as_meant(text, result.read)
    at: dict[tuple[str, int], Surroundings] = {}
    seen: dict[tuple[str, int], Said] = {}
    for where in surroundings(text):
        _take(run(text, path, where), path, where, result, seen, at)
    certain = [said for said in result.read if said.certain and said.code not in STATIC_ONLY]
    result.only_static = [said for said in result.read if said.code in STATIC_ONLY]
    missing = [said for said in certain if not _way_to_live(said, seen.values())]
    result.covered = [said for said in missing if _is_covered(said, result.read, seen.values())]
    missing = [said for said in missing if said not in result.covered]
    if missing and "x.sum() >" in text:
        for where in surroundings(text, MORE_DRAWS):
            if where.data >= 3 and missing:
                _take(run(text, path, where), path, where, result, seen, at)
                missing = [said for said in missing if not _way_to_live(said, seen.values())]
    # A clear that throws away each micro-batch also leaves a step after the loop with nothing.
    cut = {each.line for each in certain if each.code == "ZG501" and each not in missing}
    result.covered += [each for each in missing if each.code == "ZG102" and each.line in cut]
    missing = [said for said in missing if said not in result.covered]
    told = [said for said in certain if said not in result.covered]
    result.confirmed = [said for said in told if said not in missing]
    result.seen = list(seen.values())
    for said in missing:
        _explain_silence(said, text, path, result)
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
        elif _is_only_live(said, text, result.errors):
            result.only_live.append(said)
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
            code, mark, comment = lines[said.line - 1].partition("  #")
            lines[said.line - 1] = f"{code}(){mark}{comment}"
    return "\n".join(lines) + "\n"


def _way_to_live(said: Said, seen: Iterable[Said]) -> bool:
    return any(sameness(said, each, confirming=True) for each in seen)


def _explain_silence(said: Said, text: str, path: str, result: Comparison) -> None:
    """Why was a certain finding not seen live: did its path not run, or do the two disagree?

    A program that raises may have cut just that path short.
    """
    if said.code == "ZG102" and "except" in text and _is_seen_bare(said, result.seen):
        result.not_run.append(said)  # the loss is lost where its own step raises
        return
    ran = traceless = False
    ending = {each.line for each in result.read if each.code == "ZG104"} - {said.line}
    for where in surroundings(text, MORE_DRAWS):
        outcome = run(text, path, where, traced=True)
        ran_often = _ran_often(said, outcome)
        cut_short = outcome.error_line in said.lines or said.code in AT_THE_END or not ran_often
        if said.code == "ZG104" and outcome.error_line in ending:
            result.not_run.append(said)  # another of these has ended it
            return
        if outcome.error and cut_short and said.code not in RAISING:
            result.not_run.append(said)
            return
        if ran_often:
            ran = True
            traceless |= said.code == "ZG401" and said.line in outcome.never_filled
            traceless |= said.code in ORDERED and _is_by_hand(said, text)
            if said.code == "ZG102" and outcome.wasted & said.lines:
                result.wasted.append(said)
                return
    if traceless:
        result.traceless.append(said)
    elif ran:
        result.disagreements.append(Disagreement("not seen live", said.code, said.line))
    else:
        result.not_run.append(said)


def _is_seen_bare(said: Said, seen: Iterable[Said]) -> bool:
    """Does the step of this finding find nothing, without a loss that was thrown away?"""
    return any(each.code == "ZG401" and each.line in said.lines for each in seen)


def _is_by_hand(said: Said, text: str) -> bool:
    """Is the step of this finding an update without an optimizer?"""
    lines = text.splitlines()
    return any(BY_HAND.search(lines[line - 1]) for line in said.lines)


def _is_idle(owner: str, text: str) -> bool:
    """Is this optimizer only made and handed on, never stepped or cleared?"""
    name = re.compile(rf"\b{re.escape(owner)}(_holder)?\b")
    spoken = [line for line in text.splitlines() if name.search(line)]
    return all(MADE.search(line) for line in spoken)


def _is_only_live(said: Said, text: str, errors: list[str]) -> bool:
    """Is it about what reading does not follow: optimizers left aside, the end by an exception?"""
    if errors and _is_last_word(said.line, text):
        return True
    return said.code in ("ZG203", "ZG301") and _is_idle(said.owner, text)


def _is_last_word(line: int, text: str) -> bool:
    """Does it stand in a `finally`, which an exception that ends the program passes through?"""
    return any(
        last.lineno <= line <= (last.end_lineno or last.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Try)
        for last in node.finalbody
    )


def _ran_often(said: Said, outcome: Run) -> bool:
    """Did all lines that a finding names run twice after the first, which is always innocent?

    A window that is cleared early needs steps to be one, and a clip that comes too early needs
    them to be in vain; a tail needs epochs, what is judged at the end needs an end, and an absent
    gradient ends the run.
    """
    counted = any(step.counted for step in outcome.steps)
    windows = 3 if counted or said.code != "ZG503" else SURE_OF_A_WINDOW + 2
    if said.code in ("ZG304", "ZG503", "ZG505") and len(outcome.steps) < windows:
        return False
    if said.code == "ZG101" and ASKS_FOR_BAD_ONES.search(outcome.text.splitlines()[said.line - 1]):
        return False  # told at a guard, of gradients that are not finite: these draws have none
    if said.code in OF_FINITE_VALUES and OVERFLOW in outcome.text:
        return False  # what is not finite is rightly thrown away, and divided by such a scale is 0
    if said.code == "ZG104":
        if outcome.error.startswith("UnboundLocalError"):
            return False  # a name that the function has only later
        # Nobody gets past an absent gradient; who did may have been led by a counter.
        passed = outcome.lines[said.line] and not COUNTED.search(outcome.text)
        return outcome.error_line == said.line or bool(passed)
    least = {"ZG302": 2, "ZG502": 4}.get(said.code, 3)
    if said.code == "ZG501" and not _ran_in_equal_windows(said, outcome):
        return False
    if said.code == "ZG502" and not _showed_a_tail(said, outcome):
        return False
    return all(outcome.lines[line] >= least for line in said.lines)


def _ran_in_equal_windows(said: Said, outcome: Run) -> bool:
    """Did the lines of the finding run equally often in two windows of an optimizer in a row?

    One odd window proves nothing to the live witness, and the first is innocent. Where no counter
    tells when a window ends, it wants that four times; where the batch's own data do, it wants as
    many windows in a row as make sure that no guard is at work.
    """
    named = [step for step in outcome.steps if said.owner in step.names] or outcome.steps
    for optimizer in {step.optimizer for step in named}:
        equal, before, last = 0, None, None
        for step in named:
            if step.optimizer != optimizer:
                continue
            now = tuple(step.lines[line] for line in sorted(said.lines))
            size: tuple[int, ...] | None
            size = tuple(new - old for new, old in zip(now, last, strict=True)) if last else None
            last = now
            if size is None or not any(size):
                continue
            equal = equal + 1 if size == before and min(size) > 1 else 0
            before = size
            sure = SURE_OF_A_WINDOW + 1 if not step.counted else 1
            if equal >= (SURE_OF_NO_GUARD if step.chosen else sure):
                return True
    return False


def _showed_a_tail(said: Said, outcome: Run) -> bool:
    """Was there, twice and at equal distances, a window with a tail among others all alike?"""
    fills = [sum(step.lines[line] for line in outcome.backwards) for step in outcome.steps]
    fills = [now for now, step in zip(fills, outcome.steps, strict=True) if step.line == said.line]
    sizes = [now - before for now, before in zip(fills, [0, *fills], strict=False)]
    odd = [at for at, size in enumerate(sizes) if size != sizes[0]]
    if len(odd) < 2 or sizes[0] < 2 or odd[0] < 2:
        return False
    first, second = odd[:2]
    tail = sizes[first] - sizes[0]
    return 0 < tail < sizes[0] and sizes[first] == sizes[second] and second - first == first


def _take(
    outcome: Run,
    path: str,
    where: Surroundings,
    result: Comparison,
    seen: dict[tuple[str, int], Said],
    at: dict[tuple[str, int], Surroundings],
) -> None:
    result.runs += 1
    if outcome.error:
        result.errors.append(outcome.error)
    for finding in outcome.findings:
        said = Said.of(finding, path)
        if (said.code, said.line) not in seen:
            seen[said.code, said.line] = said
            at[said.code, said.line] = where


def _is_covered(said: Said, read: list[Said], seen: Iterable[Said]) -> bool:
    """Is it a note on a window that has a worse fault?

    What a window holds is not worth a word where it is never cleared, stepped twice, or guarded
    by a condition that is wrong; each witness then counts in its own way. And with a wrong guard
    the windows that run are not those that the source means, so their clears are not told either.
    """
    if said.code == "ZG401":
        return _is_of_one_clear(said, read, seen)
    if said.code in NOTES and any(_waits_for(each, said) for each in seen):
        return True
    worse = WORSE if said.code in NOTES else COVERING.get(said.code, frozenset())
    return any(
        other.code in worse and (said.line in other.lines or said.owner == other.owner)
        for other in (*read, *seen)
    )


def _waits_for(each: Said, note: Said) -> bool:
    """Has the run told an error of the same line? Then it leaves a note there out."""
    return each.line == note.line and BY_CODE[each.code].severity is Severity.ERROR


def _is_of_one_clear(said: Said, read: list[Said], seen: Iterable[Said]) -> bool:
    """Is it one more step on what a clear threw away, which both witnesses tell of once?"""
    return any(
        each.code == "ZG102"
        and said.owner in (each.owner, other.owner)  # a helper has its own name for it
        and sameness(each, other, confirming=True)
        for each in read
        for other in seen
    )


def _codes(by: Witness) -> frozenset[str]:
    return frozenset(rule.code for rule in ALL_RULES if rule.seen_by == by)


STATIC_ONLY = _codes(Witness.STATIC)
LIVE_ONLY = _codes(Witness.RUNTIME)
