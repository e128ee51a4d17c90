"""Files replaced as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile


def write_whole(path: str, data: bytes) -> None:
    """Write `data` to `path` in one move, keeping the file's mode and following links.

    Where the folder takes no new files, or the file has several names or is a
    pipe or a device, it is written in place: that keeps what the user has. What
    standard output or error goes to anyway (`/dev/stdout`) is added to.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    if status is not None and _is_standard_stream(status):
        _in_place(path, data, "ab")
        return
    if status is not None and (status.st_nlink > 1 or not stat.S_ISREG(status.st_mode)):
        _in_place(path, data)
        return
    effective = os.access in os.supports_effective_ids
    if status is not None and not os.access(path, os.W_OK, effective_ids=effective):
        raise PermissionError(errno.EACCES, "it is read-only", path)
    target = os.path.realpath(path)
    try:
        number, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".zerograd-")
    except OSError:
        _in_place(target, data)
        return
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, stat.S_IMODE(status.st_mode) if status else 0o666 & ~_umask())
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _in_place(path: str, data: bytes, mode: str = "wb") -> None:
    with open(path, mode) as file:
        file.write(data)


def _is_standard_stream(status: os.stat_result) -> bool:
    for number in (1, 2):
        try:
            if os.path.samestat(status, os.fstat(number)):
                return True
        except OSError:
            pass  # it is closed
    return False


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
