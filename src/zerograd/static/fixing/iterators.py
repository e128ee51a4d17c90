"""Remedies that make a list of an iterator, so that it can be gone through again."""

from __future__ import annotations

from functools import partial

from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.used_up import used_up
from zerograd.static.fixing.plans import Plans
from zerograd.static.fixing.scene import Scene


def make_a_list(scene: Scene) -> Plans:
    """ZG101, ZG304: `params = list(net.parameters())`, if that is what the advice says."""
    if not scene.finding.advice.startswith("write `") or "= list(" not in scene.finding.advice:
        return
    tree = scene.source.tree
    for used in used_up(tree, statements_in(tree.body)).values():
        name, made = (scene.layout.text(each) for each in (used.made.targets[0], used.made.value))
        text = f"list({made})"
        if scene.finding.advice == f"write `{name} = {text}`":
            yield (
                f"write `{name} = {text}`",
                partial(scene.layout.replace, used.made.value, text),
            )
            return
