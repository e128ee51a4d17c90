"""What a rule says of itself when nothing is broken yet: one sentence, and its page."""

from __future__ import annotations

import re
from importlib import import_module, resources

from zerograd.lifecycle.rule import Rule

# Stand-ins for the user's own names, which only a finding knows.
_ANYONE = {
    "owner": "optimizer",
    "scaler": "scaler",
    "method": "step",
    "call": "step",
    "allowed": "a rule",
    "condition": "if ...",
    "fault": "...",
    "better": "...",
}


def module_name(rule: Rule) -> str:
    """Return the name that the rule's module and page share: `stale_gradient`."""
    return rule.name.replace("-", "_")


def sentence(rule: Rule) -> str:
    """Return in a few words when the rule is broken, with nobody's names in it.

    >>> from zerograd.rules import BY_CODE
    >>> sentence(BY_CODE["ZG101"])
    'a step uses gradients that an earlier step already used'
    """
    doc = import_module(f"zerograd.rules.{module_name(rule)}").__doc__
    if not doc:  # python -OO keeps no docstrings
        return rule.summary.format_map(_ANYONE)
    first = doc.strip().splitlines()[0]
    return first.partition(": ")[2].rstrip(".")


def page(rule: Rule) -> str | None:
    """Return the rule's page as Markdown, or None where it has none.

    What tells the tests which block is bad, and where, is said to a person or left out.
    """
    file = resources.files("zerograd.rules") / f"{module_name(rule)}.md"
    if not file.is_file():
        return None
    text = file.read_text(encoding="utf-8").replace("  # expect: ", "  # <- ")
    return re.sub(r"^(\s*```\w+) [^\n`]+$", r"\1", text, flags=re.MULTILINE)
