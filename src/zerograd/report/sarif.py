"""SARIF 2.1.0, the format that code scanning services read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from zerograd import __version__
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Edit, Finding, Fix
from zerograd.lifecycle.rule import Rule
from zerograd.report.json import write_json
from zerograd.report.paths import uri
from zerograd.rules.describe import page, sentence

VERSION = "2.1.0"
SCHEMA = f"https://docs.oasis-open.org/sarif/sarif/v{VERSION}/errata01/os/schemas/sarif-schema-{VERSION}.json"
_ROOT = "%SRCROOT%"  # relative paths are relative to where the command was run


class SarifReporter:
    """Write one run. The trail of a finding is its code flow."""

    def write(self, findings: Sequence[Finding], out: TextIO) -> None:
        rules = list({finding.rule.code: finding.rule for finding in findings}.values())
        index = {rule.code: number for number, rule in enumerate(rules)}
        run = {
            "tool": {
                "driver": {
                    "name": "zerograd",
                    "version": __version__,
                    "semanticVersion": __version__,
                    "rules": [_descriptor(rule) for rule in rules],
                }
            },
            "columnKind": "unicodeCodePoints",
            "results": [_result(finding, index[finding.rule.code]) for finding in findings],
        }
        write_json({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, out)


def _descriptor(rule: Rule) -> dict[str, Any]:
    text = sentence(rule)
    descriptor: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": rule.severity.value},
    }
    markdown = page(rule)
    if markdown is not None:
        descriptor["help"] = {"text": text, "markdown": markdown}
    return descriptor


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule.code,
        "ruleIndex": rule_index,
        "level": finding.rule.severity.value,
        "message": {"text": f"{finding.message}. Fix: {finding.advice}."},
        "locations": [_location(finding.spot)],
    }
    if finding.trail:
        stations = [
            {"location": _location(each.spot, _words(each.code, each.text))}
            for each in finding.trail
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": stations}]}]
    # An edit counts lines within its cell, and the file's own lines are JSON.
    if finding.fix is not None and finding.spot.cell is None:
        result["fixes"] = [_fix(finding.fix, finding.spot)]
    if finding.live is not None:
        shape = finding.to_json()
        keys = ("owner", "step", "rank", "parameters", "count", "share")
        result["properties"] = {key: shape[key] for key in keys}
    return result


def _words(code: str, text: str) -> str:
    return f"{code} {text}" if code else text


def _artifact(path: str) -> dict[str, Any]:
    address = uri(path)
    return {"uri": address} if address.startswith("file:") else {"uri": address, "uriBaseId": _ROOT}


def _location(spot: Spot, message: str = "") -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(spot.path)}
    location: dict[str, Any] = {"physicalLocation": physical}
    region = _region(spot.line, spot.column, spot.end_line, spot.end_column)
    if spot.cell is None:
        physical["region"] = region
    else:
        name = f"cell {spot.cell}"
        full = f"{spot.path}:{name}:{spot.line}:{spot.column}"
        location["logicalLocations"] = [{"name": name, "fullyQualifiedName": full}]
        location["properties"] = {"cell": spot.cell, "region": region}
    if message:
        location["message"] = {"text": message}
    return location


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, int]:
    # A live spot may know no line; SARIF counts from 1.
    region = {"startLine": max(1, line), "startColumn": max(1, column)}
    if end_line and end_column:
        region |= {"endLine": end_line, "endColumn": end_column}
    return region


def _fix(fix: Fix, spot: Spot) -> dict[str, Any]:
    change = {
        "artifactLocation": _artifact(spot.path),
        "replacements": [_replacement(edit) for edit in fix.edits],
    }
    return {"description": {"text": fix.message}, "artifactChanges": [change]}


def _replacement(edit: Edit) -> dict[str, Any]:
    region = _region(edit.row, edit.column, edit.end_row, edit.end_column)
    return {"deletedRegion": region, "insertedContent": {"text": edit.content}}
