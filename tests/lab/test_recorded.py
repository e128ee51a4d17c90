"""What the page shows is what PyTorch does: every experiment is run again and compared.

Tolerance: flags, words and counts of calls must be equal; a number may be off by 2 %
or 1e-4, whichever is more; the counts over many seeds by 3 % of the seeds. Smooth
series hold far better than that; the slack is for other processors and torch versions.
"""

import json
from importlib.resources import files

import pytest

pytest.importorskip("torch")

from zerograd.lab.page import load_recorded
from zerograd.lab.recorder import EXPERIMENTS, record
from zerograd.lab.recorder.snippets import sources

# torch 2.11 says so at the first profile of a process; newer ones do not
pytestmark = pytest.mark.filterwarnings("ignore:.*Profiler clears events")

RELATIVE, ABSOLUTE, SEEDS = 0.02, 1e-4, 0.03
COUNTED_OVER_SEEDS = {
    "three_steps": 200,
    "grid": 360,
}


@pytest.fixture(scope="module")
def recorded():
    return load_recorded()


def drift(was, now, *, slack=0, path=""):
    """Yield each place where two recordings differ by more than the tolerance."""
    if isinstance(was, dict) and isinstance(now, dict):
        if was.keys() != now.keys():
            yield f"{path}: {sorted(was.keys() ^ now.keys())} on one side only"
            return
        for key in was:
            yield from drift(was[key], now[key], slack=slack, path=f"{path}.{key}")
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{path}: {len(was)} values became {len(now)}"
            return
        for index, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from drift(one, other, slack=slack, path=f"{path}[{index}]")
    elif isinstance(was, bool) or isinstance(now, bool) or isinstance(was, str):
        if was != now:
            yield f"{path}: {was!r} became {now!r}"
    elif was is None or now is None:
        if was is not now:
            yield f"{path}: {was} became {now}"
    elif isinstance(was, int) and isinstance(now, int):
        if abs(was - now) > slack:
            yield f"{path}: {was} became {now}"
    elif abs(was - now) > max(ABSOLUTE, RELATIVE * max(abs(was), abs(now))):
        yield f"{path}: {was} became {now}"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_gives_what_was_recorded(name, recorded):
    again = json.loads(json.dumps(record([name])[name]))
    slack = round(COUNTED_OVER_SEEDS.get(name, 0) * SEEDS)
    assert list(drift(recorded[name], again, slack=slack, path=name)) == []


def test_drift_is_seen():
    assert list(drift({"a": [1.0, 2.0]}, {"a": [1.0, 2.0]})) == []
    assert list(drift({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]})) == [".a[1]: 2.0 became 2.1"]
    assert list(drift({"a": 3}, {"a": 4})) == [".a: 3 became 4"]
    assert list(drift({"a": 3}, {"a": 4}, slack=1)) == []
    assert list(drift({"a": True}, {"a": False})) != []
    assert list(drift([None], [1.0])) != []


def test_nothing_is_recorded_that_is_not_run(recorded):
    head = {"format", "zerograd", "torch", "python", "machine", "seed"}
    assert recorded.keys() - head == EXPERIMENTS.keys()
    assert recorded["torch"]
    assert recorded["seed"] == 0


def test_plain_sgd_without_a_clear_is_momentum_one_bit_for_bit(recorded):
    gaps = [one["momentum_gap"] for one in recorded["replay"] if one["momentum_gap"] is not None]
    assert gaps == [0.0] * 4


def test_the_torch_row_of_the_frameworks_is_true():
    import torch

    row = json.loads(files("zerograd.lab").joinpath("frameworks.json").read_text("utf-8"))
    w = torch.tensor(2.0, requires_grad=True)
    (3 * w).backward()
    assert row["PyTorch"]["first"] == w.grad.item()
    (5 * w).backward()
    assert row["PyTorch"]["second"] == w.grad.item()


def test_every_snippet_is_short_enough_to_read():
    assert max(text.count("\n") for text in sources().values()) <= 35
