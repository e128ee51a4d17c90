"""What the project's own code defines: functions, classes, their objects, other modules."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.values import Value

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.text.classes import ClassUnit


class Function(Value):
    """A function of the project, with what it closes over and what it is bound to."""

    __slots__ = ("bare", "bound", "closure", "given", "maker", "named", "node", "owner", "unit")

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        unit: Unit,
        *,
        bound: Value | None = None,
        closure: dict[str, Value] | None = None,
        owner: ClassUnit | None = None,
    ) -> None:
        self.node = node
        self.unit = unit
        self.bound = bound
        self.closure = closure
        self.owner = owner
        self.maker: Frame | None = None  # the frame it was defined in
        self.given: tuple[Value, ...] = ()  # arguments that functools.partial put in front
        self.named: dict[str, Value] = {}  # and those it gave by name
        self.bare = False  # as written, without what its decorators put around it

    @property
    def ident(self) -> str:
        given = [*self.given, *self.named.values()]
        bound = self.bound.ident if self.bound else ""
        return f"f:{id(self.node)}:{bound}{''.join(each.ident for each in given)}"

    @property
    def reader(self) -> Value | str:
        """For whom it is read: one that sets attributes, for each object by itself."""
        bound = self.bound
        if isinstance(bound, Instance) and self.owner is not None:
            name = getattr(self.node, "name", "")
            if name == "__init__" or f"{self.owner.name}.{name}" in bound.primed:
                return bound
        return bound.ident if bound is not None else ""

    def with_given(self, positional: list[Value], named: dict[str, Value]) -> Function:
        """Return the function with some arguments given beforehand."""
        made = Function(
            self.node, self.unit, bound=self.bound, closure=self.closure, owner=self.owner
        )
        made.maker = self.maker
        made.given = (*self.given, *positional)
        made.named = {**self.named, **named}
        return made


class Class(Value):
    __slots__ = ("unit",)

    def __init__(self, unit: ClassUnit) -> None:
        self.unit = unit

    @property
    def ident(self) -> str:
        return f"c:{id(self.unit)}"


class Instance(Value):
    """An object of a class of the project."""

    __slots__ = ("attributes", "cls", "held", "key", "primed")

    def __init__(self, cls: ClassUnit, key: str) -> None:
        self.cls = cls
        self.key = key
        self.attributes: dict[str, Value] = {}
        self.held: frozenset[str] = frozenset()  # keys of networks that it was made from
        self.primed: set[str] = set()  # methods read for the attributes they set

    @property
    def ident(self) -> str:
        return f"i:{id(self.cls)}:{self.key}"


class Namespace(Value):
    """Another module of the project."""

    __slots__ = ("unit",)

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    @property
    def ident(self) -> str:
        return f"n:{id(self.unit)}"


class Super(Value):
    """`super()`: the methods of the classes above `owner`, bound to `of`."""

    __slots__ = ("of", "owner")

    def __init__(self, of: Instance, owner: ClassUnit) -> None:
        self.of = of
        self.owner = owner
