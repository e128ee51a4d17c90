"""ZG304: clips of parameters that an iterator has given to somebody else already.

params = filter(lambda p: p.requires_grad, net.parameters())
optimizer = Adam(params)
clip_grad_norm_(params, 1.0)  # finds none, and says nothing
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules.clip_after_step import MAKE_A_LIST, RULE, USED_UP
from zerograd.static.engine.text.used_up import UsedUp

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_FIRST_ONLY = "{name} is an iterator: the clip goes through it once, and finds nothing after that"


def clipped_vacantly(program: Program) -> Iterator[Finding]:
    """Yield the clips of this file that go over an iterator which has nothing left."""
    if not program.main.used_up or not program.main.clips():
        return
    for call in program.main.statements():
        for each in program.main.parts_of(call) if isinstance(call, ast.Expr | ast.Assign) else ():
            used = program.used_up(program.main, each)
            if used is not None:
                yield _finding(program, each, used)


def _finding(program: Program, clip: ast.AST, used: UsedUp) -> Finding:
    source = program.main.source
    name = source.segment(used.made.targets[0])
    names = {
        "name": name,
        "made": source.segment(used.made.value),
    }
    stations = [
        (used.made, "makes an iterator, which gives each parameter once"),
        (used.by, "goes through it"),
        (clip, "finds none left to clip"),
    ]
    if used.by is clip:
        stations[1:] = [(clip, "goes through it the first time, and finds none left the next")]
    return Finding(
        rule=RULE,
        spot=source.spot(clip),
        message=(_FIRST_ONLY if used.by is clip else USED_UP).format_map(names),
        advice=MAKE_A_LIST.format_map(names),
        trail=tuple(
            TrailStep(source.spot(node), text, source.segment(node)) for node, text in stations
        ),
    )
