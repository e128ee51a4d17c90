"""Compare the two witnesses on generated programs.

python -m benchmarks.agreement --programs 10000
python -m benchmarks.agreement --show 185
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.agreement.compare import compare
from benchmarks.agreement.generate import generate
from benchmarks.agreement.report import Tally, as_text
from benchmarks.agreement.shrink import shrink
from benchmarks.agreement.work import prepare, tally

LONGEST = 2  # seconds for one program while shrinking: a loop may have lost its end
BROKEN = ("NameError", "UnboundLocal")
PART = 125  # programs that one process takes at a time
RESULTS = Path(__file__).parents[1] / "results"


class TooLong(BaseException):
    """No exception that a program or a witness would catch."""


def _give_up(*_: object) -> None:
    raise TooLong


def _small(text: str, kind: str, code: str) -> str:
    def shows(candidate: str) -> bool:
        if ("count += 1" in text) != ("count += 1" in candidate):
            return False  # a counter that stands still is another program
        signal.alarm(LONGEST)
        try:
            found = compare(candidate)
        except (Exception, TooLong):
            return False
        finally:
            signal.alarm(0)
        broken = any(error.startswith(BROKEN) for error in found.errors)
        return not broken and any(each.key == (kind, code) for each in found.disagreements)

    signal.signal(signal.SIGALRM, _give_up)
    return shrink(text, shows)


def _show(seed: int, daily: bool) -> None:
    program = generate(seed, daily=daily)
    result = compare(program.text)
    print(_numbered(program.text))
    print("read", [(each.code, each.line, each.certain) for each in result.read])
    print("seen", [(each.code, each.line) for each in result.seen], result.errors[:1])
    for each in result.disagreements:
        print(f"\n{each.kind}: {each.code} at line {each.line}; the smallest such program:")
        print(_numbered(_small(program.text, each.kind, each.code)))


def _numbered(text: str) -> str:
    return "\n".join(f"{n:3} {line}" for n, line in enumerate(text.splitlines(), 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS / "agreement.json")
    parser.add_argument("--daily", action="store_true", help="programs of the daily themes")
    parser.add_argument("--show", type=int, metavar="SEED", help="one program, shrunk")
    args = parser.parse_args()
    if args.show is not None:
        prepare()
        _show(args.show, args.daily)
        return 0
    last = args.seed + args.programs
    parts = [range(at, min(at + PART, last)) for at in range(args.seed, last, PART)]
    total = Tally()
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.jobs, context, initializer=prepare) as pool:
        for part in pool.map(functools.partial(tally, daily=args.daily), parts):
            total.add(part)
            total.seconds = round(time.monotonic() - began, 1)
            print(f"{total.programs} programs", file=sys.stderr)
            args.results.write_text(json.dumps(total.to_json(), indent=2) + "\n", encoding="utf-8")
    print(as_text(total))
    return 1 if total.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
