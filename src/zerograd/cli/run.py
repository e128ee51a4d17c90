"""`zerograd run`: put it in front of a training script, unmodified, on one process or many."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from zerograd.cli.output import add_output_arguments, check_writable
from zerograd.errors import UsageError
from zerograd.rules.selection import select_rules

EXIT_CODES = (
    "the script's own if that is not 0; else 1 if findings are shown, else 0. "
    "2 before the script's first line: zerograd could not start it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_arguments(parser)
    parser.add_argument(
        "--trace", metavar="FILE", type=Path, help="write every event there, for zerograd report"
    )
    parser.add_argument(
        "--policy",
        choices=["warn", "raise", "collect"],
        default="warn",
        help="warn at once and report at the end; raise an error at the offending line; "
        "or collect and only report at the end",
    )
    parser.add_argument(
        "--select", action="append", default=[], metavar="RULES", help="show only these rules"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="RULES", help="never show these rules"
    )
    parser.add_argument("--all", action="store_true", help="show notes too")
    parser.add_argument(
        "--exit-zero", action="store_true", help="exit 0 although findings are shown"
    )
    parser.add_argument(
        "-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module"
    )
    parser.add_argument(
        "command_line",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT ARGS...",
        help="the script, or the module after -m, and its own arguments",
    )


def run(args: argparse.Namespace) -> int:
    """Run the script; return its own exit code if not 0, else 1 if findings are shown."""
    # They end our options, as they would end Python's. After -m Python takes them for a name.
    if args.command_line[:1] == ["--"] and not args.is_module:
        del args.command_line[0]
    if not args.command_line:
        raise UsageError("run: name a script, as in: zerograd run train.py --epochs 3")
    # Everything that can be refused is refused before the script's first line.
    codes = tuple(rule.code for rule in select_rules(args.select, args.ignore, notes=args.all))
    every = tuple(rule.code for rule in select_rules(args.select, args.ignore, notes=True))
    from zerograd.runtime.launch import Target
    from zerograd.runtime.supported import torch_version, untested

    target = Target(args.command_line[0], tuple(args.command_line[1:]), args.is_module)
    target.check()
    _check_readable(args)
    version = torch_version()
    script = (None if args.is_module else Path(args.command_line[0]), "the script")
    check_writable(args.trace, "--trace", kept=[script])
    check_writable(args.output, kept=[script, (args.trace, "the --trace file")])
    warning = untested(version)
    if warning:
        print(f"zerograd: {warning}", file=sys.stderr)

    from zerograd.cli.run_report import ReportOptions
    from zerograd.cli.run_session import run_session
    from zerograd.runtime.run_folder import RunOptions

    trace = os.path.abspath(args.trace) if args.trace is not None else None
    options = RunOptions(
        policy=args.policy,
        codes=codes,
        # Notes are counted, to say that there are some; only a raise may not be moved by them.
        watched=codes if args.policy == "raise" else every,
        trace=trace,
        command=target.words,
        root=os.getpid(),
        torch=version,
        cwd=os.getcwd(),
    )
    shown = ReportOptions(
        format=args.format,
        output=os.path.abspath(args.output) if args.output is not None else None,
        codes=codes,
        exit_zero=args.exit_zero,
        cwd=os.getcwd(),
        trace=trace,
    )
    return run_session(target, options, shown)


def _check_readable(args: argparse.Namespace) -> None:
    script = args.command_line[0]
    if not args.is_module and os.path.isfile(script) and not os.access(script, os.R_OK):
        raise UsageError(f"{script}: cannot be read (Permission denied); run a script that can be")
