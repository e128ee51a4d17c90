"""What the page is made from: the results of the benchmarks, and the labels of readers."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.corpus import SPLITS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "results"
LABELS = Path(__file__).resolve().parents[1] / "labels.toml"
PARTS = tuple(SPLITS)


@dataclass(frozen=True, slots=True)
class Label:
    """What a reader of the code says of one finding."""

    place: str  # owner+name/path:line
    code: str
    verdict: str  # "true", "false", or "arguable": true as stated, but harmless or intended
    reason: str


def read_labels() -> dict[tuple[str, str], Label]:
    if not LABELS.exists():
        return {}
    entries = tomllib.loads(LABELS.read_text(encoding="utf-8")).get("finding", [])
    labels = [Label(e["place"], e["code"], e["verdict"], e["reason"]) for e in entries]
    return {(label.place, label.code): label for label in labels}


def load(name: str) -> Any:
    """Return what a benchmark has written, or None where it never ran."""
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def of_part(kind: str, part: str) -> Any:
    """Return the figures of one kind for one part of the corpus, or None."""
    return load(f"{kind}_{part.replace('-', '_')}.json")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})"
