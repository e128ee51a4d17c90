"""The process that grades: `python -m zerograd.learn.grade NAME FILE RESULT`.

It writes the outcomes to RESULT as JSON; whatever the solution prints stays on
its own standard output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from zerograd.learn.exercise import find
from zerograd.learn.grading import grade_file


def main(name: str, file: str, result: str) -> None:
    outcomes = grade_file(find(name), Path(file))
    text = json.dumps([outcome.as_json() for outcome in outcomes])
    Path(result).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
