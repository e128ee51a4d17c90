"""Standard streams that never refuse a character and never end in a traceback.

A Windows console in cp1252, or Python with an ASCII locale, cannot encode an
arrow. Output is a courtesy there as anywhere, so what cannot be encoded is
written in plain letters.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import TextIO

HANDLER = "zerograd.plain"

_PLAIN = {
    "→": "->",
    "←": "<-",
    "↻": "(again)",
    "…": "...",
    "—": "-",
    "–": "-",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "•": "*",
    "·": "*",
    "✓": "ok",
    "✔": "ok",
    "✗": "x",
    "✘": "x",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "µ": "u",
    "─": "-",
    "━": "-",
    "│": "|",
    "█": "#",
    "░": ".",
}


def _in_plain_letters(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    words = "".join(
        _PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode("ascii") for char in bad
    )
    return words, error.end


codecs.register_error(HANDLER, _in_plain_letters)


class _Closed(io.TextIOBase):
    """Stands where the caller has closed standard output: whoever writes learns of it."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def make_safe() -> None:
    """Let standard output and error write anything. Streams that are not files stay as they are."""
    if sys.stdout is None or sys.stderr is None:
        _replace_closed()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=HANDLER)


def _replace_closed() -> None:
    # Their numbers are taken first, or the next file that is opened would get them.
    while os.open(os.devnull, os.O_RDWR) < 2:
        pass
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def voice() -> TextIO:
    """Return where a person reads: standard error, whatever a script has put in its place.

    A file or a logger of the script's own is respected. Nothing, a closed stream or a
    buffer in memory, which ends with the process, is not.
    """
    for stream in (sys.stderr, sys.__stderr__):
        if stream is None or isinstance(stream, io.StringIO) or getattr(stream, "closed", False):
            continue
        return stream
    try:
        return open(2, "w", encoding="utf-8", errors=HANDLER, closefd=False)
    except OSError:
        return open(os.devnull, "w", encoding="utf-8")


def close_quietly(stream: TextIO) -> None:
    """Give up a stream that cannot be written, so that exit does not complain."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError, AttributeError):
        pass
