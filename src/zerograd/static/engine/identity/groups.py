"""The groups of parameters that an optimizer is made with, and keeps."""

from __future__ import annotations

from zerograd.static.engine.identity.values import Mapping, Params, Several, Value


class Groups(Several):
    """`opt.param_groups`: one that stands for all, and how many there are, 0 if not told."""

    __slots__ = ("number",)

    def __init__(self, params: Params, number: int) -> None:
        super().__init__([Mapping({"params": params})], open=True)
        self.number = number

    @property
    def ident(self) -> str:
        return f"{super().ident}{self.number}"

    def one(self) -> Mapping:
        """Return the group at an index: all parameters, if there is no other."""
        params = keep = self.items[0].items["params"]  # type: ignore[attr-defined]
        if self.number != 1:
            keep = params.some(lacks=self.number > 1)
        return Mapping({"params": keep})


def groups_in(source: Value) -> int:
    """Return how many groups of parameters an optimizer is made with, 0 if it is not told."""
    if not isinstance(source, Several) or source.open or not source.items:
        return int(isinstance(source, Params))
    if all(isinstance(each, Mapping) for each in source.items):
        return len(source.items)
    return groups_in(source.items[0])  # behind it stand settings
