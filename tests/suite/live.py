"""Runs one script of the suite under the live witness and returns what it found."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path

EXPECT = re.compile(r"#\s*expect(?:\[(?P<witness>\w+)\])?:\s*(?P<codes>[A-Z0-9, ]+)")


def expected(path: Path, witness: str) -> list[tuple[str, int]]:
    """Return the (code, line) pairs that the script's comments promise for a witness."""
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for found in EXPECT.finditer(line):
            if found["witness"] in (None, witness):
                pairs += [(code, number) for code in re.findall(r"ZG\d+", found["codes"])]
    return sorted(pairs)


def run_live(path: Path, *, notes: bool) -> list[tuple[str, int]]:
    """Return the (code, line) pairs of the findings of a real run."""
    from zerograd import watch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with watch(policy="collect", show_notes=notes) as watching:
            try:
                runpy.run_path(str(path), run_name="__main__")
            except Exception as error:  # the script's own, as some faults end in one
                watching.explain(error)
    assert not watching.not_checked, watching.not_checked
    return sorted(
        (finding.rule.code, finding.spot.line)
        for finding in watching.findings
        if finding.spot.path == str(path)
    )
