"""The reference, made from the code at each build: what is not written twice cannot disagree.

mkdocs calls the functions named `on_…`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

import zerograd
from zerograd import errors
from zerograd.cli.main import COMMANDS, main
from zerograd.cli.rules import seen_by
from zerograd.lifecycle import events, findings, rule, state, window
from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.judge import judge
from zerograd.rules import ALL_RULES
from zerograd.rules.describe import page, sentence

ORDER = ["tutorial", "how-to", "explanation", "reference"]

# word -> what it is, or the class whose docstring says so
WORDS: dict[str, type | str] = {
    "clear": "After it a bucket holds nothing. It sets the gradient to None, or to zeros.",
    "owner": "The optimizer that a bucket or an event belongs to, as your code names it.",
    "trace": "Events in a file, to be reported later or elsewhere.",
    "event": events.Event,
    "spot": events.Spot,
    "bucket": state.BucketState,
    "phase": state.Phase,
    "contribution": state.Contribution,
    "window": window.Window,
    "rule": rule.Rule,
    "severity": rule.Severity,
    "witness": rule.Witness,
    "finding": findings.Finding,
    "trail": findings.TrailStep,
    "fix": findings.Fix,
}

FIELDS = {
    "code": "the rule's code: `ZG101`",
    "name": "the rule's name: `stale-gradient`",
    "severity": "`error`, `warning` or `note`",
    "message": "what is wrong, with your own names in it",
    "advice": "what to do about it",
    "filename": "the file, as it was named on the command line",
    "cell": "in a notebook the number of the code cell, from 1; else null",
    "location": "where it starts: `row` and `column`, from 1; in a notebook rows count in the cell",
    "end_location": "where it ends, the column after the last character",
    "trail": "the stations that led there, in order: what happened, and your statement",
    "fix": "null, or edits that `--fix` would make, proved to remove the finding",
    "url": "null, or a page about the rule",
}
LIVE_FIELDS = {
    "step": "the iteration it was first seen in, from 0",
    "rank": "null, the rank, or the ranks",
    "owner": "the optimizer, as your code names it",
    "parameters": "the parameters concerned",
    "count": "how often it was seen",
    "share": "null, or the stale part's share of the gradient's norm",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, text in _pages():
        files.append(File.generated(config, f"reference/{name}", content=text))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Put the four kinds in the order of use: learn it, use it, understand it, look it up."""

    def kind(item: Any) -> int:
        word = item.title.lower() if isinstance(item, Section) else ""
        return ORDER.index(word) if word in ORDER else -1

    for item in nav.items:
        if isinstance(item, Section):
            item.title = item.title.replace("How to", "How-to")
            if item.title == "Tutorial":
                item.children.sort(key=_lesson)
    nav.items.sort(key=kind)
    pages = [page for item in nav.items for page in _pages_under(item)]
    for before, after in zip([None, *pages], [*pages, None], strict=True):
        if before is not None:
            before.next_page = after
        if after is not None:
            after.previous_page = before
    return nav


def _pages_under(item: Any) -> Iterator[Page]:
    if isinstance(item, Page):
        yield item
    elif isinstance(item, Section):
        for child in item.children:
            yield from _pages_under(child)


def _lesson(item: Any) -> tuple[int, str]:
    """The first finding, then the lessons by number, then what can be read at any time."""
    name = item.file.name if isinstance(item, Page) else ""
    order = 0 if name == "first-finding" else 1 if name.startswith("lesson") else 2
    return order, name


