"""The part of the accuracy page that tells of rewritten programs."""

from __future__ import annotations

from typing import Any

GROUPS = {
    "call": "the call itself: `getattr`, bound methods, `map`, lists of callbacks, walrus",
    "clear": "the clear: in groups, by hand, in a hook, later, at the end",
    "enclose": "the whole program in a function or a class",
    "extract": "statements moved into functions, methods, closures, behind decorators",
    "foreign": "part of the work done by a package that cannot be read",
    "hold": "objects kept in dicts, classes, tuples, properties, closures",
    "loop": "the kind of loop: iterators, counters, generators, recursion, coroutines",
    "make": "how optimizers are made",
    "optimizer": "the optimizer inside an object of one's own",
    "skip": "rounds that are skipped",
    "test": "conditions in variables, functions, ternaries",
    "window": "the remainder that ends a window",
    "wrap": "blocks around statements: contexts, tries, flags, `match`",
}
SEVERAL = "several at once"


def rewrites_section(result: dict[str, Any]) -> list[str]:
    """Return the lines of the section, from both runs."""
    first, now = result["first run"], result["now"]
    lines = [
        "## Programs in other words",
        "",
        "Right and faulty programs, those of the tests and generated ones, are rewritten by "
        f"{len(now['rewrites']) - 1} small rewrites that leave what they do as it is, one at a "
        f"time or up to five. {now['run on torch, before and after']} of them were run on torch "
        "before and after, and the parameters after every step compared bit for bit: "
        f"{len(now['trained otherwise'])} differed. Nothing may be said of a right program. Of a "
        "faulty one the same must be said at the same statement. What a foreign package hides "
        "counts for the first only. The first run served to mend the checker. Of the "
        f"{now['all']['alarms']} alarms that are left, {_sum(now, SEVERAL)['alarms']} come after "
        "several rewrites of one program.",
        "",
        "| rewritten | right programs | alarms, first run | alarms now "
        "| faulty programs | still told, first run | still told now |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for key in (*GROUPS, SEVERAL):
        before, after = _sum(first, key), _sum(now, key)
        if after["right"] or after["faulty"]:
            lines.append(_row(GROUPS.get(key, key), before, after))
    lines.append(_row("**all**", first["all"], now["all"]))
    return [*lines, ""]


def _sum(run: dict[str, Any], group: str) -> dict[str, int]:
    rows = [row for name, row in run["rewrites"].items() if name.split(":")[0] == group]
    names = ("right", "alarms", "faulty", "kept")
    return {name: sum(row[name] for row in rows) for name in names}


def _row(title: str, before: dict[str, int], after: dict[str, int]) -> str:
    cells = [
        _share(before["alarms"], before["right"]),
        _share(after["alarms"], after["right"]),
        str(after["faulty"]),
        _share(before["kept"], before["faulty"]),
        _share(after["kept"], after["faulty"]),
    ]
    return f"| {title} | {after['right']} | {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"
