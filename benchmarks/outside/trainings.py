"""Trainings through other people's packages, each plain and under `zerograd run`.

    python -m benchmarks.outside.trainings [--python PYTHON] [NAME ...]

Each module of `trainings_with` runs in four processes: right and faulty, each plain and watched.
A right one must be silent; a fault must be told at its line within two steps, and nothing else;
what is printed (a digest of all parameters and losses) and the exit code must be the same as plain.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.outside.table import PAGE, RESULTS

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = Path(__file__).with_name("trainings_with")
TRAININGS_RESULTS = RESULTS.with_name("outside_trainings.json")
_MARK = "# found: "
_ON_RANKS, _TWO = "init_process_group", ("--nproc-per-node", "2")


def judge(path: Path, python: str) -> dict[str, Any]:
    """Run one module in all four manners and compare; of all its trainings, by name."""
    spans = _spans(path)
    wanted = _marks(path, spans)
    results: dict[str, Any] = {name: {"faults": {}} for name in spans}
    for kind in ("right", "faulty"):
        plain = _run(path, python, kind, watched=False)
        watched = _run(path, python, kind, watched=True)
        for name in spans:
            own = [(p["said"].get(name), p["code"]) for p in (plain, watched)]
            results[name].setdefault("same", True)
            results[name]["same"] &= own[0] == own[1]
            if kind == "right":
                raised = [each for each in own[0][0] or ["nothing said"] if "tensors" not in each]
                results[name]["trains"] = not raised or raised[0]
        for code, line, step, text in watched["found"]:
            name = next((each for each, span in spans.items() if line in span), "elsewhere")
            of = results.setdefault(name, {"faults": {}})
            hit = kind == "faulty" and (code, line) in wanted.get(name, {})
            if hit:
                fault = wanted[name][code, line]
                after = step - watched["begins"].get((name, fault), 0)
                of["faults"][fault] = True if after <= 2 else f"after {after} steps"
            else:
                of.setdefault(f"alarms, {kind}", []).append(f"{code} at {line}: {text}")
        if watched["failed"]:
            results.setdefault("elsewhere", {"faults": {}})["failed"] = watched["failed"]
    for name, marks in wanted.items():
        for fault in marks.values():
            results[name]["faults"].setdefault(fault, False)
    return results


def _spans(path: Path) -> dict[str, range]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        each.name: range(each.lineno, (each.end_lineno or each.lineno) + 1)
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name[0] != "_"
    }


def _marks(path: Path, spans: dict[str, range]) -> dict[str, dict[tuple[str, int], str]]:
    marks: dict[str, dict[tuple[str, int], str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for word in line.partition(_MARK)[2].split(","):
            if word.strip():
                fault, code = word.split()
                name = next(each for each, span in spans.items() if number in span)
                marks.setdefault(name, {})[code, number] = fault
    return marks


def _run(path: Path, python: str, kind: str, *, watched: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = ["-m", f"benchmarks.outside.trainings_with.{path.stem}", kind]
        if watched:
            way = ("-m", "zerograd", "run", "--exit-zero", "--format", "json")
            words = [*way, "--output", str(report), *words]
        if _ON_RANKS in path.read_text(encoding="utf-8"):
            words = ["-m", "torch.distributed.run", "--standalone", *_TWO, *words]
        paths = (str(_ROOT), str(_ROOT / "src"))
        ended = subprocess.run(
            [python, *words],
            cwd=folder,
            env={**os.environ, **_ALONE, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=900,
        )
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else []
    said: dict[str, list[str]] = {}
    for line in sorted(ended.stdout.splitlines()):
        said.setdefault(line.split(" ")[0], []).append(line)
    begins = [each.split() for each in ended.stderr.splitlines() if each.startswith("begins ")]
    fault = [each for each in ended.stderr.splitlines() if "fault of its own" in each]
    if ended.returncode:
        print(ended.stderr[-600:], file=sys.stderr)
    return {
        "said": said,
        "code": ended.returncode,
        "failed": fault,
        "begins": {(name, word): int(rounds) for _, name, word, rounds in begins},
        "found": [_found(each, path) for each in found],
    }


_ALONE = {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "RAY_TRAIN_V2_ENABLED": "0",
    "PYTHONHASHSEED": "0",
}


def _found(finding: dict[str, Any], path: Path) -> tuple[str, int, int, str]:
    line = finding["location"]["row"] if finding["filename"].endswith(path.name) else 0
    text = f"{finding['filename']}: {finding['message']}"
    return finding["code"], line, finding.get("step") or 0, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for path in sorted(_FOLDER.glob("[a-z]*.py")):
        if options.names and path.stem not in options.names:
            continue
        results = judge(path, options.python)
        for name, result in results.items():
            print(path.stem, name, json.dumps(result), flush=True)
        keep(path.stem, {"versions": _versions(path, options.python), "trainings": results})


def keep(name: str, result: dict[str, Any]) -> None:
    """Put the result of one module into the file and the page."""
    done = load()
    done[name] = result
    TRAININGS_RESULTS.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n", "utf-8")
    PAGE.write_text(page_with(done), encoding="utf-8")


def load() -> dict[str, Any]:
    """Return what was measured, by module."""
    if not TRAININGS_RESULTS.exists():
        return {}
    done: dict[str, Any] = json.loads(TRAININGS_RESULTS.read_text(encoding="utf-8"))
    return done


def _versions(path: Path, python: str) -> dict[str, str]:
    """Return the versions of the packages that a module imports, as its Python has them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    show = (
        "import importlib.metadata as m, json, sys;"
        "found = m.packages_distributions();"
        "names = {n for w in sys.argv[1:] for n in found.get(w, [])};"
        "print(json.dumps({n: m.version(n).partition('+')[0] for n in sorted(names)}))"
    )
    words.discard("benchmarks")  # ours; some packages bring a folder of that name
    ended = subprocess.run([python, "-c", show, *words], capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(ended.stdout)
    return versions


def table(done: dict[str, Any]) -> str:
    """Return the table of the page: how many of how many, for each module."""
    columns = ("through", "trainings", "silent", "the same", "faults", "told within two steps")
    rows = [columns, tuple("---" for _ in columns)]
    for module, result in sorted(done.items()):
        ran = [each for each in result["trainings"].values() if each.get("trains") is True]
        packages = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        faults = [told for each in ran for told in each["faults"].values()]
        rows.append(
            (
                f"`{module}`{' *' if result.get('earlier') else ''}: {packages}",
                str(len(ran)),
                f"{sum('alarms, right' not in each for each in ran)} of {len(ran)}",
                f"{sum(each['same'] for each in ran)} of {len(ran)}",
                str(len(faults)),
                f"{sum(told is True for told in faults)} of {len(faults)}",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace(" --- ", "---") + "\n"


def page_with(done: dict[str, Any]) -> str:
    """Return the page with this table between its marks."""
    begin, end = "<!-- trainings -->\n", "<!-- end of trainings -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    return before + begin + "\n" + table(done) + "\n" + end + after


if __name__ == "__main__":
    main()
