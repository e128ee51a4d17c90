"""One line on standard error, as far as there is one: a script may have closed or removed it."""

from __future__ import annotations

import sys


def say(line: object) -> None:
    """Write the line; where nobody can be told, nothing happens."""
    stream = sys.stderr if sys.stderr is not None else sys.__stderr__
    try:
        if stream is not None:
            print(line, file=stream, flush=True)
    except Exception:  # closed, full, or a stream of the script's own that fails
        return
