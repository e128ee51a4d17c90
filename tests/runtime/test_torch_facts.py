"""Facts about torch that the live witness rests on: a new torch fails here first."""

from __future__ import annotations

import importlib
import inspect
import logging

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_pre_hook  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from zerograd.runtime import engine, torch_facts  # noqa: E402


def filled(**options):
    model = nn.Linear(3, 1, **options)
    model(torch.ones(2, 3)).sum().backward()
    return model


def test_zero_grad_sets_none_unless_told_otherwise():
    model = filled()
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    assert model.weight.grad is None


def test_the_engine_asks_its_logger_before_each_backward_and_undoes_its_hooks_after():
    code = torch.autograd.graph._engine_run_backward.__code__
    assert {"log", "getEffectiveLevel", "_register_logging_hooks_on_whole_graph"} <= set(
        code.co_names
    )
    assert "_engine_run_backward" in torch.autograd.backward.__code__.co_names
    assert "_engine_run_backward" in torch.autograd.grad.__code__.co_names


def test_the_stand_in_is_called_around_backward_and_not_around_grad():
    heard = []

    def begin(roots):
        heard.append("begin")
        return lambda: heard.append("end")

    patches = engine.engine_patches(begin)
    before = [(place, name, getattr(place, name)) for place, name, _ in patches]
    try:
        for place, name, value in patches:
            setattr(place, name, value)
        x = torch.ones((), requires_grad=True)
        (2 * x).backward()
        assert heard == ["begin", "end"]
        torch.autograd.grad(2 * x, x)
        assert heard == ["begin", "end"]
        assert torch.autograd.graph.log.name == "torch.autograd.graph"
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def test_an_engine_without_a_logger_is_wrapped_instead():
    heard = []

    def begin(roots):
        heard.append("begin")
        return lambda: heard.append("end")

    patches = engine._engine_wrapper(begin)
    before = [(place, name, getattr(place, name)) for place, name, _ in patches]
    try:
        for place, name, value in patches:
            setattr(place, name, value)
        x = torch.ones((), requires_grad=True)
        (2 * x).backward()
        torch.autograd.grad(2 * x, x)
        assert heard == ["begin", "end"]
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def test_debug_logging_of_the_engine_still_works(caplog):
    from zerograd import watch

    with caplog.at_level(logging.DEBUG, logger="torch.autograd.graph"):
        with watch(policy="collect") as watching:
            filled()
        assert watching.metrics()["zerograd/backwards"] == 1
    assert "Executing" in caplog.text


def test_debug_logging_may_begin_while_a_loop_is_ticked_off(caplog):
    from zerograd import watch
    from zerograd.runtime import hooks

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()

    with watch(policy="collect"):
        train(100)
        assert hooks._ride is not None
        with caplog.at_level(logging.DEBUG, logger="torch.autograd.graph"):
            train(1)
        assert "Executing" in caplog.text
        caplog.clear()
        train(1)
        assert "Executing" not in caplog.text


def test_accumulating_moves_the_counter_and_keeps_the_object():
    model = filled()
    grad, version = model.weight.grad, model.weight.grad._version
    model(torch.ones(2, 3)).sum().backward()
    assert model.weight.grad is grad
    assert grad._version == version + 1


def test_a_write_through_data_moves_no_counter():
    grad = filled().weight.grad
    version = grad._version
    grad.data.zero_()
    assert grad._version == version


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
def test_a_step_leaves_no_mark_on_the_gradient(options):
    model = filled()
    version = model.weight.grad._version
    torch.optim.Adam(model.parameters(), **options).step()
    assert model.weight.grad._version == version


def test_unscaling_moves_no_counter():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(2, 3)).sum()).backward()
    version = model.weight.grad._version
    scaler.unscale_(optimizer)
    assert model.weight.grad._version == version


def test_clip_grad_norm_hands_a_list_to_an_inner_function():
    source = inspect.getsource(nn.utils.clip_grad_norm_)
    assert "_clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)" in source


def test_step_hooks_get_the_optimizer_among_the_arguments():
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    seen = []
    handle = register_optimizer_step_pre_hook(lambda *call: seen.append(call) and None)
    try:
        model = filled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.step()
    finally:
        handle.remove()
    ((given, args, kwargs),) = seen
    assert given is optimizer
    assert args == (optimizer,)
    assert kwargs == {}


def test_a_weak_reference_to_a_gradient_lasts_as_long_as_the_gradient():
    import weakref

    model = filled()
    ref = weakref.ref(model.weight.grad)
    assert ref() is model.weight.grad
    model.weight.grad = None
    assert ref() is None


def test_zero_grad_is_disabled_for_compile_and_caches_that_on_the_function():
    plain = torch.optim.Optimizer.zero_grad.__wrapped__
    model = filled()
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    assert "__dynamo_disable" in vars(plain)


def test_leaves_are_found_under_a_graph():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    x = torch.ones(2, 3, requires_grad=True)
    leaves = torch_facts.leaves_of((model(x).sum(),))[0]
    assert {id(leaf) for leaf in leaves} == {id(x), *(id(p) for p in model.parameters())}


