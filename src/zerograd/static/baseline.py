"""A baseline: the findings a project lives with for now, so that only new ones show.

A finding is known again by its rule, its file and the text of its line, so that
code may move up and down. If the same line occurs twice, two entries are kept.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from zerograd.errors import ConfigError
from zerograd.lifecycle.findings import Finding

VERSION = 1

Key = tuple[str, str, str]  # code, path from the baseline's folder, text of the line
LineAt = Callable[[Finding], str]


def write_baseline(path: str, findings: Sequence[Finding], line_at: LineAt) -> None:
    """Write the findings to `path`, in an order that diffs well."""
    from zerograd.static.writing import write_whole

    counts = Counter(_key(finding, path, line_at) for finding in findings)
    entries = [
        {"code": code, "filename": filename, "line": line, "count": count}
        for (code, filename, line), count in sorted(counts.items(), key=lambda each: each[0][1:])
    ]
    shape = {"version": VERSION, "findings": entries}
    text = json.dumps(shape, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"))


class Baseline:
    """What a file of known findings holds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._held = _read(path)

    def new(self, findings: Sequence[Finding], line_at: LineAt) -> list[Finding]:
        """Return the findings that it does not hold."""
        left = self._held.copy()
        fresh = []
        for finding in findings:
            key = _key(finding, self._path, line_at)
            if left[key] > 0:
                left[key] -= 1
            else:
                fresh.append(finding)
        return fresh

    def gone(self, findings: Sequence[Finding], read: Iterable[str], line_at: LineAt) -> int:
        """Return how many it holds that are no longer there.

        Args:
            findings: all that was found, also what is not shown.
            read: the files that were looked into. Of the others nothing is known,
                unless they have gone themselves.
        """
        found = Counter(_key(finding, self._path, line_at) for finding in findings)
        names = {_from_folder(each, self._path) for each in read}
        folder = os.path.dirname(self._path)
        return sum(
            count
            for (code, name, line), count in (self._held - found).items()
            if name in names or not os.path.exists(os.path.join(folder, name))
        )


def _key(finding: Finding, path: str, line_at: LineAt) -> Key:
    return finding.rule.code, _from_folder(finding.spot.path, path), line_at(finding).strip()


def _from_folder(name: str, path: str) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.relpath(name, folder).replace(os.sep, "/")


def _read(path: str) -> Counter[Key]:
    try:
        with open(path, encoding="utf-8") as file:
            shape = json.load(file)
        if shape["version"] != VERSION:
            raise ConfigError(f"{path}: the baseline is of version {shape['version']}, not 1")
        counts: Counter[Key] = Counter()
        for entry in shape["findings"]:
            counts[entry["code"], entry["filename"], entry["line"]] += int(entry["count"])
        return counts
    except OSError as cause:
        raise ConfigError(f"{path}: the baseline cannot be read ({cause.strerror})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(
            f"{path}: is no baseline of zerograd; delete it and run again to write one"
        ) from None
