"""Naming: the keys of what a program makes, and when two things under one name are two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Class, Function, Instance
from zerograd.static.engine.identity.ir import Doubt, Made, Reset
from zerograd.static.engine.identity.progress import Progress
from zerograd.static.engine.identity.ties import Ties
from zerograd.static.engine.identity.values import (
    MADE,
    NOTHING,
    SCHEDULE,
    WRAPPED,
    Constant,
    External,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Scaler,
    Several,
    Successor,
    Tensor,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.words import is_network_name, is_optimizer_name, is_scheduler_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

_NAMELESS = frozenset[type[Value]]((Constant, Named, External, Params, Gradient, Function, Class))
_COMPUTED = frozenset[type[Value]]((Tensor, Successor))
_KEYED = (Module, Optimizer, Scaler, Leaf, Instance)
Keyed = Module | Optimizer | Scaler | Leaf | Instance


class Naming(Ties, Progress):
    """A new object has a provisional key until it is given a name; then the name is its key."""

    def __init__(self) -> None:
        Ties.__init__(self)
        Progress.__init__(self)
        self.made: set[str] = set()
        self.networks: set[str] = set()
        self.trained: set[str] = set()  # keys of what some optimizer was made for
        self._made = 0
        self._unnamed: set[str] = set()
        self._holders: set[str] = set()  # provisional keys of networks made from networks
        self._heirs: set[str] = set()  # of these, made from some that have a name of their own
        self.copied: dict[str, frozenset[str]] = {}  # networks: what each was copied from
        self._owned: dict[str, frozenset[str]] = {}  # an optimizer's key: what it holds
        self._optimizers: set[str] = set()  # keys of those that were made here and given a name
        self.typical: set[str] = set()  # keys of what stands for many, made in one round each
        self.placed: dict[str, Instance] = {}  # of such, the ones that were asked for by a place
        self._living: set[str] = set()  # keys of what also has another name, or is in a list
        self.frozen: frozenset[str] = frozenset()  # keys of networks that no backward fills now

    def _provisional(self, what: str) -> str:
        self._made += 1
        key = f"{what} {self._made}"
        self._unnamed.add(key)
        if self.repeating:
            self.typical.add(key)
        return key

    def is_new(self, value: Module | Instance) -> bool:
        """Was it made just now, and of no other network?"""
        of_others = isinstance(value, Instance) and value.held
        return value.key in self._unnamed and value.key not in self._heirs and not of_others

    def keep(self, value: Value) -> None:
        """Remember that what is put somewhere lives on when its name is given to another."""
        for each in leaves_of(value):
            if isinstance(each, Named):
                self._living.add(each.path)
            elif isinstance(each, _KEYED):
                self._living.add(each.key)

    def is_network(self, path: str) -> bool:
        """Is it, as far as can be told, something with parameters?"""
        return path in self.made or path in self.networks or is_network_name(path)

    def christened(self, frame: Frame, value: Value, path: str) -> Value:
        """Return `value` under the name it is given, if it has none yet."""
        if type(value) in _NAMELESS or value is frame.self_value:  # `self = super().to(device)`
            return value
        if type(value) in _COMPUTED:
            if not is_optimizer_name(path):
                return value
            value = NOTHING  # what bears the name of an optimizer was not computed by a network
        if value is SCHEDULE:
            # known by a name that tells what it is, also where its own speaks of an optimizer
            value, path = NOTHING, path if is_scheduler_name(path) else f"{path}_scheduler"
        if value is NOTHING or value is MADE or value is WRAPPED:
            named = Named(self._apart(self._qualified(frame, path)))
            if value is not NOTHING:
                frame.emit(Reset(frozenset((named.path,))))
            elif is_optimizer_name(path) or self.is_network(named.path):
                # another one, most likely, and nobody knows what is in it
                frame.emit(Reset(frozenset((named.path, f"?{named.path}")), doubt=Doubt.UNSEEN))
            return named
        if isinstance(value, _KEYED):
            if value.key in self._unnamed:
                self._name(frame, value, path)
            elif value.key != self._qualified(frame, path):
                self._living.add(value.key)
        elif isinstance(value, Several):
            for number, item in enumerate(value.items):
                index = "*" if value.open else number
                known = self.christened(frame, item, f"{path}[{index}]")
                if item is MADE or item is WRAPPED:
                    value.items[number] = known  # it keeps this name when it is taken out
        elif isinstance(value, Mapping):
            for key, item in value.items.items():
                known = self.christened(frame, item, f"{path}[{key!r}]")
                if item is MADE or item is WRAPPED:
                    value.items[key] = known
        return value

    def _name(self, frame: Frame, value: Keyed, path: str) -> None:
        before, value.key = value.key, self._qualified(frame, path)
        self._unnamed.discard(before)
        alone = before not in self._holders
        if isinstance(value, Optimizer):
            self._tell_apart(value)
            self._optimizers.add(value.key)
        elif not value.held if isinstance(value, Instance) else alone:
            value.key = self._apart(value.key)
        if alone and isinstance(value, Module | Leaf | Instance):
            self.made.add(value.key)
        for known in (self.typical, self._living):
            if before in known:
                known.add(value.key)
        if before in self.copied:
            self.copied[value.key] = self.copied.pop(before)
        if before in self.frozen:  # `head = nn.Linear(4, 1).requires_grad_(False)`
            self.frozen |= {value.key}
        self._reset(frame, value)

    def _apart(self, key: str) -> str:
        """Return a key for what takes over the name of another one that lives on elsewhere.

        Under a condition they are two forms of one, of which a run has only one. What an
        object holds by a name is what all its methods mean by it.
        """
        if self.conditional or "." in key:
            return key
        name, number = key, 1
        while key in self._living:
            number += 1
            key = f"{name} {number}"
        return key

    def _tell_apart(self, optimizer: Optimizer) -> None:
        """A name that one optimizer after another has, each over other parameters, is several.

        Under a condition they are two forms of one, of which a run has only one.
        """
        name, number = optimizer.key, 1
        while not self.conditional and optimizer.keys is not None:
            known = self._owned.setdefault(optimizer.key, optimizer.keys)
            if known == optimizer.keys:
                break
            number += 1
            optimizer.key = f"{name} {number}"

    def _qualified(self, frame: Frame, path: str) -> str:
        first, dot, rest = path.partition(".")
        owner = frame.locals.get(first)
        if dot and isinstance(owner, Instance | Module):
            return f"{owner.key}.{rest}"
        if frame.number <= 1 or dot:
            return path
        return f"{path}@{frame.number}" if first in frame.locals or not dot else path

    def _reset(self, frame: Frame, value: Value) -> None:
        if isinstance(value, Optimizer):
            if value.keys is None:
                frame.emit(Reset(frozenset((f"?{value.key}",))))
            else:
                frame.emit(Made(value.key, holds=value.keys))
        elif isinstance(value, Module | Leaf | Instance):
            frame.emit(Reset(frozenset((value.key,))))
