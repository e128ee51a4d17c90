"""Fixtures that all tests share: `check` for snippets, `golden` for expected reports."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

GOLDEN = Path(__file__).parent / "golden"
SOURCE = Path(__file__).parents[1] / "src" / "zerograd"
LONG = 400


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write tests/golden from what the code says"
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what depends on the machine: other Pythons found, and modules that have grown long."""
    if hasattr(config, "workerinput") or config.option.verbose < 0:
        return []  # nobody would see it
    from tests.architecture.pythons import OTHERS

    others = ", ".join(other.version for other in OTHERS) or "none"
    lines = [f"other Pythons found: {others}"]
    long = [f"{path.relative_to(SOURCE)} ({count})" for path, count in long_modules()]
    if long:
        lines.append(f"modules past {LONG} lines, look for a second noun: {', '.join(long)}")
    return lines


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> Iterator[None]:
    """As in a process of its own: what an earlier test compiled is nothing to the next one."""
    yield
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        dynamo.counters.clear()


@pytest.fixture(scope="module", autouse=True)
def no_ranks_left_behind() -> Iterator[None]:
    """A process group that one module leaves open makes ranks of all the tests after it."""
    yield
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
        pytest.fail("the tests of this module have left a default process group open")


def long_modules() -> list[tuple[Path, int]]:
    counts = [(path, path.read_bytes().count(b"\n")) for path in sorted(SOURCE.rglob("*.py"))]
    return [(path, count) for path, count in counts if count > LONG]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")


@pytest.fixture
def check() -> Callable[..., list[tuple[str, int]]]:
    """Return a function: a snippet in, the (code, line) pairs of its findings out."""
    from zerograd.static.check import check_source

    def check_snippet(snippet: str) -> list[tuple[str, int]]:
        source = dedent(snippet).lstrip("\n")
        return [(each.rule.code, each.spot.line) for each in check_source(source, "snippet.py")]

    return check_snippet


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return a function that demands that a text equals the file of that name in tests/golden."""
    rewrite = request.config.getoption("--rewrite-golden")

    def compare(name: str, text: str) -> None:
        expected = GOLDEN / name
        if rewrite:
            expected.parent.mkdir(parents=True, exist_ok=True)
            expected.write_text(text, encoding="utf-8", newline="\n")
            return
        wanted = expected.read_text(encoding="utf-8") if expected.exists() else ""
        if text == wanted:
            return
        actual = GOLDEN / "actual" / name
        actual.parent.mkdir(parents=True, exist_ok=True)
        actual.write_text(text, encoding="utf-8", newline="\n")
        diff = difflib.unified_diff(
            wanted.splitlines(),
            text.splitlines(),
            f"golden/{name}",
            f"golden/actual/{name}",
            lineterm="",
        )
        pytest.fail("\n".join(["not as expected; `make golden` accepts it:", *diff]), pytrace=False)

    return compare
