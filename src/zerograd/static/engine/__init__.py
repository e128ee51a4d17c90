"""The analysis: one source in, findings out.

    source ─> text (words, classes) ─> identity (who is who) ─> reading (events, and their order)
           ─> flow (states at each event) ─> judging (rules over them) ──┬─> findings
           └> beside (faults that no single state shows) ────────────────┘

Each room imports only from those before it. It reads and never runs: no import of the user's
code, no torch.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, in_order
from zerograd.static.engine.beside.abandoned import never_stepped
from zerograd.static.engine.beside.belated import changed_after_step
from zerograd.static.engine.beside.clipped_past import clipped_past
from zerograd.static.engine.beside.computed import computed_used
from zerograd.static.engine.beside.flushed import flushed_otherwise
from zerograd.static.engine.beside.forgotten import forgotten
from zerograd.static.engine.beside.frozen import frozen
from zerograd.static.engine.beside.gathered import kept_while_growing
from zerograd.static.engine.beside.hooked import clipped_in_hooks
from zerograd.static.engine.beside.idle import idle, kept_idle, kept_unused
from zerograd.static.engine.beside.miscounted import guarded_by_no_count
from zerograd.static.engine.beside.overdone import updated_for_nothing
from zerograd.static.engine.beside.overrun import never_set_back
from zerograd.static.engine.beside.precision import filled_in_one_precision
from zerograd.static.engine.beside.severed import backward_of_a_copy
from zerograd.static.engine.beside.slipped import slipped_into_a_branch
from zerograd.static.engine.beside.tails import tail_unupdated
from zerograd.static.engine.beside.unfilled import clipped_unfilled
from zerograd.static.engine.beside.unstepped import updated_before_any_step
from zerograd.static.engine.beside.unupdated import told_at_the_first, unupdated
from zerograd.static.engine.beside.vacant import clipped_vacantly
from zerograd.static.engine.beside.wiped import wiped_before_filled
from zerograd.static.engine.beside.withheld import withheld
from zerograd.static.engine.beside.without_backward import stepped_by_closure, stepped_unfilled
from zerograd.static.engine.flow.asked import Asked
from zerograd.static.engine.flow.buckets import Buckets
from zerograd.static.engine.flow.exclusive import ruled_out, settled_by_one
from zerograd.static.engine.flow.flow import Flow
from zerograd.static.engine.flow.marks import mark_guards
from zerograd.static.engine.flow.points import heaviest
from zerograd.static.engine.flow.rounds import Cycle, cycle_of
from zerograd.static.engine.identity.ir import Attempt, Branch, Loop, Node, Scope, walk
from zerograd.static.engine.identity.progress import TooLong
from zerograd.static.engine.judging.doubled import doubled
from zerograd.static.engine.judging.entrusted import without_entrusted
from zerograd.static.engine.judging.judgement import Judgement
from zerograd.static.engine.judging.leftover import left_over
from zerograd.static.engine.judging.mistaken import told_as_one
from zerograd.static.engine.judging.nameless import without_nameless
from zerograd.static.engine.judging.outlived import outlived
from zerograd.static.engine.judging.passed import told_once
from zerograd.static.engine.judging.poisoned import poisoned
from zerograd.static.engine.judging.unused import unused
from zerograd.static.engine.judging.vain import clipped_before_its_loss
from zerograd.static.engine.judging.wasted import wasted
from zerograd.static.engine.judging.windows import window_findings
from zerograd.static.engine.reading.counters import edges_of, once_only
from zerograd.static.engine.reading.program import Program
from zerograd.static.engine.reading.roots import Root, roots
from zerograd.static.engine.reading.uncalled import uncalled_findings
from zerograd.static.engine.text.words import FOREIGN, OF_ARRAYS

if TYPE_CHECKING:
    from zerograd.static.project import Project
    from zerograd.static.settings import Wrappers
    from zerograd.static.source import Source

BESIDE = (
    uncalled_findings,
    forgotten,  # before those that tell where such an optimizer is built
    idle,
    kept_idle,
    kept_unused,
    flushed_otherwise,
    withheld,
    unupdated,
    clipped_past,
    tail_unupdated,
    updated_before_any_step,
    updated_for_nothing,
    filled_in_one_precision,
    clipped_before_its_loss,
    clipped_unfilled,
    clipped_vacantly,
    changed_after_step,
    wiped_before_filled,
    stepped_unfilled,
    stepped_by_closure,
    clipped_in_hooks,
    kept_while_growing,
    never_set_back,
    guarded_by_no_count,
)
_OF_TORCH = re.compile(r"\b(?:torch|nn|optim|F)\.")  # code is posted without its imports


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the check of one file gives."""

    findings: list[Finding]
    unresolved: int  # calls that could not be followed


