"""Networks made of others that have names of their own: `nn.Sequential(self.features, self.head)`.

They hold the parameters of their parts, and nothing else: who runs the parts fills the whole.
"""

from __future__ import annotations

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import Module, Named, Several, Value


def composed(dotted: str, arguments: Arguments) -> Several | None:
    """Return the parts that a chain is made of, if all of them are seen elsewhere too."""
    parts = arguments.positional
    if not dotted.endswith(".Sequential") or len(parts) < 2 or arguments.named:
        return None
    return Several(list(parts)) if all(map(_is_kept, parts)) else None


def _is_kept(part: Value) -> bool:
    """Has it a name already? What is made on the spot is numbered."""
    known = isinstance(part, Module | Named | Instance)
    return known and not any(" " in key for key in keys_of(part))
