"""How long the command line takes to start: `make bench-startup`.

Whole processes, interleaved with a bare Python, so that the machine's drift hits
both. Tests count imported modules instead; seconds are measured here.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 25
RESULTS = Path(__file__).parent / "results" / "startup.json"
BARE = [sys.executable, "-c", "pass"]
COMMANDS = {
    "zerograd --help": ["--help"],
    "zerograd check --help": ["check", "--help"],
    "zerograd rules": ["rules"],
    "zerograd explain ZG101": ["explain", "ZG101"],
}


def seconds(words: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def quartiles(values: list[float]) -> list[float]:
    return [round(value, 4) for value in statistics.quantiles(values, n=4)]


def main() -> None:
    script = str(Path(sys.executable).with_name("zerograd"))
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    bare: list[float] = []
    for words in COMMANDS.values():
        seconds([script, *words])  # bytecode is compiled once
    for _ in range(ROUNDS):
        bare.append(seconds(BARE))
        for name, words in COMMANDS.items():
            times[name].append(seconds([script, *words]))
    result = {
        "what": "wall seconds of a whole process, quartiles",
        "rounds": ROUNDS,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "bare python": quartiles(bare),
        **{name: quartiles(values) for name, values in times.items()},
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
