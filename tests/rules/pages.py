"""Reads the rule pages: their sections, and the code blocks that the tests execute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from zerograd.lifecycle.rule import Rule
from zerograd.rules import ALL_RULES

SECTIONS = [
    "What it means",
    "Why it hurts",
    "Bad",
    "Good",
    "When to allow it",
    "Who sees it and what they miss",
]

FENCE = re.compile(r"^```python (bad|good)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECT = re.compile(r"# expect: (ZG\d{3})( on the next line)?")
LIVE = re.compile(r"# live: (ZG\d{3})")
RAISES = re.compile(r"# raises: (\w+)")
RANKS = re.compile(r"# torchrun --nproc-per-node (\d+)")


@dataclass(frozen=True)
class Block:
    """One block of code on a page."""

    rule: Rule
    number: int
    kind: str  # "bad" or "good"
    source: str

    @property
    def name(self) -> str:
        return f"{self.rule.code}-{self.kind}-{self.number}"

    @property
    def filename(self) -> str:
        return f"{self.name}.py"

    @property
    def expected(self) -> set[tuple[str, int]]:
        """The codes and lines that the block's own comments name."""
        return {
            (match.group(1), number + bool(match.group(2)))
            for number, line in enumerate(self.source.splitlines(), 1)
            for match in EXPECT.finditer(line)
        }

    @property
    def consequences(self) -> set[tuple[str, int]]:
        """What a live run says of a fault that only the static checker can name."""
        return {
            (code, number)
            for number, line in enumerate(self.source.splitlines(), 1)
            for code in LIVE.findall(line)
        }

    @property
    def raises(self) -> str | None:
        """The name of the exception that the block ends in."""
        found = RAISES.search(self.source)
        return found.group(1) if found else None

    @property
    def ranks(self) -> int:
        """How many processes it takes."""
        found = RANKS.search(self.source)
        return int(found.group(1)) if found else 1


def file_name(rule: Rule) -> str:
    return rule.name.replace("-", "_") + ".md"


def pages() -> dict[str, str]:
    """Return every page there is, by file name."""
    folder = resources.files("zerograd.rules")
    return {
        each.name: each.read_text(encoding="utf-8")
        for each in folder.iterdir()
        if each.name.endswith(".md")
    }


def page(rule: Rule) -> str:
    return pages()[file_name(rule)]


def section(text: str, title: str) -> str:
    """Return the text below one heading."""
    _, _, rest = text.partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def blocks() -> list[Block]:
    """Return every code block of every page."""
    found = pages()
    return [
        Block(rule, number, match.group(1), match.group(2))
        for rule in ALL_RULES
        for number, match in enumerate(FENCE.finditer(found.get(file_name(rule), "")), 1)
    ]
