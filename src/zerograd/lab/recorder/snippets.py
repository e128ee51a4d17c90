"""The snippets that the page shows, run as they stand, and what they printed."""

from __future__ import annotations

import contextlib
import io
from importlib.resources import files


def sources() -> dict[str, str]:
    """Return every snippet's text by its name."""
    folder = files("zerograd.lab").joinpath("snippets")
    found = [item for item in folder.iterdir() if item.name.endswith(".py")]
    return {item.name[:-3]: item.read_text(encoding="utf-8") for item in sorted(found, key=str)}


def printed() -> dict[str, str]:
    """Run every snippet and return what it printed."""
    outputs = {}
    for name, text in sources().items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, f"{name}.py", "exec"), {"__name__": "__main__"})
        outputs[name] = out.getvalue()
    return outputs
