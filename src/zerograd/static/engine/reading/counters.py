"""The counting variables of loops: where they start, and what is true of the first iteration."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Branch, Happening, Loop, walk
from zerograd.static.engine.text import guards
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.remainders import is_modulo, is_positive
from zerograd.static.engine.text.stores import statements_in, targets
from zerograd.static.engine.text.switches import counts_up, is_kept_each_round, lasting_truth

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_PROGRESS = frozenset(("tqdm", "trange", "tqdm_notebook", "track"))


def counter_of(loop: Loop) -> tuple[str, int] | None:
    """Return a loop's counting variable and where it starts, if the loop counts."""
    if not isinstance(loop.node, ast.For) or not isinstance(loop.over, ast.Call):
        return None
    found = _counted_by_its_head(loop.node.target, loop.over)
    if found is None:
        return None
    name, start = found
    moved = _moved_on(loop.node.body, name)
    return None if moved is None else (name, start + moved)


def _counted_by_its_head(target: ast.expr, call: ast.Call) -> tuple[str, int] | None:
    """Return what a loop's head counts, and from where."""
    if _shows_progress(call) and call.args and isinstance(call.args[0], ast.Call):
        call = call.args[0]
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name == "range" and isinstance(target, ast.Name):
        start: ast.expr = call.args[0] if len(call.args) > 1 else ast.Constant(0)
        return (target.id, start.value) if is_number(start) else None  # type: ignore[attr-defined]
    if name != "enumerate" or not isinstance(target, ast.Tuple):
        return None
    first = target.elts[0]
    if not isinstance(first, ast.Name):
        return None
    given = [each.value for each in call.keywords if each.arg == "start"]
    start = (given or call.args[1:2] or [ast.Constant(0)])[0]
    if isinstance(start, ast.BinOp) and isinstance(start.op, ast.Add):
        start = start.right  # `done + 1`: counted on from what was done before
    return (first.id, start.value) if is_number(start) else None  # type: ignore[attr-defined]


def _shows_progress(call: ast.Call) -> bool:
    """`tqdm(…)`, `tqdm.tqdm(…)`, `tqdm.notebook.tqdm(…)`: it gives what it is given."""
    return path_of(call.func).rsplit(".", 1)[-1] in _PROGRESS


def _moved_on(body: list[ast.stmt], name: str) -> int | None:
    """Return how much each round adds to its number before anything reads it, if that is known.

    `for i, x in enumerate(data): i += 1` counts from one, whatever its head says.
    """
    stored = [each for each in targets(body) if isinstance(each, ast.Name) and each.id == name]
    if not stored:
        return 0
    for part in body:
        added = _added_to(part, name)
        if added is not None:
            return added if len(stored) == 1 else None
        if any(isinstance(each, ast.Name) and each.id == name for each in parts_below(part)):
            return None
    return None


def _added_to(part: ast.stmt, name: str) -> int | None:
    """Return what a statement adds to a name: `n += 1`, or `n = n + 1`."""
    to: ast.expr
    if isinstance(part, ast.AugAssign):
        to, by, added = part.target, part.op, part.value
    elif isinstance(part, ast.Assign) and isinstance(part.value, ast.BinOp):
        to, by, added = part.targets[0], part.value.op, part.value.right
        if not isinstance(part.value.left, ast.Name) or part.value.left.id != name:
            return None
    else:
        return None
    own = isinstance(to, ast.Name) and to.id == name and isinstance(by, ast.Add)
    return added.value if own and is_number(added) else None  # type: ignore[attr-defined]


def is_number(node: ast.expr) -> bool:
    """Is it an integer written out?"""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


class Edges(NamedTuple):
    """The literals that are known in the first iteration of a loop, and in its last."""

    only: frozenset[int] = frozenset()  # these hold in no later one than the first
    also: frozenset[int] = frozenset()  # these may hold again
    gone: frozenset[int] = frozenset()  # not known there, but these hold in no later one
    last: frozenset[int] = frozenset()  # where one of these holds, no iteration follows


