"""Data flows one way: a room imports only from the rooms above it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import zerograd
from tests.architecture.imports import Import, When, imports, modules

PACKAGE = Path(zerograd.__file__).parent

_CORE = {"errors", "lifecycle", "rules"}
_ANY = {"*"}

# room -> the rooms it may import, beside itself
MAY_IMPORT = {
    "errors": set(),
    "lifecycle": {"errors"},
    "rules": {"errors", "lifecycle"},
    "static": _CORE,
    "trace": _CORE,
    "report": _CORE,
    "runtime": _CORE | {"trace"},
    "buffers": {"errors", "lifecycle"},
    "training": {"errors", "lifecycle", "runtime", "buffers"},
    "bench": {"errors", "buffers", "training"},
    "demo": set(),
    "lab": _ANY,
    "learn": _ANY,
    "cli": _ANY,
    "__main__": {"cli"},
}
# The rooms of the checker's engine, in the order that data flows: each imports those before it.
ENGINE = ("text", "identity", "reading", "flow", "judging", "beside")

# These see everything, and nothing below may see them.
TOP = {"cli", "lab", "learn", "demo"}

TORCH_ROOMS = {"runtime", "training", "buffers", "bench", "lab", "demo"}
TORCH_CONTENT = "zerograd.learn.exercises"  # what learners write is about torch

POSIX_ONLY = {
    "curses", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline", "resource", "spwd",
    "syslog", "termios", "tty",
}  # fmt: skip


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def broken_layers(package: Path) -> list[str]:
    """Return every import that goes against the flow."""
    known = {room(name) for name, _ in modules(package)}
    return [str(each) for each in imports(package) if not _may(each, known)]


def _may(each: Import, rooms: set[str]) -> bool:
    if not each.target.startswith("zerograd") or each.when is When.NEVER:
        return True
    here, there = room(each.module), room(each.target)
    if here == there or there not in rooms:  # "" and `zerograd.__version__` are the root itself
        return True
    if here == "":
        return False  # the root resolves its names lazily
    if there in TOP and here not in TOP | {"__main__"}:
        return False
    allowed = MAY_IMPORT.get(here, set())
    return allowed == _ANY or there in allowed


def broken_engine(package: Path) -> list[str]:
    """Return every import of the engine that goes back to a later room of it."""
    inside = "zerograd.static.engine."
    return [
        str(each)
        for each in imports(package)
        if each.when is not When.NEVER
        and each.module.startswith(inside)
        and each.target.startswith(inside)
        and _place(each.target) > _place(each.module)
    ]


def _place(module: str) -> int:
    return ENGINE.index(module.split(".")[3])


def torch_outside_its_rooms(package: Path) -> list[str]:
    return [
        str(each)
        for each in imports(package)
        if each.target.split(".")[0] == "torch"
        and each.when is not When.NEVER
        and room(each.module) not in TORCH_ROOMS
        and not each.module.startswith(TORCH_CONTENT)
        and not (room(each.module) in TOP and each.when is When.IN_FUNCTION)
    ]


def posix_at_import(package: Path) -> list[str]:
    return [
        str(each)
        for each in imports(package)
        if each.target.split(".")[0] in POSIX_ONLY and each.when is When.AT_IMPORT
    ]


def test_every_room_has_its_place_in_the_house():
    rooms = {room(name) for name, _ in modules(PACKAGE)} - {""}
    assert rooms <= set(MAY_IMPORT), f"say what {rooms - set(MAY_IMPORT)} may import"


def test_data_flows_one_way():
    assert broken_layers(PACKAGE) == []


def test_data_flows_one_way_through_the_engine():
    engine = {name.split(".")[3] for name, _ in modules(PACKAGE) if ".engine." in name}
    assert engine == set(ENGINE)
    assert broken_engine(PACKAGE) == []


def test_torch_is_imported_only_in_its_rooms():
    assert torch_outside_its_rooms(PACKAGE) == []


def test_nothing_posix_only_is_imported_at_module_level():
    assert posix_at_import(PACKAGE) == []


def test_no_room_is_called_utils():
    words = {"utils", "helpers", "common", "misc", "base", "manager"}
    names = {part for name, _ in modules(PACKAGE) for part in name.split(".")}
    assert not names & words


@pytest.fixture
def house(tmp_path):
    """A small package in which a test plants its faults."""

    def build(**files: str) -> Path:
        package = tmp_path / "zerograd"
        rooms = ("static/flow", "static/engine/text/words", "static/engine/flow/flow")
        for name in ("errors", "lifecycle/events", *rooms, "report/terminal", "cli/main"):
            path = package / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(files.get(name.replace("/", "_"), ""), encoding="utf-8")
        return package

    return build


@pytest.mark.parametrize(
    "fault",
    [
        {"lifecycle_events": "from zerograd.static.flow import x"},
        {"lifecycle_events": "from ..static import flow"},
        {"lifecycle_events": "def f():\n    import zerograd.report.terminal"},
        {"lifecycle_events": "try:\n    from zerograd import static\nexcept ImportError: pass"},
        {"static_flow": "from zerograd.report.terminal import x"},
        {"static_flow": "import zerograd.cli.main"},
        {"errors": "from zerograd.lifecycle import events"},
    ],
)
def test_the_layer_test_can_fail(house, fault):
    assert broken_layers(house()) == []
    assert len(broken_layers(house(**fault))) == 1


def test_the_test_of_the_engine_can_fail(house):
    later = "from zerograd.static.engine.{} import x"
    assert broken_engine(house(static_engine_flow_flow=later.format("text.words"))) == []
    assert len(broken_engine(house(static_engine_text_words=later.format("flow.flow")))) == 1


def test_imports_for_types_alone_are_free(house):
    text = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from zerograd.static import flow"
    )
    assert broken_layers(house(lifecycle_events=text)) == []


def test_the_torch_and_posix_tests_can_fail(house):
    assert torch_outside_its_rooms(house(static_flow="def f():\n    from torch import nn"))
    assert torch_outside_its_rooms(house(cli_main="import torch"))
    assert not torch_outside_its_rooms(house(cli_main="def f():\n    import torch"))
    assert posix_at_import(house(static_flow="import fcntl, sys"))
    assert not posix_at_import(
        house(static_flow="try:\n    import fcntl\nexcept ImportError: pass")
    )


def import_without_torch(names: list[str]) -> subprocess.CompletedProcess[str]:
    """Import modules in a process where `import torch` fails."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from importlib import import_module\n"
        "for name in sys.argv[1:]: import_module(name)"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *names],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_everything_but_the_torch_rooms_imports_without_torch():
    names = [
        name
        for name, _ in modules(PACKAGE)
        if room(name) not in TORCH_ROOMS
        and not name.startswith(TORCH_CONTENT)
        and name != "zerograd.__main__"
    ]
    done = import_without_torch(names)
    assert done.returncode == 0, done.stderr


def test_the_torch_test_can_fail():
    done = import_without_torch(["zerograd.errors", "torch.nn"])
    assert done.returncode == 1
    assert "torch" in done.stderr
