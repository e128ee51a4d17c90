"""Run a script or a module as `python` would: its argv, `__main__`, path, exit code, traceback.

The script runs in this process. What it can see of us is the modules we loaded.
"""

from __future__ import annotations

import atexit
import builtins
import importlib.util
import linecache
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from typing import Any

from zerograd.errors import UsageError
from zerograd.runtime.aloud import say

STDIN = "-"
_mains: list[types.ModuleType] = []
INTERRUPTED = 128 + signal.SIGINT
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True, slots=True)
class Target:
    """What to run: a script's path or a module's name, and its own arguments."""

    name: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The command as the user would type it after `python`."""
        return (*(("-m",) if self.is_module else ()), self.name, *self.arguments)

    def check(self) -> None:
        """Raise UsageError if there is nothing of that name; runs none of the user's code."""
        if self.is_module:
            top = self.name.partition(".")[0]
            if top not in sys.modules and not _is_findable(top):
                raise UsageError(
                    f"-m {self.name}: there is no module {top} in this Python or folder."
                )
        elif self.name == STDIN:
            return
        elif not os.path.exists(self.name):
            raise UsageError(f"{self.name}: there is no such script.")
        elif self.name.endswith(".ipynb"):
            raise UsageError(
                f"{self.name}: a notebook is not run; use zerograd.watch() in it, "
                "or convert it to a script."
            )
        elif os.path.isdir(self.name) and not _main_of(self.name):
            raise UsageError(f"{self.name}: a folder without __main__.py cannot be run.")


def _is_findable(top: str) -> bool:
    # `python -m` looks into the working directory first, and so does the run.
    before = list(sys.path)
    if not _is_safe_path():
        sys.path[:1] = [os.getcwd()]
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False
    finally:
        sys.path[:] = before


def _main_of(folder: str) -> str | None:
    for name in ("__main__.py", "__main__.pyc"):
        if os.path.isfile(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def _is_safe_path() -> bool:
    """Was Python told (-P, -I) not to put the script's folder on the path?"""
    return bool(getattr(sys.flags, "safe_path", False)) or bool(sys.flags.isolated)


def run_as_main(
    target: Target, *, on_error: Callable[[BaseException], object] | None = None
) -> int:
    """Run the target to its end and return the exit code that `python` would end with.

    An exception is printed as Python prints it, without our frames. Threads and
    exit handlers of the script have run when this returns.

    Args:
        on_error: is shown the exception that ends the script, before it is printed.
    """
    try:
        _run(target)
        code = 0
    except BaseException as error:
        if on_error is not None:
            on_error(error)
        code = _ended_by(error)
    _wind_down()
    return code


def _run(target: Target) -> None:
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    vars(main)["__annotations__"] = {}
    # Both stay alive until the interpreter ends: exit handlers use their names.
    _mains.extend((main, sys.modules["__main__"]))
    sys.modules["__main__"] = main
    sys.argv[:] = [target.name, *target.arguments]
    if target.is_module:
        if not _is_safe_path():
            sys.path[0] = os.getcwd()
        sys.argv[0] = "-m"
        # What `python -m` itself calls; it fills the __main__ set above.
        runpy._run_module_as_main(target.name)  # type: ignore[attr-defined]
    elif target.name == STDIN:
        _run_stdin(main)
    elif os.path.isdir(target.name) or _is_archive(target.name):
        place = os.path.abspath(target.name)
        if _is_safe_path():
            sys.path.insert(0, place)
        else:
            sys.path[0] = place
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
    else:
        _run_script(target.name, main)


def _is_archive(path: str) -> bool:
    return os.path.splitext(path)[1] not in (".py", ".pyc") and (
        type(sys.path_importer_cache.get(path) or _importer(path)).__name__ == "zipimporter"
    )


def _importer(path: str) -> object:
    for hook in sys.path_hooks:
        try:
            return hook(path)
        except ImportError:
            continue
    return None


def _run_script(name: str, main: types.ModuleType) -> None:
    path = os.path.abspath(name)
    if not _is_safe_path():
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    loader: SourceFileLoader | SourcelessFileLoader
    if path.endswith(".pyc"):
        loader = SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = SourceFileLoader("__main__", path)
        code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    main.__file__ = path
    main.__loader__ = loader
    main.__dict__["__cached__"] = None
    main.__package__ = None
    main.__spec__ = None
    assert code is not None
    exec(code, main.__dict__)


def _run_stdin(main: types.ModuleType) -> None:
    if not _is_safe_path():
        sys.path[0] = ""
    source = sys.stdin.buffer.read()
    name = "<stdin>"
    # Excerpts and `allow` comments are read from there, as no file holds them.
    lines = importlib.util.decode_source(source).splitlines(keepends=True)
    linecache.cache[name] = (len(source), None, lines, name)
    main.__file__ = name
    main.__loader__ = BuiltinImporter
    main.__dict__["__cached__"] = None
    main.__package__ = None
    main.__spec__ = None
    exec(compile(source, name, "exec", dont_inherit=True), main.__dict__)


def _ended_by(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return _exit_code(error.code)
    _show(error)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _exit_code(asked: object) -> int:
    if asked is None:
        return 0
    if isinstance(asked, int):
        if asked.bit_length() > 63:
            return 0xFF  # too large for C: Python takes it as -1
        return asked & 0xFF  # what the system keeps of it
    say(asked)
    return 1


def _show(error: BaseException) -> None:
    without_our_frames(error)
    _flush(sys.stdout)
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        try:
            traceback.print_exception(type(error), error, error.__traceback__)
        except (OSError, ValueError):
            pass  # the script has closed its standard error


def _wind_down() -> None:
    """Wait for the script's threads and run its exit handlers, as the interpreter's end does.

    Both run here, not at the interpreter's own end, because training in a thread
    or in an exit handler belongs into the report.
    """
    steps: tuple[Callable[[], object], ...] = (
        threading._shutdown,  # type: ignore[attr-defined]
        atexit._run_exitfuncs,
    )
    for step in steps:
        try:
            step()
        except SystemExit:
            pass
        except BaseException as error:
            _show(error)
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)


def _flush(stream: Any) -> None:
    try:
        if stream is not None:
            stream.flush()
    except Exception:  # closed, or one of the script's own that cannot
        return


def without_our_frames(error: BaseException) -> None:
    """Take every frame of this package out of the tracebacks of `error` and its causes."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _stripped(current.__traceback__)
        waiting += [current.__cause__, current.__context__]
        waiting += getattr(current, "exceptions", ())  # an exception group's


def _stripped(trace: types.TracebackType | None) -> types.TracebackType | None:
    frames = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(trace)
        trace = trace.tb_next
    rest: types.TracebackType | None = None
    for frame in reversed(frames):
        rest = types.TracebackType(rest, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return rest


def end_like_the_script(code: int) -> int:
    """Return `code`; after an interrupt, die of the signal, as Python does, so shells can tell."""
    if code == INTERRUPTED and os.name == "posix":
        _flush(sys.stderr)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code
