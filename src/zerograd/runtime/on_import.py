"""Call back when torch has been imported, without importing it.

A child process loads this before anything else, so it needs the standard
library's import machinery alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_torch_is_imported(act: Callable[[], object]) -> Callable[[], None]:
    """Call `act` as soon as `import torch` has ended, at once if it has; return how to cancel."""
    if is_torch_ready():
        act()
        return lambda: None
    finder = _TorchFinder(act)
    sys.meta_path.insert(0, finder)
    return finder.leave


def is_torch_ready() -> bool:
    """Has torch been imported, to its end?"""
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    return torch is not None and not getattr(spec, "_initializing", False)


class _TorchFinder:
    """Stands before all other finders until torch has been imported, then steps aside.

    Being asked is not yet importing: libraries ask whether torch is installed before they
    import it, and an import may fail and be tried again.
    """

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        finders = list(sys.meta_path)
        # Those before it have been asked; another of its kind may stand among them.
        behind = finders[finders.index(self) + 1 :] if self in finders else []
        finds = (getattr(finder, "find_spec", None) for finder in behind)
        specs = (find(name, path, target) for find in finds if find is not None)
        spec: ModuleSpec | None = next((each for each in specs if each is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._imported)  # type: ignore[assignment]
        return spec

    def _imported(self) -> None:
        if self in sys.meta_path:  # else it was cancelled, or another import was quicker
            self.leave()
            self._act()

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Loader:
    """Loads torch with its own loader, leaves no trace on the module, then calls back."""

    def __init__(self, loader: Loader, act: Callable[[], object]) -> None:
        self._loader = loader
        self._act = act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._act()

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)
