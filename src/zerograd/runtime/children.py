"""How children of this process are followed, and which of them cannot be: said, never guessed.

A child is followed through its environment. A Python that is told to ignore the
environment, or is given another one, runs unwatched; the report says so.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zerograd.runtime.run_folder import ENV_FOLDER, ENV_HOME, RunFolder, with_followers

_HOME = str(Path(__file__).resolve().parents[2])
_PYTHON = re.compile(r"(python|pypy)[\d.]*w?(\.exe)?$", re.IGNORECASE)
_TAKES_A_VALUE = "cmWXQ"  # options of python after which the rest is not flags


def lead_children(folder: RunFolder) -> Callable[[], None]:
    """Let the children of this process join the run; return how to take that back."""
    names = ("PYTHONPATH", ENV_FOLDER, ENV_HOME)
    before = {name: os.environ.get(name) for name in names}
    os.environ["PYTHONPATH"] = with_followers(before["PYTHONPATH"])
    os.environ[ENV_FOLDER] = str(folder.path)
    os.environ[ENV_HOME] = _HOME

    def take_back() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    return take_back


def watch_for_unfollowed(tell: Callable[[str], object]) -> Callable[[], None]:
    """Call `tell` with a line for each Python child that cannot be followed; return the undo."""
    original = subprocess.Popen.__init__

    @functools.wraps(original)
    def __init__(self: Any, args: Any, *more: Any, **options: Any) -> None:
        try:
            why = why_not_followed(args, options.get("env"))
            if why:
                tell(why)
            env = _led(options.get("env"))
        except Exception:  # never the reason that a child does not start
            env = None
        original(self, args, *more, **(options if env is None else {**options, "env": env}))

    subprocess.Popen.__init__ = __init__  # type: ignore[method-assign]

    def undo() -> None:
        # A program that has wrapped it in its turn keeps its own wrapper.
        if subprocess.Popen.__init__ is __init__:
            subprocess.Popen.__init__ = original  # type: ignore[method-assign]

    return undo


def _led(env: Mapping[Any, Any] | None) -> dict[Any, Any] | None:
    """Return the environment of a child with a PYTHONPATH that makes it join the run.

    None if it is right as it is: a script often gives its children a PYTHONPATH of their own
    beside all that it has itself.
    """
    given = os.environ if env is None else env
    path = given.get("PYTHONPATH")
    if ENV_FOLDER not in given or not isinstance(path, (str, type(None))):
        return None
    wanted = with_followers(path)
    return {**given, "PYTHONPATH": wanted} if wanted != path else None


def why_not_followed(args: Any, env: Mapping[Any, Any] | None) -> str:
    """Return why a child with this command line is not followed, or "".

    >>> why_not_followed(["python3.11", "-I", "train.py"], None)
    'not followed: python3.11 -I train.py (-I makes Python ignore its environment)'
    >>> why_not_followed(["python", "train.py", "-I"], None), why_not_followed(["ls", "-I"], None)
    ('', '')
    """
    words = _words(args)
    if not words or not _PYTHON.search(os.path.basename(words[0])):
        return ""
    shown = " ".join([os.path.basename(words[0]), *words[1:4]]) + (" ..." if len(words) > 4 else "")
    flag = _deaf_flag(words[1:])
    if flag:
        return f"not followed: {shown} (-{flag} makes Python ignore its environment)"
    if env is not None and ENV_FOLDER not in {_text(key) for key in env}:
        return f"not followed: {shown} (it was started with an environment of its own)"
    return ""


def _words(args: Any) -> list[str]:
    if isinstance(args, (str, bytes)):
        return _text(args).split()
    if isinstance(args, os.PathLike):
        return [_text(os.fspath(args))]
    if isinstance(args, Sequence):
        return [_text(os.fspath(word)) for word in args]
    return []  # an iterator is not ours to use up


def _text(word: Any) -> str:
    return os.fsdecode(word) if isinstance(word, bytes) else str(word)


def _deaf_flag(words: Sequence[str]) -> str:
    for word in words:
        if not word.startswith("-") or word in ("-", "--"):
            return ""
        if word.startswith("--"):
            continue
        for letter in word[1:]:
            if letter in "IES":
                return letter
            if letter in _TAKES_A_VALUE:
                return ""
    return ""
