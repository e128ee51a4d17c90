"""The objects of a program: making, naming and recognising optimizers, networks, scalers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Class, Function, Instance
from zerograd.static.engine.identity.groups import groups_in
from zerograd.static.engine.identity.ir import Reset
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.naming import Naming
from zerograd.static.engine.identity.picks import picks_in
from zerograd.static.engine.identity.values import (
    BY_HAND,
    SCHEDULE,
    UNSEEN,
    Accelerator,
    Bound,
    Constant,
    Either,
    Engine,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Scaler,
    Several,
    Tensor,
    Value,
    leaves_of,
)
from zerograd.static.engine.text.words import (
    is_optimizer_name,
    is_scheduler_name,
    names_parameters,
    words_of,
)

if TYPE_CHECKING:
    from zerograd.static.engine.identity.branches import Test
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.identity.ir import Loop
    from zerograd.static.engine.text.classes import ClassUnit

# what a wrapper of one optimizer calls it
_INNER = {("optimizer",), ("optim",), ("opt",), ("base", "optimizer"), ("inner", "optimizer")}

_LASTING = (
    *(Optimizer, Module, Instance, Scaler, Function, Class, Accelerator, Engine, Leaf, Bound),
    Either,
)


class Objects(Naming, ABC):
    """What has been made and met so far."""

    def __init__(self) -> None:
        super().__init__()
        self.entrusted = False  # is an object of elsewhere made from the one that trains?
        self.told: dict[str, frozenset[str]] = {}  # modules of elsewhere: optimizers given to them
        self.asked: set[str] = set()  # networks with a method that gives one knows not what
        self._named: dict[str, Optimizer] = {}
        self._scalers: dict[str, Scaler] = {}
        self._hands: dict[frozenset[str], Optimizer] = {}

    @property
    def has_several_optimizers(self) -> bool:
        return len(self._optimizers | self._named.keys()) > 1

    def new_optimizer(self, source: Value) -> Optimizer:
        """Return a new optimizer over the parameters found in `source`."""
        keys: set[str] = set()
        for each in leaves_of(source):
            if isinstance(each, Params) and each.either:
                return Optimizer(self._provisional("optimizer"), None)  # who knows whose
            if isinstance(each, Params | Module | Leaf | Instance):
                keys |= keys_of(each)
        if not keys:
            keys = {
                each.path
                for each in leaves_of(source)
                if isinstance(each, Named) and names_parameters(each.path)
            }
        self.trained |= keys
        made = Optimizer(self._provisional("optimizer"), frozenset(keys) or None)
        made.lasting = self.quiet > 0
        made.made = True
        made.picks = picks_in(source)
        made.groups = groups_in(source)
        for picks in made.picks.values() if self.conditional else ():
            picks.append(frozenset())  # otherwise it may be one over all of them
        return made

    def new_module(self, arguments: Arguments | None = None) -> Module:
        module = Module(self._provisional("module"))
        if arguments is not None and self.holds(arguments):
            self._holders.add(module.key)
            if not all(self._is_nameless(each) for each in arguments.leaves()):
                self._heirs.add(module.key)
        return module

    def new_copy(self, of: Value) -> Module:
        module = self.new_module()
        self.copied[module.key] = keys_of(of)
        return module

    def _is_nameless(self, value: Value) -> bool:
        """Is it a part that was made for what it is handed to, or no network at all?"""
        if isinstance(value, (Module, Instance)):
            return value.key in self._unnamed and value.key not in self._heirs
        return not self.holds(Arguments([value], {}))

    def holds(self, arguments: Arguments) -> bool:
        """May what is made from these arguments hold one of the networks of the program?"""
        return any(
            isinstance(each, (Module, Instance, Params, Optimizer, Function))
            or (isinstance(each, Named) and self.is_network(each.path))
            for value in arguments.all()
            for each in leaves_of(value)
        )

    def new_instance(self, cls: ClassUnit) -> Instance:
        return Instance(cls, self._provisional(cls.name))

    def new_leaf(self) -> Leaf:
        return Leaf(self._provisional("leaf"))

    def required(self, frame: Frame, name: str) -> Leaf:
        """Return the leaf that a tensor becomes by being told to require a gradient.

        In a loop that does not make the tensor anew, it is told so again and again,
        and keeps its gradient.
        """
        leaf = self.new_leaf()
        loop = frame.loop
        if loop is None or self.is_stored(loop, name) or self._is_made_inside(frame, loop, name):
            frame.assign(name, self.christened(frame, leaf, name))
            if loop is not None and loop.binds(name):
                # another one each round, also where it is told nothing
                loop.body.insert(0, Reset(frozenset((leaf.key,))))
            return leaf
        self._unnamed.discard(leaf.key)
        leaf.key = self._qualified(frame, name)
        self.made.add(leaf.key)
        loop.fresh.append(Reset(frozenset((leaf.key,))))
        frame.assign(name, leaf)
        return leaf

    def _is_made_inside(self, frame: Frame, loop: Loop, name: str) -> bool:
        """Does a function that the loop calls give the name its value, or the loop hand it in?"""
        if self.is_open_at(loop, frame):
            return False
        _, behind, changes = frame.spelling(name)
        handed = name in frame.spellings and (
            changes or any(self.is_stored(loop, each.partition("#")[0]) for each in behind)
        )
        return bool(frame.versions.get(name)) or handed

    @abstractmethod
    def is_open_at(self, loop: Loop, frame: Frame) -> bool:
        """Does the loop stand in this function, or in one that it is called from?"""

    @abstractmethod
    def is_stored(self, loop: Loop, name: str) -> bool:
        """Does the loop assign the name anew?"""

    def new_scaler(self, live: bool = True, on: Test | None = None) -> Scaler:
        return Scaler(self._provisional("scaler"), live, on)

    def by_hand(self, keys: frozenset[str]) -> Optimizer:
        """Return the stand-in for updates that the user's code makes itself."""
        found = self._hands.get(keys)
        if found is None:
            found = self._hands[keys] = Optimizer(f"{BY_HAND}{', '.join(sorted(keys))}", keys)
        return found

    def named_optimizer(self, path: str) -> Optimizer:
        """Return the optimizer known by `path` only. What a wrapper holds is the wrapper's own."""
        outer, _, inner = path.rpartition(".")
        if is_optimizer_name(outer) and words_of(inner) in _INNER:
            return self.named_optimizer(outer)
        found = self._named.get(path)
        if found is None:
            found = self._named[path] = Optimizer(path, None)
            if is_scheduler_name(outer):
                found.clears_itself = None  # what it was made from is cleared by another name
        return found

    def named_scaler(self, path: str) -> Scaler:
        found = self._scalers.get(path)
        if found is None:
            found = self._scalers[path] = Scaler(path)
        return found

    def all_optimizers(self) -> list[Value]:
        return list(self._named.values())

    def as_optimizer(self, frame: Frame, value: Value) -> Optimizer | None:
        """Return the optimizer that `value` is, if it is one; a name is asked last."""
        if isinstance(value, Optimizer):
            return value
        if isinstance(value, Instance):
            return self.wrapped_optimizer(value)
        if not isinstance(value, Named):
            return None
        path = value.path
        if path in self._named:
            return self._named[path]
        if is_scheduler_name(path):
            return None
        if is_optimizer_name(path) or self._is_cleared_and_stepped(frame, path):
            return self.named_optimizer(path)
        return None

    def spelled_optimizer(self, frame: Frame, value: Value, receiver: str) -> Optimizer | None:
        """Return the optimizer that only the spelling tells of: what made it was not seen."""
        seen = not isinstance(value, Tensor) and (value not in UNSEEN or value is SCHEDULE)
        seen = seen and not (isinstance(value, Named) and value.path.endswith("]"))  # an item
        # `optimizer = None  # your code here`: what is asked to step is none, when it is
        unset = isinstance(value, Constant) and value.value in (None, ...)
        seen = seen and not (unset and receiver in frame.versions)
        if seen or not receiver or is_scheduler_name(receiver):
            return None
        if not is_optimizer_name(receiver) and not self._is_cleared_and_stepped(frame, receiver):
            return None
        return self.named_optimizer(self._qualified(frame, receiver))

    @abstractmethod
    def wrapped_optimizer(self, instance: Instance) -> Optimizer | None:
        """Return the one optimizer that an object with a step() of its own keeps inside."""

    def _is_cleared_and_stepped(self, frame: Frame, path: str) -> bool:
        """Does the file step and clear something of that name, or hand it to a scaler's step?"""
        name = path.rsplit(".", 1)[-1].split("@", 1)[0].split("[", 1)[0]
        return frame.unit.receivers.is_cleared_and_stepped(name)

    def is_engine(self, frame: Frame, value: Value) -> bool:
        """Is it an object with backward(loss) and step() of its own, which clears by itself?"""
        if isinstance(value, Engine):
            return True
        if isinstance(value, Named):
            path = value.path
        elif isinstance(value, Module):
            path = value.key
        else:
            return False
        name = path.rsplit(".", 1)[-1].split("@", 1)[0]
        text = frame.unit.source.text
        return (
            not is_optimizer_name(path)
            and f"{name}.step(" in text
            and bool(re.search(rf"\b{re.escape(name)}\.step\(\s*\)", text))
        )

    def is_lasting(self, value: Value, deep: bool = False) -> bool:
        """Does the value stand for a thing with identity, not for a number?"""
        if isinstance(value, _LASTING):
            return True
        if isinstance(value, Named):
            return is_optimizer_name(value.path) and not is_scheduler_name(value.path)
        if isinstance(value, (Several, Mapping)) and (deep or not isinstance(value, Several)):
            items = value.items if isinstance(value, Several) else list(value.items.values())
            return any(self.is_lasting(item, deep) for item in items)
        return isinstance(value, Several) and any(self.is_lasting(item) for item in value.items)

    def is_trained(self, value: Named) -> bool:
        """Is a thing known by its path one that training concerns?"""
        words = value.path.lower()
        return "param" in words or value.path in ("p", "w", "weight", "weights", "bias", "b")

    def freeze(self, what: Params | Module | Instance | Named, frozen: bool) -> None:
        """Freeze or thaw; of a network that is frozen in part nobody knows which."""
        keys = keys_of(what)
        some = isinstance(what, Params) and (
            what.part or what.either or bool(what.picks) or (what.one and self.picks_some)
        )
        if frozen and some:
            return
        self.frozen = self.frozen | keys if frozen else self.frozen - keys
