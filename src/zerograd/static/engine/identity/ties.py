"""Which things were made from which others, and what was attached to them."""

from __future__ import annotations

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.values import Named, Tensor, Value
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

    def remembered_by(self, keys: frozenset[str]) -> frozenset[str]:
        """Return what a network goes on from: `decoder.hidden = encoder(x)`."""
        return frozenset[str]().union(
            *(
                value.deps
                for (key, name), value in self._attached.items()
                if key in keys and type(value) is Tensor and not _MEMORY.isdisjoint(words_of(name))
            )
        )
