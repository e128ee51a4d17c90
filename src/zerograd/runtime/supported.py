"""Which torch the sanitizer works with, told without importing torch."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from zerograd.errors import MissingTorchError

OLDEST = (2, 11)
TESTED = ((2, 11), (2, 13))  # the releases that the tests about torch passed on
TESTED_PYTHONS = ((3, 11), (3, 12))
TESTED_PLATFORMS = ("linux",)


def torch_version() -> str:
    """Return the version of the installed torch, or raise if there is none that we can watch."""
    version = _installed_version()
    if version is None:
        raise MissingTorchError(
            f"torch is not installed in this Python ({sys.executable}); "
            "use the one that has it: python -m zerograd run ..."
        )
    if _pair(version) < OLDEST:
        raise MissingTorchError(
            f"torch {version} is older than what the sanitizer supports "
            f"({OLDEST[0]}.{OLDEST[1]} and later); `zerograd check` works without torch."
        )
    return version


def untested(
    version: str,
    platform: str = sys.platform,
    python: tuple[int, int] = (sys.version_info[0], sys.version_info[1]),
) -> str | None:
    """Return one line if the sanitizer was not tested on this torch, Python or platform."""
    parts = []
    if _pair(version) not in TESTED:
        parts.append(f"torch {version}")
    if python not in TESTED_PYTHONS:
        parts.append(f"Python {python[0]}.{python[1]}")
    if platform not in TESTED_PLATFORMS:
        parts.append(f"platform {platform}")
    return f"untested with {' and '.join(parts)}" if parts else None


def _pair(version: str) -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _installed_version() -> str | None:
    torch = sys.modules.get("torch", ...)
    if torch is None:  # a test, or a user, has said that there is none
        return None
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.origin:
        # The file that would be imported knows best; another folder may hold the metadata.
        try:
            text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
        except OSError:
            text = ""
        found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
        if found:
            return found[1]
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "0.0"