def edges_of(loop: Loop, program: Program, atoms: dict[str, int]) -> Edges:
    """Return what is known of the first iteration of `loop`, and of its last.

    `if i > 0: clear()` is right: the first iteration has nothing to clear. And `i % 2 == 0`
    is true there. `if i < n - 1: clear()` leaves to nobody here what it does not clear.
    """
    if not atoms:
        return Edges()
    gone = _switched(loop, program, atoms) | _counted_by_hand(loop, program, atoms)
    counter = counter_of(loop)
    if counter is None:
        return Edges(gone=gone)
    name, start = counter
    only, also, last = set(), set(), set()
    ends_for_good = _ends_for_good(loop)
    for key, number in atoms.items():
        atom = program.atoms.get(key)
        if (
            atom is None
            or atom.node is None
            or not any(
                each.partition("#")[0] == name and program.is_stored(loop, each)
                for each in atom.names
            )
        ):
            continue
        final = _on_last(atom.node, loop, program, name, start) if ends_for_good else None
        if final is not None:
            last.add(number * 2 + (final is is_positive(atom.node)))
        truth = _on_first(atom.node, key, name, start)
        if truth is not None:
            only.add(number * 2 + truth)
            continue
        if _tells_the_last(atom.node, key, name):
            also.add(number * 2)
            continue
        holds = _remainder_on_first(atom.node, name, start)
        if holds is not None:
            also.add(number * 2 + (holds is is_positive(atom.node)))
    return Edges(frozenset(only), frozenset(also), gone, frozenset(last))


def _ends_for_good(loop: Loop) -> bool:
    """Is it entered once, or cleared for by the loop around before it is entered again?"""
    around = loop.parent
    if around is None or around.pseudo:
        return True
    inside = {id(each) for each in walk([loop])}
    return any(
        isinstance(each, Happening) and each.kind is EventKind.CLEAR and id(each) not in inside
        for each in walk(around.body)
    )


def _on_last(node: ast.expr, loop: Loop, program: Program, name: str, start: int) -> bool | None:
    """Return the test's truth in the last iteration, if it tells that one from all others."""
    size = _length(loop)
    if size is None or not _stays(size, loop, program):
        return None
    table = guards.truths(node, ast.Name(name, ast.Load()), size, 1, start)
    columns = [column for rounds, column in table.items() if rounds > 1]
    found = {column[-1] for column in columns if column.count(column[-1]) == 1}
    told = len(columns) > 1 and all(column.count(column[-1]) == 1 for column in columns)
    return found.pop() if told and len(found) == 1 else None


def _length(loop: Loop) -> ast.expr | None:
    """Return how many rounds there are, as it is written: `n` of `range(n)`, else `len(data)`."""
    call = loop.over
    if isinstance(call, ast.Call) and _shows_progress(call) and call.args:
        call = call.args[0] if isinstance(call.args[0], ast.Call) else call
    if not isinstance(call, ast.Call) or not call.args or path_of(call.func) == "zip":
        return None
    if path_of(call.func) == "enumerate":
        data = call.args[0]
        if isinstance(data, ast.Call) and _shows_progress(data) and data.args:
            data = data.args[0]
        return ast.Call(ast.Name("len", ast.Load()), [data], [])
    # counted from one, it is up to `n + 1`
    return call.args[0] if len(call.args) == 1 else None


def _switched(loop: Loop, program: Program, atoms: dict[str, int]) -> frozenset[int]:
    """Return the literals of switches that the loop turns over once: `if first: first = False`.

    So it does with what is None before it, and kept in each round: `if previous is not None`.
    """
    found = set()
    for key, number in atoms.items():
        atom = program.atoms.get(key)
        if atom is None or not isinstance(atom.node, ast.Name):
            continue
        if any(program.is_stored(loop, each) for each in atom.names):
            after = lasting_truth(loop.node, atom.node.id)
            if after is None and _is_none_before(loop, atom.node.id):
                after = is_kept_each_round(loop.node, atom.node.id) or None
            if after is not None:
                found.add(number * 2 + (not after))
    return frozenset(found)


def _is_none_before(loop: Loop, name: str) -> bool:
    """Is None the last that the name is given before the loop, in the function around it?

    Where a loop around gives it so in each round, what the one before has left is not cleared.
    """
    if loop.unit is None or not isinstance(loop.node, ast.stmt):
        return False
    line = loop.node.lineno
    outer = loop.parent.node if loop.parent is not None else None
    first = outer.lineno if isinstance(outer, ast.For | ast.While | ast.AsyncFor) else 0
    around = loop.unit.functions_around(line)
    body = around[-1].body if around else loop.unit.source.tree.body
    given = [
        each
        for each in statements_in(body)
        if isinstance(each, ast.Assign | ast.AnnAssign)
        and each.lineno < line
        and any(isinstance(to, ast.Name) and to.id == name for to in targets([each]))
    ]
    last = max(given, key=lambda each: each.lineno, default=None)
    once = last is not None and not 0 < first < last.lineno
    value = last.value if last is not None and once else ast.Constant(0)
    return isinstance(value, ast.Constant) and value.value is None


