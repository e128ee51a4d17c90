"""What an expression may stand for, as far as gradients care.

Values are made while a function is read from top to bottom. A value that cannot
be told is `Named`: it keeps the path by which the user's code calls it, so that
`self.opt` in one method and `self.opt` in another stay the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerograd.static.engine.identity.branches import Test


class Value:
    """Something that tells nothing."""

    __slots__ = ()

    @property
    def ident(self) -> str:
        """Equal for values that stand for the same thing."""
        return "?"


NOTHING = Value()
MADE = Value()  # an object that an unseen call has just made
WRAPPED = Value()  # the same, made from other objects, which it may hold
SCHEDULE = Value()  # what moves a learning rate: its step() uses no gradients
UNSEEN = frozenset((NOTHING, MADE, WRAPPED, SCHEDULE))  # what a call that cannot be followed gives


class Named(Value):
    """A thing known by its path only."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def ident(self) -> str:
        return f"~{self.path}"


class External(Value):
    """A name of a package outside the project: `torch.optim.Adam`."""

    __slots__ = ("dotted",)

    def __init__(self, dotted: str) -> None:
        self.dotted = dotted

    @property
    def ident(self) -> str:
        return f"!{self.dotted}"


class Constant(Value):
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    @property
    def ident(self) -> str:
        return f"={self.value!r}"


class Tested(Value):
    """A truth that was computed into a variable: `is_train = phase == "train"`."""

    __slots__ = ("test",)

    def __init__(self, test: Test) -> None:
        self.test = test

    @property
    def ident(self) -> str:
        return f"?{self.test!r}"


class Either(Value):
    """What is called, or asked, one thing where a test holds and another where it does not."""

    __slots__ = ("otherwise", "test", "then")

    def __init__(self, test: Test, then: Value, otherwise: Value) -> None:
        self.test = test
        self.then = then
        self.otherwise = otherwise

    @property
    def ident(self) -> str:
        return f"e:{self.test!r}{self.then.ident}|{self.otherwise.ident}"


class Module(Value):
    """A network. Its key is its bucket; a part of it is `key.part`."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    @property
    def ident(self) -> str:
        return f"m:{self.key}"


Pick = tuple[str, bool]  # a test of a parameter, and what it gave


class Params(Value):
    """Parameters of some buckets.

    `one` for a loop variable over them, `either` if not of all, `filled` where only those with
    a gradient were picked, `picks` the other tests by which some were picked.
    """

    __slots__ = ("either", "filled", "keys", "lacks", "one", "part", "picks")

    def __init__(
        self,
        keys: frozenset[str],
        one: bool = False,
        either: bool = False,
        filled: bool = False,
        part: bool = False,
    ) -> None:
        self.keys = keys
        self.one = one
        self.either = either
        self.filled = filled
        self.picks: frozenset[Pick] = frozenset()
        self.part = part  # some of them, by whatever they were picked
        self.lacks = False  # a part that is surely not all of them

    @property
    def ident(self) -> str:
        return f"p:{sorted(self.keys)}{self.one}{self.either}{self.filled}{self.part}{self.lacks}"

    def some(self, *, one: bool = False, lacks: bool = False) -> Params:
        """Return a part of these."""
        part = Params(self.keys, one=one, filled=self.filled, part=True)
        part.lacks = self.lacks or lacks
        part.picks = self.picks
        return part


class Gradient(Value):
    """`.grad` of parameters or of a leaf."""

    __slots__ = ("of",)

    def __init__(self, of: Value) -> None:
        self.of = of

    @property
    def ident(self) -> str:
        return f"g:{self.of.ident}"


class Bound(Value):
    """A method of an optimizer or a network that is named, not called: `clear = opt.zero_grad`."""

    __slots__ = ("name", "of")

    def __init__(self, of: Value, name: str) -> None:
        self.of = of
        self.name = name

    @property
    def ident(self) -> str:
        return f"b:{self.of.ident}.{self.name}"


BY_HAND = "by hand: "  # before the key of one that stands for the user's own updates


class Optimizer(Value):
    """An optimizer; `keys` are the buckets it holds, None where they cannot be told."""

    __slots__ = (
        *("choice", "clears_itself", "groups", "key", "keys", "lasting", "made", "of_torch"),
        *("picked", "picks", "repeats", "vague", "windowed"),
    )

    def __init__(self, key: str, keys: frozenset[str] | None) -> None:
        self.key = key
        self.keys = keys
        self.vague = frozenset[str]()  # methods of its class that do other things than they say
        self.windowed = False  # prepared by Accelerate: acts at the window's end only
        self.clears_itself: bool | None = False  # None: it calls what may clear
        self.lasting = True  # not made by the function that was being read
        self.made = False  # seen to be made, and not only known by its name
        self.groups = 0  # of parameters that it was given; 0 where that cannot be told
        self.of_torch = False  # of a class of torch.optim, and in no wrapper
        self.picks: dict[str, list[frozenset[Pick]]] = {}  # of a network: tests that picked some
        self.picked = False  # one of several, by an index that cannot be told
        self.repeats = False  # calls its closure many times in one step, as LBFGS does
        self.choice: tuple[Test, Optimizer, Optimizer] | None = None  # by which test it is which

    @property
    def is_by_hand(self) -> bool:
        """Does it stand for updates that the user's code makes itself?"""
        return self.key.startswith(BY_HAND)

    @property
    def ident(self) -> str:
        return f"o:{self.key}"


