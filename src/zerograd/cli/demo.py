"""`zerograd demo`: a forgetful script, and what each command says of it."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from zerograd.demo.curve import BLOCKS, PLAIN, binned, curve
from zerograd.errors import MissingTorchError, ZerogradError

WIDTH = 56  # columns of a curve
FIRST = 64  # steps in which the forgetful run still looks good


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="keep the script, the trace and the page there (default: a temporary folder)",
    )


def run(args: argparse.Namespace) -> int:
    if find_spec("torch") is None:
        raise MissingTorchError(
            "the demo trains a small network, and PyTorch is not installed.\n"
            "  Install it with: pip install zerograd[torch]"
        )
    folder = args.folder or Path(tempfile.mkdtemp(prefix="zerograd-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "train.py"
    script.write_text(files("zerograd.demo").joinpath("train.py").read_text("utf-8"), "utf-8")

    _say("1. Read it: nothing is run.")
    _command(folder, "check", "--format", "concise", "train.py", may_find=True)
    _say("2. Run it: the same script, watched; its own output is left out here.")
    _command(
        folder,
        "run",
        "--policy",
        "collect",
        "--trace",
        "trace.jsonl",
        "train.py",
        may_find=True,
        quiet=True,
    )
    _say("3. Mend it.")
    _command(folder, "check", "--diff", "train.py", may_find=True)
    shutil.copy(script, folder / "fixed.py")
    _command(folder, "check", "--fix", "--quiet", "fixed.py", shown=False)

    _say("4. Train both, from the same seed.")
    _draw(_losses(folder, "train.py"), _losses(folder, "fixed.py"))
    _command(
        folder, "report", "trace.jsonl", "--format", "html", "--output", "report.html", shown=False
    )
    _say(f"5. Look at it: {folder / 'report.html'}")
    print("   Why it happens, in recorded experiments: zerograd lab --open")
    return 0


def _say(text: str) -> None:
    print(f"\n{text}", flush=True)


def _command(
    folder: Path, *words: str, may_find: bool = False, shown: bool = True, quiet: bool = False
) -> None:
    """Run one of our own commands in the folder, as a user would type it."""
    if shown:
        print(f"$ zerograd {' '.join(words)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "zerograd", *words],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.DEVNULL if quiet else subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    for part in (done.stdout, done.stderr):
        if shown and part:
            print(part.rstrip(), flush=True)
    if done.returncode not in ((0, 1) if may_find else (0,)):
        raise ZerogradError(
            f"the demo's own `zerograd {words[0]}` ended with {done.returncode}: {done.stderr}"
        )


def _environment() -> dict[str, str]:
    # On tensors this small, threads only get in each other's way.
    return {**os.environ, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"}


def _losses(folder: Path, script: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-m", "zerograd.demo.losses", script],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise ZerogradError(f"the demo's {script} ended with {done.returncode}: {done.stderr}")
    return [float(loss) for loss in json.loads(done.stdout)]


def _draw(forgotten: list[float], cleared: list[float]) -> None:
    """Draw both losses on a logarithmic scale, and count who leads at first."""
    lines = {
        "forgotten": [math.log10(mean) for mean in binned(forgotten, WIDTH)],
        "cleared": [math.log10(mean) for mean in binned(cleared, WIDTH)],
    }
    heights = [height for line in lines.values() for height in line if math.isfinite(height)]
    marks = BLOCKS if _can_show(BLOCKS) else PLAIN
    for name, line in lines.items():
        print(
            f"  {name:>9} {curve(line, min(heights), max(heights), marks)} "
            f"ends at {10 ** line[-1]:.2g}"
        )
    first = list(zip(forgotten[:FIRST], cleared[:FIRST], strict=True))
    ahead = sum(one < other for one, other in first)
    print(
        f"  In {ahead} of the first {len(first)} steps the forgetful run has the *lower* loss:\n"
        "  the bug looks like speed. Plain SGD that never clears is SGD with momentum exactly 1.0."
    )


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
