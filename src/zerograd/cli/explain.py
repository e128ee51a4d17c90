"""`zerograd explain CODE`: a rule's page, for reading in a terminal."""

from __future__ import annotations

import argparse
import sys

from zerograd.cli.output import text_width, wants_color
from zerograd.report.page import render
from zerograd.rules.describe import page, sentence
from zerograd.rules.selection import find_rule

WORDS = "rules"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rules", nargs="+", metavar="RULE", help="a rule's code or name: ZG101, stale-gradient"
    )


def run(args: argparse.Namespace) -> int:
    rules = [find_rule(word) for word in args.rules]  # all known, before anything is printed
    for number, rule in enumerate(rules):
        text = page(rule) or f"# {rule.code} {rule.name}\n\n{sentence(rule)}.\n"
        if number:
            sys.stdout.write("\n")
        sys.stdout.write(render(text, color=wants_color(sys.stdout), width=text_width(sys.stdout)))
    return 0
