"""The other Pythons of this machine: those on PATH and those that pyenv keeps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = [(3, minor) for minor in range(10, 16)]


@dataclass(frozen=True)
class Python:
    """One interpreter."""

    version: str
    path: str


def _candidates() -> list[str]:
    names = [f"python{major}.{minor}" for major, minor in SUPPORTED]
    on_path = [found for name in names if (found := shutil.which(name))]
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = sorted(str(path) for path in versions.glob("3.*/bin/python"))
    return on_path + kept


def _version(path: str) -> str | None:
    code = "import sys, venv, ensurepip; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        done = subprocess.run(
            [path, "-c", code], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # a shim without a Python behind it, or one that cannot make environments
    return done.stdout.strip()


def _find() -> list[Python]:
    """Return one Python of each minor version, beside the one that runs this."""
    found: dict[tuple[int, int], Python] = {}
    for path in _candidates():
        version = _version(path)
        if version is None:
            continue
        major, minor = (int(part) for part in version.split(".")[:2])
        if (major, minor) in SUPPORTED and (major, minor) != sys.version_info[:2]:
            found.setdefault((major, minor), Python(version, path))
    return [found[key] for key in sorted(found)]


OTHERS = _find()
