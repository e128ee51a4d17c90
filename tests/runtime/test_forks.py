"""A child that is forked while a thread of its parent is being heard trains on, and is watched."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402
from zerograd.runtime import forks  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
PATIENCE = 120  # seconds; a child that is still there then hangs


def _by_hand(rounds: int, *, clears: bool) -> None:
    """Train without a backward, which torch's own threads would take part in."""
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(rounds):
        weight.grad = torch.ones(2)
        optimizer.step()
        if clears:
            optimizer.zero_grad()


def _status_of_a_fork(act: Callable[[], bool]) -> int | None:
    """Return with which status a forked child ends, None if it hangs."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            status = 0 if act() else 4
        finally:
            os._exit(status)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def test_a_child_forked_while_a_thread_is_heard_does_not_wait_for_it() -> None:
    is_heard, may_go_on = threading.Event(), threading.Event()

    def on_finding(finding: object) -> None:
        is_heard.set()
        may_go_on.wait(PATIENCE)

    def train_wrongly() -> None:
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    with zerograd.watch(policy="collect", on_finding=on_finding) as watch:
        thread = threading.Thread(target=train_wrongly)
        thread.start()
        assert is_heard.wait(PATIENCE)

        def act() -> bool:
            steps = watch.steps
            _by_hand(3, clears=True)
            with zerograd.watch(policy="collect") as inner:
                _by_hand(3, clears=True)
            return watch.steps == steps + 6 and inner.steps == 3

        status = _status_of_a_fork(act)
        may_go_on.set()
        thread.join()
    assert status == 0
    assert [finding.rule.code for finding in watch.findings] == ["ZG101"]


def test_a_lock_that_the_forking_thread_holds_stays_its_own() -> None:
    lost: list[int] = []
    lock = forks.new_lock(lambda: lost.append(1))

    def is_mine() -> bool:
        taken: list[bool] = []
        other = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
        return taken == [False] and not lost

    with lock:
        assert _status_of_a_fork(is_mine) == 0
