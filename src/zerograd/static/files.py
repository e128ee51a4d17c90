"""Which files are looked at, and which of them can hold a training loop at all.

Everything here costs little per file, because most files of most trees have
nothing to do with training: they are read, searched for a few words, and left.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence

from zerograd.static.ignored import Excludes, Ignored
from zerograd.static.settings import SettingsFinder

ENDINGS = (".py", ".ipynb")
MOST_BYTES = 20_000_000  # larger sources are data; notebooks carry pictures
MOST_NOTEBOOK_BYTES = 40_000_000

# Folders that never hold a project's own code, by the names ruff leaves out too.
NEVER = frozenset(
    (
        ".bzr",
        ".direnv",
        ".eggs",
        ".git",
        ".git-rewrite",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pants.d",
        ".pyenv",
        ".pytest_cache",
        ".pytype",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        ".vscode",
        "__pycache__",
        "__pypackages__",
        "_build",
        "buck-out",
        "build",
        "dist",
        "node_modules",
        "site-packages",
        "venv",
    )
)

# A backward that is called or named, not only defined; a step; a gradient, not autograd.grad().
# Each pattern starts with its word: Python skips to that, and looks at what is before it there.
BACKWARD = re.compile(rb"backward(?:(?<=[._]backward)\b|(?<!def backward)(?<!\wbackward)\()")
_STEP = re.compile(rb"step(?:(?<=\.step)\b|(?<=_step)\()")
GRAD = re.compile(rb"\.grad\b(?!\s*\()")
# a step that stands alone, where a class has its clear and its backward from another file
_OWN_STEPS = (b"mizer.step(", b"caler.step(", b"opt.step(")
# what a loop around may call; `super().training_step(…)` is no loop
_TRAINING = re.compile(
    rb"\.train(?:ing)?_(?:step|batch|on|iter|epoch)\w*\((?<!\(\)\.training_step\()"
)
_OPTIMIZES = re.compile(rb"optimi[sz]e_parameters\(")

# A pipe that nobody writes to must not be waited for.
_FOR_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)

Tell = Callable[[str], None]  # takes one line about something that could not be read


class Found:
    """A file to look at: its path as given or found, and who named it."""

    __slots__ = ("ignored", "path")

    def __init__(self, path: str, ignored: Ignored | None) -> None:
        self.path = path
        self.ignored = ignored  # the .gitignore files that apply; None: named by the user

    def is_ignored(self) -> bool:
        """Does a .gitignore leave this file out? Asked late: matching costs more than reading."""
        return self.ignored is not None and self.ignored.covers(self.path, is_folder=False)


def find_files(
    paths: Sequence[str],
    *,
    settings: SettingsFinder,
    exclude: Sequence[str] = (),
    force_exclude: bool = False,
    gitignore: bool = True,
    tell: Tell,
) -> Iterator[Found]:
    """Yield each file below `paths` once, in a steady order.

    A path the user names is taken as it is, whatever it is called and whatever
    leaves it out, unless `force_exclude`: then a name does not win over `exclude`.
    Folders behind symbolic links are not entered: what they hold is found where
    it really is, and there can be no loop. `tell` hears of what cannot be read.
    """
    excludes = Excludes(exclude, settings)
    seen: set[str] = set()
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError) as cause:
            tell(f"{path}: {_reason(cause)}")
            continue
        if force_exclude and excludes.covers(path, stat.S_ISDIR(mode), ancestors=True):
            continue
        if stat.S_ISDIR(mode):
            ignored = Ignored.above(path) if gitignore else None
            found = _walk(path, ignored, excludes, gitignore=gitignore, tell=tell)
        elif stat.S_ISREG(mode):
            found = iter((Found(path, None),))
        else:
            tell(f"{path}: not checked, it is neither a file nor a folder")
            continue
        if len(paths) == 1:
            yield from found
            continue
        for each in found:
            key = os.path.abspath(each.path)
            if key not in seen:
                seen.add(key)
                yield each


def _walk(
    top: str, ignored: Ignored | None, excludes: Excludes, *, gitignore: bool, tell: Tell
) -> Iterator[Found]:
    """Yield the sources below a folder: its own first, then those of its folders."""
    waiting: list[tuple[str, Ignored | None]] = [(top, ignored)]
    while waiting:
        folder, ignored = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as cause:
            tell(f"{folder}: {_reason(cause)}")
            continue
        if gitignore and any(entry.name == ".gitignore" for entry in entries):
            ignored = Ignored.at(folder, ignored)
        inner: list[tuple[str, Ignored | None]] = []
        for entry in entries:
            name = entry.name
            if name.endswith(ENDINGS):
                if not _is_folder(entry):
                    if not _leads_inside(entry, top) and not excludes.covers(entry.path, False):
                        yield Found(_plain(entry.path), ignored)
                    continue
            elif not _is_folder(entry):
                continue
            if (
                name not in NEVER
                and not excludes.covers(entry.path, True)
                and not (ignored is not None and ignored.covers(entry.path, is_folder=True))
                and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))
            ):
                inner.append((entry.path, ignored))
        waiting.extend(reversed(inner))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _leads_inside(entry: os.DirEntry[str], top: str) -> bool:
    """Is it a link to a folder, or to a file that is found in this tree anyway?"""
    if not entry.is_symlink():
        return False
    try:
        if entry.is_dir():
            return True
    except OSError:
        return False  # told when it is read
    target = os.path.realpath(entry.path)
    return target.startswith(os.path.realpath(top) + os.sep) and os.path.exists(target)


def _plain(path: str) -> str:
    return path[2:] if path.startswith("./") else path


def read_bytes(path: str, tell: Tell, most: int | None = None) -> bytes | None:
    """Return a file's bytes, or None where it cannot or should not be read.

    Args:
        most: how many bytes are read; what a source may have, unless told.
    """
    try:
        number = os.open(path, _FOR_READING)
        try:
            status = os.fstat(number)
            size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                tell(f"{path}: not checked, it is neither a file nor a folder")
                return None
            if most is None:
                most = MOST_NOTEBOOK_BYTES if path.endswith(".ipynb") else MOST_BYTES
            if size > most:
                tell(f"{path}: not checked, {size / 1e6:.0f} MB are too large for a source file")
                return None
            data = os.read(number, size + 1)
            while len(data) < size:  # a signal or a network file system may cut a read short
                more = os.read(number, size + 1 - len(data))
                if not more:
                    break
                data += more
            return data
        finally:
            os.close(number)
    except (OSError, ValueError) as cause:
        tell(f"{path}: {_reason(cause)}")
        return None


def may_train(data: bytes, words: Sequence[bytes] = ()) -> bool:
    """Can these bytes hold anything a rule is about?

    `words` are the project's own names for backward, step and clear. An allow
    comment counts, because one that allows nothing is a finding itself.
    """
    if b"zero_grad" in data:
        return True
    goes_back = b"backward" in data and BACKWARD.search(data)
    if goes_back and (b"optimizer" in data or _STEP.search(data) or GRAD.search(data)):
        return True  # it steps, or has somebody else step
    if b".parameters()" in data and b"optim." in data and b"for " in data:
        return True  # it makes an optimizer and may hand it to another module's step
    if b".step(" in data and b"class " in data and any(word in data for word in _OWN_STEPS):
        return True  # the loop around may be inherited
    if b"for " in data and (
        b".learn(" in data
        or (b".train" in data and _TRAINING.search(data))
        or (b"e_parameters(" in data and _OPTIMIZES.search(data))
    ):
        return True  # it may be the loop around what another module does
    if b"LightningModule" in data and b"clip_grad" in data:
        return True  # who goes backward is Lightning, after what is written here
    return b"zerograd: allow" in data or any(word in data for word in words)


def _reason(cause: Exception) -> str:
    if isinstance(cause, FileNotFoundError):
        return "no such file or folder"
    text = getattr(cause, "strerror", None) or str(cause)
    return f"not checked, {text[:1].lower()}{text[1:]}"