def test_a_mark_on_the_graph_survives_division():
    x = torch.ones((), requires_grad=True)
    scaled = 3 * x
    torch_facts.mark_scaled(scaled, "scaler#1")
    assert torch_facts.scaler_of((scaled / 4,)) == "scaler#1"
    assert torch_facts.scaler_of((5 * x,)) == ""


def test_a_factor_under_the_root_is_seen_but_not_the_scalers():
    x = torch.ones(3, requires_grad=True)
    loss = x.pow(2).mean()
    assert not torch_facts.is_weighted((loss,), given=False, scaled=False)
    assert torch_facts.is_weighted((loss / 4,), given=False, scaled=False)
    assert not torch_facts.is_weighted((loss * 1024,), given=False, scaled=True)
    assert torch_facts.is_weighted((loss / 4 * 1024,), given=False, scaled=True)
    assert torch_facts.is_weighted((loss,), given=True, scaled=False)


def test_norms_of_dense_sparse_and_half_gradients():
    with torch.sparse.check_sparse_tensor_invariants(enable=False):  # older torch warns else
        sparse = torch.sparse_coo_tensor([[0, 0]], [3.0, 1.0], (5,))
    grads = [torch.full((4,), 2.0), sparse, torch.full((4,), 1.0, dtype=torch.bfloat16)]
    assert torch_facts.norms(grads) == pytest.approx([4.0, 4.0, 2.0])


def test_what_runs_before_a_step_and_after_it_can_be_told_from_the_step():
    told = {}

    class Own(torch.optim.SGD):
        def step(self, closure=None):
            told["step"] = torch_facts.is_in_step_hook(self)

    def tell(name):
        return lambda opt, args, kwargs: told.update({name: torch_facts.is_in_step_hook(opt)})

    optimizer = Own(filled().parameters(), lr=0.1)
    assert not torch_facts.has_step_hooks(optimizer)
    optimizer.register_step_pre_hook(tell("before"))
    optimizer.register_step_post_hook(tell("after"))
    assert torch_facts.has_step_hooks(optimizer)
    optimizer.step()
    assert told == {"before": True, "step": False, "after": False}
    assert not torch_facts.is_in_step_hook(optimizer)


@pytest.mark.parametrize(
    "values",
    [
        torch.full((3,), 1e-38),  # its squares are zero in single precision
        torch.full((3,), 1e-60, dtype=torch.float64),
        torch.full((3,), 2j),  # all of it in the imaginary part
        torch.full((3,), 0.25, dtype=torch.float8_e4m3fn),
        torch.full((3,), 0.25, dtype=torch.bfloat16),
    ],
    ids=lambda values: str(values.dtype),
)
def test_what_is_there_has_a_norm(values):
    (norm,) = torch_facts.norms([values])
    assert norm == pytest.approx(3**0.5 * abs(complex(values[0])), rel=1e-6, abs=0)
    assert torch_facts.norms([torch.zeros_like(values), values]) == [0.0, norm]


def test_a_step_that_calls_its_base_class_has_hooks_around_both():
    around = []

    class Own(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    parameter = nn.Parameter(torch.ones(1))
    torch.optim.SGD([parameter], lr=0.1)
    own = Own([parameter], lr=0.1)
    handle = register_optimizer_step_pre_hook(
        lambda optimizer, *_: around.append(torch_facts.steps_around(id(optimizer)))
    )
    try:
        own.step()
    finally:
        handle.remove()
    assert around == [1, 2]
    assert torch_facts.steps_around(id(own)) == 0


def test_a_default_device_is_a_mode_that_overhears_nothing_of_the_users():
    class Mode(TorchFunctionMode):
        pass

    assert not torch_facts.is_overheard()
    with torch.device("cpu"):
        assert not torch_facts.is_overheard()
        with Mode():
            assert torch_facts.is_overheard()


def test_modules_are_kept_out_of_graphs_by_one_pattern_for_all(monkeypatch):
    rules = importlib.import_module("torch._dynamo.trace_rules")
    compiled = []
    compile_all = rules._recompile_re
    monkeypatch.setattr(rules, "_recompile_re", lambda: compiled.append(compile_all()))
    before = list(rules.SKIP_DIRS)
    undo = torch_facts.keep_out_of_graphs("zerograd.lab.page", "zerograd.lab.cards")
    assert len(compiled) == 1
    assert all(
        rules.SKIP_DIRS_RE.match(importlib.import_module(f"zerograd.lab.{name}").__file__)
        for name in ("page", "cards")
    )
    undo()
    assert before == rules.SKIP_DIRS


def test_each_collective_is_counted_by_its_process_group():
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch without gloo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group = dist.new_group([0])
        counts = [torch_facts.exchanges()]
        ones = torch.ones(3)
        for act in (
            lambda: dist.all_reduce(ones),
            lambda: dist.all_reduce(ones, group=group),
            lambda: dist.broadcast(ones, 0),
            lambda: dist.all_gather([ones.clone()], ones),
            lambda: dist.all_reduce(ones, async_op=True).wait(),
        ):
            act()
            counts.append(torch_facts.exchanges())
        assert [count - counts[0] for count in counts] == [0, 1, 2, 3, 4, 5]
    finally:
        dist.destroy_process_group()
