"""Loss and gradient norm on their way into a trace and onto the page."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import zerograd  # noqa: E402
from zerograd.cli.main import main  # noqa: E402
from zerograd.lifecycle.events import Event, EventKind, Spot  # noqa: E402
from zerograd.runtime import curves, torch_facts  # noqa: E402
from zerograd.trace.format import Header  # noqa: E402
from zerograd.trace.reader import read_trace  # noqa: E402
from zerograd.trace.writer import TraceWriter  # noqa: E402

STEPS = 150  # the first 64 are watched with full care, the rest ticked off


def record(path, train, **more):
    writer = TraceWriter(path, Header("0", time.time(), ("train.py",)), **more)
    with zerograd.watch(policy="collect", trace=writer):
        train()
    writer.close(exit_code=0)
    (section,) = read_trace(path).sections
    return section.events


def numbers(events, name):
    return [(each.iteration, each.extra[name]) for each in events if name in each.extra]


def parts():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def close_to(values):
    return [(n, pytest.approx(value, rel=1e-5)) for n, value in enumerate(values)]


def test_each_backward_carries_its_loss_and_each_clip_its_norm(tmp_path):
    model, optimizer = parts()
    losses, norms = [], []

    def train():
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 3)).pow(2).mean()
            loss.backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
            optimizer.step()
            losses.append(loss.item())

    events = record(tmp_path / "t.jsonl", train)
    assert numbers(events, "loss") == close_to(losses)
    assert numbers(events, "grad_norm") == close_to(norms)
    assert {each.event.kind for each in events if "loss" in each.extra} == {EventKind.BACKWARD}
    assert {each.event.kind for each in events if "grad_norm" in each.extra} == {EventKind.CLIP}


def test_a_norm_that_is_only_measured_goes_with_the_step(tmp_path):
    model, optimizer = parts()
    norms = []

    def train():
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).pow(2).mean().backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
            optimizer.step()

    events = record(tmp_path / "t.jsonl", train)
    assert numbers(events, "grad_norm") == close_to(norms)
    assert {each.event.kind for each in events if "grad_norm" in each.extra} == {EventKind.STEP}


def test_the_factor_of_a_scaler_is_taken_out(tmp_path):
    model, optimizer = parts()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    losses = []

    def train():
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 3)).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())

    assert numbers(record(tmp_path / "t.jsonl", train), "loss") == close_to(losses)


def test_what_is_not_one_number_is_left_out(tmp_path):
    model, optimizer = parts()

    def train():
        for _ in range(STEPS):
            optimizer.zero_grad()
            out = model(torch.randn(4, 3))
            out.backward(torch.ones_like(out))
            torch.autograd.backward([model(torch.ones(1, 3)).sum(), model.weight.sum()])
            optimizer.step()

    events = record(tmp_path / "t.jsonl", train)
    assert len(events) == 4 * STEPS
    assert numbers(events, "loss") == []


def test_iterations_that_are_only_counted_are_not_measured(tmp_path, monkeypatch):
    model, optimizer = parts()
    taken = []
    take = curves.Curves.take
    monkeypatch.setattr(curves.Curves, "take", lambda *args: taken.append(1) or take(*args))

    def train():
        for _ in range(2_000):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()

    events = record(tmp_path / "t.jsonl", train, kept_at_first=100)
    kept = {each.iteration for each in events}
    assert {iteration for iteration, _ in numbers(events, "loss")} == kept
    assert len(kept) <= len(taken) <= 3 * len(kept)


class FarAway:
    """Stands for a number on a device that works on; to ask whether it has arrived is free."""

    def __init__(self):
        self.has_arrived = False

    def query(self):
        return self.has_arrived


def test_a_number_on_a_device_is_told_when_it_has_arrived(tmp_path):
    event = Event(EventKind.BACKWARD, "", Spot("train.py", 3), ("opt",))
    writer = TraceWriter(tmp_path / "t.jsonl", Header("0", time.time()))
    taking = curves.Curves(writer)
    copies = [curves.Copy(torch.tensor(float(n)), FarAway()) for n in range(3)]
    for copy in copies:  # three micro-batches of one iteration
        assert taking.told("loss", copy, event, 0) is None
        writer.write(event, iteration=0)
    copies[1].arrived.has_arrived = True
    taking.tell_arrived()
    writer.flush()
    assert "measured" not in (tmp_path / "t.jsonl").read_text()  # in order, and the first is late
    copies[0].arrived.has_arrived = True
    taking.tell_arrived()
    writer.close()
    (section,) = read_trace(tmp_path / "t.jsonl").sections
    assert [each.extra for each in section.events] == [{"loss": 0.0}, {"loss": 1.0}, {}]


def test_a_factor_on_a_device_is_waited_for_too():
    factor = curves.Copy(torch.tensor(4.0), FarAway())
    copy = curves.Copy(torch.tensor(2.0), FarAway(), divisor=factor)
    copy.arrived.has_arrived = True
    assert copy.read() is None
    factor.arrived.has_arrived = True
    assert copy.read() == 0.5


def test_nothing_is_measured_without_a_trace():
    model, optimizer = parts()
    with zerograd.watch(policy="collect") as watching:
        optimizer.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        assert not watching._recorder.curves


def test_torch_calls_the_roots_as_we_think():
    """The name by which the roots of a backward are found in its frame."""
    assert torch_facts.ENGINE_ROOTS == "t_outputs"


def test_the_page_draws_both(tmp_path, capsys):
    model, optimizer = parts()

    def train():
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).pow(2).mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()

    record(tmp_path / "t.jsonl", train)
    assert main(["report", str(tmp_path / "t.jsonl"), "--format", "html"]) == 0
    page = (tmp_path / "t.jsonl.html").read_text()
    found = page.partition('"curves":')[2]
    drawn, _ = json.JSONDecoder().raw_decode(found)
    assert list(drawn) == ["loss", "grad_norm"]
    assert len(drawn["loss"]["value"]) == len(drawn["grad_norm"]["value"]) == STEPS


@pytest.mark.parametrize("late", [None, 701])
def test_rounds_told_together_give_the_trace_that_single_events_give(tmp_path, late):
    """Kept iterations, those around a finding, and all counts, whoever ticked them off."""

    def traced(name, *, single):
        torch.manual_seed(0)
        model, x = torch.nn.Linear(4, 1), torch.randn(2, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        writer = TraceWriter(tmp_path / name, Header("0", time.time()), kept_at_first=20)
        sink = SingleEvents(writer) if single else writer
        with zerograd.watch(policy="collect", trace=sink, on_finding=writer.finding):
            for n in range(1000):
                if n != late:
                    optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
        writer.close()
        return [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]

    together, single = traced("together", single=False), traced("single", single=True)
    assert sum(line["type"] == "finding" for line in together) == (late is not None)
    assert _without_times(together) == _without_times(single)
    stamps = [line["t"] for line in together if line["type"] == "event"]
    assert stamps == sorted(stamps)


class SingleEvents:
    """A trace that takes no rounds."""

    def __init__(self, writer):
        self.write, self.keeps, self.measured = writer.write, writer.keeps, writer.measured


def _without_times(lines):
    """What was written whole, and what was counted; a fold may be cut in two by a flush."""
    whole = [{**line, "t": 0, "started": 0} for line in lines if line["type"] != "folded"]
    counts = Counter()
    for line in lines:
        if line["type"] == "folded":
            counts.update(line["events"])
            counts["iterations"] += line["iterations"]
    return whole, counts


def loop(steps):
    model, x = torch.nn.Linear(4, 1), torch.randn(2, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        yield


def test_rounds_that_were_only_ticked_off_are_in_the_file_before_the_loop_ends(tmp_path):
    writer = TraceWriter(tmp_path / "t.jsonl", Header("0", time.time()))
    with zerograd.watch(policy="collect", trace=writer) as watching:
        for _ in loop(190):
            pass
        assert watching._recorder.ride is not None
        deadline = time.monotonic() + 60  # ten times a second, its thread says
        while written(tmp_path / "t.jsonl") != set(range(190)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    writer.close()


def written(path):
    """Return the rounds whose events are in the file; its last line may be half a line."""
    whole = path.read_text().rpartition("\n")[0]
    lines = map(json.loads, whole.splitlines())
    return {line["iteration"] for line in lines if line["type"] == "event"}


def test_a_fault_in_the_traces_thread_ends_the_watching_with_one_line(tmp_path, capsys):
    writer = TraceWriter(tmp_path / "t.jsonl", Header("0", time.time()))
    with zerograd.watch(policy="collect", trace=writer) as watching:
        training = loop(600)
        for _ in range(190):
            next(training)

        def broken(going, *, whole_laps):
            raise RuntimeError("injected")

        watching._recorder.laps._tell = broken
        writer.flush()
        for _ in training:
            pass
    writer.close()
    assert capsys.readouterr().err.count("watching ended by a fault of its own") == 1
