"""Run zerograd and its rivals over files, each as its users do, and read what they say.

zerograd runs in this process through its public function. A rival lives in a virtual
environment of its own, `<rivals>/<name>`, made by `python -m benchmarks.accuracy.rivals`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Said:
    """One finding of one tool."""

    path: str
    line: int
    code: str
    message: str = ""


def zerograd(paths: Sequence[Path]) -> list[Said]:
    """Return the findings of `zerograd check` with its default rules."""
    from zerograd import check_paths

    checked = check_paths([str(path) for path in paths])
    crashes = getattr(checked, "crashes", [])
    if crashes:
        raise RuntimeError(crashes[0])
    return [
        Said(f.spot.path, f.spot.line, f.rule.code, f"{_cell(f)}{f.message}")
        for f in checked.findings
    ]


def _cell(finding: object) -> str:
    cell = getattr(getattr(finding, "spot", None), "cell", None)
    return f"cell {cell}: " if cell is not None else ""


def _chunks(paths: Iterable[Path], size: int) -> Iterable[list[str]]:
    batch: list[str] = []
    for path in paths:
        batch.append(str(path))
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def torch_preflight(paths: Sequence[Path], rivals: Path) -> list[Said]:
    """Return TG003 (missing zero_grad) and TG014 (unscaled accumulation)."""
    found: list[Said] = []
    program = rivals / "torch-preflight" / "bin" / "torch-preflight"
    for batch in _chunks(paths, 200):
        command = [str(program), "check", "-f", "json", "--select", "TG003,TG014", "-j", "1"]
        done = subprocess.run([*command, *batch], capture_output=True, text=True, check=False)
        for item in json.loads(done.stdout)["diagnostics"]:
            found.append(Said(item["path"], item["line"], item["code"], item["message"]))
    return found


def dslinter(paths: Sequence[Path], rivals: Path) -> list[Said]:
    """Return W5517 (gradients not cleared), by pylint with this one rule."""
    found: list[Said] = []
    python = rivals / "dslinter" / "bin" / "python"
    for batch in _chunks(paths, 200):
        command = [str(python), "-m", "pylint", "--load-plugins=dslinter", "--disable=all"]
        command += ["--enable=gradient-clear-pytorch"]
        command += ["--output-format=json", "--persistent=n", *batch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for item in json.loads(done.stdout):
            if item["message-id"] == "W5517":
                found.append(Said(item["path"], item["line"], "W5517", item["message"]))
    return found


_MLDOCT = """
import importlib.util, json, sys
# Its package imports a model server at once; the linter is a module without imports.
spec = importlib.util.spec_from_file_location("linter", sys.argv[1])
linter = importlib.util.module_from_spec(spec)
spec.loader.exec_module(linter)
for path in json.load(sys.stdin):
    try:
        found = linter.lint_script(path)[0]
    except Exception:
        continue
    for item in found:
        if item["type"] == "missing_zero_grad":
            print(json.dumps([path, item["line"] or 0, item["type"]]))
"""


def mldoct(paths: Sequence[Path], rivals: Path) -> list[Said]:
    """Return its missing-zero_grad finding, from its linter called in one process."""
    python = rivals / "mldoct" / "bin" / "python"
    linter = next((rivals / "mldoct").glob("lib/python*/site-packages/mldoctor/linter.py"))
    done = subprocess.run(
        [str(python), "-c", _MLDOCT, str(linter)],
        input=json.dumps([str(p) for p in paths]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [Said(*json.loads(line)) for line in done.stdout.splitlines()]


RIVALS = {"torch-preflight": torch_preflight, "dslinter": dslinter, "mldoct": mldoct}
