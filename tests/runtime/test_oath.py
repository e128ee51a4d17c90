"""The sanitizer's oath: what it must never do to the training it watches."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.amp.grad_scaler import GradScaler  # noqa: E402
from torch.nn.utils import clip_grad  # noqa: E402
from torch.optim import optimizer as optimizer_module  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_map_only  # noqa: E402

import zerograd  # noqa: E402
from zerograd.runtime import hooks  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_stays_patched():
    yield
    assert not hooks.is_patched()


def small_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2))


def train(context, make_optimizer, steps=120, *, clear=True):
    """Return every loss and the last parameters of a run with randomness in it."""
    model = small_model()
    optimizer = make_optimizer(model.parameters())
    losses = []
    with context:
        for step in range(steps):
            if clear:
                optimizer.zero_grad()
            loss = model(torch.randn(8, 6)).pow(2).mean()
            loss.backward()
            if step % 3 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach().clone())
    return torch.stack(losses), [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("clear", [True, False], ids=["right", "faulty"])
@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
        lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    ],
    ids=["sgd", "foreach", "fused"],
)
def test_parameters_and_losses_are_bit_equal(make, clear):
    plain = train(nullcontext(), make, clear=clear)
    watched = train(zerograd.watch(policy="collect"), make, clear=clear)
    assert plain[0].isfinite().all()
    assert torch.equal(plain[0], watched[0])
    assert all(torch.equal(a, b) for a, b in zip(plain[1], watched[1], strict=True))


def patch_points():
    """Everything on torch that a watch replaces or adds to."""
    graph = torch.autograd.graph
    return {
        "log": graph.log,
        "register": graph._register_logging_hooks_on_whole_graph,
        "engine": torch.autograd._engine_run_backward,
        "zero_grad": torch.optim.Optimizer.__dict__["zero_grad"],
        "add_param_group": torch.optim.Optimizer.__dict__["add_param_group"],
        "module": nn.Module.__dict__["zero_grad"],
        "ddp": nn.parallel.DistributedDataParallel.__dict__["_post_forward"],
        **{name: GradScaler.__dict__[name] for name in ("scale", "unscale_", "step", "update")},
        "clip": clip_grad._clip_grads_with_norm_,
        "clip_value": clip_grad.clip_grad_value_,
        "public clip": nn.utils.clip_grads_with_norm_,
        "public clip_value": nn.utils.clip_grad_value_,
        "pre": dict(optimizer_module._global_optimizer_pre_hooks),
        "post": dict(optimizer_module._global_optimizer_post_hooks),
        "modules": dict(nn.modules.module._global_module_registration_hooks),
        "parameters": dict(nn.modules.module._global_parameter_registration_hooks),
    }


class Stop(Exception):
    pass


@pytest.mark.parametrize("ending", [None, Stop, SystemExit, KeyboardInterrupt])
def test_all_patches_come_off(ending):
    before = patch_points()
    with pytest.raises(ending) if ending else nullcontext(), zerograd.watch(policy="collect"):
        assert patch_points() != before
        train(nullcontext(), lambda p: torch.optim.SGD(p, lr=0.1), steps=3)
        if ending:
            raise ending
    assert patch_points() == before


def test_all_patches_come_off_after_nested_and_repeated_use():
    before = patch_points()
    outer = zerograd.watch(policy="collect")
    for _ in range(2):
        with outer, zerograd.watch(policy="collect") as inner, outer:
            train(nullcontext(), lambda p: torch.optim.SGD(p, lr=0.1), steps=4, clear=False)
            assert patch_points() != before
        assert [finding.rule.code for finding in inner.findings] == ["ZG101"]
    assert patch_points() == before
    outer.stop()
    assert [finding.rule.code for finding in outer.findings] == ["ZG101"]


def test_a_patch_that_someone_wrapped_meanwhile_hands_on():
    original = torch.optim.Optimizer.zero_grad
    try:
        with zerograd.watch(policy="collect"):
            ours = torch.optim.Optimizer.zero_grad
            torch.optim.Optimizer.zero_grad = lambda self, *a, **k: ours(self, *a, **k)
        model = small_model()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(2, 6)).sum().backward()
        opt.zero_grad()
        assert all(p.grad is None for p in model.parameters())
    finally:
        torch.optim.Optimizer.zero_grad = original


def test_no_tensor_is_kept_alive():
    def run():
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses, grads = [], []
        for _ in range(80):
            loss = model(torch.randn(8, 6)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(weakref.ref(loss))
            grads += [weakref.ref(p.grad) for p in model.parameters()]
            optimizer.zero_grad()
            del loss
            assert not [ref() for ref in (*losses, *grads) if ref() is not None]
        return [weakref.ref(p) for p in model.parameters()] + [weakref.ref(optimizer)]

    with zerograd.watch(policy="collect"):
        kept = run()
        gc.collect()
        assert not [ref() for ref in kept if ref() is not None]


def test_no_tensor_is_kept_alive_by_a_finding():
    with zerograd.watch(policy="collect") as watching:

        def run():
            model = small_model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                loss = model(torch.randn(8, 6)).pow(2).mean()
                loss.backward()
                optimizer.step()
            return [weakref.ref(loss), weakref.ref(model), weakref.ref(optimizer)]

        kept = run()
        gc.collect()
        assert watching.findings
        assert not [ref() for ref in kept if ref() is not None]


def loop(model, optimizer, steps, *, clear):
    for _ in range(steps):
        if clear == "first":
            optimizer.zero_grad()
        model(torch.randn(4, 6)).pow(2).mean().backward()
        optimizer.step()
        if clear == "by hand":
            for p in model.parameters():
                p.grad.data.zero_()


def test_no_device_synchronisation_without_a_suspicion():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with zerograd.watch(policy="collect") as watching:
        loop(model, optimizer, 200, clear="first")
        assert watching.metrics()["zerograd/looks"] == 0


def test_a_place_that_proved_to_clear_by_hand_is_looked_at_ever_more_rarely():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with zerograd.watch(policy="collect") as watching:
        loop(model, optimizer, 1000, clear="by hand")
    assert watching.findings == []
    assert 0 < watching.metrics()["zerograd/looks"] <= 12


def test_no_mode_of_the_users_sees_our_looks():
    def seen(context, clear):
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Listed() as below, ListedAbove() as above, context as watching:
            loop(model, optimizer, 60, clear=clear)  # long enough for a ride, were one allowed
        return below.calls, above.calls, watching

    for clear, codes in (("first", []), ("by hand", []), ("never", ["ZG101"])):
        *plain, _ = seen(nullcontext(), clear)
        *watched, watching = seen(zerograd.watch(policy="collect"), clear)
        assert watched == plain
        assert [each.rule.code for each in watching.findings] == codes
        assert watching.not_checked == []


class Listed(TorchDispatchMode):
    """Lists every operator."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


