"""Where the programs come from that are rewritten."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agreement.generate import generate

ROOT = Path(__file__).resolve().parents[3]
SUITE = ROOT / "tests" / "suite"
LOOPS = ROOT / "tests" / "static" / "loops"
SETTING = "import torch\nfrom torch import nn, optim\nimport torch.nn.functional as F\n"


@dataclass(frozen=True, slots=True)
class Program:
    """One program that is read as it should be before it is rewritten."""

    name: str
    text: str
    runs: bool  # can it be executed as it stands?


def written() -> list[Program]:
    """Return the scripts of the test suite, which run."""
    paths = [*sorted(SUITE.glob("correct/*.py")), *sorted(SUITE.glob("faulty/*.py"))]
    found = [
        Program(f"{path.parent.name}/{path.stem}", path.read_text(encoding="utf-8"), runs=True)
        for path in paths
    ]
    # A rewritten program has no comments, so none that allows a finding.
    return [program for program in found if "zerograd: allow" not in program.text]


def loops() -> list[Program]:
    """Return the small loops of the engine's tests, which only are read."""
    found = []
    for file in sorted(LOOPS.glob("*.txt")):
        parts = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", file.read_text("utf-8"), re.M | re.S)
        found += [Program(f"{file.stem}/{title}", SETTING + text, False) for title, text in parts]
    return [program for program in found if _parses(program.text)]


def _parses(text: str) -> bool:
    """Some are of an older Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def generated(count: int) -> list[Program]:
    """Return generated programs; they are given a loader and flags when they run."""
    return [Program(f"generated/{seed}", generate(seed).text, runs=True) for seed in range(count)]
