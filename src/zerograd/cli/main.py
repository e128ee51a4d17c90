"""The command line: which subcommands there are, and how each ends.

A subcommand is a line in COMMANDS and a module with add_arguments(parser) and run(args),
EXIT_CODES where findings have a say in them, and WORDS where it takes a list of words.
Only the module that was asked for is imported, so `zerograd --help` stays instant.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from zerograd import __version__
from zerograd.errors import UsageError, ZerogradError

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

# `run` hands the process over to the user's script: its streams, and how it ends, are its own.
_USERS_PROCESS = {"run"}

INTERRUPTED = 130  # 128 + SIGINT, as shells count
NOBODY_READS = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code: 0 clean, 1 findings, 2 could not work."""
    words = list(sys.argv[1:] if argv is None else argv)
    asked = next((word for word in words if not word.startswith("-")), None)
    try:
        if asked in _USERS_PROCESS:
            return _dispatch(words, asked)
        code = _in_our_process(words, asked)
        if argv is None:
            gc.freeze()  # the process ends: nothing has to be looked at again
        return code
    except ZerogradError as error:
        _tell(f"zerograd: {error}")
        return error.exit_code


def _tell(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        from zerograd.cli.streams import close_quietly

        close_quietly(sys.stderr)  # nobody can be told; the exit code still says it


def _in_our_process(words: list[str], asked: str | None) -> int:
    from zerograd.cli.streams import close_quietly, make_safe

    make_safe()
    try:
        try:
            code = _dispatch(words, asked)
        except SystemExit as end:  # argparse has told its help or the version
            code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()  # a reader that has gone is noticed here, not at exit
        return code
    except KeyboardInterrupt:
        _tell("zerograd: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        close_quietly(sys.stdout)
        return NOBODY_READS
    except OSError as error:
        if error.filename is not None:  # not a stream: a fault of ours
            raise
        if isinstance(error, FileNotFoundError):  # which no stream can be
            raise UsageError("the current folder is gone.\n  Go to one that is there.") from error
        close_quietly(sys.stdout)
        raise UsageError(
            f"standard output: cannot be written ({error.strerror}).\n"
            "  Make room, or let the output go elsewhere."
        ) from error


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are like all others here: one line, and what to do next."""

    def _print_message(self, message: str, file: Any = None) -> None:
        # as argparse itself does since Python 3.11.5: help that nobody can read is no error
        with suppress(OSError, AttributeError):
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        words = self.prog.split()[1:]
        where = f"{' '.join(words)}: " if words else ""
        raise UsageError(f"{where}{message}.\n  `{self.prog} --help` lists what there is.")


def build_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; only the subcommand `asked` for brings its own arguments."""
    parser = Parser(
        prog="zerograd",
        description="Find, explain, fix and prevent gradient-lifecycle bugs in PyTorch training.",
        epilog="Exit codes: 0 done, 1 findings shown by check or run, 2 could not work; "
        "run ends with the script's own code if that is not 0.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"zerograd {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        sub = commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
        )
        if name == asked:
            command = import_module(f"zerograd.cli.{name}")
            command.add_arguments(sub)
            codes = getattr(command, "EXIT_CODES", None)
            sub.epilog = f"Exit codes: {codes}" if codes else None
    return parser


def _dispatch(words: list[str], asked: str | None) -> int:
    if asked is not None and asked not in COMMANDS:
        raise _unknown(asked)
    parser = build_parser(asked)
    args, unknown = parser.parse_known_args(words)
    if args.command is None:
        if unknown:
            raise _unrecognized(None, unknown)
        parser.print_help()
        return 0
    command = import_module(f"zerograd.cli.{args.command}")
    # argparse ends a list at the first option behind it: what comes after that is left over.
    options = [word for word in unknown if word.startswith("-") and word != "-"]
    if options or (unknown and not hasattr(command, "WORDS")):
        raise _unrecognized(args.command, options or unknown)
    if unknown:
        getattr(args, command.WORDS).extend(unknown)
    return int(command.run(args))


def _unrecognized(command: str | None, words: Sequence[str]) -> UsageError:
    where, help_ = (f"{command}: ", f"zerograd {command}") if command else ("", "zerograd")
    return UsageError(
        f"{where}unrecognized arguments: {' '.join(words)}.\n"
        f"  `{help_} --help` lists what there is."
    )


def _unknown(word: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    if near:
        hint = f"Did you mean `zerograd {near[0]}`?"
    elif word.endswith((".py", ".ipynb")):
        hint = f"Did you mean `zerograd check {word}`, or `zerograd run {word}`?"
    else:
        hint = f"There are: {', '.join(COMMANDS)}."
    return UsageError(f"{word}: there is no such command.\n  {hint}")
