"""A signal may come between any two lines, ours among them: what it raises is the user's."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
import torch

import zerograd
from zerograd.runtime.recorder import Recorder

posix_only = pytest.mark.skipif(os.name != "posix", reason="Windows has no signals of this kind")


def _train(count: int, *, clears: bool = True) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(count):
        if clears:
            optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let a signal come while the recorder hears of a step, once."""

    def arm() -> None:
        feed, waiting = Recorder.feed, [True]

        def interrupted(self: Recorder, *args: object) -> None:
            if waiting and self.memo.rounds > 1:
                waiting.pop()
                signal.raise_signal(signal.SIGUSR1)
            feed(self, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(Recorder, "feed", interrupted)

    return arm


def _plain(number: int, frame: object) -> None:
    raise TimeoutError("too slow")


def _variadic(*args: object) -> None:
    raise TimeoutError("too slow")


class _Watchdog:
    def __call__(self, number: int, frame: object) -> None:
        self.bark()

    def bark(self) -> None:
        raise TimeoutError("too slow")


def _once(number: int, frame: object) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    raise TimeoutError("too slow")


@posix_only
@pytest.mark.parametrize("handler", [_plain, _variadic, _Watchdog(), _once, lambda *_: 1 / 0])
def test_what_a_signal_handler_raises_reaches_the_user(
    handler: Callable[..., object], interrupts: Callable[[], None], capfd: pytest.CaptureFixture
) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    interrupts()
    try:
        with zerograd.watch(policy="collect") as watch:
            with pytest.raises((TimeoutError, ZeroDivisionError)):
                _train(6)
            _train(6)
            assert not watch.findings
            _train(6, clears=False)  # it still watches
        assert {finding.rule.code for finding in watch.findings} == {"ZG101"}
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "fault of its own" not in capfd.readouterr().err


@posix_only
def test_an_interrupt_within_the_witness_leaves_it_watching(
    interrupts: Callable[[], None],
) -> None:
    def ctrl_c(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, ctrl_c)
    interrupts()
    try:
        with zerograd.watch(policy="collect") as watch:
            with pytest.raises(KeyboardInterrupt):
                _train(6)
            _train(6)
            assert not watch.findings
            _train(6, clears=False)
        assert {finding.rule.code for finding in watch.findings} == {"ZG101"}
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_fault_of_our_own_is_still_told_apart(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    def broken(self: Recorder, *args: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(Recorder, "feed", broken)
    with zerograd.watch(policy="collect"):
        _train(3)
    assert "fault of its own (RuntimeError: ours)" in capfd.readouterr().err
