"""A program while it is being written: lines and blocks, each with the idioms it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Line:
    """One simple statement."""

    text: str
    tag: str = ""  # "clear: optimizer", "step: closure"; empty if it is no event


@dataclass(slots=True)
class Block:
    """A compound statement and its body."""

    head: str
    body: list[Node] = field(default_factory=list)
    tag: str = ""
    whole: bool = False  # one idiom in several lines: nothing is changed inside it
    more: list[Block] = field(default_factory=list)  # `else`, `except`, `finally`


Node = Line | Block


def render(nodes: list[Node], depth: int = 0) -> list[str]:
    """Return the lines of the program text."""
    lines = []
    for node in nodes:
        pad = "    " * depth
        if isinstance(node, Line):
            lines.append(pad + node.text if node.text else "")
        else:
            lines += [pad + node.head, *render(node.body or [Line("pass")], depth + 1)]
            lines += render([*node.more], depth)
    return lines


def tags(nodes: list[Node]) -> Iterator[str]:
    """Yield the idioms that the program holds."""
    for node in nodes:
        if node.tag:
            yield node.tag
        if isinstance(node, Block):
            yield from tags([*node.body, *node.more])


def places(nodes: list[Node]) -> Iterator[tuple[list[Node], int]]:
    """Yield every place where a statement could be changed: the list it is in, and where."""
    for at, node in enumerate(nodes):
        yield nodes, at
        if isinstance(node, Block) and not node.whole:
            yield from places(node.body)
            for part in node.more:
                yield from places(part.body)
