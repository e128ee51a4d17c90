"""Which things were made from which others, and what was attached to them."""

from __future__ import annotations

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.keys import covers
from zerograd.static.engine.identity.values import Leaf, Named, Tensor, Value
from zerograd.static.engine.text.words import words_of

# words in the names of what a network goes on from in its next call
_MEMORY = frozenset(("hidden", "state", "states", "memory", "cell", "context"))


class Ties:
    """What is known of things that were made or set where it was not seen."""

    def __init__(self) -> None:
        self.keepers: dict[str, frozenset[str]] = {}  # objects of elsewhere: optimizers they hold
        self.takers = frozenset[str]()  # objects of elsewhere made from parameters
        self._derived: dict[str, frozenset[str]] = {}
        self._attached: dict[tuple[str, str], Value] = {}
        self._joined: dict[str, set[str]] = {}  # networks: those that were made part of them

    def derive(self, path: str, keys: frozenset[str]) -> None:
        """Remember that an unseen call has made `path` from these networks."""
        self._derived[path] = self._derived.get(path, frozenset()) | keys

    def behind(self, value: Value) -> frozenset[str]:
        """Return the networks that a thing known by its path only was made from."""
        if isinstance(value, Instance):
            return value.held
        path = value.path if isinstance(value, Named) else getattr(value, "key", "")
        return self._derived.get(path, frozenset())

    def held_by(self, value: Value) -> frozenset[str]:
        """Return what an object of a class that is not seen was made from."""
        if not isinstance(value, Named):
            return frozenset()
        return self.behind(value) | self.keepers.get(value.path, frozenset())

    def attach(self, key: str, name: str, value: Value) -> None:
        """Remember `net.optim = …`."""
        self._attached[key, name] = value

    def attached(self, key: str, name: str) -> Value | None:
        return self._attached.get((key, name))

    def join(self, key: str, part: str) -> None:
        """Remember `net.head = head`: what is done to all of the network is done to the head."""
        if not covers(key, part):
            self._joined.setdefault(key, set()).add(part)

    def joined_to(self, keys: frozenset[str]) -> frozenset[str]:
        """Return the networks made elsewhere that are part of these, or of a part of these."""
        found: set[str] = set()
        more = keys if self._joined else frozenset[str]()
        while more:
            own = (part for key, part in self._joined.items() if any(covers(e, key) for e in more))
            more = frozenset[str]().union(*own) - found
            found |= more
        return frozenset(found)

    def put_into(self, values: list[Value]) -> frozenset[str]:
        """Return the leaves that stand in what others have filled: `data["x"] = leaf`."""
        paths = {each.path for each in values if type(each) is Named} if self._attached else set()
        return frozenset(
            value.key
            for (key, _), value in self._attached.items()
            if key in paths and type(value) is Leaf
        )

    def remembered_by(self, keys: frozenset[str]) -> frozenset[str]:
        """Return what a network goes on from: `decoder.hidden = encoder(x)`."""
        return frozenset[str]().union(
            *(
                value.deps
                for (key, name), value in self._attached.items()
                if key in keys and type(value) is Tensor and not _MEMORY.isdisjoint(words_of(name))
            )
        )