# What a page links to in a checkout -> the page that is made of it for the site.
_MADE_OF = re.compile(r"\]\((?:\.\./)+src/zerograd/(rules/(\w+)\.md|rules|report/json\.py)\)")


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to the pages of the site, and leave out what only tests read."""

    def link(found: re.Match[str]) -> str:
        made = "json.md" if found[1].endswith(".py") else "rules/index.md"
        if found[2] is not None:
            made = f"rules/{found[2].replace('_', '-')}.md"
        here = posixpath.dirname(page.file.src_uri)
        return f"]({posixpath.relpath(f'reference/{made}', here or '.')})"

    markdown = _MADE_OF.sub(link, markdown)
    markdown = re.sub(r"^(\s*```\w+) [^\n`]+$", r"\1", markdown, flags=re.MULTILINE)
    return markdown.replace("  # expect: ", "  # <- ")


def _pages() -> Iterator[tuple[str, str]]:
    yield "rules/index.md", _rules()
    for each in ALL_RULES:
        yield f"rules/{each.name}.md", page(each) or f"# {each.code} {each.name}\n"
    yield "commands.md", _commands()
    yield "glossary.md", _glossary()
    yield "json.md", _json()
    yield "messages.md", _messages()
    yield "python.md", _python()


def _rules() -> str:
    rows = [
        f"| [{each.code}]({each.name}.md) | {each.name} | {each.severity.value} "
        f"| {seen_by(each)} | {sentence(each)} |"
        for each in ALL_RULES
    ]
    return "\n".join(
        [
            "# All rules",
            "",
            "`check` sees a rule broken in source code, `run` and `watch` in a live run. Notes are",
            "shown with `--all`, or when they are selected.",
            "",
            "| code | name | severity | seen by | broken when |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _commands() -> str:
    parts = ["# Commands", ""]
    parts += ["```text", _help().rstrip(), "```", ""]
    for name in COMMANDS:
        parts += [f"## zerograd {name}", "", "```text", _help(name).rstrip(), "```", ""]
    return "\n".join(parts)


def _help(*words: str) -> str:
    """Return what `--help` prints, in lines of a fixed width."""
    out = io.StringIO()
    before = {key: os.environ.get(key) for key in ("COLUMNS", "NO_COLOR")}
    os.environ.update(COLUMNS="88", NO_COLOR="1")
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value
    return out.getvalue()


def _glossary() -> str:
    parts = ["# Glossary", "", "One word an idea.", ""]
    for word, meaning in sorted(WORDS.items()):
        text = meaning if isinstance(meaning, str) else _first(meaning)
        parts += [f"## {word.capitalize()}", "", text, ""]
        if isinstance(meaning, type) and issubclass(meaning, Enum):
            parts += [*_members(meaning), ""]
    parts += ["## Kinds of events", "", *_members(EventKind), ""]
    return "\n".join(parts)


def _members(cls: type[Enum]) -> list[str]:
    """Return the members with the comments that stand beside them in the source."""
    comments = dict(re.findall(r"^\s+(\w+) = [^#\n]+# (.+)$", inspect.getsource(cls), re.MULTILINE))
    return [
        f"- `{member.name}`" + (f": {comments[member.name]}" if member.name in comments else "")
        for member in cls
    ]


def _json() -> str:
    example = _example().to_json()
    live = _example(findings.Live()).to_json()
    if list(example) != list(FIELDS) or list(live) != [*FIELDS, *LIVE_FIELDS]:
        raise SystemExit("docs/generate.py: FIELDS no longer says what Finding.to_json writes")
    return "\n".join(
        [
            "# JSON",
            "",
            "`--format json` writes an array of these, a superset of what ruff writes.",
            "",
            "```json",
            json.dumps(example, indent=2),
            "```",
            "",
            "| key | meaning |",
            "|---|---|",
            *(f"| `{key}` | {text} |" for key, text in FIELDS.items()),
            "",
            "Findings of a live run carry more:",
            "",
            "| key | meaning |",
            "|---|---|",
            *(f"| `{key}` | {text} |" for key, text in LIVE_FIELDS.items()),
            "",
        ]
    )


def _example(live: findings.Live | None = None) -> findings.Finding:
    fill = Event(EventKind.BACKWARD, "optimizer", Spot("train.py", 8, 5, 8, 20))
    step = Event(
        EventKind.STEP, "optimizer", Spot("train.py", 9, 5, 9, 21), text="optimizer.step()"
    )
    (found,) = judge([fill, step, fill, step], ALL_RULES)
    return findings.Finding(
        found.rule, found.spot, found.message, found.advice, found.owner, found.trail, live=live
    )


def _messages() -> str:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.ZerogradError)
    ]
    return "\n".join(
        [
            "# Messages",
            "",
            "What zerograd says when it cannot do what was asked. Each message says where, what,",
            "and what to do next.",
            "",
            "| name | exit code | exception | meaning |",
            "|---|---|---|---|",
            *(
                f"| {each.slug} | {each.exit_code} | `{each.__name__}` | {_first(each)} |"
                for each in classes
            ),
            "",
        ]
    )


def _first(thing: object) -> str:
    return inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _python() -> str:
    parts = ["# Python", "", "All else may change.", ""]
    for name in sorted(zerograd.__all__, key=str.lower):
        if name == "__version__":
            continue
        value = getattr(import_module(zerograd._HOMES[name]), name)
        parts += [f"## zerograd.{name}", ""]
        signature = _signature(value)
        if signature:
            parts += ["```text", *textwrap.wrap(f"{name}{signature}", 90), "```", ""]
        parts += [_docstring(value), ""]
    return "\n".join(parts)


def _signature(value: Callable[..., Any]) -> str:
    if isinstance(value, type) and issubclass(value, Exception):
        return ""
    try:
        # annotations are kept as text, and shown without its quotes
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def _docstring(value: object) -> str:
    """Return a docstring as Markdown: examples and argument lists as they are written."""
    blocks = []
    for block in inspect.cleandoc(value.__doc__ or "").split("\n\n"):
        literal = block.startswith((">>>", "Args:", "Returns:", "Raises:", "    "))
        blocks.append(f"```text\n{block}\n```" if literal else block)
    return "\n\n".join(blocks)
