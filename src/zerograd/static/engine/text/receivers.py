"""Whose methods are called in a file: read once from its lines, and asked about for many names."""

from __future__ import annotations

import re

from zerograd.static.engine.text.places import Places
from zerograd.static.engine.text.words import shared_kinds

_NETWORKS = re.compile(r"\.(\w+)\.(?:zero_grad|(?:named_)?parameters)\(")
_WITH_PARAMETERS = re.compile(r"(?<![\w.])(\w+)\.(?:\w+\.)*(?:\w+_)?parameters\(")
_WITH_PARTS = re.compile(r"(\w+)(?=(?:\.\w+)+\.(?:\w+_)?parameters\()")
_BY_SCALERS = re.compile(r"scaler\w*\.(?:step|unscale_)\(\s*(?:[\w.]+\.)?(\w+)\s*[,)]")
_STEPPED = re.compile(r"\b(\w+)\.step\(\s*\)")
_CLEARED = re.compile(r"\b(\w+)\.zero_grad\(")


class Receivers:
    """The names of what is asked for its parameters, or handed to a scaler."""

    __slots__ = (
        *("_by_scalers", "_networks", "_optimizers", "_places", "_with_parameters", "_with_parts"),
    )

    def __init__(self, places: Places) -> None:
        self._places = places
        self._networks: frozenset[str] | None = None
        self._with_parameters: frozenset[str] | None = None
        self._with_parts: frozenset[str] | None = None
        self._by_scalers: frozenset[str] | None = None
        self._optimizers: dict[str, bool] = {}

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
    def with_parts(self) -> frozenset[str]:
        """The names of what has parts that are asked for theirs: `m` by `m.D.parameters()`."""
        if self._with_parts is None:
            self._with_parts = self._found(_WITH_PARTS, "parameters(")
        return self._with_parts

    @property
    def by_scalers(self) -> frozenset[str]:
        """The names of what a scaler is handed to step or to unscale."""
        if self._by_scalers is None:
            text = self._places.text
            found = _BY_SCALERS.findall(text) if "scaler" in text else ()
            self._by_scalers = frozenset(found)
        return self._by_scalers

    def is_cleared_and_stepped(self, name: str) -> bool:
        """Does the file step and clear something of that name, or hand it to a scaler's step?"""
        known = self._optimizers.get(name)
        if known is None:
            known = self._optimizers[name] = name in self.by_scalers or self._is_optimizer(name)
        return known

    def _is_optimizer(self, name: str) -> bool:
        text, last = self._places.text, re.escape(name)
        if f"{name}.step(" not in text or not re.search(rf"\b{last}\.step\(\s*\)", text):
            return False
        if f"{name}.backward(" in text and re.search(rf"\b{last}\.backward\(", text):
            return False  # an engine, which does all
        if f"{name}.zero_grad(" in text and re.search(rf"\b{last}\.zero_grad\(", text):
            return True
        # solver_g.step() beside solver_d, which is cleared and stepped
        others = set(_STEPPED.findall(text)) & set(_CLEARED.findall(text))
        kinds = {word for each in others for word in shared_kinds(name, each)}
        # `ema_first` shares with solver_first what they are for: there is something of that name
        return any(not re.search(rf"(?<![\w.]){kind}\b", text) for kind in kinds)

    def _found(self, pattern: re.Pattern[str], *words: str) -> frozenset[str]:
        """Return what a pattern finds in the rows that hold one of the words, as it must."""
        rows = {row for word in words for row in self._places.rows(word)}
        return frozenset(name for row in rows for name in pattern.findall(self._places.row(row)))
