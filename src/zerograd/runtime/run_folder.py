"""The folder through which the processes of one run meet.

Each process owns one file there, its shard, and holds a lock beside it for as
long as it lives; the system drops the lock however the process ends. So anyone
can tell who is at work, who has finished, and who was killed, without a word
between processes and without a collective.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerograd.errors import UsageError

if TYPE_CHECKING:
    from zerograd.trace.format import Header

try:
    import fcntl
except ImportError:  # Windows: nobody can tell there whether another process lives
    fcntl = None  # type: ignore[assignment]

ENV_FOLDER = "ZEROGRAD_RUN_FOLDER"
ENV_HOME = "ZEROGRAD_RUN_HOME"
_FOLLOW = str(Path(__file__).resolve().parent / "follow")
_PREFIX = "zerograd-run-"
_ROOT = "root"
_KEPT_FOR = 24 * 3600.0  # seconds


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What every process of a run must know."""

    policy: str = "warn"
    codes: tuple[str, ...] = ()  # the rules that are shown; empty: all
    watched: tuple[str, ...] = ()  # these, and the rules that are only counted
    trace: str | None = None
    command: tuple[str, ...] = ()
    root: int = 0  # the pid of the process that the user started
    torch: str = ""  # its version
    cwd: str = ""  # where the user stood

    def header(
        self, started: float, pid: int, parent: int | None, place: tuple[int | None, int | None]
    ) -> Header:
        """Return the first line of a trace of the process `pid`, which is this rank of so many."""
        from zerograd import __version__
        from zerograd.trace.format import Header

        return Header(
            tool=__version__,
            started=started,
            command=self.command,
            python=".".join(map(str, sys.version_info[:3])),
            torch=self.torch,
            cwd=self.cwd,
            pid=pid,
            parent=parent,
            rank=place[0],
            world=place[1],
            host=socket.gethostname(),
        )


@dataclass(slots=True)
class Shard:
    """What one process has to tell."""

    pid: int
    rank: int | None = None
    world: int | None = None
    parent: int | None = None
    done: bool = False  # its script has ended by itself; False and not living: it was killed
    exit: int | None = None
    steps: int = 0  # of its optimizers
    findings: list[dict[str, Any]] = field(default_factory=list)
    log: dict[str, Any] = field(default_factory=dict)  # when it stepped: see step_log
    notes: list[str] = field(default_factory=list)
    name: str = ""  # of its file, without suffix
    lives: bool = False

    @property
    def is_at_work(self) -> bool:
        """Does its script still run?"""
        return self.lives and not self.done

    @property
    def was_killed(self) -> bool:
        return not self.lives and not self.done


class RunFolder:
    """A run's folder. Files are replaced whole, so a reader never sees half of one."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, options: RunOptions) -> RunFolder:
        try:
            _sweep()
            folder = cls(tempfile.mkdtemp(prefix=_PREFIX))
            folder.write_options(options)
        except OSError as error:
            raise UsageError(
                f"the temporary folder cannot be used ({error.strerror or error}).\n"
                "  Make room there, or set TMPDIR to a folder that can be written."
            ) from error
        folder.live_as(_ROOT)
        return folder

    @classmethod
    def from_environment(cls) -> RunFolder | None:
        """Return the folder of the run that this process belongs to, if it still exists."""
        path = os.environ.get(ENV_FOLDER)
        return cls(path) if path and os.path.isdir(path) else None

    def write_options(self, options: RunOptions) -> None:
        self._replace("run.json", asdict(options))

    def options(self) -> RunOptions:
        shape = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
        return RunOptions(
            policy=shape["policy"],
            codes=tuple(shape["codes"]),
            watched=tuple(shape["watched"]),
            trace=shape["trace"],
            command=tuple(shape["command"]),
            root=shape["root"],
            torch=shape["torch"],
            cwd=shape["cwd"],
        )

    def claim(self, name: str) -> bool:
        """Return True to the first process of the run that asks for this name, and only to it."""
        try:
            os.close(os.open(self.path / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except (FileExistsError, FileNotFoundError):
            return False  # another process was quicker, or has ended the run
        except OSError:
            return True  # a full disk: rather twice than never
        return True

    def is_there(self) -> bool:
        """Is the run still going on? Its end takes the folder away."""
        return self.path.is_dir()

    def is_claimed(self, name: str) -> bool:
        return (self.path / name).exists()

    def live_as(self, name: str) -> None:
        """Hold the lock that tells others that the process of this shard lives."""
        if fcntl is None:
            return
        # Never closed: the system does so when the process is gone, and not sooner, as a file
        # object of Python's would. Children do not inherit this kind of lock.
        try:
            file = os.open(self.path / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # the run has ended, no file can be opened, or none can be locked there

    def lives(self, name: str) -> bool:
        """Does the process of this shard live? Not to be asked about one's own."""
        if fcntl is None:
            return False
        try:
            with (self.path / f"{name}.lock").open("r+") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def save(self, shard: Shard) -> None:
        shape = asdict(shard)
        del shape["lives"]
        try:
            self._replace(f"{shard.name}.json", shape)
        except OSError:
            pass  # the run has ended and its folder is gone, or the disk is full

    def shards(self, *, mine: str = "") -> list[Shard]:
        """Return what the processes have told so far; `mine` is the name of one's own shard."""
        found = []
        for path in sorted(self.path.glob("process-*.json")):
            try:
                shape = json.loads(path.read_text(encoding="utf-8"))
                shard = Shard(**shape)
            except (OSError, ValueError, TypeError):
                continue
            # Opening one's own lock file a second time and closing it would drop the lock.
            shard.lives = shard.name == mine or self.lives(shard.name)
            found.append(shard)
        return found

    def remove(self) -> None:
        # Renamed first: whoever is killed half-way leaves nothing that looks like a run.
        gone = self.path.with_name(f"{_PREFIX}gone-{self.path.name}-{os.getpid()}")
        try:
            self.path.rename(gone)
        except OSError:
            return  # another process of the run was quicker
        shutil.rmtree(gone, ignore_errors=True)

    def _replace(self, name: str, shape: Mapping[str, Any]) -> None:
        part = self.path / f".{name}.{os.getpid()}.part"
        part.write_text(json.dumps(shape, default=str), encoding="utf-8")
        part.replace(self.path / name)


def _sweep() -> None:
    """Remove folders of runs that were killed long ago; a living run holds a lock in its own."""
    before = time.time() - _KEPT_FOR
    for path in Path(tempfile.gettempdir()).glob("zerograd-r[ua]n*-*"):
        try:
            folder = RunFolder(path)
            names = [lock.stem for lock in path.glob("*.lock")]
            if path.stat().st_mtime < before and not any(folder.lives(name) for name in names):
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # somebody else's, or just gone


def with_followers(path: str | None) -> str:
    """Return this PYTHONPATH with the folder before it that makes a Python join the run."""
    places = path.split(os.pathsep) if path else []
    return os.pathsep.join(places if _FOLLOW in places else [_FOLLOW, *places])


def shard_name(pid: int, rank: int | None = None) -> str:
    return f"process-{pid}" if rank is None else f"process-rank-{rank}"


def notes_of(shards: Sequence[Shard]) -> list[str]:
    return list(dict.fromkeys(note for shard in shards for note in shard.notes))
