"""`zerograd check`: find gradient mistakes in source files, without running them."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from zerograd.cli.output import add_output_arguments, check_writable, write_file, write_findings
from zerograd.errors import UnreadableSourceError, UsageError
from zerograd.report.reporter import Closing

if TYPE_CHECKING:
    from zerograd.lifecycle.findings import Finding
    from zerograd.report.excerpt import Source as Excerpts
    from zerograd.static.baseline import Baseline
    from zerograd.static.check import Asked
    from zerograd.static.checked import Checked

WORDS = "paths"
EXIT_CODES = "0 nothing shown, 1 findings shown, 2 could not work."

STDIN = "stdin.py"  # what standard input is called if no one says
MOST_JOBS = 60  # Windows cannot wait for more
MOST_PROBLEMS = 5  # told one by one; the rest is a count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a file or a folder (default: the current folder); - reads standard input",
    )
    shown = parser.add_argument_group("what is shown")
    shown.add_argument(
        "--select", action="append", default=[], metavar="CODES", help="only these rules"
    )
    shown.add_argument(
        "--ignore", action="append", default=[], metavar="CODES", help="not these rules"
    )
    shown.add_argument("--may", action="store_true", help="also what is wrong on some paths only")
    shown.add_argument("--all", action="store_true", help="also notes")
    shown.add_argument("--baseline", metavar="FILE", help="only what FILE does not hold yet")
    change = parser.add_argument_group("changing files")
    change.add_argument("--fix", action="store_true", help="apply the fixes")
    change.add_argument("--diff", action="store_true", help="show the fixes, change nothing")
    change.add_argument(
        "--add-allow", action="store_true", help="put an allow comment at each finding"
    )
    files = parser.add_argument_group("which files")
    files.add_argument(
        "--exclude", action="append", default=[], metavar="GLOB", help="leave out; repeatable"
    )
    files.add_argument(
        "--force-exclude", action="store_true", help="leave out even what is named as PATH"
    )
    files.add_argument("--stdin-filename", metavar="NAME", help="what standard input is called")
    files.add_argument("--jobs", type=_number, metavar="N", help="processes (default: as needed)")
    output = parser.add_argument_group("output")
    add_output_arguments(output)
    output.add_argument("--statistics", action="store_true", help="only how often each rule")
    output.add_argument("--show-settings", action="store_true", help="print the settings and exit")
    output.add_argument("--exit-zero", action="store_true", help="exit 0 in spite of findings")
    output.add_argument("-q", "--quiet", action="store_true", help="only findings, no summary")


def _number(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= MOST_JOBS:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MOST_JOBS}, not {word!r}")
    return int(word)


def run(args: argparse.Namespace) -> int:
    paths = args.paths or ["." if args.stdin_filename is None else "-"]
    _refuse_nonsense(args, paths)
    check_writable(args.output)
    if args.baseline is not None and not os.path.exists(args.baseline):
        check_writable(Path(args.baseline), "--baseline")
    asked = _asked(args)
    if args.show_settings:
        return _show_settings(paths[0])
    stdin = _read_stdin() if paths == ["-"] else None
    result = _check_files(args, asked, paths) if stdin is None else _check_text(args, asked, stdin)
    _tell_problems(result, sys.stderr)
    if not result.files:
        if not result.problems and not result.crashes:
            print("zerograd: no Python files there", file=sys.stderr)
        elif not result.findings:
            return 2
    if args.diff:
        return _show_diff(args, result, stdin)
    unwritten = _write_fixed(result, stdin) if args.fix else False
    since = _since_baseline(args, asked.known, result, stdin)
    if args.add_allow:
        return _add_allow(result)
    _report(args, result, since, stdin)
    if result.crashes or unwritten:
        return 2
    return 1 if result.findings and not args.exit_zero else 0


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise UsageError("-: standard input is closed.\n  Give it the source, or name a file.")
    return sys.stdin.buffer.read()


def _refuse_nonsense(args: argparse.Namespace, paths: Sequence[str]) -> None:
    if "-" in paths and len(paths) > 1:
        raise UsageError("- reads standard input and stands alone")
    if args.stdin_filename is not None and "-" not in paths:
        raise UsageError("--stdin-filename is what standard input is called: leave out the paths")
    if args.add_allow and (args.fix or args.diff or paths == ["-"]):
        raise UsageError("--add-allow changes files by itself: leave out --fix, --diff and -")
    if args.statistics and args.format not in ("text", "json"):
        raise UsageError("--statistics comes as text or json")


def _asked(args: argparse.Namespace) -> Asked:
    from zerograd.rules.selection import words
    from zerograd.static.check import Asked

    changes = args.fix or args.diff
    # Fixes are proved by checking the file again; formats that do not show them save the time.
    offer = args.format in ("text", "json", "sarif") and not args.statistics and not changes
    return Asked(
        select=words(args.select, "select "),
        ignore=words(args.ignore, "ignore "),
        notes=args.all,
        may=args.may,
        offer=offer,
        fix=changes,
        known=_baseline(args.baseline),
    )


def _baseline(path: str | None) -> Baseline | None:
    if path is None or not os.path.exists(path):
        return None
    from zerograd.static.baseline import Baseline

    return Baseline(path)


def _check_files(args: argparse.Namespace, asked: Asked, paths: Sequence[str]) -> Checked:
    from zerograd.cli.progress import Progress
    from zerograd.static.check import check_all
    from zerograd.static.garbage import Sweeper, leave_at_exit

    leave_at_exit()
    with Progress(sys.stderr, silent=args.quiet) as progress, Sweeper() as sweeper:
        return check_all(
            paths,
            asked,
            exclude=args.exclude,
            force_exclude=args.force_exclude,
            jobs=args.jobs,
            progress=progress if progress.is_shown else None,
            sweeper=sweeper,
        )


def _check_text(args: argparse.Namespace, asked: Asked, data: bytes) -> Checked:
    from zerograd.static.check import Checker
    from zerograd.static.checked import Checked
    from zerograd.static.files import may_train

    name = args.stdin_filename or STDIN
    if args.force_exclude and _is_excluded(name, args.exclude):
        return Checked(files=1)
    checker = Checker(asked)
    result = checker.check(data, name)
    if not may_train(data, checker.words(os.path.dirname(name))):
        result.analysed = 0
    return result


def _is_excluded(name: str, exclude: Sequence[str]) -> bool:
    from zerograd.static.ignored import Excludes
    from zerograd.static.settings import SettingsFinder

    return Excludes(exclude, SettingsFinder()).covers(name, is_folder=False, ancestors=True)


def _tell_problems(result: Checked, err: TextIO) -> None:
    for problem in result.problems[:MOST_PROBLEMS]:
        print(f"zerograd: {_visible(problem)}", file=err)
    more = len(result.problems) - MOST_PROBLEMS
    if more > 0:
        noun = "file" if more == 1 else "files"
        print(f"zerograd: and {more} more {noun} could not be checked", file=err)
    for number, crash in enumerate(result.crashes[:MOST_PROBLEMS]):
        # One traceback says enough: the others mostly tell the same.
        print(f"zerograd: {crash if number == 0 else crash.splitlines()[0]}", file=err)
    if result.crashes:
        if len(result.crashes) > MOST_PROBLEMS:
            print(f"zerograd: and in {len(result.crashes) - MOST_PROBLEMS} more files", file=err)
        print("zerograd: that is a fault of ours; please report it with the file", file=err)


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _report(
    args: argparse.Namespace, result: Checked, since: Sequence[str], stdin: bytes | None
) -> None:
    closing = Closing()
    if not args.quiet:
        closing = Closing(_closing(result, since), len(result.hidden), new=bool(since))
    # The fixed text of standard input goes to standard output, so the findings go elsewhere.
    stream = sys.stderr if args.fix and stdin is not None else sys.stdout
    if args.statistics:
        _write_text(_statistics(result.findings, as_json=args.format == "json"), args, stream)
    elif result.findings or args.format != "text" or not args.quiet:
        source = _excerpts(args, result, stdin)
        write_findings(result.findings, args, stream=stream, source=source, closing=closing)
    else:
        _write_text("", args, stream)
    if closing.words and (args.format != "text" or args.output or args.statistics):
        count = len(result.findings)
        print(f"{count} finding{'' if count == 1 else 's'} {closing.words}", file=sys.stderr)


def _excerpts(args: argparse.Namespace, result: Checked, stdin: bytes | None) -> Excerpts:
    """Return where the reporter finds source lines: on disk, or in what came by standard input."""
    from zerograd.report.excerpt import read_source

    read_source.cache_clear()  # the fixes may have changed what it holds
    if stdin is None:
        return read_source
    from zerograd.static.source import Source, shown_path

    name = shown_path(args.stdin_filename or STDIN)
    try:
        fixed = result.fixed.get(name)
        source = Source.read(fixed.data if fixed else stdin, name)
    except UnreadableSourceError:
        return read_source

    def lines(path: str, cell: int | None) -> Sequence[str]:
        if path != name:
            return read_source(path, cell)
        if cell is not None and source.notebook is not None:
            return source.notebook.lines(cell)
        return source.lines

    return lines


def _closing(result: Checked, since: Sequence[str]) -> str:
    files = f"{result.files} file{'' if result.files == 1 else 's'} read"
    words = [f"{files}, {result.analysed} with training code"]
    if result.unresolved:
        words.append(
            f"{result.unresolved} call{'' if result.unresolved == 1 else 's'} not resolved"
        )
    if result.fixes:
        words.append(f"{result.fixes} fixed")
    return f"({'; '.join([*words, *since])})"


def _write_text(text: str, args: argparse.Namespace, stream: TextIO) -> None:
    if args.output is None:
        stream.write(text)
    else:
        write_file(args.output, text)


def _statistics(findings: Sequence[Finding], *, as_json: bool) -> str:
    from collections import Counter

    counts = Counter(finding.rule.code for finding in findings)
    rules = {finding.rule.code: finding.rule for finding in findings}
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    if as_json:
        import json

        shape = [{"code": code, "name": rules[code].name, "count": n} for code, n in rows]
        return json.dumps(shape, indent=2) + "\n"
    return "".join(f"{number:>5}  {code}  {rules[code].name}\n" for code, number in rows)


def _write_fixed(result: Checked, stdin: bytes | None) -> bool:
    """Write what was fixed; return whether something could not be written."""
    from zerograd.cli.changes import write_all

    if stdin is not None:
        sys.stdout.buffer.write(next((each.data for each in result.fixed.values()), stdin))
        sys.stdout.flush()
        return False
    problems = write_all({path: each.data for path, each in result.fixed.items()})
    for path, problem in problems.items():
        print(f"zerograd: {path}: {problem}", file=sys.stderr)
        result.unfix(path)
    return bool(problems)


def _show_diff(args: argparse.Namespace, result: Checked, stdin: bytes | None) -> int:
    from zerograd.cli.changes import write_diff

    text = io.StringIO()
    for path, fixed in sorted(result.fixed.items()):
        old = stdin
        if old is None:
            with open(path, "rb") as file:
                old = file.read()
        write_diff(old, fixed.data, path, text)
    _write_text(text.getvalue(), args, sys.stdout)
    if not args.quiet:
        files = len(result.fixed)
        fixes = f"{result.fixes} fix{'' if result.fixes == 1 else 'es'}"
        print(f"{fixes} in {files} file{'' if files == 1 else 's'}, none applied", file=sys.stderr)
    return 1 if result.fixed and not args.exit_zero else 0


def _add_allow(result: Checked) -> int:
    from zerograd.cli.changes import allow_all, write_all

    contents, count = allow_all(result.findings)
    problems = write_all(contents)
    for path, problem in problems.items():
        print(f"zerograd: {path}: {problem}", file=sys.stderr)
    if problems:
        return 2
    noun = "comment" if count == 1 else "comments"
    what_next = " Say the reason in each." if count else ""
    print(f"{count} {noun} added.{what_next}", file=sys.stderr)
    return 0


def _since_baseline(
    args: argparse.Namespace, known: Baseline | None, result: Checked, stdin: bytes | None
) -> list[str]:
    """Leave only the findings that are new, and return what there is to tell of the others.

    A baseline that does not exist is written, and then nothing is new.
    """
    if args.baseline is None:
        return []
    excerpts = _excerpts(args, result, stdin)

    def line_at(finding: Finding) -> str:
        lines = excerpts(finding.spot.path, finding.spot.cell)
        return lines[finding.spot.line - 1] if finding.spot.line <= len(lines) else ""

    found, result.findings = result.findings, []
    if known is None:
        from zerograd.static.baseline import write_baseline

        write_baseline(args.baseline, found, line_at)
        noun = "finding" if len(found) == 1 else "findings"
        print(f"{args.baseline} written with {len(found)} {noun}", file=sys.stderr)
        return [f"{len(found)} known in the baseline"]
    result.findings = known.new(found, line_at)
    words = [f"{len(found) - len(result.findings)} known in the baseline"]
    gone = known.gone([*found, *result.unshown], result.paths, line_at)
    if gone:
        words.append(f"{gone} of it no longer there: delete it to write it anew")
    return words


def _show_settings(path: str) -> int:
    from zerograd.static.settings import SettingsFinder

    if path != "-" and not os.path.exists(path):
        raise UsageError(f"--show-settings {path}: no such file or folder")
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    settings = SettingsFinder().of(folder)
    print(f"# {settings.path or 'no [tool.zerograd] found: these are the defaults'}")
    print("[tool.zerograd]")
    wrappers = settings.wrappers
    for key, words in (
        ("select", settings.select),
        ("ignore", settings.ignore),
        ("exclude", settings.exclude),
        ("backward", wrappers.backward),
        ("step", wrappers.step),
        ("clear", wrappers.clear),
    ):
        print(f"{key} = {_toml(words)}")
    print("[tool.zerograd.per-file-ignores]")
    for pattern, words in settings.per_file_ignores:
        print(f"{_quoted(pattern)} = {_toml(words)}")
    return 0


def _toml(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, words))}]"


def _quoted(word: str) -> str:
    import json

    return json.dumps(word)  # a basic TOML string is written as a JSON one
