"""Findings as an array of JSON objects. `Finding.to_json` owns the shape; the docs describe it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TextIO

from zerograd.lifecycle.findings import Finding


class JsonReporter:
    """Write one array. Pure ASCII, so that no stream and no pipe can refuse it."""

    def write(self, findings: Sequence[Finding], out: TextIO) -> None:
        write_json([finding.to_json() for finding in findings], out)


def write_json(value: Any, out: TextIO) -> None:
    """Write `value` as JSON that every parser takes: NaN and infinities become null."""
    json.dump(_strict(value), out, indent=2, allow_nan=False)
    out.write("\n")


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(each) for each in value]
    return value
