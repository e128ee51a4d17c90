"""Runs one script under `watch`, as a process of its own, and says what was found.

    python -m tests.rules.live_block script.py

prints the (code, line) pairs as JSON. Several of these are the ranks of one run.

What the script has made is kept to the end, and the process leaves without taking it apart:
torch joins the threads of a process group that goes, which may wait for the lock that it holds.
"""

from __future__ import annotations

import json
import os
import runpy
import sys

from zerograd.runtime.sanitizer import watch


def main(script: str) -> None:
    with watch(policy="collect", show_notes=True) as watcher:
        made = runpy.run_path(script, run_name="__main__")
    found = [(each.rule.code, each.spot.line) for each in watcher.findings]
    print(json.dumps(found), flush=True)
    assert made  # alive until here
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
