"""`zerograd bench`: how this model's gradients are cleared fastest, measured."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, TextIO

from zerograd.errors import MissingTorchError, UsageError

if TYPE_CHECKING:
    from zerograd.bench.measure import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default="tiny",
        metavar="tiny|resnet|gpt2|many|MODULE:FACTORY",
        help="a built-in model, or your own: FACTORY() returns a module, or a pair of a module "
        "and a function without arguments that returns the loss (default: tiny)",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda if there is one")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--rounds", type=int, default=15, help="how often each policy is measured (default: 15)"
    )


def run(args: argparse.Namespace) -> int:
    if args.rounds < 3:
        raise UsageError(f"--rounds {args.rounds}: at least 3, or the median means nothing")
    try:
        import torch
    except ImportError as error:
        raise MissingTorchError(
            "bench measures torch, which is not installed. Install it: pip install zerograd[torch]"
        ) from error
    has_cuda = torch.cuda.is_available()
    if args.device == "cuda" and not has_cuda:
        raise UsageError("--device cuda: torch sees no GPU here. Use --device cpu.")
    device = args.device or ("cuda" if has_cuda else "cpu")

    from zerograd.bench.measure import measure

    report = measure(args.model, device, args.rounds, _Progress(sys.stderr).say)
    _Progress(sys.stderr).done()
    if args.format == "json":
        print(json.dumps(report.as_dict(), indent=2))
    else:
        write_text(report, sys.stdout)
    return 0


class _Progress:
    """One line that is written over on a terminal, and is silent elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_live = out.isatty()

    def say(self, text: str) -> None:
        if self._is_live:
            self._out.write(f"\r{text:<60}")
            self._out.flush()

    def done(self) -> None:
        if self._is_live:
            self._out.write("\r" + " " * 60 + "\r")
            self._out.flush()


def write_text(report: Report, out: TextIO) -> None:
    out.write(
        f"{report.model} on {report.device}, torch {report.torch}: {report.tensors} gradients, "
        f"{_bytes(report.gradient_bytes)}\n"
        f"fill ceiling {_bytes(report.fill_bytes_per_second)}/s; medians of {report.rounds} "
        f"rounds{_apart(report)}\n\n"
    )
    titles = ("policy", "clear", "of ceiling", "norm+clip", "step", "step+clip", "peak memory")
    rows = [
        (
            row.policy,
            _time(row.clear),
            "-"
            if row.clear_bytes_per_second is None
            else f"{row.clear_bytes_per_second / report.fill_bytes_per_second:.0%}",
            _time(row.norm_and_clip),
            _time(row.step),
            _time(row.step_with_clip),
            "-" if row.peak_bytes is None else _bytes(row.peak_bytes),
        )
        for row in report.rows
    ]
    widths = [max(len(line[i]) for line in (titles, *rows)) for i in range(len(titles))]
    for line in (titles, *rows):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        out.write("  ".join(cells).rstrip() + "\n")
    out.write(f"\n{report.advice}\n")


def _apart(report: Report) -> str:
    if report.spread is None or report.spread_with_clip is None:
        return ""
    return (
        f", two equal measurements {report.spread:.1%} apart, "
        f"{report.spread_with_clip:.1%} with clipping"
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} B"