def analyze(source: Source, project: Project | None, wrappers: Wrappers) -> Outcome:
    """Return the findings of one file, the uncertain ones and the notes included."""
    program = Program(source, project, wrappers)
    try:
        return _findings(program)
    finally:
        program.close()


def _findings(program: Program) -> Outcome:
    if _is_foreign(program):
        return Outcome([], 0)
    findings: list[Finding] = []
    try:
        for root in roots(program):
            found = _judge(program, root)
            findings.extend(
                each for each in found if not root.codes or each.rule.code in root.codes
            )
    except TooLong:
        program.unresolved += 1  # what was found so far stands
    told = {(each.rule.code, each.spot.line) for each in findings if each.certain}
    for rule in BESIDE:
        for each in rule(program):
            if each.spot in program.told_of or (each.rule.code, each.spot.line) in told:
                continue
            if not _is_left_already(program, each, findings):
                findings.append(each)
    findings.extend(frozen(program, findings))
    findings.extend(never_stepped(program, findings))
    findings = slipped_into_a_branch(program, findings)
    findings.extend(backward_of_a_copy(program))
    findings.extend(computed_used(program, findings))
    findings = told_at_the_first(program, findings)
    findings = without_nameless(program, without_entrusted(program, findings))
    findings.sort(key=lambda finding: not finding.certain)
    return Outcome(in_order(findings), program.unresolved)


def _is_left_already(program: Program, found: Finding, told: list[Finding]) -> bool:
    """Is it told in the same function that nothing steps this optimizer?"""
    around = program.main.functions_around
    return found.rule.code == "ZG203" and any(
        each.rule.code == "ZG203"
        and each.owner == found.owner
        and each.certain
        and around(each.spot.line)[-1:] == around(found.spot.line)[-1:]
        for each in told
    )


