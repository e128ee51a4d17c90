"""Other modules of the same project, found by reading folders and never by importing.

An import is looked for where Python would find it if the program ran in the
places people run it: beside the script, at the root of its package, at the
project's root and its `src`, and in the folders given on the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from zerograd.errors import UnreadableSourceError
from zerograd.static.files import BACKWARD, GRAD
from zerograd.static.neighbours import Neighbours, read_module
from zerograd.static.source import Source, shown_path

MOST_OF_A_PACKAGE = 20_000  # bytes of an __init__.py that is read for what it hands on
MOST_KEPT = 64  # parsed modules held at a time: files that import each other come together
MOST_PER_FILE = 100  # modules that the check of one file may look into
MOST_PARENTS = 12  # folders to climb
_WORDS = (b"zero_grad", b".step(", b"unscale_", b"optim.", b"torch.optim", b"Optimizer")
_STAR = re.compile(rb"import\s*\*")
# the heir of a class that trains: what it does instead may be nothing of that
_HEIR = re.compile(rb"class (?<=\bclass )\w+\([^)\n]*(?:Train|Learn|Agent|Solver|Task)")
_ROOT_MARKS = frozenset({"pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg"})


class Project:
    """Resolves the imports of one source to the sources they name.

    Files are read when first asked for. Whether a module is found depends on
    the folders alone and on the file being checked (`start`), never on what
    was checked before, so results are the same in any order and with any
    number of processes.
    """

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self._roots = tuple(os.path.abspath(root) for root in roots)
        self._given = [each for root in self._roots for each in (root, os.path.join(root, "src"))]
        self._names: dict[str, frozenset[str]] = {}  # folder -> what it holds
        self._bases: dict[str, tuple[str, ...]] = {}  # folder -> where its imports may lie
        self._paths: dict[tuple[str, str, int], str | None] = {}
        self._sources: dict[tuple[str, bool], Source | None] = {}  # by path, and if read as plain
        self._asked: set[str] = set()
        self._texts: dict[str, bytes] = {}  # of modules that were asked for a name
        self._places: dict[str, tuple[str, str]] = {}
        self.around = Neighbours(self._top)

    def start(self, source: Source) -> None:
        """Begin the check of one file: its allowance of modules is full again."""
        self._asked = {self._place(source)[0]}
        self._texts.clear()

    def find(
        self,
        source: Source,
        module: str,
        level: int = 0,
        *,
        plain: bool = False,
        giving: str = "",
    ) -> Source | None:
        """Return the module that `source` imports as `module`, or None.

        Args:
            module: dotted name, as written: `from ..a import b` has module "a", level 2.
                `from . import b` is asked for as module "b" first, then "" for the package.
            level: the number of leading dots.
            plain: also a module in which nothing touches gradients.
            giving: only a module that may have this name at its top.
        """
        own, folder = self._place(source)
        path = self._path(folder, module, level)
        if path is None or path == own:
            return None
        if path not in self._asked:
            if len(self._asked) > MOST_PER_FILE:
                return None
            self._asked.add(path)
        if giving and not self._may_give(path, giving):
            return None
        return self._load(path, plain=plain)

    def _may_give(self, path: str, name: str) -> bool:
        """May a module have a name at its top: is it written there, or a star?

        A package that imports all of a hundred modules is asked for one name of one of them.
        """
        if (path, False) in self._sources:
            return True
        data = self._texts.get(path)
        if data is None:
            data = self._texts[path] = read_module(path) or b""
        return name.encode() in data or _STAR.search(data) is not None

    def _place(self, source: Source) -> tuple[str, str]:
        """Return the whole path of a source, and its folder."""
        place = self._places.get(source.path)
        if place is None:
            path = os.path.abspath(source.path)
            place = self._places[source.path] = path, os.path.dirname(path)
        return place

    def source_at(self, path: str) -> Source | None:
        """Return the module at a path that a finding names."""
        return self._load(os.path.abspath(path))

    def has(self, source: Source, module: str, level: int = 0) -> bool:
        """Is the module one of the project's, whether or not it is worth reading?"""
        return self._path(self._place(source)[1], module, level) is not None

    def _path(self, folder: str, module: str, level: int) -> str | None:
        """Return the file of a module that a file in `folder` imports; folders are asked once."""
        key = (folder, module, level)
        if key not in self._paths:
            self._paths[key] = self._locate(folder, module, level)
        return self._paths[key]

    def _top(self, folder: str) -> str:
        """Return the root of the project that a folder is in: where something marks it as one.

        Else it is what was asked for; if that only holds projects, the one among them.
        """
        found = [each for each in self._up_to_root(folder) if folder.startswith(each)]
        top = min((folder, *found), key=len)
        if top in self._roots and not self._listing(top) & _ROOT_MARKS and top != folder:
            holds = any(each.endswith(".py") for each in self._listing(top))
            top = top if holds else os.path.join(top, os.path.relpath(folder, top).split(os.sep)[0])
        return top

    def _locate(self, folder: str, module: str, level: int) -> str | None:
        parts = module.split(".") if module else []
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._module_file(folder, parts)
        if not parts:
            return None
        for base in self._bases_of(folder):
            path = self._module_file(base, parts)
            if path is not None:
                return path
        return None

    def _bases_of(self, folder: str) -> tuple[str, ...]:
        """Return the folders in which a top-level import of a file in `folder` is looked for."""
        bases = self._bases.get(folder)
        if bases is None:
            found = [folder, *self._up_to_root(folder), self._package_root(folder), *self._given]
            bases = self._bases[folder] = tuple(dict.fromkeys(found))
        return bases

    def _up_to_root(self, folder: str) -> list[str]:
        """Return the folders from the package's root up to the project's, `src` folders included.

        Where nothing marks a project's root, only the package's root is safe to
        use: the folders above hold other people's things.
        """
        package_root = folder = self._package_root(folder, marked=True)
        found: list[str] = []
        for _ in range(MOST_PARENTS):
            names = self._listing(folder)
            found.append(folder)
            if "src" in names:
                found.append(os.path.join(folder, "src"))
            if names & _ROOT_MARKS or folder in self._roots:
                return found
            folder = os.path.dirname(folder)
        return [package_root]

    def _package_root(self, folder: str, *, marked: bool = False) -> str:
        """Return the folder that holds the outermost package around; with `marked`, no further up
        than a project's root, which is one, though it may hold an `__init__.py` as well.
        """
        for _ in range(MOST_PARENTS):
            names = self._listing(folder)
            if "__init__.py" not in names or (marked and names & _ROOT_MARKS):
                break
            folder = os.path.dirname(folder)
        return folder

    def _module_file(self, base: str, parts: list[str]) -> str | None:
        """Return the file of a dotted module below `base`: `a/b/__init__.py`, else `a/b.py`."""
        for part in parts[:-1]:
            if part not in self._listing(base):
                return None
            base = os.path.join(base, part)
        if parts:
            names = self._listing(base)
            inner = os.path.join(base, parts[-1])
            if f"{parts[-1]}.py" in names and (
                parts[-1] not in names or "__init__.py" not in self._listing(inner)
            ):
                return f"{inner}.py"
            if parts[-1] not in names:
                return None
            base = inner
        return os.path.join(base, "__init__.py") if "__init__.py" in self._listing(base) else None

    def _listing(self, folder: str) -> frozenset[str]:
        names = self._names.get(folder)
        if names is None:
            try:
                names = frozenset(os.listdir(folder))
            except OSError:
                names = frozenset()
            self._names[folder] = names
        return names

    def _load(self, path: str, *, plain: bool = False) -> Source | None:
        # That somebody else looked into a plain module makes it no module of training.
        source = self._held(path, plain=False)
        return self._held(path, plain=True) if source is None and plain else source

    def _held(self, path: str, *, plain: bool) -> Source | None:
        """Return a module and put it last in the row of those that are held."""
        key = path, plain
        source = self._sources.pop(key) if key in self._sources else _read(path, plain=plain)
        self._sources[key] = source
        if len(self._sources) > MOST_KEPT:
            self._sources.pop(next(iter(self._sources)))  # the one longest unused
        return source

    def source_of(self, data: bytes, path: str) -> Source:
        """Return a file that is to be checked, parsed: mostly now, as few are imported before.

        It is not held for those who may import it, since few do: to hold each tree until many
        others were made costs more than to parse those few again.
        """
        known = self._sources.get((os.path.abspath(path), False))
        if known is not None and known.data() == data:
            return known
        return Source.read(data, shown_path(path))


def _is_of_training(data: bytes) -> bool:
    return (
        any(word in data for word in _WORDS)
        or (b"backward" in data and BACKWARD.search(data) is not None)  # no compatibility
        or (b".grad" in data and GRAD.search(data) is not None)  # no checkpointing
        or _HEIR.search(data) is not None
    )


def _hands_on(path: str, data: bytes) -> bool:
    """Is it a package that gives out what its own modules define?"""
    package = os.path.basename(path) == "__init__.py" and len(data) <= MOST_OF_A_PACKAGE
    return package and b"from ." in data


def _read(path: str, *, plain: bool) -> Source | None:
    """Return the module at `path`, or None where it cannot be read as Python.

    Args:
        plain: also where nothing in it clears, fills, steps or makes an optimizer.
    """
    data = read_module(path)
    if data is None or not (plain or _is_of_training(data) or _hands_on(path, data)):
        return None
    try:
        return Source.read(data, shown_path(path))
    except (OSError, ValueError, UnreadableSourceError):
        return None
