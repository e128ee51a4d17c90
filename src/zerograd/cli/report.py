"""`zerograd report TRACE`: a recorded run as text, JSON, a page, or a file for Perfetto."""

from __future__ import annotations

import argparse
import io
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path

from zerograd.cli.output import check_writable, text_width, wants_color, write_file
from zerograd.cli.run_paths import near, near_spot, source_from, worded_note
from zerograd.errors import UsageError
from zerograd.lifecycle.events import Event
from zerograd.lifecycle.findings import Finding, Live
from zerograd.report.reporter import Closing, make_reporter
from zerograd.report.timeline import ProcessTimeline, build_timeline
from zerograd.trace.format import Folded, Happened
from zerograd.trace.reader import Section, Trace, read_trace

EXIT_CODES = "0 shown, whatever was found in the run; 2 could not work."

_MOST_NAMED = 4  # processes that failed
FORMATS = {
    "text": "the loop's shape and the findings, for a terminal",
    "json": "the run and its findings as one object",
    "html": "one page that opens offline",
    "perfetto": "a Chrome trace, beside that of torch.profiler",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", metavar="TRACE", type=Path, help="a file written by zerograd run --trace"
    )
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="text",
        help="; ".join(f"{name}: {what}" for name, what in FORMATS.items()),
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write there; the page goes to TRACE.html unless told otherwise",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(args: argparse.Namespace) -> int:
    if args.open and args.format != "html":
        raise UsageError(f"--open shows a page, and --format {args.format} writes none.")
    trace = read_trace(args.trace)
    output: Path | None = args.output
    check_writable(output, kept=[(args.trace, "the trace")])
    if args.format == "html" and output is None:
        output = args.trace.with_name(args.trace.name + ".html")
    color = output is None and wants_color(sys.stdout)
    width = text_width(sys.stdout) if output is None else 100
    text = _WRITERS[args.format](trace, color, width)
    if output is None:
        sys.stdout.write(text)
        return 0
    write_file(output, text)
    print(output)
    if args.open:
        webbrowser.open(output.resolve().as_uri())
    return 0


def build_timelines(trace: Trace) -> list[tuple[Section, ProcessTimeline]]:
    """Return a timeline for each process that did something; the first if none did."""
    pairs = [
        (section, build_timeline(section.name, _nearby(section))) for section in trace.sections
    ]
    busy = [(section, timeline) for section, timeline in pairs if timeline.moments]
    return busy or pairs[:1]


def _nearby(section: Section) -> list[Happened | Folded]:
    """Return what happened, with paths as the user types them."""
    cwd = section.header.cwd
    seen: dict[Event, Event] = {}
    result: list[Happened | Folded] = []
    for item in section.happened:
        if isinstance(item, Happened):
            event = seen.get(item.event)
            if event is None:
                event = replace(item.event, spot=near_spot(item.event.spot, cwd))
                seen[item.event] = event
            item = replace(item, event=event)
        result.append(item)
    return result


def findings_of(trace: Trace) -> list[Finding]:
    """Return the findings of all processes, each fault once, with the ranks that saw it."""
    from zerograd.runtime.ranks import join_findings

    found = []
    for section in trace.sections:
        rank = section.header.rank
        for finding in section.findings:
            live = finding.live or Live()
            if rank is not None and not live.ranks:
                live = replace(live, ranks=(rank,))
            found.append(near(replace(finding, live=live), section.header.cwd))
    return join_findings(found)


def _how_it_ended(trace: Trace) -> str:
    """Return how the run ended, nothing if it ended well."""
    failed = [
        f"{section.name} ended with exit code {section.end['exit']}"
        for section in trace.sections
        if section.end is not None and section.end.get("exit")
    ]
    words = ", ".join(failed[:_MOST_NAMED])
    more = len(failed) - _MOST_NAMED
    words += f" and {more} more likewise" if more > 0 else ""
    return words[:1].upper() + words[1:]


def _as_text(trace: Trace, color: bool, width: int) -> str:
    from zerograd.report.trace_text import write_timeline

    out = io.StringIO()
    header = trace.sections[0].header
    out.write(f"{trace.path}: {' '.join(header.command) or 'a run'}\n\n")
    write_timeline([timeline for _, timeline in build_timelines(trace)], out)
    for section in trace.sections:
        if section.end is None:
            out.write(f"{section.name} did not end by itself; its record stops there.\n")
        if section.skipped:
            lines = "line" if section.skipped == 1 else "lines"
            out.write(f"{section.name}: {section.skipped} damaged {lines} passed over.\n")
    for note in trace.notes:
        out.write(f"{worded_note(note)}\n")
    source = source_from(header.cwd)
    closing = Closing(ended=_how_it_ended(trace))
    reporter = make_reporter("text", color=color, width=width, source=source, closing=closing)
    reporter.write(findings_of(trace), out)
    return out.getvalue()


def _as_json(trace: Trace, color: bool, width: int) -> str:
    from zerograd.report.json import write_json

    out = io.StringIO()
    shape = {
        "trace": str(trace.path),
        "processes": [
            {
                **{
                    key: value
                    for key, value in section.header.to_json().items()
                    if key not in ("type", "format")
                },
                "iterations": section.iterations,
                "folded": sum(each.iterations for each in section.folded),
                "ended": section.end is not None,
                "exit": section.end.get("exit") if section.end is not None else None,
                "lanes": [
                    {
                        "owner": lane.owner,
                        "buckets": list(lane.buckets),
                        "windows": len(lane.windows),
                        "events": len(lane.marks),
                    }
                    for lane in build_timeline(section.name, _nearby(section)).lanes
                ],
            }
            for section in trace.sections
        ],
        "notes": trace.notes,
        "findings": [finding.to_json() for finding in findings_of(trace)],
    }
    write_json(shape, out)
    return out.getvalue()


def _as_page(trace: Trace, color: bool, width: int) -> str:
    from zerograd.report.html import PageFacts, PageProcess, write_page

    header = trace.sections[0].header
    words = [word for word in header.command if word != "-m"]
    facts = PageFacts(
        title=words[0] if words else trace.path.name,
        command=" ".join(header.command),
        tool=header.tool,
        python=header.python,
        torch=header.torch,
        started=header.started,
        notes=[worded_note(note) for note in trace.notes],
        ended=_how_it_ended(trace),
    )
    processes = [
        PageProcess(timeline, section.iterations, section.end is None, section.header.rank)
        for section, timeline in build_timelines(trace)
    ]
    out = io.StringIO()
    write_page(facts, processes, findings_of(trace), out, source=source_from(header.cwd))
    return out.getvalue()


def _as_perfetto(trace: Trace, color: bool, width: int) -> str:
    from zerograd.report.perfetto import PerfettoProcess, write_perfetto

    out = io.StringIO()
    processes = [
        PerfettoProcess(
            timeline,
            section.header.pid,
            section.header.started,
            section.header.rank,
            section.findings,
        )
        for section, timeline in build_timelines(trace)
    ]
    write_perfetto(processes, out)
    return out.getvalue()


_WRITERS = {"text": _as_text, "json": _as_json, "html": _as_page, "perfetto": _as_perfetto}
