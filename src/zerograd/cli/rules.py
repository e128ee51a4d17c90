"""`zerograd rules`: the catalogue, as a table or as JSON."""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import Any

from zerograd.cli.output import text_width, wants_color
from zerograd.lifecycle.rule import Rule, Severity, Witness
from zerograd.report.json import write_json
from zerograd.report.terminal import Paint
from zerograd.rules import ALL_RULES
from zerograd.rules.describe import sentence
from zerograd.rules.selection import matching

WORDS = "words"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="RULE",
        help="only these: a code, the beginning of one, or a name (default: all)",
    )
    parser.add_argument(
        "--format", choices=["text", "json"], default="text", help="a table, or an array of objects"
    )


def run(args: argparse.Namespace) -> int:
    wanted = {rule.code for word in args.words for rule in matching(word)}
    rules = [rule for rule in ALL_RULES if not wanted or rule.code in wanted]
    if args.format == "json":
        write_json([_shape(rule) for rule in rules], sys.stdout)
    else:
        _write_table(rules)
    return 0


def _shape(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "summary": sentence(rule),
        "static": Witness.STATIC in rule.seen_by,
        "live": Witness.RUNTIME in rule.seen_by,
        "kind": rule.kind.value,
    }


def seen_by(rule: Rule) -> str:
    """Return which commands can find it: `check`, `run`, or both."""
    commands = {Witness.STATIC: "check", Witness.RUNTIME: "run"}
    return " ".join(word for witness, word in commands.items() if witness in rule.seen_by)


def _write_table(rules: list[Rule]) -> None:
    out, paint = sys.stdout, Paint(wants_color(sys.stdout))
    widest = max(len(rule.name) for rule in rules)
    indent = 7 + widest + 2 + 9 + 11
    # A pipe gets one line a rule, for grep; a person gets lines that fit.
    room = text_width(out) - indent if out.isatty() else 1000
    is_narrow = room < 30
    if is_narrow:  # the sentence goes below, where there is room
        indent = 7
        room = max(30, text_width(out) - indent)
    for rule in rules:
        lines = textwrap.wrap(sentence(rule), room)
        severity = paint.severity(rule.severity, f"{rule.severity.value:<9}")
        seen = seen_by(rule) + "\n" + " " * indent if is_narrow else f"{seen_by(rule):<11}"
        out.write(f"{paint.bold(rule.code)}  {rule.name:<{widest}}  {severity}{seen}")
        out.write(f"\n{' ' * indent}".join(lines) + "\n")
    out.write("\ncheck: seen in source code; run: seen in a live run.\n")
    if any(rule.severity is Severity.NOTE for rule in rules):
        out.write("Notes are shown with --all or when selected.\n")
    out.write("One rule's page: zerograd explain CODE\n")
