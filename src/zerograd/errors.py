"""Every exception raised on purpose, each with an exit code and a slug for the docs.

Three kinds are never mixed: a fault in the user's code is a Finding, which is
data; work that cannot be done is a ZerogradError; a fault of ours is an
ordinary exception with its traceback.
"""

from __future__ import annotations


class ZerogradError(Exception):
    """We cannot do what was asked: the text says where, what, and what next."""

    exit_code = 2
    slug = "cannot-work"


class UsageError(ZerogradError):
    """An option, a path or a setting makes no sense."""

    slug = "usage"


class ConfigError(ZerogradError):
    """`[tool.zerograd]` cannot be read or holds something unknown."""

    slug = "config"


class UnreadableSourceError(ZerogradError):
    """A file could not be read as Python, so nothing in it was checked."""

    slug = "unreadable-source"


class UnknownRuleError(UsageError):
    """A rule was named that does not exist."""

    slug = "unknown-rule"


class MissingTorchError(ZerogradError):
    """A part about torch was asked for where torch is not installed."""

    slug = "missing-torch"


class TraceError(ZerogradError):
    """A trace file cannot be read or written."""

    slug = "trace"


class StepError(ZerogradError):
    """`Step` was used in a way that would train on wrong gradients."""

    slug = "step-misuse"


class GradientError(ZerogradError):
    """A finding of the sanitizer under `policy="raise"`, raised at the offending line."""

    exit_code = 1
    slug = "gradient-error"


class GradientWarning(UserWarning):
    """A finding of the sanitizer under `policy="warn"`."""
