"""Settings of a program by the name of an optimizer: `opt = parser.parse_args()`."""

from __future__ import annotations

import re

_NAMES = frozenset(("opt", "opts"))
# what an optimizer, or a wrapper around one, is asked for
_OF_OPTIMIZERS = frozenset(
    (
        *("step", "zero_grad", "zero_grads", "param_groups", "state_dict", "load_state_dict"),
        *("state", "defaults", "add_param_group", "backward", "update", "optimizer", "minimize"),
        *("clip_grad_norm", "lr", "rate", "set_lr", "get_lr", "train", "eval", "items", "values"),
    )
)


def are_settings(text: str, path: str) -> bool:
    """Is a thing asked for several settings, and for nothing that an optimizer has?"""
    name = path.rsplit(".", 1)[-1].split("@", 1)[0]
    if name not in _NAMES:
        return False
    asked = set(re.findall(rf"\b{name}\.(\w+)", text))
    return len(asked) > 1 and asked.isdisjoint(_OF_OPTIMIZERS)
