"""Many ways to train, each in one process: plain, watched, never cleared, cleared before the step.

    python -m benchmarks.outside.ways [--only GROUP]

Correct training must give the same bits with and without the watch, and no finding. A clear that
is left out, and one that stands between backward and step, must be found at their lines within
two steps. Groups whose package is not installed are left out, and keep their last result.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import json
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

import zerograd
from benchmarks.outside.table import PAGE, RESULTS
from benchmarks.outside.way import Way

WAYS_RESULTS = RESULTS.with_name("outside_ways.json")
RIGHT, NEVER, LOST = "right", "ZG101", "ZG102"
_GROUPS = ("torch_itself", "optimizers", "models")
_COLUMNS = ("package", "version", "ways", "silent", "same bits", "never cleared", "lost")


def train(way: Way, fault: str) -> list[Any]:
    """Train for some rounds; return all parameters and losses."""
    torch.manual_seed(0)
    with way.whole():
        made = way.make()
        optimizer, losses = made.optimizer, []
        for _ in range(way.rounds):
            if fault != NEVER:
                optimizer.zero_grad()
            with way.forward():
                loss = made.loss()
            with way.backward():
                loss.backward(create_graph=way.keeps_graph)
            if fault == LOST:
                optimizer.zero_grad()  # found: ZG102
            optimizer.step()  # found: ZG101
            losses.append(loss.detach())
        return [*(each.detach() for each in made.parameters), *losses]


def lines() -> dict[str, int]:
    """Return the lines of `train` where each fault is to be found."""
    text, first = inspect.getsourcelines(train)
    return {
        line.split("# found: ")[1].strip(): first + number
        for number, line in enumerate(text)
        if "# found: " in line
    }


def judge(way: Way) -> dict[str, Any]:
    """Train in all four manners and compare."""
    plain = train(way, RIGHT)
    with zerograd.watch(policy="collect") as watching:
        watched = train(way, RIGHT)
    result: dict[str, Any] = {
        "silent": not watching.findings and watching.steps == way.rounds,
        "same bits": all(map(_is_same, plain, watched)) and len(plain) == len(watched),
    }
    for fault in (NEVER, LOST):
        with zerograd.watch(policy="collect") as watching:
            try:
                train(way, fault)
            except Exception as error:  # some optimizers refuse to step on nothing
                result[fault] = f"refused: {type(error).__name__}"
                continue
        found = [
            (each.rule.code, Path(each.spot.path).name, each.spot.line)
            for each in watching.findings
            if each.live is not None and (each.live.step or 0) <= 2
        ]
        result[fault] = found == [(fault, Path(__file__).name, lines()[fault])]
    return result


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not _has_values(one):
        return one.shape == other.shape
    return bool(torch.equal(_bits(one), _bits(other)))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    held: torch.Tensor = getattr(tensor, "held", tensor)
    return held.reshape(-1).view(torch.uint8)


def _has_values(tensor: torch.Tensor) -> bool:
    """Is there anything to compare? Not in meta and fake tensors."""
    return tensor.device.type != "meta" and type(tensor).__name__ != "FakeTensor"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a group, or a part of a package's name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    done: dict[str, Any] = {}
    if WAYS_RESULTS.exists():
        done = json.loads(WAYS_RESULTS.read_text(encoding="utf-8"))
    for name in _GROUPS:
        module = importlib.import_module(f"benchmarks.outside.ways_of.{name}")
        for package, ways in module.PACKAGES.items():
            if options.only in f"{name} {package}":
                _measure(package, ways, done)
    WAYS_RESULTS.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write_table(done)


def _measure(package: str, ways: Any, done: dict[str, Any]) -> None:
    try:
        version = importlib.metadata.version(package).partition("+")[0]
        found: Iterable[Way] = ways()
        results, refused = {}, {}
        for way in found:
            try:
                results[way.name] = judge(way)
            except Exception as error:  # it does not train without us either
                refused[way.name] = f"{type(error).__name__}: {error}"[:120]
            bad = {key: value for key, value in results.get(way.name, {}).items() if not value}
            if bad:
                print(f"{package} {way.name}: {bad}", file=sys.stderr)
    except Exception as error:  # not installed, or it cannot be imported here
        print(f"{package}: left out ({error})", file=sys.stderr)
        return
    done[package] = {"version": version, "ways": results, "refused": refused}
    print(package, version, len(results), "ways,", len(refused), "not trained", file=sys.stderr)


def table(done: dict[str, Any]) -> str:
    """Return the table of the page: how many of how many, for each package."""
    rows = [_COLUMNS, tuple("---" for _ in _COLUMNS)]
    for package in sorted(done, key=lambda each: (each != "torch", each)):
        ways = done[package]["ways"].values()
        counts = []
        for key in ("silent", "same bits", NEVER, LOST):
            asked = [way[key] for way in ways if not isinstance(way[key], str)]
            counts.append(f"{sum(asked)} of {len(asked)}")
        rows.append((package, done[package]["version"], str(len(ways)), *counts))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace(" --- ", "---") + "\n"


def page_with(done: dict[str, Any]) -> str:
    """Return the page with this table between its marks."""
    begin, end = "<!-- ways -->\n", "<!-- end of ways -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    return before + begin + "\n" + table(done) + "\n" + end + after


def write_table(done: dict[str, Any]) -> None:
    """Put the table between the marks of the page."""
    PAGE.write_text(page_with(done), encoding="utf-8")


if __name__ == "__main__":
    main()
