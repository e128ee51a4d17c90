"""Paths as other programs want them: with `/`, and as URIs."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

_DRIVE = re.compile(r"^[A-Za-z]:/")


def slashed(path: str, separator: str = os.sep) -> str:
    """Return the path with `/` between its parts, whatever the platform writes.

    >>> slashed("src\\\\train.py", separator="\\\\")
    'src/train.py'
    """
    return path.replace(separator, "/")


def uri(path: str, separator: str = os.sep) -> str:
    """Return the path as a URI: relative paths stay relative, absolute ones are `file:` URIs.

    >>> uri("my models/train#2.py", separator="/")
    'my%20models/train%232.py'
    >>> uri("C:\\\\lab\\\\train.py", separator="\\\\")
    'file:///C:/lab/train.py'
    """
    plain = slashed(path, separator)
    if _DRIVE.match(plain):
        return f"file:///{plain[:2]}{_quoted(plain[2:])}"
    if plain.startswith("/"):
        return f"file://{_quoted(plain)}"
    # "a:b.py" would read as a scheme, "./a:b.py" does not
    quoted = _quoted(plain)
    return f"./{quoted}" if ":" in quoted.split("/")[0] else quoted


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"), safe="/:~!$&'()*+,;=@")
