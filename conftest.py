"""What holds for all tests, those of the exercises too: no skip hides a failure in CI."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Generator

import pytest

WITHOUT_TORCH = "ZEROGRAD_TESTS_WITHOUT_TORCH"  # set where torch is missing on purpose

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job in the background ignores interrupts, and so would all that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _may_skip(reason: str) -> bool:
    """On a build machine a skip is a failure, unless it is for hardware or a system it lacks."""
    if os.environ.get("CI") != "true" or os.environ.get(WITHOUT_TORCH):
        return True
    is_missing = "could not import" in reason  # whatever its error speaks of
    return not is_missing and re.search("GPU|CUDA|Windows|win32|macOS", reason) is not None


def _no_hiding(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not _may_skip(reason):
        report.outcome = "failed"
        report.longrepr = f"CI=true, and this was to be skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _no_hiding(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _no_hiding(report)
    return report
