"""`[tool.zerograd]` of the nearest pyproject.toml, checked key by key."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from zerograd.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Wrappers:
    """The project's own functions or methods that do what torch's do, by (dotted) name."""

    backward: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    clear: tuple[str, ...] = ()


NO_WRAPPERS = Wrappers()


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project has settled for the files below its pyproject.toml.

    `select` and `ignore` hold what the user wrote: codes, prefixes or names.
    Patterns are relative to `root`.
    """

    root: str = ""
    path: str = ""  # the pyproject.toml, or empty for the defaults
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    wrappers: Wrappers = NO_WRAPPERS


DEFAULTS = Settings()

_LISTS = ("select", "ignore", "exclude", "backward", "step", "clear")
KEYS = (*_LISTS, "per-file-ignores")


class SettingsFinder:
    """Finds the settings of a folder: its own pyproject.toml, or that of the nearest parent.

    A pyproject.toml without `[tool.zerograd]` is passed by, as ruff does.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, Settings] = {}

    def of(self, folder: str) -> Settings:
        """Return the settings for files in `folder`."""
        folder = os.path.abspath(folder)
        waiting: list[str] = []
        while True:
            settings = self._known.get(folder)
            if settings is None:
                settings = read_settings(os.path.join(folder, "pyproject.toml"))
            if settings is None:
                waiting.append(folder)
                parent = os.path.dirname(folder)
                if parent != folder:
                    folder = parent
                    continue
                settings = DEFAULTS
            else:
                self._known[folder] = settings
            for each in waiting:
                self._known[each] = settings
            return settings


def read_settings(path: str) -> Settings | None:
    """Return the settings in a pyproject.toml, or None where it has none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as cause:
        if os.path.isfile(path):
            raise ConfigError(f"{path}: cannot be read ({cause.strerror})") from None
        return None
    # That of the project we stand in must be right. Others in a tree, as among test data, are
    # nobody's concern unless they speak of us.
    if b"zerograd" not in data and not _is_above_us(path):
        return None
    table = _table(data, path)
    if table is None:
        return None
    return settings_from(table, path)


def _is_above_us(path: str) -> bool:
    folder = os.path.dirname(os.path.abspath(path))
    try:
        return os.path.commonpath((folder, os.getcwd())) == folder
    except (OSError, ValueError):  # the folder is gone, or on another drive
        return False


def settings_from(table: dict[str, Any], path: str) -> Settings:
    """Return the settings in a `[tool.zerograd]` table, or raise ConfigError."""
    for key in table:
        if key not in KEYS:
            raise ConfigError(f"{path}: [tool.zerograd] has no key {key!r}{_nearest(key, KEYS)}")
    lists = {key: _strings(table.get(key, []), path, key) for key in _LISTS}
    for key in ("select", "ignore"):
        _check_rules(lists[key], path, key)
    for key in ("backward", "step", "clear"):
        for name in lists[key]:
            if not all(part.isidentifier() for part in name.split(".")):
                raise ConfigError(
                    f"{path}: {key} names {name!r}, which is no function or method name"
                )
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise ConfigError(f'{path}: per-file-ignores must be a table: "tests/*" = ["ZG101"]')
    ignores = []
    for pattern, codes in per_file.items():
        words = _strings(codes, path, f"per-file-ignores of {pattern!r}")
        _check_rules(words, path, f"per-file-ignores of {pattern!r}")
        ignores.append((pattern, words))
    return Settings(
        root=os.path.dirname(os.path.abspath(path)),
        path=path,
        select=lists["select"],
        ignore=lists["ignore"],
        exclude=lists["exclude"],
        per_file_ignores=tuple(ignores),
        wrappers=Wrappers(lists["backward"], lists["step"], lists["clear"]),
    )


def _table(data: bytes, path: str) -> dict[str, Any] | None:
    if sys.version_info >= (3, 11):
        import tomllib as toml
    else:
        import tomli as toml
    try:
        parsed = toml.loads(data.decode("utf-8-sig"))
    except (toml.TOMLDecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise ConfigError(f"{path}: is no valid TOML: {str(cause).splitlines()[0]}") from None
    tool = parsed.get("tool", {})
    table = tool.get("zerograd") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.zerograd must be a table")
    return table


def _strings(value: Any, path: str, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{path}: {key} must be a list of strings, not {value!r}")
    return tuple(value)


def _check_rules(words: tuple[str, ...], path: str, key: str) -> None:
    if not words:
        return
    from zerograd.errors import UnknownRuleError
    from zerograd.rules.selection import matching

    for word in words:
        try:
            matching(word)
        except UnknownRuleError as error:
            raise ConfigError(f"{path}: {key}: {str(error).splitlines()[0]}") from None


def _nearest(word: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word.replace("_", "-"), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; it knows {', '.join(sorted(known))}"
