"""Atoms: what one condition says, and whether its truth can change between iterations.

An atom's key is its text with the operands as they are known here, so that two tests of the
same thing are one atom, also where it was copied into a variable or handed to a function.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.tallies import is_tallied
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.identity.values import Named

_COUNTER_WORDS = frozenset(
    [
        "accum",
        "accumulate",
        "accumulation",
        "accumulated",
        "acc",
        "sync",
        "boundary",
        "update",
        "freq",
        "every",
    ]
)
_COUNTED = frozenset(
    (
        "iteration",
        "iter",
        "step",
        "epoch",
        "idx",
        "index",
        "count",
        "counter",
        "it",
        "batch",
        "round",
    )
)
_AMOUNTS = frozenset(("num", "n", "max", "min", "total", "per", "every", "size", "first", "should"))
# attributes that hold what was set before the training began
_SETTINGS = frozenset(
    (
        *("config", "configs", "conf", "cfg", "args", "arg", "opt", "opts", "options", "flags"),
        *("hparams", "hps", "hp", "params", "settings"),
    )
)
# what is asked of the machine, or of the process: the same all through a run
_OF_THE_RUN = frozenset(
    (
        *("is_available", "is_built", "is_initialized", "device_count", "is_main_process"),
        *("get_rank", "get_local_rank", "get_world_size"),
    )
)


class Atom:
    """What is known of one condition."""

    __slots__ = (
        *("_text", "counter", "lasts", "names", "node", "parts", "tallied", "unit", "volatile"),
    )

    def __init__(
        self,
        node: ast.expr | None,
        text: str,
        names: frozenset[str],
        volatile: bool,
        counter: bool,
        tallied: bool = False,
        unit: Unit | None = None,
    ) -> None:
        self.node = node
        self.unit = unit  # where the node stands, which may be another file than the events
        self._text = text  # empty: as it stands in the unit
        self.names = names
        self.volatile = volatile  # may change between iterations whatever its names do
        self.counter = counter  # counts micro-batches, as far as its shape tells
        self.tallied = tallied  # of a number that is counted up and set back
        self.lasts = False  # a scaler was switched by it: the same for as long as that is kept
        self.parts: tuple[str, ...] = ()  # the conditions that it is put together from

    @property
    def text(self) -> str:
        """The condition as the user wrote it; few are asked for that."""
        if not self._text and self.node is not None and self.unit is not None:
            self._text = self.unit.source.segment(self.node)
        return self._text


def is_counted(name: str) -> bool:
    """Does the name suggest a number that training counts up: `epoch`, but not `num_epoch`?"""
    words = words_of(name)
    return not _COUNTED.isdisjoint(words) and (_AMOUNTS | _COUNTER_WORDS).isdisjoint(words)


def _is_counted_here(frame: Frame, node: ast.expr) -> bool:
    """Is all that `node` counts a variable of this function, changed only where it is stored?"""
    parts = list(frame.unit.parts_of(node))
    names = [each.id for each in parts if isinstance(each, ast.Name)]
    return (
        bool(names)
        and not any(isinstance(each, ast.Attribute | ast.Call | ast.Subscript) for each in parts)
        and all(name in frame.locals for name in names)
    )


def _lasting(frame: Frame, node: ast.expr) -> set[ast.expr]:
    """Return the objects in `node` of which a plain attribute or a setting is asked.

    Those hold from one call of a method to the next; `self.state.step` may not.
    """
    found: set[ast.expr] = set()
    attributes = [each for each in frame.unit.parts_of(node) if type(each) is ast.Attribute]
    if not attributes:
        return found
    for inner in attributes:
        base, name = inner.value, inner.attr
        if isinstance(base, ast.Attribute) and not _SETTINGS.isdisjoint(words_of(base.attr)):
            name = base.attr
            base = base.value
        if isinstance(base, ast.Name):
            owner = frame.lookup(base.id)
            if isinstance(owner, Instance) and frame.program.is_set_once(owner, name):
                found.add(base)
    if found:
        for inner in attributes:
            if isinstance(inner.value, ast.Attribute):
                base = inner.value.value
                if _SETTINGS.isdisjoint(words_of(inner.value.attr)):
                    found.discard(base)
    return found


def atom_of(frame: Frame, node: ast.expr, text: str, *, settled: bool = False) -> str:
    """Note the atom and return its key; `settled` if a call in it gives the same each time."""
    asked = frame.unit.names_in(node)
    spellings = {name: frame.spelling(name) for name in asked}
    key = f"{text}|{','.join([spellings[name][0] for name in asked])}"
    if key in frame.program.atoms:
        return key  # asked before: what is known of it was known then
    parts = frame.unit.parts_of(node)
    names: set[str] = set()
    volatile = counter = False
    lasting = _lasting(frame, node)
    for inner in parts:
        if type(inner) is ast.Constant:
            continue
        if type(inner) is ast.Name:
            _, behind, changes = spellings[inner.id]
            if inner not in lasting:
                names |= behind
            volatile = volatile or changes
            counter = counter or not _COUNTER_WORDS.isdisjoint(words_of(inner.id))
        elif type(inner) is ast.Attribute:
            names.add(f".{inner.attr}")
            counter = counter or not _COUNTER_WORDS.isdisjoint(words_of(inner.attr))
            volatile = volatile or frame.unit.changes_attribute(inner.attr)
            counted = is_counted(inner.attr) and isinstance(inner.value, ast.Name)
            of_self = counted and inner.value.id == "self"  # type: ignore[attr-defined]
            volatile = volatile or (of_self and inner.value not in lasting)
        elif type(inner) is ast.Call:
            volatile = volatile or not (settled or _is_of_the_run(inner))
        elif type(inner) is ast.BinOp and type(inner.op) is ast.Mod:
            counter = True
            # A remainder that never changes would not be asked for.
            volatile = volatile or not _is_counted_here(frame, inner.left)
    tallied = is_tallied(frame, node)
    frame.program.note_atom(
        key,
        Atom(node, "", frozenset(names), volatile, counter or tallied, tallied, frame.unit),
    )
    return key


def setting_of(frame: Frame, node: ast.Name | ast.Attribute, value: Named) -> str:
    """Note a flag that goes by several names, and return its key; empty where it may be another's.

    `cfg.graph` in the constructor, `self.graph = cfg.graph` afterwards and `self.cfg.graph` ask
    the same, as long as nobody assigns it anew.
    """
    first, _, last = value.path.rpartition(".")
    if first:
        told = any(not _SETTINGS.isdisjoint(words_of(part)) for part in first.split("."))
        lasting = told and not frame.unit.changes_attribute(last)
    elif isinstance(node, ast.Attribute):
        owner = frame.program.evaluate(frame, node.value)
        lasting = isinstance(owner, Instance) and frame.program.is_set_once(owner, node.attr)
    else:
        name = getattr(frame.node, "name", "")
        lasting = name == "__init__" and not frame.versions.get(node.id)
    if not lasting:
        return ""
    key = f"{value.path}|"
    if key not in frame.program.atoms:
        counter = not _COUNTER_WORDS.isdisjoint(words_of(last))
        names = frozenset((f".{last}",))
        frame.program.note_atom(key, Atom(node, "", names, False, counter, unit=frame.unit))
    return key


def _is_of_the_run(call: ast.Call) -> bool:
    """Is it `torch.cuda.is_available()`, or which of the processes this is?"""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _OF_THE_RUN and not call.args
