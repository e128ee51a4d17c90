"""`zerograd learn`: exercises in the shell."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from zerograd.errors import UsageError
from zerograd.learn.exercise import find
from zerograd.learn.folder import DEFAULT_FOLDER, Folder
from zerograd.learn.process import run_checks
from zerograd.learn.screen import Screen
from zerograd.learn.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(DEFAULT_FOLDER),
        metavar="FOLDER",
        help=f"where your copies and your progress are kept (default: ./{DEFAULT_FOLDER})",
    )
    parser.add_argument("--start", metavar="NAME", help="begin at this exercise: name or number")
    ask = parser.add_mutually_exclusive_group()
    ask.add_argument(
        "--check",
        nargs="?",
        const="all",
        metavar="NAME",
        help="run the checks once and exit: 0 passed, 1 not, 2 could not be graded",
    )
    ask.add_argument("--list", action="store_true", help="list the exercises and exit")
    ask.add_argument("--hint", metavar="NAME", help="print the next hint for NAME and exit")
    ask.add_argument("--reset", metavar="NAME", help="put NAME's starter back and exit")


def run(args: argparse.Namespace) -> int:
    screen = Screen(sys.stdout)
    # names first: a slip of the pen must not leave a new folder behind
    named = [word for word in (args.start, args.check, args.hint, args.reset) if word]
    wanted = [find(word) for word in named if word != "all"]
    if args.list:
        screen.listing(Folder.look(args.folder))
        return 0
    folder = Folder.open(args.folder)
    if args.hint:
        level, text = folder.next_hint(wanted[-1])
        screen.hint(level, len(wanted[-1].hints), text)
    elif args.reset:
        kept = folder.reset(wanted[-1])
        screen.line(f"The starter is back. Your text is in {kept}.")
    elif args.check:
        names = None if args.check == "all" else wanted[-1].name
        return _check(folder, screen, names)
    elif sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        if args.start:
            folder.turn_to(wanted[0])
        Session(folder, screen).run()
    else:
        raise UsageError(
            f"learn waits for keys and needs a terminal; the exercises are in {args.folder}.\n"
            "  In a script use: zerograd learn --check [NAME]."
        )
    return 0


def _check(folder: Folder, screen: Screen, name: str | None) -> int:
    """Grade one exercise or all of them; the worst result is the exit code."""
    worst = 0
    for exercise in folder.exercises:
        if name not in (None, exercise.name):
            continue
        verdict = run_checks(exercise, folder.file(exercise))
        result = 0 if verdict.passed else 2 if verdict.missing else 1
        if name is None:
            word = {0: "passed", 1: "not passed", 2: "not graded"}[result]
            reason = verdict.missing or (verdict.failure.message if verdict.failure else "")
            first = reason.splitlines()[0] if reason else ""
            screen.line(f"{exercise.file_name}: {word}{': ' if first else ''}{first}")
        else:
            screen.verdict(verdict)
        if verdict.passed:
            folder.mark_done(exercise)
            if name is not None:
                screen.solved(exercise, folder)
        worst = max(worst, result)
    return worst
