"""What is left out: `.gitignore` files, and the user's own patterns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zerograd.static.settings import SettingsFinder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class Ignored:
    """The patterns of one .gitignore, over those of the folders above it."""

    __slots__ = ("_above", "_folder", "_spec")

    def __init__(self, folder: str, spec: GitIgnoreSpec, above: Ignored | None) -> None:
        self._folder = os.path.abspath(folder)
        self._spec = spec
        self._above = above

    @classmethod
    def at(cls, folder: str, above: Ignored | None) -> Ignored | None:
        """Return the patterns in force in `folder`, which has a .gitignore."""
        return cls._read(os.path.join(folder, ".gitignore"), folder, above)

    @classmethod
    def above(cls, folder: str) -> Ignored | None:
        """Return the patterns that a repository's outer folders lay on `folder`.

        A file that leaves out `folder` itself is passed by: the user asked for it.
        """
        folder = os.path.abspath(folder)
        outer: list[str] = []
        at = folder
        while not os.path.exists(os.path.join(at, ".git")):
            parent = os.path.dirname(at)
            if parent == at:
                return None  # no repository: the folders above have no say
            at = parent
            outer.append(at)
        root = outer[-1] if outer else folder
        ignored = cls._read(os.path.join(root, ".git", "info", "exclude"), root, None)
        for each in reversed(outer):
            path = os.path.join(each, ".gitignore")
            if os.path.exists(path):
                deeper = cls._read(path, each, ignored)
                if deeper is not None and not deeper.covers(folder, is_folder=True):
                    ignored = deeper
        return ignored

    @classmethod
    def _read(cls, path: str, folder: str, above: Ignored | None) -> Ignored | None:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.rstrip("\n") for line in file]
        except OSError:
            return above
        if not any(line.strip() and not line.startswith("#") for line in lines):
            return above
        from pathspec import GitIgnoreSpec  # costs tens of milliseconds, so only where needed

        try:
            return cls(folder, GitIgnoreSpec.from_lines(lines), above)
        except ValueError:  # a pattern that git would not take either
            return above

    def covers(self, path: str, *, is_folder: bool) -> bool:
        """Is `path` left out? The deepest file that says anything about it decides."""
        whole = os.path.abspath(path)
        level: Ignored | None = self
        while level is not None:
            inside = whole[len(level._folder) :].lstrip(os.sep).replace(os.sep, "/")
            verdict = level._spec.check_file(f"{inside}/" if is_folder else inside).include
            if verdict is not None:
                return verdict
            level = level._above
        return False


class Excludes:
    """The patterns of `--exclude` and of the settings' `exclude`.

    A pattern without a slash is a name anywhere in the tree; with a slash it is
    a path from the current folder or, in the settings, from their own folder.
    """

    def __init__(self, patterns: Sequence[str], settings: SettingsFinder) -> None:
        self._settings = settings
        self._given = Patterns(patterns, os.getcwd()) if patterns else None
        self._settled: dict[str, Patterns | None] = {}

    def covers(self, path: str, is_folder: bool, *, ancestors: bool = False) -> bool:
        """Is `path` left out, by itself or, if asked, by a folder above it?"""
        while True:
            if self._given is not None and self._given.match(path):
                return True
            settled = self._of(os.path.dirname(path) or ".")
            if settled is not None and settled.match(path):
                return True
            above = os.path.dirname(path)
            if not ancestors or above in ("", path):
                return False
            path = above

    def _of(self, folder: str) -> Patterns | None:
        if folder not in self._settled:
            settings = self._settings.of(folder)
            self._settled[folder] = (
                Patterns(settings.exclude, settings.root) if settings.exclude else None
            )
        return self._settled[folder]


class Patterns:
    """Globs as ruff users write them: a bare name, or a path from `root`; `*` spans folders."""

    __slots__ = ("_names", "_paths")

    def __init__(self, patterns: Sequence[str], root: str) -> None:
        import re
        from fnmatch import translate
        from itertools import chain

        names: list[str] = []
        paths: list[str] = []
        for glob in chain.from_iterable(map(_with_no_folder_between, patterns)):
            anywhere = glob.startswith("**/")
            glob = glob.removeprefix("**/")
            if "/" not in glob:
                names.append(translate(glob))
            elif glob.startswith("/"):
                paths.append(translate(glob))
            else:
                start = re.escape(root.rstrip(os.sep) + os.sep)
                paths.append(start + ("(?:.*/)?" if anywhere else "") + translate(glob))
        self._names = re.compile("|".join(names)) if names else None
        self._paths = re.compile("|".join(paths)) if paths else None

    def match(self, path: str) -> bool:
        if self._names is not None and self._names.match(os.path.basename(path)):
            return True
        return self._paths is not None and self._paths.match(os.path.abspath(path)) is not None


def _with_no_folder_between(pattern: str) -> list[str]:
    """Return the pattern and what it is where a `/**/` in it stands for no folder at all."""
    start, *more = pattern.rstrip("/").removeprefix("./").split("/**/")
    globs = [start]
    for part in more:
        globs = [f"{glob}{between}{part}" for glob in globs for between in ("/**/", "/")]
    return globs
