"""The lab page: recorded runs, texts and assets, put together into one offline file."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from zerograd.lab.cards import anki_text
from zerograd.lab.figures import mib, percent
from zerograd.lab.lessons import lessons
from zerograd.lab.verdicts import phase_moves
from zerograd.rules import BY_CODE

LARGEST = 300_000  # bytes; a page that travels by mail and opens at once
SCRIPTS = (
    "core",
    "chart",
    "bucket",
    "sum",
    "replay",
    "predict",
    "myths",
    "puzzle",
    "cards",
    "memory",
)


def load_recorded() -> dict[str, Any]:
    """Return the runs that came with the package."""
    recorded: dict[str, Any] = json.loads(_text("recorded.json"))
    return recorded


def load_frameworks() -> dict[str, dict[str, Any]]:
    """Return what other frameworks answered when asked for the same gradient twice."""
    frameworks: dict[str, dict[str, Any]] = json.loads(_text("frameworks.json"))
    return frameworks


def render(recorded: dict[str, Any] | None = None) -> str:
    """Return the page as one HTML text that needs nothing else."""
    from jinja2 import Environment, StrictUndefined

    recorded = load_recorded() if recorded is None else recorded
    frameworks = load_frameworks()
    words = lessons(recorded, frameworks)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(percent=percent, mib=mib)
    data = {
        **{
            name: recorded[name]
            for name in ("bucket", "sum", "replay", "orders", "scaler_orders", "memory")
        },
        "moves": phase_moves(),
        "rules": {code: rule.name for code, rule in BY_CODE.items()},
        "anki": anki_text(words.cards),
    }
    return environment.from_string(_asset("lab.html")).render(
        recorded=recorded,
        frameworks=frameworks,
        device=json.loads(_text("device.json")),
        words=words,
        snippets={myth.snippet: _text(f"snippets/{myth.snippet}.py") for myth in words.myths},
        css=_asset("lab.css"),
        scripts=[_asset(f"{name}.js") for name in SCRIPTS],
        data=_as_script(data),
    )


def _as_script(data: object) -> str:
    """Return JSON that can stand inside a script element, whatever strings it holds."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return _text(f"assets/{name}")


def _text(name: str) -> str:
    return files("zerograd.lab").joinpath(name).read_text(encoding="utf-8")
