"""`zerograd lab`: write the interactive page about gradients."""

from __future__ import annotations

import argparse
import json
import webbrowser
from importlib.util import find_spec
from pathlib import Path

from zerograd.cli.output import check_writable, write_file
from zerograd.errors import MissingTorchError
from zerograd.lab.page import render

DEFAULT_OUTPUT = "zerograd-lab.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(DEFAULT_OUTPUT),
        metavar="FILE",
        help=f"where the page goes (default: {DEFAULT_OUTPUT})",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--record",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FILE",
        help="run every experiment here first (needs torch, under a minute), make the page from "
        "that, and keep the numbers in FILE if one is named",
    )


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    recorded = None
    if args.record is not None:
        if find_spec("torch") is None:
            raise MissingTorchError(
                "lab --record runs PyTorch, which is not installed here.\n"
                "  Install it (pip install 'zerograd[torch]'), or leave out --record: "
                "the page then shows the runs that came with the package."
            )
        if args.record != Path():
            check_writable(args.record, "--record")
        from zerograd.lab.recorder import record

        recorded = record()
        if args.record != Path():
            text = json.dumps(recorded, separators=(",", ":"))
            write_file(args.record, text + "\n", "--record")
            print(f"recorded: {args.record}")
    page = render(recorded)
    write_file(args.output, page)
    print(f"{args.output}: {len(page.encode()) / 1000:.0f} kB, works offline")
    if args.open:
        webbrowser.open(args.output.resolve().as_uri())
    return 0
