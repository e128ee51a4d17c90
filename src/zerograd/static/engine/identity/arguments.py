"""The arguments of a call, evaluated."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.groups import Groups
from zerograd.static.engine.identity.values import (
    CONTAINERS,
    NOTHING,
    Bound,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Successor,
    Tensor,
    Value,
    leaves_of,
    read_in,
)
from zerograd.static.engine.text.settings import are_settings
from zerograd.static.engine.text.words import is_model_name, is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.identity.unit import Unit


# what optimizers are told besides what they hold
_SETTINGS = frozenset(
    (
        *("lr", "learning_rate", "betas", "eps", "weight_decay", "momentum", "nesterov", "alpha"),
        *("dampening", "amsgrad", "foreach", "fused", "maximize", "capturable", "max_iter", "rho"),
    )
)


class Arguments:
    """Positional and named values."""

    __slots__ = ("_kinds", "_leaves", "named", "nodes", "positional", "unit", "unknown")

    def __init__(
        self, positional: list[Value], named: dict[str, Value], unit: Unit | None = None
    ) -> None:
        self.positional = positional
        self.named = named
        self.nodes: dict[str | int, ast.expr] = {}
        self.unit = unit  # where the call is written, if it is
        self.unknown = False  # what else is handed is not known, so defaults say nothing
        self._leaves: list[Value] | None = None
        self._kinds: set[type] | None = None  # of the leaves

    @classmethod
    def of_nobody(cls) -> Arguments:
        """Return the arguments of a function that nothing here calls."""
        nobody = cls([], {})
        nobody.unknown = True
        return nobody

    @classmethod
    def none(cls) -> Arguments:
        return cls([], {})

    @classmethod
    def of(cls, frame: Frame, node: ast.Call) -> Arguments:
        """Evaluate the arguments of a call, in order."""
        positional: list[Value] = []
        found = cls(positional, {}, frame.unit)
        evaluate = frame.program.evaluate
        bare, frame.bare = frame.bare, False  # a value that is handed on is used
        for each in node.args:
            value = evaluate(frame, each)
            if type(each) is ast.Starred and isinstance(value, Several):
                positional.extend(value.items)
            else:
                found.nodes[len(positional)] = each
                positional.append(value)
        for keyword in node.keywords:
            value = evaluate(frame, keyword.value)
            if keyword.arg is not None:
                found.named[keyword.arg] = value
                found.nodes[keyword.arg] = keyword.value
            elif isinstance(value, Mapping):  # f(**options)
                for key, item in value.items.items():
                    if isinstance(key, str):
                        found.named.setdefault(key, item)
            else:
                found.unknown = True  # what they hold stands before any default
        frame.bare = bare
        return found

    def after(self, given: tuple[Value, ...], named: dict[str, Value]) -> Arguments:
        """Return these arguments behind those that were given beforehand."""
        if not given and not named:
            return self
        whole = Arguments([*given, *self.positional], {**named, **self.named}, self.unit)
        whole.nodes = {
            place + len(given) if isinstance(place, int) else place: node
            for place, node in self.nodes.items()
        }
        whole.unknown = self.unknown
        return whole

    def first(self) -> Value:
        if self.positional:
            return self.positional[0]
        return next(iter(self.named.values()), NOTHING)

    def all(self) -> list[Value]:
        return [*self.positional, *self.named.values()]

    def get(self, name: str, position: int | None = None) -> Value | None:
        if name in self.named:
            return self.named[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def leaves(self) -> list[Value]:
        """Return all values, those inside tuples, lists and dicts too."""
        if self._leaves is None:
            self._leaves = [*self.positional, *self.named.values()]
            if not _CONTAINERS.isdisjoint(map(type, self._leaves)):
                self._leaves = [leaf for value in self._leaves for leaf in leaves_of(value)]
        return self._leaves

    def _look(self) -> set[type]:
        """Return the kinds of the leaves: most calls are handed numbers and settings."""
        self._kinds = found = set(map(type, self.leaves())) or _NO_KINDS
        return found

    def optimizers(self) -> list[Value]:
        """Return the arguments that are optimizers, or look like it."""
        if (self._kinds or self._look()).isdisjoint(_MAY_STEP):
            return []
        return [
            each
            for each in self.leaves()
            if type(each) is Optimizer
            or (
                type(each) is Named
                and is_optimizer_name(each.path)
                and not (self.unit and are_settings(self.unit.source.text, each.path))
            )
        ]

    def gradients(self) -> list[Value]:
        return [each for each in self.leaves() if isinstance(each, Gradient)]

    def has_modules(self) -> bool:
        kinds = self._kinds or self._look()
        return not kinds.isdisjoint(_NETWORKS) or (
            Named in kinds
            and any(type(each) is Named and is_model_name(each.path) for each in self.leaves())
        )

    def held(self) -> Several:
        """Return what an optimizer made from these arguments may hold: not its settings."""
        named = [value for name, value in self.named.items() if name not in _SETTINGS]
        positional = self.positional
        if positional and any(isinstance(each, Params) for each in leaves_of(positional[0])):
            # Behind the parameters stand settings, such as a rate that the object keeps.
            rest = [each for each in positional[1:] if not isinstance(each, Named | Module)]
            positional = [positional[0], *rest]
        return Several([*map(_without_settings, positional), *named])

    def has_functions(self) -> bool:
        return not (self._kinds or self._look()).isdisjoint(_FUNCTIONS)

    def has_params(self) -> bool:
        return Params in (self._kinds or self._look())

    def computed(self) -> Value:
        """Return what computing with the arguments gives."""
        if (self._kinds or self._look()).isdisjoint(_COMPUTED):
            return NOTHING
        tensors: list[Tensor] = []
        leaves: list[str] = []
        for each in self.leaves():
            if isinstance(each, Tensor):
                tensors.append(each)
            elif isinstance(each, Leaf):
                leaves.append(each.key)
        if len(tensors) == 1 and not leaves:
            (one,) = tensors
            made = Tensor(
                one.deps,
                sure=one.sure,
                scaler=one.scaler,
                averaged=one.averaged,
                leaves=one.leaves,
                read=one.read,
            )
            made.choice = one.choice
            return made
        # What is weighed beside the outputs of networks, a target say, weighs no loss.
        outputs = [each for each in tensors if each.deps or not each.sure] or tensors
        return Tensor(
            frozenset().union(*(each.deps for each in tensors)),
            sure=all(each.sure for each in tensors),
            scaler=next((each.scaler for each in tensors if each.scaler), ""),
            averaged=any(each.averaged for each in outputs),
            leaves=frozenset(leaves).union(*(each.leaves for each in tensors)),
            read=read_in(tensors),
        )


_CONTAINERS = CONTAINERS | {Groups}
_NO_KINDS: set[type] = {type(None)}  # of no leaves; true, so that it is found but once
_FUNCTIONS = frozenset[type[Value]]((Function, Bound))
_MAY_STEP = frozenset[type[Value]]((Optimizer, Named))
_NETWORKS = frozenset[type[Value]]((Module, Instance))
_COMPUTED = frozenset[type[Value]]((Tensor, Successor, Leaf))
MAY_COMPUTE = _COMPUTED | _CONTAINERS  # what may have been computed, or hold what was


def _without_settings(value: Value) -> Value:
    """Return groups of parameters without what is set for each: `{"params": …, "lr": rate}`."""
    if type(value) is Several and any(type(each) is Mapping for each in value.items):
        return Several([_without_settings(each) for each in value.items], value.open)
    if type(value) is Mapping and not _SETTINGS.isdisjoint(value.items):
        return Mapping({key: each for key, each in value.items.items() if key not in _SETTINGS})
    return value