def _judge(program: Program, root: Root) -> list[Finding]:
    mark_guards(root.block)
    buckets = Buckets(root.block, program.networks, program.made)
    if not buckets.tracked:
        return []
    nodes = walk(root.block)
    settled = settled_by_one(program, nodes)
    asked = Asked(root.block, nodes, settled)
    atoms = asked.atoms
    loops = [node for node in nodes if isinstance(node, Loop)]
    places = Counter(node.atom for node in nodes if isinstance(node, (Branch, Attempt)))
    varying = {id(loop): _varying(program, loop, places, atoms) for loop in loops}
    # Another loop may count by the same name: what is asked there is nothing to this one.
    own = {
        id(loop): {key: each for key, each in atoms.items() if each in varying[id(loop)]}
        for loop in loops
    }
    edges = {id(loop): edges_of(loop, program, own[id(loop)]) for loop in loops}
    onces = {id(loop): once_only(loop, program, own[id(loop)]) for loop in loops}
    cycles = {id(loop): cycle_of(loop, program, own[id(loop)]) for loop in loops}
    ruled = ruled_out(settled, atoms)
    for told_apart, left_out in _ways(program, root, nodes, cycles):
        unseen = frozenset(map(id, left_out))
        flow = Flow(atoms, varying, edges, onces, told_apart, asked.local, ruled, unseen)
        flow.run(root.block, flow.start(buckets.tracked, root.hazy))
        if flow.budget > 0:
            break
    given_up = heaviest(flow.reached) if flow.budget <= 0 else frozenset[str]()
    light = [each for each in buckets.tracked if each not in given_up]
    if given_up and light:
        flow = Flow(atoms, varying, edges, onces, {}, asked.local, ruled, unseen)
        flow.run(root.block, flow.start(light, root.hazy))
    root.too_long = bool(left_out) or bool(given_up)
    program.unresolved += root.too_long
    if flow.budget <= 0:
        return []
    for node in buckets.happenings:
        if node.scaler and node.kind is EventKind.STEP and node.event is not None:
            passed = program.passed.get(node.spot, False)
            program.passed[node.spot] = passed or id(node) in flow.reached
    judgement = Judgement(program, buckets, flow, atoms, root.doubted)
    judged = told_once(list(judgement.findings()), buckets)
    if given_up:
        return _of_others(judged, given_up, buckets)
    if left_out:
        return judged  # what is done in every round was not seen
    found = [
        *told_as_one(judged, list(unused(program, buckets, flow, atoms)), buckets, program.told_of),
        *window_findings(program, buckets, flow, atoms),
        *poisoned(program, buckets, flow, atoms),
        *left_over(buckets, flow, program.entrances),
        *doubled(buckets, flow, atoms),
        *outlived(root.block, nodes, buckets),
    ]
    return [*found, *wasted(program, buckets, flow, found)]


def _of_others(found: list[Finding], given_up: frozenset[str], buckets: Buckets) -> list[Finding]:
    """Leave out what is said of events that concern a bucket which was given up."""
    unseen = {
        each.spot
        for each in buckets.happenings
        if each.event is not None and not given_up.isdisjoint(each.event.buckets)
    }
    return [each for each in found if each.spot not in unseen]


def _ways(
    program: Program, root: Root, nodes: list[Node], cycles: dict[int, Cycle]
) -> Iterator[tuple[dict[int, Cycle], list[Scope]]]:
    """Yield how a root is followed: each round told apart, and no call left out, if that can be."""
    yield cycles, []
    if any(len(cycle) > 1 for cycle in cycles.values()):
        yield {}, []
    outer = set(map(id, walk(root.block, calls=False)))
    calls = [each for each in nodes if isinstance(each, Scope) and id(each) not in outer]
    away = [each for each in calls if each.unit is not program.main]
    if away:
        yield {}, away
    if len(calls) > len(away):
        yield {}, calls


def _varying(
    program: Program, loop: Loop, places: Counter[str], atoms: dict[str, int]
) -> frozenset[int]:
    """Return the conditions whose truth may be another one after each round of a loop.

    One that is asked at a single place, and not in this loop, only tells which way was taken
    there. That stays true, whatever the rounds of this one change. `places` counts them.
    """
    if not atoms:
        return frozenset()
    inside = {each.atom for each in walk([loop]) if isinstance(each, (Branch, Attempt))}

    def changes(key: str) -> bool:
        atom = program.atoms.get(key)
        if atom is not None and atom.parts:  # asked once in the code, and here wherever it leads
            return any(map(changes, atom.parts))
        return (key in inside or places[key] > 1) and program.varies(loop, key)

    return frozenset(number for key, number in atoms.items() if changes(key))


def _is_foreign(program: Program) -> bool:
    """Is the file written for another framework, whose words mean other things?"""
    unit = program.main
    names = {module.split(".")[0] for module, _, _ in unit.imports.values()}
    if "torch" in names or unit.stars:
        return False
    if not names.isdisjoint(FOREIGN):
        return True
    # A network written out in arrays: its gradients are its own, and mostly assigned.
    alone = "numpy" in names and not names - OF_ARRAYS - sys.stdlib_module_names
    return alone and not _OF_TORCH.search(unit.source.text)
