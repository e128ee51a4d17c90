"""zerograd finds, explains, fixes and prevents gradient-lifecycle bugs in PyTorch training.

The public names are resolved when first asked for, so that `import zerograd`
needs neither torch nor time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module that holds it
_HOMES = {
    "GradientError": "zerograd.errors",
    "GradientWarning": "zerograd.errors",
    "StepError": "zerograd.errors",
    "ZerogradError": "zerograd.errors",
    "check_paths": "zerograd.static.check",
    "check_source": "zerograd.static.check",
    "watch": "zerograd.runtime.sanitizer",
    "inspect": "zerograd.runtime.inspection",
    "assert_cleared": "zerograd.runtime.inspection",
    "zero_grad": "zerograd.buffers.zero_grad",
    "GradArena": "zerograd.buffers.arena",
    "Step": "zerograd.training.step",
    "windows": "zerograd.training.windows",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from zerograd.buffers.arena import GradArena as GradArena
    from zerograd.buffers.zero_grad import zero_grad as zero_grad
    from zerograd.errors import GradientError as GradientError
    from zerograd.errors import GradientWarning as GradientWarning
    from zerograd.errors import StepError as StepError
    from zerograd.errors import ZerogradError as ZerogradError
    from zerograd.runtime.inspection import assert_cleared as assert_cleared
    from zerograd.runtime.inspection import inspect as inspect
    from zerograd.runtime.sanitizer import watch as watch
    from zerograd.static.check import check_paths as check_paths
    from zerograd.static.check import check_source as check_source
    from zerograd.training.step import Step as Step
    from zerograd.training.windows import windows as windows


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'zerograd' has no attribute {name!r}")
    if home.startswith("zerograd.runtime."):
        # Under `zerograd run` the watch is put on as soon as torch is there. That needs these
        # modules, so torch comes before the first of them, not from within it.
        import_module("torch")
    value = getattr(import_module(home), name)
    globals()[name] = value  # asked for once, found at once from then on
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
