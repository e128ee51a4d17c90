"""How fast `zerograd check` is, side by side with ruff and the rivals, in one run.

    python -m benchmarks.check_speed --examples DIR --training DIR --mixed DIR \\
        --rivals DIR --results benchmarks/results/check_speed.json

`--examples` is a checkout of pytorch/examples, `--training` the corpus of public training
code, `--mixed` the tree that `make_mixed_tree.py` writes; any of them may be left out.
Each figure is of several runs of a fresh process, its start included, with the CPU time of
all its children: median, least and most. Python's bytecode is there, as after an installation.
The commands take turns, so that drift hits all alike, and zerograd is among them twice: what its
two rows differ by is what the machine adds (A/A).
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.accuracy.training_code import training_files
from benchmarks.scaling import CURVES, program

CONTROL = "zerograd (A/A control)"
LIMIT = 300  # seconds of wall time that one run may take


@dataclass(slots=True)
class Timing:
    """Wall and CPU seconds of several runs of one command."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        return {
            "wall_median_s": round(statistics.median(self.wall), 3),
            "wall_min_s": round(min(self.wall), 3),
            "wall_max_s": round(max(self.wall), 3),
            "cpu_median_s": round(statistics.median(self.cpu), 3),
            "cpu_min_s": round(min(self.cpu), 3),
            "cpu_max_s": round(max(self.cpu), 3),
        }


def run_once(command: list[str], timing: Timing) -> None:
    """Run a command to its end; findings make it exit with 1, which is no failure here."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=errors, check=False, timeout=LIMIT
        )
        if done.returncode not in range(0, 33):
            errors.seek(0)
            raise SystemExit(f"{command[0]} failed: {errors.read()[-500:]!r}")
    timing.wall.append(time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    timing.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def side_by_side(commands: dict[str, list[str]], rounds: int) -> dict[str, dict[str, float]]:
    """Time the commands in turns, after one unmeasured round that fills the file cache.

    One of several that takes longer than the limit is left out from there on, and marked.
    """
    if "zerograd" in commands:
        commands = {**commands, CONTROL: commands["zerograd"]}
    timings = {name: Timing() for name in commands}
    late: dict[str, dict[str, float]] = {}
    for number in range(rounds + 1):
        for name, command in commands.items():
            if name in late:
                continue
            try:
                run_once(command, Timing() if number == 0 else timings[name])
            except subprocess.TimeoutExpired:
                if len(commands) == 1:
                    raise
                late[name] = {"over_limit_s": LIMIT}
            print(f"round {number}: {name}", file=sys.stderr, flush=True)
    return {
        name: late[name] if name in late else timing.summary() for name, timing in timings.items()
    }


_MLDOCT = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("linter", sys.argv[1])
linter = importlib.util.module_from_spec(spec)
spec.loader.exec_module(linter)
for path in pathlib.Path(sys.argv[2]).rglob("*.py"):
    try:
        linter.lint_script(str(path))
    except Exception:
        pass
"""


def commands_for(folder: Path, rivals: Path | None, jobs: str | None) -> dict[str, list[str]]:
    """Return every tool's command for one folder, those that are installed."""
    here = Path(sys.executable).parent
    zerograd = [str(here / "zerograd"), "check", "--quiet", "--exit-zero"]
    commands = {
        "zerograd": [*zerograd, *(["--jobs", jobs] if jobs else []), str(folder)],
        "ruff check --no-cache": [
            str(here / "ruff"),
            "check",
            "--no-cache",
            "--isolated",
            "--exit-zero",
            str(folder),
        ],
    }
    if rivals is not None and (rivals / "mldoct").exists():
        python = str(rivals / "mldoct" / "bin" / "python")
        linter = next((rivals / "mldoct").glob("lib/python*/site-packages/mldoctor/linter.py"))
        commands["mldoct (its linter, one process)"] = [
            python, "-c", _MLDOCT, str(linter), str(folder)
        ]  # fmt: skip
    if rivals is not None and (rivals / "torch-preflight").exists():
        program_path = str(rivals / "torch-preflight" / "bin" / "torch-preflight")
        base = [program_path, "check", "-q", "-j", "1"]
        commands["torch-preflight (TG003, TG014)"] = [*base, "--select", "TG003,TG014", str(folder)]
    if rivals is not None and (rivals / "dslinter").exists():
        python = str(rivals / "dslinter" / "bin" / "python")
        files = [str(p) for p in sorted(folder.rglob("*.py"))]
        commands["dslinter (its one rule)"] = [
            python, "-m", "pylint", "--load-plugins=dslinter", "--disable=all",
            "--enable=gradient-clear-pytorch", "--persistent=n", *files,
        ]  # fmt: skip
    return commands


def outside_git(folder: Path, into: Path) -> Path:
    """Copy a folder to where no .gitignore hides it."""
    return Path(shutil.copytree(folder, into / folder.name))


