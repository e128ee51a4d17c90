"""Settings of a program by the name of an optimizer: `opt = parser.parse_args()`, `opt["lr"]`."""

from __future__ import annotations

import re
from functools import lru_cache

_NAMES = frozenset(("opt", "opts"))
# what an optimizer, or a wrapper around one, is asked for
_OF_OPTIMIZERS = frozenset(
    (
        *("step", "zero_grad", "zero_grads", "param_groups", "state_dict", "load_state_dict"),
        *("state", "defaults", "add_param_group", "backward", "update", "optimizer", "minimize"),
        *("clip_grad_norm", "lr", "rate", "set_lr", "get_lr", "train", "eval", "items", "values"),
    )
)


# what a dict has too
_OF_DICTS = frozenset(("items", "values", "update"))


def are_settings(text: str, path: str) -> bool:
    """Is a thing asked for several settings, and for nothing that an optimizer has?

    >>> are_settings("net(opt.width, opt.depth)", "opt"), are_settings("opt.step()", "opt")
    (True, False)
    >>> are_settings("net(opt['width'], opt['depth'])", "opt['width']")
    True
    >>> are_settings("opt['d'].step(); opt['g'].step()", "opt['d']")
    False
    """
    name = path.partition("[")[0].rsplit(".", 1)[-1].split("@", 1)[0]
    return name in _NAMES and _are_asked_for(text, name)


@lru_cache(maxsize=8)  # one file after the other
def _are_asked_for(text: str, name: str) -> bool:
    asked = set(re.findall(rf"\b{name}\.(\w+)", text))
    if len(asked) > 1 and asked.isdisjoint(_OF_OPTIMIZERS):
        return True
    items = re.findall(rf"\b{name}\[[\"'](\w+)[\"']\](?:\[[^]]*\])*(?:\.(\w+))?", text)
    asked = (asked | {attribute for _, attribute in items}) - _OF_DICTS
    return len({key for key, _ in items}) > 1 and asked.isdisjoint(_OF_OPTIMIZERS)
