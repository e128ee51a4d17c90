"""Where findings go, for every command that finds things: `--format` and `--output`."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from zerograd.errors import UsageError
from zerograd.report.reporter import FORMATS, NOTHING_MORE, Closing, make_reporter

if TYPE_CHECKING:
    from zerograd.lifecycle.findings import Finding
    from zerograd.report.excerpt import Source


def add_output_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="text",
        help="; ".join(f"{name}: {what}" for name, what in FORMATS.items()),
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="write there instead of to the terminal"
    )


def write_findings(
    findings: Sequence[Finding],
    args: argparse.Namespace,
    *,
    stream: TextIO | None = None,
    source: Source | None = None,
    closing: Closing = NOTHING_MORE,
) -> None:
    """Write the findings as `--format` and `--output` say.

    Args:
        stream: where to write without `--output`; standard output unless told.
        closing: what the last line of `text` says beside the count.
    """
    if args.output is None:
        out = stream or sys.stdout
        reporter = make_reporter(
            args.format,
            color=wants_color(out),
            width=text_width(out),
            source=source,
            closing=closing,
        )
        reporter.write(findings, out)
        return
    text = io.StringIO()
    make_reporter(args.format, source=source, closing=closing).write(findings, text)
    write_file(args.output, text.getvalue())


def check_writable(
    path: Path | None,
    option: str = "--output",
    *,
    kept: Sequence[tuple[Path | None, str]] = (),
) -> None:
    """Refuse a file that cannot be written, before the work whose result it is to hold.

    No file is left where none was, and no folder is made.

    Args:
        kept: files that it may not be, and what they are.
    """
    if path is None:
        return
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a pipe, which would wait for its reader, or a device
        for other, what in kept:
            if other is not None and os.path.realpath(path) == os.path.realpath(other):
                raise UsageError(f"{option} {path}: is {what}, which it would replace")
        if path.exists():
            from zerograd.static.files import ENDINGS

            if path.suffix in ENDINGS:
                raise UsageError(f"{option} {path}: is source code, which it would replace")
            with contextlib.suppress(FileNotFoundError):  # another rank has just asked the same
                os.close(os.open(path, os.O_WRONLY))  # makes none, as "ab" would
        else:
            real = Path(os.path.realpath(path))  # a link may lead to what is not there yet
            with contextlib.suppress(FileExistsError):  # another rank asks the same just now
                real.open("xb").close()
                real.unlink()
    except OSError as error:
        raise _unwritable(path, error, option) from error


def write_file(path: Path, text: str, option: str = "--output") -> None:
    """Write `text` as UTF-8, whole or not at all; a failure is one clear line."""
    from zerograd.static.writing import write_whole

    try:
        write_whole(str(path), text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _unwritable(path, error, option) from error


def _unwritable(path: Path, error: OSError, option: str) -> UsageError:
    return UsageError(
        f"{option} {path}: cannot be written ({error.strerror or error}); "
        "name a file that can be, in a folder that exists"
    )


def wants_color(out: TextIO) -> bool:
    """Colour only where a person looks, and not where they said no (NO_COLOR)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return out.isatty()


def text_width(out: TextIO) -> int:
    """Return how wide a text may be: the terminal's width, at most 100 for reading's sake."""
    if not out.isatty():
        return 100
    import shutil

    return min(100, shutil.get_terminal_size().columns)
