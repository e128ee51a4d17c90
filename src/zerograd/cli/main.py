"""The command line: which subcommands there are, and how each ends.

A subcommand is a module with HELP, add_arguments(parser) and run(args). Only the
one that was asked for is imported, so `zerograd --help` stays instant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from zerograd import __version__
from zerograd.errors import ZerogradError

# name -> what it does, in one line
COMMANDS = {
    "check": "find gradient mistakes in source files, without running them",
    "run": "run a training script and name the lines that misuse gradients",
    "report": "show a recorded trace: text, JSON, a page or a Perfetto file",
    "explain": "print a rule's page",
    "rules": "list the rules",
    "bench": "measure how your model's gradients are cleared fastest",
    "demo": "see all of it on a bundled script",
    "lab": "write the interactive page about gradients",
    "learn": "exercises in the shell",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code: 0 clean, 1 findings, 2 could not work."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="zerograd",
        description="Find, explain, fix and prevent gradient-lifecycle bugs in PyTorch training.",
    )
    parser.add_argument("--version", action="version", version=f"zerograd {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, text in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text)
        if name == asked:
            import_module(f"zerograd.cli.{name}").add_arguments(sub)
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help()
        return 0
    try:
        return int(import_module(f"zerograd.cli.{args.command}").run(args))
    except ZerogradError as error:
        print(f"zerograd: {error}", file=sys.stderr)
        return error.exit_code
