"""Rules by the words people use: a code, the beginning of one, or a name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from zerograd.errors import UnknownRuleError, UsageError
from zerograd.lifecycle.rule import Rule, Severity
from zerograd.rules import ALL_RULES, BY_NAME

EVERY = "ALL"  # what ruff users call all rules
_NEAREST = 3
_RULES = "rules by code, beginning of a code, or name"


def find_rule(word: str, where: str = "") -> Rule:
    """Return the one rule with this code or name.

    >>> find_rule("zg101").name
    'stale-gradient'
    """
    for rule in ALL_RULES:
        if word.upper() == rule.code or _as_name(word) == rule.name:
            return rule
    raise _unknown(word, where)


def matching(word: str, where: str = "") -> tuple[Rule, ...]:
    """Return the rules that a code, the beginning of one, a name or ALL stands for.

    >>> [rule.code for rule in matching("ZG6")], [rule.code for rule in matching("tail-lost")]
    (['ZG601'], ['ZG502'])
    """
    by_name = BY_NAME.get(_as_name(word))
    if by_name is not None:
        return (by_name,)
    start = word.strip().upper()
    if start == EVERY:
        return tuple(ALL_RULES)
    found = tuple(rule for rule in ALL_RULES if start and rule.code.startswith(start))
    if not found:
        raise _unknown(word, where)
    return found


def select_rules(
    select: str | Iterable[str] = (), ignore: str | Iterable[str] = (), *, notes: bool = False
) -> tuple[Rule, ...]:
    """Return the rules to show, in code order.

    Without `select` these are the errors and warnings, with `notes` all rules.
    What is selected is shown whatever its severity; what is ignored never is.
    Each word may hold several, separated by commas, and a word alone is one.

    >>> [rule.code for rule in select_rules("ZG101,tail-lost")]
    ['ZG101', 'ZG502']
    """
    wanted, unwanted = _codes(select, "select "), _codes(ignore, "ignore ")
    if not wanted:
        wanted = {rule.code for rule in ALL_RULES if notes or rule.severity is not Severity.NOTE}
    return tuple(rule for rule in ALL_RULES if rule.code in wanted - unwanted)


def several(given: str | Iterable[str], name: str, takes: str = _RULES) -> tuple[str, ...]:
    """Return what was given as `name`, where one string is one and not its letters.

    >>> several("ZG101", "select"), several(["ZG1", "ZG2"], "select")
    (('ZG101',), ('ZG1', 'ZG2'))
    """
    found = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(each, str) for each in found):
        raise UsageError(f"{name}={given!r}: it takes {takes}, one string or several in a list.")
    return found


def words(groups: str | Iterable[str], where: str) -> tuple[str, ...]:
    """Return what the groups name; one that names nothing is a slip, not a wish for all."""
    found: list[str] = []
    for group in several(groups, where.strip()):
        named = [word.strip() for word in group.split(",") if word.strip()]
        if not named:
            raise _unknown(group.strip(), where)
        found += named
    return tuple(found)


def _codes(groups: str | Iterable[str], where: str) -> set[str]:
    return {rule.code for word in words(groups, where) for rule in matching(word, where)}


def _as_name(word: str) -> str:
    return word.strip().lower().replace("_", "-")


def _unknown(word: str, where: str) -> UnknownRuleError:
    near = _nearest(word)
    hint = f"Nearest: {', '.join(f'{rule.code} {rule.name}' for rule in near)}. " if near else ""
    return UnknownRuleError(
        f"{where}{word or repr(word)}: there is no such rule.\n"
        f"  {hint}`zerograd rules` lists them all."
    )


def _nearest(word: str) -> list[Rule]:
    names = {rule.code.lower(): rule for rule in ALL_RULES}
    names |= {rule.name: rule for rule in ALL_RULES}
    starts = [rule for rule in ALL_RULES if word and rule.code.startswith(word.strip().upper())]
    # a part of a name is nearer than a slip of the pen: "stale", "window"
    parts = [rule for rule in ALL_RULES if len(word) > 2 and _as_name(word) in rule.name]
    close = [names[name] for name in get_close_matches(_as_name(word), names, n=4, cutoff=0.5)]
    return list(dict.fromkeys([*starts, *parts, *close]))[:_NEAREST]