def _counted_by_hand(loop: Loop, program: Program, atoms: dict[str, int]) -> frozenset[int]:
    """Return what holds of a number only before the loop has counted it up: `step == 0`."""
    found = set()
    for key, number in atoms.items():
        atom = program.atoms.get(key)
        if atom is None or atom.node is None:
            continue
        for each in atom.names:
            name = each.partition("#")[0]
            truth = _on_first(atom.node, key, name, 0)
            if truth is not None and program.is_stored(loop, each) and _counts_on_in(loop, name):
                found.add(number * 2 + truth)
    return frozenset(found)


def _counts_on_in(loop: Loop | None, name: str) -> bool:
    """Is it counted up in each round, and never set back by a loop around?"""
    while loop is not None and not loop.pseudo:
        if not counts_up(loop.node, name):
            return False
        loop = loop.parent
    return True


def _remainder_on_first(node: ast.expr, name: str, start: int) -> bool | None:
    """Return the truth of a remainder's test in the first iteration, if only the counter tells."""
    modulo = next((each for each in parts_below(node) if is_modulo(each)), None)
    if not isinstance(modulo, ast.BinOp):
        return None
    return guards.truth_at(node, ast.Name(name, ast.Load()), modulo.right, start)


def once_only(loop: Loop, program: Program, atoms: dict[str, int]) -> frozenset[int]:
    """Return the atoms that are true in one iteration of `loop` at most.

    `if i == len(data) - 1: step()` steps once in each run of its loop.
    """
    counter = counter_of(loop) if atoms else None
    if counter is None:
        return frozenset()
    found = set()
    for key, number in atoms.items():
        atom = program.atoms.get(key)
        if atom is not None and isinstance(atom.node, ast.Compare) and "==" in key.split("|", 1)[0]:
            sides = (atom.node.left, *atom.node.comparators)
            counted = [each for each in sides if _counts_on(each, counter[0])]
            others = [each for each in sides if not _counts_on(each, counter[0])]
            if len(counted) == len(others) == 1 and _stays(others[0], loop, program):
                found.add(number)
    return frozenset(found)


def steps_once(loop: Loop, program: Program) -> list[Happening]:
    """Return the steps that are made in one round of a loop at most."""
    asked = [each for each in walk(loop.body) if isinstance(each, Branch) and each.atom]
    atoms = {each.atom: number for number, each in enumerate(asked)}
    once = once_only(loop, program, atoms) if asked else frozenset()
    return [
        step
        for each in asked
        if atoms[each.atom] in once
        for step in walk(each.then)
        if isinstance(step, Happening) and step.kind is EventKind.STEP
    ]


def _tells_the_last(node: ast.expr, key: str, name: str) -> bool:
    """Does it hold in the last round only: `i + 1 == len(data)`? Loops have more than one."""
    if not isinstance(node, ast.Compare) or "==" not in key.split("|", 1)[0]:
        return False
    sides = (node.left, *node.comparators)
    others = [each for each in sides if not _counts_on(each, name)]
    return len(sides) == 2 and len(others) == 1 and "len(" in ast.unparse(others[0])


def _counts_on(node: ast.expr, name: str) -> bool:
    """Is it the counting variable, or that and a number written out?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        node = node.left if is_number(node.right) else node.right
    return isinstance(node, ast.Name) and node.id == name


def _stays(node: ast.expr, loop: Loop, program: Program) -> bool:
    """Is it the same in every iteration: a length, a setting, a number?"""
    for each in parts_below(node):
        if isinstance(each, ast.Call) and not (
            isinstance(each.func, ast.Name) and each.func.id == "len"
        ):
            return False
        if isinstance(each, ast.Name) and program.is_stored(loop, each.id):
            return False
        if isinstance(each, ast.Attribute) and program.is_stored(loop, f".{each.attr}"):
            return False
    return True


def _on_first(node: ast.expr, key: str, name: str, start: int) -> int | None:
    """Return the atom's truth in the first iteration, if it tells that one from all others."""
    if isinstance(node, ast.Name):
        return 0 if node.id == name and start == 0 else None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    left, right = node.left, node.comparators[0]
    if not isinstance(left, ast.Name) or left.id != name or not is_number(right):
        return None
    limit = right.value  # type: ignore[attr-defined]
    text = key.split("|", 1)[0]  # the comparison in its positive form
    if "==" in text:
        return 1 if limit == start else None
    if ">" in text:
        return 0 if limit == start else None
    if "<" in text:
        return 1 if limit == start + 1 else None
    return None
