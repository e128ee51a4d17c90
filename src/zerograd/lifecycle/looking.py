"""Who goes backward only to look at gradients, as far as the words of code tell.

A look leaves no trace: neither witness can tell a loss that was lost from one whose gradients
somebody has read. Both stay silent where the code speaks of reading them.
"""

from __future__ import annotations

import re

# What is called so clears, clips or switches gradients on and off, and reads none.
_HARMLESS = re.compile(
    r"zero_grad\w*|\w*no_grad|\w*enable_grad\w*|requires_grad\w*|clip_grad\w*|set_grad_enabled"
    r"|grad_accum\w*|gradient_accum\w*|accum\w*_grad\w*|max_grad\w*|grad_clip\w*|grad_scaler"
    r"|GradScaler|ZeroGrad|zerograd"
)
_LOOKS = re.compile(
    r"grad|hook|fisher|importan|sensitiv|salien|attribut|profil|timeit|perf_counter|synchronize"
    r"|benchmark(?! = )|memory_|def test_|dry_?run|(?<!linear_)prob(?:e|ing)(?![a-z])"
    r"|warm(?!up_?\w*(?:step|epoch|iter|lr|sched|ratio))",
    re.IGNORECASE,
)
_SEES_EACH_BACKWARD = re.compile(
    r"register_(?:full_)?(?:module_)?(?:backward_|post_accumulate_|multi_)?(?:pre_)?(?:grad_)?hook"
    r"|\bautograd\.Function\b|\(Function\)"
)


def looks(code: str) -> bool:
    """Does code, without its comments, read gradients or measure, to go by its words?

    >>> looks("opt.zero_grad()"), looks("norms.append(p.grad.norm())")
    (False, True)
    """
    return _LOOKS.search(_HARMLESS.sub("", code)) is not None


def sees_each_backward(file: str) -> bool:
    """Has a file code that runs inside each backward: a hook, or a function with its own?

    >>> sees_each_backward("net.register_full_backward_hook(keep)")
    True
    >>> sees_each_backward("net.register_forward_hook(keep)")
    False
    """
    return _SEES_EACH_BACKWARD.search(file) is not None