class ListedAbove(TorchFunctionMode):
    """Lists every function of torch, reads of attributes included."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(getattr(func, "__name__", repr(func)))
        return func(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    """A tensor of another's making, around a plain one."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(cls, lambda each: each.inner, (args, kwargs or {}))
        result = func(*args, **kwargs)
        return tree_map_only(torch.Tensor, cls, result)


@pytest.mark.parametrize("clear, codes", [(True, []), (False, ["ZG101"])])
def test_tensors_of_another_make_are_watched(clear, codes):
    weight = torch.nn.Parameter(Wrapped(torch.ones(3)))
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    with zerograd.watch(policy="collect") as watching:
        for _ in range(4):
            if clear:
                optimizer.zero_grad()
            weight.pow(2).sum().backward()
            optimizer.step()
    assert [each.rule.code for each in watching.findings] == codes
    assert watching.steps == 4 and watching.not_checked == []


@pytest.mark.parametrize("clear, codes", [(True, []), (False, ["ZG101"])])
def test_tensors_without_values_are_watched(clear, codes):
    with FakeTensorMode(), zerograd.watch(policy="collect") as watching:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loop(model, optimizer, 4, clear="first" if clear else "never")
    assert [each.rule.code for each in watching.findings] == codes
    assert watching.steps == 4 and watching.not_checked == []


class Explodes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("from the user's own backward")


def raised(context, act):
    """Return the exception of `act` as the user would print it."""
    try:
        with context:
            act()
    except Exception as error:
        shown = traceback.format_exception(type(error), error, error.__traceback__)
        return [line for line in shown if "in raised" not in line]
    raise AssertionError("nothing was raised")


def fail_in_backward():
    model = small_model()
    Explodes.apply(model(torch.randn(2, 6))).sum().backward()


def fail_in_second_backward():
    loss = small_model()(torch.randn(2, 6)).sum()
    loss.backward()
    loss.backward()


def fail_in_closure():
    model = small_model()

    def closure():
        raise ValueError("from the closure")

    torch.optim.LBFGS(model.parameters()).step(closure)


