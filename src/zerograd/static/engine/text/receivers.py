"""Whose methods are called in a file: read once from its lines, and asked about for many names."""

from __future__ import annotations

import re

from zerograd.static.engine.text.places import Places

_NETWORKS = re.compile(r"\.(\w+)\.(?:zero_grad|(?:named_)?parameters)\(")
_WITH_PARAMETERS = re.compile(r"(?<![\w.])(\w+)\.(?:\w+\.)*(?:\w+_)?parameters\(")
_BY_SCALERS = re.compile(r"scaler\w*\.(?:step|unscale_)\(\s*(?:[\w.]+\.)?(\w+)\s*[,)]")


class Receivers:
    """The names of what is asked for its parameters, or handed to a scaler."""

    __slots__ = ("_by_scalers", "_networks", "_places", "_with_parameters")

    def __init__(self, places: Places) -> None:
        self._places = places
        self._networks: frozenset[str] | None = None
        self._with_parameters: frozenset[str] | None = None
        self._by_scalers: frozenset[str] | None = None

    @property
    def networks(self) -> frozenset[str]:
        """The names of parts that are networks: `D` by `m.D.parameters()`."""
        if self._networks is None:
            self._networks = self._found(_NETWORKS, "zero_grad", "parameters(")
        return self._networks

    @property
    def with_parameters(self) -> frozenset[str]:
        """The names that parameters are asked of, or of a part of it: `m` by `m.D.parameters()`."""
        if self._with_parameters is None:
            self._with_parameters = self._found(_WITH_PARAMETERS, "parameters(")
        return self._with_parameters

    @property
    def by_scalers(self) -> frozenset[str]:
        """The names of what a scaler is handed to step or to unscale."""
        if self._by_scalers is None:
            text = self._places.text
            found = _BY_SCALERS.findall(text) if "scaler" in text else ()
            self._by_scalers = frozenset(found)
        return self._by_scalers

    def _found(self, pattern: re.Pattern[str], *words: str) -> frozenset[str]:
        """Return what a pattern finds in the rows that hold one of the words, as it must."""
        rows = {row for word in words for row in self._places.rows(word)}
        return frozenset(name for row in rows for name in pattern.findall(self._places.row(row)))
