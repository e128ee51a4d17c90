"""ZG203: an optimizer that is cleared and filled in a loop, and that nothing ever steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE

if TYPE_CHECKING:
    from zerograd.static.engine.buckets import Buckets


def unused(buckets: Buckets) -> Iterator[Finding]:
    """Yield the optimizers of one root that are never stepped, if nobody else can step them."""
    stepped = {
        each.optimizer.key
        for each in buckets.happenings
        if each.kind is EventKind.STEP and each.optimizer is not None
    }
    for node in buckets.happenings:
        optimizer = node.optimizer
        if node.kind is not EventKind.CLEAR or optimizer is None or optimizer.key in stepped:
            continue
        if optimizer.keys is None or node.loop is None or node.loop.pseudo or node.event is None:
            continue
        held = set(buckets.holdings[optimizer.key])
        filled = any(
            each.kind is EventKind.BACKWARD
            and each.loop is node.loop
            and each.event is not None
            and optimizer.key in each.event.fills
            for each in buckets.happenings
        )
        shared = any(held & set(buckets.holdings[other]) for other in stepped)
        text = _without_comments(node.unit.source.lines)
        if not filled or shared or _is_handed_on(text, node.name) or _measures(text):
            continue
        rule = BY_CODE["ZG203"]
        stepped.add(optimizer.key)  # say it once
        yield Finding(
            rule=rule,
            spot=node.spot,
            message=rule.summary.format_map({"owner": node.name}),
            advice=rule.advice.format_map({"owner": node.name}),
            owner=node.name,
        )


def _without_comments(lines: list[str]) -> str:
    return "\n".join(line.split("#", 1)[0] for line in lines)


def _measures(text: str) -> bool:
    """Is it about the time, the memory or the gradients themselves, not about training?"""
    return bool(
        re.search(r"timeit|perf_counter|synchronize\(|benchmark|profil|memory_allocated", text)
        or re.search(r"\.grad\b", text)
    )


def _is_handed_on(text: str, name: str) -> bool:
    """Is the optimizer given to anything, or used in any way, that could step it?"""
    word = re.escape(name.rsplit(".", 1)[-1])
    harmless = r"\.(zero_grad|param_groups|state_dict|load_state_dict|add_param_group)\b|\s*="
    for match in re.finditer(rf"\b{word}\b", text):
        rest = text[match.end() :]
        if re.match(harmless, rest):
            continue
        before = text[: match.start()]
        if re.search(r"lr_scheduler\.\w+\(\s*$|LR\(\s*$", before[-60:]):
            continue
        return True
    return False