def fail_in_scaler():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.randn(2, 6)).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def fail_in_clip():
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.full((2,), float("nan"))
    nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize(
    "act",
    [fail_in_backward, fail_in_second_backward, fail_in_closure, fail_in_scaler, fail_in_clip],
)
def test_the_users_exception_and_traceback_are_unchanged(act):
    assert raised(zerograd.watch(policy="collect"), act) == raised(nullcontext(), act)


@pytest.mark.parametrize("act", [fail_in_backward, fail_in_second_backward, fail_in_closure])
def test_a_traceback_caught_inside_the_watch_is_unchanged_too(act):
    plain = raised(nullcontext(), act)
    with zerograd.watch(policy="collect"):
        assert raised(nullcontext(), act) == plain


FAULTS = [
    *("backwards.Backwards.begins", "backwards.Backwards.ends", "clears.Clears.ends"),
    *("steps.Steps.begins", "recorder.Recorder.clips", "recorder.Recorder.holds"),
]


@pytest.mark.parametrize("where", FAULTS)
def test_a_fault_inside_the_witness_disables_it_with_one_line(where, monkeypatch, capsys):
    def broken(*_):
        raise ZeroDivisionError("injected")

    def make(p):
        return torch.optim.SGD(p, lr=0.1)

    plain = train(nullcontext(), make, steps=8)
    before = patch_points()
    monkeypatch.setattr(f"zerograd.runtime.{where}", broken)
    with zerograd.watch(policy="raise") as watching:
        watched = train(nullcontext(), make, steps=8)
        assert patch_points() == before
    assert torch.equal(plain[0], watched[0])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "ZeroDivisionError: injected" in lines[0]
    assert "goes on unwatched" in lines[0]
    assert [f"zerograd: {each}" for each in watching.not_checked] == lines


def test_memory_is_bounded_however_long_the_run():
    """What is kept does not grow from step 2,000 to step 6,000; the bench goes to a million."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.ones(1, 2)

    def steps(count):
        for n in range(count):
            optimizer.zero_grad()
            model(x).sum().backward()
            if n % 7:
                optimizer.step()

    def kept(recorder):
        memo = recorder.memo
        return (
            len(recorder.symbols),
            len(memo._nodes),
            memo._edges,
            len(recorder.sites._known),
            len(recorder.looks._places),
            len(recorder.partition.buckets),
        )

    with zerograd.watch(policy="collect") as watching:
        steps(2000)
        before = kept(watching._recorder)
        steps(4000)
        assert kept(watching._recorder) == before
        assert watching.metrics()["zerograd/backwards"] == 6000


def test_many_optimizers_that_come_and_go_leave_nothing_behind():
    with zerograd.watch(policy="collect") as watching:
        for _ in range(300):
            model = nn.Linear(2, 1)
            inner = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                inner.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                inner.step()
        assert len(watching._recorder.owners.by_name) <= 4
        assert len(watching._recorder.partition.buckets) <= 8
        assert len(watching._recorder.partition) <= 16  # parameters
    assert watching.findings == []


def test_threads_that_train_at_once_do_not_disturb_each_other():
    def work(clear, out):
        torch_model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(torch_model.parameters(), lr=0.01)
        for _ in range(60):
            if clear:
                optimizer.zero_grad()
            torch_model(torch.ones(2, 4)).pow(2).mean().backward()
            optimizer.step()
        out.append(1)

    done: list[int] = []
    with zerograd.watch(policy="collect") as watching:
        threads = [threading.Thread(target=work, args=(True, done)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(done) == 3
    assert watching.findings == []
    assert watching.metrics()["zerograd/steps"] == 180


def test_a_faulty_thread_is_found_beside_right_ones():
    def right():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(40):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).pow(2).mean().backward()
            optimizer.step()

    def wrong():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(40):
            model(torch.ones(2, 4)).pow(2).mean().backward()
            optimizer.step()

    with zerograd.watch(policy="collect") as watching:
        threads = [threading.Thread(target=act) for act in (right, wrong, right)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [finding.rule.code for finding in watching.findings] == ["ZG101"]


def test_switched_off_by_the_environment():
    code = """
        import torch, zerograd
        from zerograd.runtime import hooks
        with zerograd.watch(policy="raise") as watching:
            assert not hooks.is_patched()
            w = torch.nn.Linear(2, 1)
            opt = torch.optim.SGD(w.parameters(), lr=0.1)
            for _ in range(4):
                w(torch.ones(1, 2)).sum().backward()
                opt.step()
        assert watching.findings == []
        print("trained")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "ZEROGRAD": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "trained\n"
