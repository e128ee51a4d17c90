"""How long the command line takes to start: `make bench-startup`.

Whole processes, interleaved with a bare Python, so that the machine's drift hits
both. CPU time is given beside the wall clock, since a busy machine stretches only the
latter; the load is written down. Tests count imported modules instead.
"""

from __future__ import annotations

import json
import os
import platform
import resource
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
    "zerograd --version": ["--version"],
    "zerograd check --help": ["check", "--help"],
    "zerograd rules": ["rules"],
    "zerograd explain ZG101": ["explain", "ZG101"],
}


def seconds(words: list[str]) -> tuple[float, float]:
    """Return the wall and CPU seconds of one process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu


def quartiles(pairs: list[tuple[float, float]]) -> dict[str, list[float]]:
    return {
        name: [round(value, 4) for value in statistics.quantiles(column, n=4)]
        for name, column in zip(("wall", "cpu"), zip(*pairs, strict=True), strict=True)
    }


def main() -> None:
    script = str(Path(sys.executable).with_name("zerograd"))
    commands = {"bare python": BARE}
    commands |= {name: [script, *words] for name, words in COMMANDS.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for words in commands.values():
        seconds(words)  # bytecode is compiled once
    load = [round(os.getloadavg()[0], 1)]
    for _ in range(ROUNDS):
        for name, words in commands.items():
            times[name].append(seconds(words))
    load.append(round(os.getloadavg()[0], 1))
    result = {
        "what": "seconds of a whole process, quartiles",
        "rounds": ROUNDS,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load before and after": load,
        **{name: quartiles(pairs) for name, pairs in times.items()},
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
