"""A recorded run as one page: a single file that opens from disk and asks nobody for anything.

Findings are plain HTML, readable without scripts. The timeline is drawn by small
scripts from data inside the page. Every string of the user's goes through the
template's escaping or into the data, where no character can end its element.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from importlib import resources
from typing import Any, TextIO

from zerograd.lifecycle.events import Event, Spot
from zerograd.lifecycle.findings import Finding
from zerograd.report.excerpt import Source, excerpt, read_source, visible
from zerograd.report.page import render
from zerograd.report.timeline import Content, ProcessTimeline
from zerograd.rules.describe import page

SCRIPTS = ("model.js", "paint.js", "curves.js", "timeline.js", "details.js", "report.js")
_AROUND = 4  # source lines shown on each side of an event's own
_CONTENTS = [content.value for content in Content]


@dataclass(frozen=True, slots=True)
class PageProcess:
    """One process as the page shows it."""

    timeline: ProcessTimeline
    iterations: int
    was_killed: bool = False
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What the head of the page says of the run."""

    title: str
    command: str = ""
    tool: str = ""
    python: str = ""
    torch: str = ""
    started: float = 0.0
    notes: Sequence[str] = ()
    ended: str = ""  # how the run ended, if not well


def write_page(
    facts: PageFacts,
    processes: Sequence[PageProcess],
    findings: Sequence[Finding],
    out: TextIO,
    *,
    source: Source = read_source,
) -> None:
    """Write the page of a run."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("zerograd.report", "assets"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folded = max(
        (sum(gap.iterations for _, gap in each.timeline.gaps) for each in processes), default=0
    )
    text = environment.get_template("report.html").render(
        facts=facts,
        started=_date(facts.started),
        processes=processes,
        iterations=max((each.iterations for each in processes), default=0),
        folded=folded,
        findings=[_card(number, each, source) for number, each in enumerate(findings)],
        contents=_CONTENTS,
        style=_asset("report.css"),
        script="\n".join(_asset(name) for name in SCRIPTS),
        data=_inert(_data(processes, findings, source)),
    )
    out.write(text)


@cache
def _asset(name: str) -> str:
    return (resources.files("zerograd.report") / "assets" / name).read_text(encoding="utf-8")


def _date(seconds: float) -> str:
    if not seconds:
        return ""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _inert(value: Any) -> str:
    """Return JSON that cannot end the element it stands in, whatever strings it holds."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _card(number: int, finding: Finding, source: Source) -> dict[str, Any]:
    live = finding.live
    rule_page = page(finding.rule)
    lines = excerpt(
        finding.spot,
        source,
        also=[step.spot.line for step in finding.trail if step.spot.path == finding.spot.path],
    )
    return {
        "number": number,
        "code": finding.rule.code,
        "name": finding.rule.name,
        "severity": finding.rule.severity.value,
        "where": visible(str(finding.spot)),
        "message": visible(finding.message),
        "advice": visible(finding.advice),
        "excerpt": "\n".join(lines),
        "trail": [
            {
                "where": visible(f"{step.spot.path}:{step.spot.line}"),
                "code": visible(step.code),
                "text": visible(step.text),
            }
            for step in finding.trail
        ],
        "step": live.step if live else None,
        "ranks": list(live.ranks) if live else [],
        "often": finding.often,
        "share": f"{live.share:.0%}" if live and live.share is not None else "",
        "parameters": [visible(name) for name in live.parameters[:12]] if live else [],
        "more_parameters": max(0, len(live.parameters) - 12) if live else 0,
        "page": render(rule_page, width=88) if rule_page else "",
        "url": finding.url if finding.url and finding.url.startswith("https://") else None,
    }


def _data(
    processes: Sequence[PageProcess], findings: Sequence[Finding], source: Source
) -> dict[str, Any]:
    sites = _Sites(source)
    return {
        "contents": _CONTENTS,
        "processes": [_process(each, sites) for each in processes],
        "findings": [
            {
                "code": each.rule.code,
                "name": each.rule.name,
                "path": each.spot.path,
                "line": each.spot.line,
                "cell": each.spot.cell,
                "owner": each.owner,
                "step": each.live.step if each.live else None,
                "ranks": list(each.live.ranks) if each.live else [],
            }
            for each in findings
        ],
        "sites": sites.shapes,
        "snippets": sites.snippets,
    }


class _Sites:
    """Every place and kind of event once, with the source around it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._places: dict[tuple[str, int | None, int], int] = {}
        self.shapes: list[dict[str, Any]] = []
        self.snippets: list[dict[str, Any]] = []

    def number(self, event: Event) -> int:
        key = (event.kind, event.owner, event.spot, event.text, event.scaler)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.shapes)
            self.shapes.append(
                {
                    "kind": event.kind.value,
                    "owner": event.owner,
                    "path": event.spot.path,
                    "line": event.spot.line,
                    "cell": event.spot.cell,
                    "text": event.text,
                    "buckets": list(event.buckets[:12]),
                    "snippet": self._snippet(event.spot),
                }
            )
        return number

    def _snippet(self, spot: Spot) -> int | None:
        lines = self._source(spot.path, spot.cell)
        if not 1 <= spot.line <= len(lines):
            return None
        key = (spot.path, spot.cell, spot.line)
        if key not in self._places:
            first = max(1, spot.line - _AROUND)
            shown = lines[first - 1 : spot.line + _AROUND]
            self._places[key] = len(self.snippets)
            self.snippets.append({"first": first, "lines": [visible(line)[:240] for line in shown]})
        return self._places[key]


def _process(each: PageProcess, sites: _Sites) -> dict[str, Any]:
    """Return the process in columns of small numbers: a tenth of the size of objects."""
    timeline = each.timeline
    moments = timeline.moments
    return {
        "name": timeline.name,
        "rank": each.rank,
        "killed": each.was_killed,
        "iterations": each.iterations,
        "site": [sites.number(moment.event) for moment in moments],
        "iteration": _steps(moment.iteration for moment in moments),
        "time": _steps(round(moment.time * 1e6) for moment in moments),
        "extra": {
            str(index): _plain(moment.extra) for index, moment in enumerate(moments) if moment.extra
        },
        "gaps": [
            [at, gap.first, gap.last, gap.iterations, dict(gap.events)] for at, gap in timeline.gaps
        ],
        "lanes": [
            {
                "owner": lane.owner,
                "owned": lane.is_owned,
                "buckets": list(lane.buckets[:24]),
                "event": _steps(mark.index for mark in lane.marks),
                "content": [_CONTENTS.index(mark.content.value) for mark in lane.marks],
                "level": [mark.level for mark in lane.marks],
                "foreign": [n for n, mark in enumerate(lane.marks) if not mark.is_own],
                "windows": [
                    [window.first, window.last, window.backwards] for window in lane.windows
                ],
            }
            for lane in timeline.lanes
        ],
        "curves": {
            name: {
                "event": _steps(index for index, _ in points),
                "value": [value if math.isfinite(value) else None for _, value in points],
            }
            for name, points in timeline.curves.items()
        },
    }


def _steps(numbers: Iterable[int]) -> list[int]:
    """Return differences between neighbours: small numbers take few characters."""
    result, before = [], 0
    for number in numbers:
        result.append(number - before)
        before = number
    return result


def _plain(extra: Mapping[str, Any]) -> dict[str, str]:
    return {
        visible(str(key))[:60]: visible(f"{value:.6g}" if isinstance(value, float) else str(value))[
            :200
        ]
        for key, value in list(extra.items())[:12]
    }