class Scaler(Value):
    """A loss scaler; one that is switched off scales nothing."""

    __slots__ = ("key", "live", "on", "there")

    def __init__(self, key: str, live: bool = True, on: Test | None = None) -> None:
        self.key = key
        self.live = live
        self.on = on  # the test by which it is switched on, where that depends
        self.there: Test | None = None  # by which test there is one, else None stands for it

    @property
    def ident(self) -> str:
        tests = [each.key if each is not None else "" for each in (self.on, self.there)]
        return f"s:{self.key}{self.live}{tests}"


class Engine(Value):
    """An object that owns the loop's backward, step and clear (DeepSpeed and its kin)."""

    __slots__ = ()

    @property
    def ident(self) -> str:
        return "engine"


class Accelerator(Value):
    """Accelerate's object; `window` tells whether accumulation of more than one is possible."""

    __slots__ = ("window",)

    def __init__(self, window: bool) -> None:
        self.window = window

    @property
    def ident(self) -> str:
        return f"acc:{self.window}"


class Tensor(Value):
    """What was computed from some buckets; not `sure` where others may come in unseen.

    `read` are the networks of which the forward was read: of these it comes through the parts that
    are named beside them.
    """

    __slots__ = ("averaged", "choice", "copied", "deps", "leaves", "read", "scaler", "sure")

    def __init__(
        self,
        deps: frozenset[str] = frozenset(),
        *,
        sure: bool = True,
        scaler: str = "",
        averaged: bool = False,
        leaves: frozenset[str] = frozenset(),
        read: frozenset[str] = frozenset(),
    ) -> None:
        self.deps = deps
        self.read = read
        self.sure = sure
        self.scaler = scaler
        self.averaged = averaged
        self.leaves = leaves
        self.choice: tuple[Test, Tensor, Tensor] | None = None  # as that of an optimizer
        self.copied = False  # of parameters, by `p.detach()`: it never has a gradient to clear

    def with_scaler(self, scaler: str) -> Tensor:
        """Return it with a scaler's factor in it, whichever of two it is."""
        made = Tensor(self.deps, sure=self.sure, leaves=self.leaves, read=self.read)
        made.averaged, made.scaler = self.averaged, scaler
        if self.choice is not None:
            test, one, other = self.choice
            made.choice = test, one.with_scaler(scaler), other.with_scaler(scaler)
        return made

    def only_to(self, keys: frozenset[str]) -> Tensor:
        """Return it as `backward(inputs=…)` sends it back: to what it is told, and no further."""
        made = Tensor(keys, scaler=self.scaler, averaged=self.averaged)
        if self.choice is not None:
            test, one, other = self.choice
            made.choice = test, one.only_to(keys), other.only_to(keys)
        return made

    @property
    def ident(self) -> str:
        test = self.choice[0].key if self.choice is not None else ""
        marks = f"{self.sure}{self.scaler}{self.averaged}{self.copied}{test}"
        return f"t:{sorted(self.deps)}{marks}{sorted(self.leaves)}{sorted(self.read)}"


def read_in(tensors: Iterable[Tensor]) -> frozenset[str]:
    """Return the networks that what is computed from these comes through as their forwards show."""
    held = [*tensors]
    read = frozenset[str]().union(*(each.read for each in held))
    return read.difference(*(each.deps - each.read for each in held)) if read else read


class Successor(Tensor):
    """What a leaf's name stands for after `w = w - lr * w.grad`: a new tensor, with no gradient."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    @property
    def ident(self) -> str:
        return f"s:{self.key}"


class Leaf(Value):
    """A tensor made with requires_grad that is no parameter of a network."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    @property
    def ident(self) -> str:
        return f"l:{self.key}"


class Several(Value):
    """A tuple or list; `open` if there may be more of the same kind."""

    __slots__ = ("depth", "items", "open")

    def __init__(self, items: list[Value], open: bool = False) -> None:
        self.items = items
        self.open = open
        self.depth = 0  # loops around a list that is written down in them, new in each round

    @property
    def ident(self) -> str:
        return f"[{','.join(item.ident for item in self.items)}]{self.open}"


class Mapping(Value):
    __slots__ = ("items",)

    def __init__(self, items: dict[object, Value]) -> None:
        self.items = items

    @property
    def ident(self) -> str:
        return "{" + ",".join(f"{key!r}:{item.ident}" for key, item in self.items.items()) + "}"


def leaves_of(value: Value, depth: int = 0) -> Sequence[Value]:
    """Return the values inside tuples, lists and dicts."""
    if isinstance(value, Several):
        items = value.items
    elif type(value) is Mapping:
        items = list(value.items.values())
    else:
        return (value,)
    return [leaf for item in items for leaf in leaves_of(item, depth + 1)] if depth < 5 else ()


def apart(item: Value, whole: Value) -> Value:
    """Return what may be put into a list or a dict: nothing, where it would come to hold itself.

    `losses.append(losses)` is a slip of the pen that Python allows, and what is in such a list
    has no end.
    """
    return NOTHING if _is_within(whole, item) else item


def _is_within(value: Value, item: Value) -> bool:
    if isinstance(item, Several):
        return item is value or any(_is_within(value, each) for each in item.items)
    if type(item) is Mapping:
        return item is value or any(_is_within(value, each) for each in item.items.values())
    return False


CONTAINERS = frozenset[type[Value]]((Several, Mapping))
