"""Which rules are asked for: `--select` and `--ignore`, by code, prefix or name."""

from __future__ import annotations

from collections.abc import Iterable

from zerograd.errors import UnknownRuleError
from zerograd.lifecycle.rule import Rule, Severity
from zerograd.rules import ALL_RULES, BY_NAME

EVERYTHING = "ALL"


def matching(word: str) -> frozenset[str]:
    """Return the codes that `word` names: a code, the start of codes, a rule's name, or ALL.

    >>> sorted(matching("zg10"))[:2], sorted(matching("stale-gradient"))
    (['ZG101', 'ZG102'], ['ZG101'])
    """
    asked = word.strip()
    if asked.upper() == EVERYTHING:
        return frozenset(rule.code for rule in ALL_RULES)
    rule = BY_NAME.get(asked.lower())
    if rule is not None:
        return frozenset((rule.code,))
    codes = frozenset(rule.code for rule in ALL_RULES if rule.code.startswith(asked.upper()))
    if not asked or not codes:
        raise UnknownRuleError(f"there is no rule {word!r}{_nearest(asked)}")
    return codes


def selected(
    select: Iterable[str] = (), ignore: Iterable[str] = (), *, notes: bool = False
) -> frozenset[str]:
    """Return the codes to show.

    Without `select` these are all errors and warnings, and with `notes` the
    notes too. The more exact word wins, so that `--select ZG1 --ignore ZG104` and
    `--ignore ZG1 --select ZG104` both mean what they say.
    """
    exactness: dict[str, tuple[int, bool]] = {}
    chosen = list(select)
    for rule in ALL_RULES:
        wanted = not chosen and (notes or rule.severity is not Severity.NOTE)
        exactness[rule.code] = (-1, wanted)
    for words, wanted in ((chosen, True), (list(ignore), False)):
        for word in words:
            codes = matching(word)
            exact = 0 if word.upper() == EVERYTHING else 99 if len(codes) == 1 else len(word)
            for code in codes:
                # On a tie the later, the ignore, wins.
                if exact >= exactness[code][0]:
                    exactness[code] = (exact, wanted)
    return frozenset(code for code, (_, wanted) in exactness.items() if wanted)


def rules_of(codes: frozenset[str]) -> tuple[Rule, ...]:
    """Return the rules with these codes, in code order."""
    return tuple(rule for rule in ALL_RULES if rule.code in codes)


def _nearest(word: str) -> str:
    from difflib import get_close_matches

    names = [*BY_NAME, *(rule.code for rule in ALL_RULES)]
    near = get_close_matches(word.lower(), names, n=1) or get_close_matches(
        word.upper(), names, n=1
    )
    return f"; did you mean {near[0]!r}?" if near else "; `zerograd rules` lists them"
