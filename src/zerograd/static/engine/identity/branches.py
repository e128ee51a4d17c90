"""A test, put together from atoms, and the branches that it makes of two blocks."""

from __future__ import annotations

from zerograd.static.engine.identity.ir import RAISE, Block, Branch, Jump, has_effect


class Test:
    """A condition: `kind` is always, never, atom, both or either."""

    __slots__ = ("key", "kind", "parts", "truth")

    def __init__(
        self, kind: str, key: str = "", truth: bool = True, parts: tuple[Test, ...] = ()
    ) -> None:
        self.kind = kind
        self.key = key
        self.truth = truth
        self.parts = parts

    def __repr__(self) -> str:
        return f"{self.kind}({self.key}{self.truth}{self.parts})"

    def negated(self) -> Test:
        if self.kind == "atom":
            return Test("atom", self.key, not self.truth)
        if self.kind in ("always", "never"):
            return NEVER if self.kind == "always" else ALWAYS
        other = "either" if self.kind == "both" else "both"
        return Test(other, self.key, not self.truth, tuple(part.negated() for part in self.parts))

    def atoms(self) -> list[str]:
        if self.kind == "atom":
            return [self.key]
        return [key for part in self.parts for key in part.atoms()]


ALWAYS = Test("always")
NEVER = Test("never")


def combined(kind: str, parts: list[Test]) -> Test:
    """Return the condition that `both` or `either` of several are."""
    neutral, final = (ALWAYS, NEVER) if kind == "both" else (NEVER, ALWAYS)
    if any(part.kind == final.kind for part in parts):
        return final
    parts = [part for part in parts if part.kind != neutral.kind]
    if not parts:
        return neutral
    return parts[0] if len(parts) == 1 else Test(kind, parts=tuple(parts))


def branch(test: Test, then: Block, otherwise: Block) -> Block:
    """Return the nodes that take `then` where the test holds and `otherwise` where not."""
    if not then and not otherwise:
        return []
    if test.kind == "always":
        return then
    if test.kind == "never":
        return otherwise
    if test.kind == "atom":
        if test.truth:
            return [Branch(test.key, then, otherwise)]
        return [Branch(test.key, otherwise, then)]
    if test.key and (_acts(then) or _acts(otherwise)):
        # What the parts say together is a condition too: a clear may depend on just that.
        if test.truth:
            then = [Branch(test.key, then, [RAISE])]
            otherwise = [Branch(test.key, [RAISE], otherwise)]
        else:
            then = [Branch(test.key, [RAISE], then)]
            otherwise = [Branch(test.key, otherwise, [RAISE])]
        test = Test(test.kind, parts=test.parts)
    first, *rest = test.parts
    remaining = rest[0] if len(rest) == 1 else Test(test.kind, parts=tuple(rest))
    if test.kind == "both":
        return branch(first, branch(remaining, then, otherwise), otherwise)
    return branch(first, then, branch(remaining, then, otherwise))


def _acts(block: Block) -> bool:
    """Does anything happen in there, or does it lead elsewhere?"""
    return has_effect(block) or any(isinstance(node, Jump) and node is not RAISE for node in block)
