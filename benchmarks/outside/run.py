"""Run each program plain and under `zerograd run`, and compare how it ends and what it prints.

    python -m benchmarks.outside.run --checkouts FOLDER --work FOLDER [NAME ...]

FOLDER holds the checkouts, named owner+name. The programs themselves need torchvision, gymnasium,
efficientnet_pytorch, matplotlib, transformers, accelerate and datasets: `--python` names a Python
that has them. Results go to benchmarks/results/outside.json and into the tables of the docs.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import zerograd
from benchmarks.outside import data
from benchmarks.outside.programs import PROGRAMS, Program
from benchmarks.outside.table import RESULTS, write_tables

HERE = Path(__file__).resolve().parent
# What no two runs share: times, addresses, process ids.
_CHANGES = re.compile(
    r"(\d+(\.\d+)?(e-\d+)?\s*(ms|secs|seconds|sec|s/it|it/s|s|m|h))+\b"
    r"|(?i:time|ms/batch|data)[^\n\d]{0,12}[\d.]+(\s*\(\s*[\d.]+\))?|0x[0-9a-f]+|\d+:\d+(:\d+)?|\[\d{3,}\]"
    r"|\d+-\d+-\d+_\d+-\d+-\d+"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="copies and data go there")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--site", default="", help="a folder with more packages for the programs")
    parser.add_argument("--limit", type=float, default=200, help="seconds for one run")
    parser.add_argument("--new", action="store_true", help="only programs without a result")
    parser.add_argument("names", nargs="*", help="only programs whose name holds one of these")
    options = parser.parse_args()
    options.python = os.path.abspath(shutil.which(options.python) or options.python)
    options.site = options.site and os.path.abspath(options.site)
    data.write((options.work / "data").absolute())
    done: dict[str, Any] = json.loads(RESULTS.read_text())["programs"] if RESULTS.exists() else {}
    machine = _machine(options)
    for program in PROGRAMS:
        key = f"{program.group}: {program.name}"
        if options.names and not any(name in key for name in options.names):
            continue
        if options.new and key in done:
            continue
        done[key] = _compare(program, options)
        print(key, json.dumps(done[key]), flush=True)
        result = {"machine": machine, "programs": done}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_tables(done)


def _compare(program: Program, options: argparse.Namespace) -> dict[str, Any]:
    plain = _run(program, options, watched=False)
    if plain["code"] == "cut":
        return {"why": f"it did not end within {options.limit:.0f} seconds"}
    watched = _run(program, options, watched=True)
    result: dict[str, Any] = {
        "plain": plain["code"],
        "watched": watched["code"],
        "same": _steady(plain["out"]) == _steady(watched["out"]) if program.repeats else None,
        "findings": watched["findings"],
        "expects": list(program.expects),
    }
    if plain["code"]:
        result["last"] = plain["err"].strip().splitlines()[-1:]
    return result


def _run(program: Program, options: argparse.Namespace, *, watched: bool) -> dict[str, Any]:
    work = options.work.absolute() / "copies" / ("watched" if watched else "plain")
    shutil.rmtree(work, ignore_errors=True)
    here = work / "program"
    shutil.copytree(program.place(options.checkouts.absolute()), here)
    for name, beside in program.data:
        shutil.copytree(options.work / "data" / name, here / beside, dirs_exist_ok=True)
    script = here / program.words[0]
    text = script.read_text(encoding="utf-8")
    for before, after in program.edit:
        text = text.replace(before, after)
    script.write_text(text, encoding="utf-8")
    (here / "results").mkdir(exist_ok=True)  # two of them write there and do not make it
    environment = _environment(options)
    if program.first:
        subprocess.run([options.python, program.first], cwd=here, env=environment, check=True)
    report = work / "findings.json"
    ours = ("--policy", "collect", "--exit-zero", "--format", "json", "--output", str(report))
    run = ["-m", "zerograd", "run", *ours] if watched else []
    launcher = ["-m", *program.launcher] if program.launcher else []
    words = [options.python, *launcher, *run, *program.words]
    code, out, err = _ended(words, here, environment, options.limit)
    findings = json.loads(report.read_text()) if report.exists() else None
    return {
        "code": code,
        "out": out,
        "err": err,
        "findings": findings and [[each["code"], _place(each), each["count"]] for each in findings],
    }


def _place(finding: dict[str, Any]) -> str:
    return f"{Path(finding['filename']).name}:{finding['location']['row']}"


def _ended(
    words: list[str], cwd: Path, environment: dict[str, str], limit: float
) -> tuple[int | str, str, str]:
    terminal, stdin = pty.openpty()  # some ask how wide the terminal is
    fcntl.ioctl(stdin, termios.TIOCSWINSZ, struct.pack("4H", 40, 100, 0, 0))
    with (cwd / ".out").open("w+") as out, (cwd / ".err").open("w+") as err:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        until = time.monotonic() + limit
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        code: int | str = "cut" if process.returncode is None else process.returncode
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(terminal)
        os.close(stdin)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _environment(options: argparse.Namespace) -> dict[str, str]:
    places = [str(HERE / "stand_ins"), options.site, str(Path(zerograd.__file__).parents[1])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(place for place in places if place),
        "OUTSIDE_DATA": str((options.work / "data").absolute()),
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "LINES": "40",
    }


def _machine(options: argparse.Namespace) -> dict[str, Any]:
    show = (
        "import importlib.metadata as m, json, platform;"
        "names = ['torch', 'torchvision', 'transformers', 'accelerate', 'datasets', 'gymnasium'];"
        "found = {each.metadata['Name'].lower(): each.version for each in m.distributions()};"
        "print(json.dumps({'python': platform.python_version(),"
        " **{name: found.get(name, 'none') for name in names}}))"
    )
    ended = subprocess.run(
        [options.python, "-c", show],
        env=_environment(options),
        capture_output=True,
        text=True,
        check=True,
    )
    versions: dict[str, Any] = json.loads(ended.stdout)
    return {"processor": platform.machine(), "cores": os.cpu_count(), **versions}


def _steady(text: str) -> str:
    return _CHANGES.sub("#", text)


if __name__ == "__main__":
    main()