def measure_examples(folder: Path, rivals: Path | None, rounds: int) -> dict[str, object]:
    files = len(list(folder.rglob("*.py")))
    timings = side_by_side(commands_for(folder, rivals, None), rounds)
    return {"files": files, "timings": timings}


def measure_training(corpus: Path, into: Path, rounds: int) -> dict[str, object]:
    """Time one process on training files alone, and give files a second and core."""
    target = into / "training"
    count = 0
    for path, text, _ in training_files(corpus):
        if path.suffix == ".py":
            place = target / f"{count:04}.py"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", errors="surrogatepass")
            count += 1
    command = [str(Path(sys.executable).parent / "zerograd"), "check", "--quiet", "--exit-zero"]
    timings = side_by_side({"zerograd --jobs 1": [*command, "--jobs", "1", str(target)]}, rounds)
    rate = count / timings["zerograd --jobs 1"]["cpu_median_s"]
    return {"files": count, "timings": timings, "files_per_cpu_second": round(rate, 1)}


def measure_mixed(folder: Path, rounds: int) -> dict[str, object]:
    """Time the mixed tree against ruff, with as many processes as each likes."""
    files = len(list(folder.rglob("*.py")))
    training = sum(1 for _ in training_files(folder))
    both = commands_for(folder, None, None)
    return {
        "files": files,
        "training_files": training,
        "training_share": round(training / files, 4),
        "timings": side_by_side(both, rounds),
    }


def measure_curves(into: Path, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Time programs that grow in one way each; start-up is taken off.

    A size that takes longer than the limit ends its curve, and is marked as over it.
    """
    command = [str(Path(sys.executable).parent / "zerograd"), "check", "--quiet", "--exit-zero"]
    empty = into / "empty.py"
    empty.write_text("")
    start = side_by_side({"empty": [*command, str(empty)]}, rounds)["empty"]["cpu_min_s"]
    curves: dict[str, list[dict[str, float]]] = {}
    for shape, sizes in CURVES.items():
        points: list[dict[str, float]] = []
        for size in sizes:
            text = program(shape, size)
            file = into / f"{shape}_{size}.py"
            file.write_text(text)
            lines = text.count("\n")
            try:
                cost = side_by_side({"x": [*command, str(file)]}, rounds)["x"]["cpu_min_s"]
            except subprocess.TimeoutExpired:
                points.append({"size": size, "lines": lines, "over_limit_s": LIMIT})
                break
            seconds = max(cost - start, 0.0)
            print(f"{shape} {size}: {seconds:.3f} s", file=sys.stderr, flush=True)
            points.append(
                {
                    "size": size,
                    "lines": lines,
                    "cpu_s": round(seconds, 3),
                    "ms_per_line": round(1000 * seconds / lines, 4),
                }
            )
        curves[shape] = points
    return curves


def compile_package() -> None:
    """Write the bytecode that installers write; a checkout may be without it."""
    place = importlib.util.find_spec("zerograd")
    for folder in place.submodule_search_locations or () if place is not None else ():
        compileall.compile_dir(folder, quiet=1)


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def versions(rivals: Path | None) -> dict[str, str]:
    here = Path(sys.executable).parent
    found = {"python": platform.python_version(), "machine": platform.machine()}
    found["cores"] = str(os.cpu_count())
    found["processor"] = _processor()
    for tool in ("zerograd", "ruff"):
        done = subprocess.run([str(here / tool), "--version"], capture_output=True, text=True)
        found[tool] = done.stdout.strip()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=Path, help="pytorch/examples (default: in --training)")
    parser.add_argument("--training", type=Path, help="folder of repositories that train")
    parser.add_argument("--mixed", type=Path, help="tree of make_mixed_tree.py")
    parser.add_argument("--rivals", type=Path, help="folder of the rivals' environments")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, help="JSON file to write")
    parser.add_argument("--no-curves", action="store_true")
    args = parser.parse_args()
    if args.examples is None and args.training is not None:
        inside = args.training / "pytorch+examples"
        args.examples = inside if inside.exists() else None
    compile_package()
    result: dict[str, object] = {"versions": versions(args.rivals)}
    result["load_before"] = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="check-speed-") as name:
        into = Path(name)
        if args.examples:
            folder = outside_git(args.examples, into)
            result["examples"] = measure_examples(folder, args.rivals, args.rounds)
        if args.training:
            result["training"] = measure_training(args.training, into, args.rounds)
        if args.mixed:
            folder = outside_git(args.mixed, into)
            result["mixed"] = measure_mixed(folder, args.rounds)
        if not args.no_curves:
            result["curves"] = measure_curves(into, min(args.rounds, 3))
    result["load_after"] = os.getloadavg()[0]
    text = json.dumps(result, indent=1)
    if args.results:
        args.results.parent.mkdir(parents=True, exist_ok=True)
        args.results.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
