"""`watch` as people use it: policies, places, names, counts, narrowing, comments, notebooks."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import zerograd  # noqa: E402
from zerograd import GradientError, GradientWarning, watch  # noqa: E402
from zerograd.errors import UsageError  # noqa: E402
from zerograd.runtime.sanitizer import active  # noqa: E402


def parts():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train(model, optimizer, steps=5, *, clear=False):
    for _ in range(steps):
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()  # the faulty line
        if clear:
            optimizer.zero_grad()


def faulty_line():
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith("# the faulty line"))


def codes(watching):
    return [finding.rule.code for finding in watching.findings]


def test_a_warning_is_issued_at_the_users_line():
    with pytest.warns(GradientWarning) as caught, watch():
        train(*parts())
    (one,) = caught
    assert one.filename == __file__
    assert one.lineno == faulty_line()
    assert str(one.message).startswith("ZG101 stale-gradient: optimizer.step() uses gradients")


def test_a_warning_filter_turns_it_into_an_exception():
    model, optimizer = parts()
    with warnings.catch_warnings(), pytest.raises(GradientWarning), watch() as watching:
        warnings.simplefilter("error")
        train(model, optimizer)
    assert watching.steps == 2


def test_raise_raises_at_the_offending_line_before_the_step_is_taken():
    model, optimizer = parts()
    with watch(policy="raise"):
        train(model, optimizer, steps=1)
        before = [p.detach().clone() for p in model.parameters()]
        with pytest.raises(GradientError, match="ZG101") as caught:
            train(model, optimizer, steps=1)
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert caught.traceback[-1].path.name != __file__
    assert caught.value.finding.spot.line == faulty_line()
    assert caught.value.exit_code == 1


def step_both(g, d, generator, judge):
    """One round of a GAN in which what the generator's loss leaves in the judge is not cleared."""
    g.zero_grad()
    judge(generator(torch.ones(1, 2))).sum().backward()
    g.step()
    judge(torch.ones(1, 2)).sum().backward()
    d.step()
    d.zero_grad()


def gan():
    generator, judge = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    g = torch.optim.SGD(generator.parameters(), lr=0.1)
    return g, torch.optim.SGD(judge.parameters(), lr=0.1), generator, judge


@pytest.mark.parametrize(("policy", "kind"), [("raise", GradientError), ("warn", GradientWarning)])
def test_a_leak_is_raised_at_the_step_it_goes_into_the_next_time_and_not_within_a_backward(
    policy, kind
):
    parts = gan()
    with warnings.catch_warnings(), watch(policy=policy) as watching:
        warnings.simplefilter("error")
        step_both(*parts)
        with pytest.raises(kind, match="ZG201") as caught:
            step_both(*parts)
    lines = [entry.lineno + 1 for entry in caught.traceback if entry.name == "step_both"]
    assert lines == [finding.spot.line for finding in watching.findings]
    assert "backward" not in [entry.name for entry in caught.traceback]


@pytest.mark.parametrize(("policy", "kind"), [("raise", GradientError), ("warn", GradientWarning)])
def test_a_leak_that_nothing_comes_after_is_raised_as_the_watch_ends(policy, kind):
    with warnings.catch_warnings(), pytest.raises(kind, match="ZG201"):
        warnings.simplefilter("error")
        with watch(policy=policy) as watching:
            step_both(*gan())
    assert [finding.rule.code for finding in watching.findings] == ["ZG201"]


def test_what_is_raised_where_a_finding_is_told_comes_no_sooner_than_an_error_would():
    def tell(finding):
        raise LookupError(finding.rule.code)

    parts = gan()
    with watch(policy="collect", on_finding=tell):
        step_both(*parts)
        with pytest.raises(LookupError, match="ZG201") as caught:
            step_both(*parts)
    assert "backward" not in [entry.name for entry in caught.traceback]


def test_the_first_finding_comes_with_the_second_step():
    seen = []
    model, optimizer = parts()
    with watch(policy="collect", on_finding=seen.append):
        train(model, optimizer, steps=1)
        assert seen == []
        train(model, optimizer, steps=1)
        assert [finding.rule.code for finding in seen] == ["ZG101"]


def test_one_finding_for_a_fault_with_a_count():
    with watch(policy="collect") as watching:
        train(*parts(), steps=300)
    (finding,) = watching.findings
    assert finding.live.count == 299
    assert finding.live.step == 1
    assert finding.to_json()["count"] == 299


def test_a_finding_names_parameters_owner_and_the_stale_share():
    with watch(policy="collect") as watching:
        train(*parts())
    (finding,) = watching.findings
    assert finding.owner == "optimizer"
    assert finding.live.parameters == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert 0 < finding.live.share <= 1
    assert [step.code for step in finding.trail] == [
        "optimizer.step()",
        "model(torch.randn(4, 3)).pow(2).mean().backward()",
        "optimizer.step()",
    ]


def test_optimizers_that_step_within_a_backward_make_no_turns_of_their_own():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    own = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}
    for p in net.parameters():
        p.register_post_accumulate_grad_hook(lambda p: own[p].step())
    with zerograd.watch(policy="collect") as watching:
        for _ in range(3):
            net(torch.randn(8, 4)).pow(2).mean().backward()
    (finding,) = watching.findings
    assert (finding.rule.code, finding.live.step) == ("ZG101", 1)


@pytest.mark.parametrize("depth", [2, 12], ids=["few", "taken as one"])
def test_a_hook_that_clears_before_its_optimizer_steps_loses_the_gradient(depth):
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(depth)))
    own = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}

    def hook(p):
        own[p].zero_grad()
        own[p].step()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(hook)
    with zerograd.watch(policy="collect") as watching:
        for _ in range(4):
            net(torch.randn(8, 4)).pow(2).mean().backward()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG102"
    assert "between backward() and own[p].step()" in finding.message
    assert len(finding.live.parameters) == 2 * depth
    assert [each.code for each in finding.trail] == [
        *("net(torch.randn(8, 4)).pow(2).mean().backward()", "own[p].zero_grad()"),
        "own[p].step()",
    ]


def test_a_hook_that_clears_after_its_optimizer_has_stepped_is_right():
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    own = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}

    def hook(p):
        own[p].step()
        own[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(hook)
    with zerograd.watch(policy="collect") as watching:
        for _ in range(4):
            net(torch.randn(8, 4)).pow(2).mean().backward()
    assert watching.findings == []


def test_metrics_count_what_happened():
    with watch(policy="collect") as watching:
        train(*parts(), steps=200, clear=True)
    assert watching.metrics() | {"zerograd/looks": 0} == {
        "zerograd/findings": 0,
        "zerograd/steps": 200,
        "zerograd/backwards": 200,
        "zerograd/clears": 200,
        "zerograd/iterations": 200,
        "zerograd/looks": 0,
    }


def test_metrics_go_into_a_real_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from torch.utils.tensorboard import SummaryWriter

        model, optimizer = parts()
        with SummaryWriter(tmp_path) as writer, watch(policy="collect") as watching:
            for step in range(4):
                train(model, optimizer, steps=1)
                for name, value in watching.metrics().items():
                    writer.add_scalar(name, value, step)
        read = EventAccumulator(str(tmp_path))
        read.Reload()
    assert [event.value for event in read.Scalars("zerograd/ZG101")] == [1, 2, 3]


def test_a_watch_that_starts_late_misses_nothing_that_follows():
    model, optimizer = parts()
    train(model, optimizer, steps=3, clear=True)
    with watch(policy="collect") as watching:
        train(model, optimizer, steps=3, clear=True)
        assert codes(watching) == []
        assert watching.metrics()["zerograd/clears"] == 3
        train(model, optimizer, steps=3)
    assert codes(watching) == ["ZG101"]


def test_gradients_from_before_the_watch_accuse_nobody():
    model, optimizer = parts()
    train(model, optimizer, steps=2)
    with watch(policy="collect") as watching:
        train(model, optimizer, steps=1)
    assert codes(watching) == []


def test_a_watch_narrowed_to_one_model_is_blind_to_others():
    (right, right_opt), (wrong, wrong_opt) = parts(), parts()
    with watch(right, policy="collect") as narrow, watch(policy="collect") as wide:
        train(wrong, wrong_opt)
        train(right, right_opt, clear=True)
    assert codes(narrow) == []
    assert codes(wide) == ["ZG101"]
    with watch(wrong_opt, policy="collect") as narrow:
        train(wrong, wrong_opt)
    assert codes(narrow) == ["ZG101"]


def test_it_takes_modules_and_optimizers_only():
    with pytest.raises(UsageError, match="watch\\(int\\)"):
        watch(3)
    with pytest.raises(UsageError, match="policy='shout'"):
        watch(policy="shout")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on_finding": 3}, "on_finding=3: it takes a function that is called with each finding."),
        ({"select": 5}, "select=5: it takes rules by code, beginning of a code, or name"),
        ({"ignore": [5]}, "ignore=[5]: it takes rules by code, beginning of a code, or name"),
        (
            {"foo": 3},
            "watch(foo=3): it takes policy, select, ignore, show_notes, on_finding and trace.",
        ),
        ({"on_findings": 3}, "watch(on_findings=3): did you mean on_finding?"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named_at_the_call(given, said):
    with pytest.raises(UsageError) as refused:
        watch(**given)
    assert str(refused.value).startswith(said)


def test_a_path_is_no_writer_of_a_trace():
    with pytest.raises(UsageError, match="zerograd run --trace FILE"):
        watch(trace="run.jsonl")


def test_as_a_decorator():
    watching = watch(policy="collect")

    @watching
    def main(steps):
        """Train."""
        train(*parts(), steps=steps)
        return steps

    assert main(4) == 4
    assert main.__doc__ == "Train."
    assert codes(watching) == ["ZG101"]


def run_to_its_end(coroutine):
    """Drive it by hand: a test of a browser before this one may have left its loop running."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value


def test_as_a_decorator_of_what_gives_way():
    import asyncio
    import inspect

    watching = watch(policy="collect")

    @watching
    async def awaited():
        await asyncio.sleep(0)
        train(*parts(), steps=4)
        return 4

    @watching
    def generated():
        sent = yield 1
        train(*parts(), steps=4)
        return sent

    @watching
    async def iterated():
        yield 1
        train(*parts(), steps=4)
        yield 2

    async def all_of(function):
        return [each async for each in function()]

    assert inspect.iscoroutinefunction(awaited)
    assert run_to_its_end(awaited()) == 4
    assert watching.findings[0].live.count == 3
    running = generated()
    assert next(running) == 1
    with pytest.raises(StopIteration, match="sent"):
        running.send("sent")
    assert watching.findings[0].live.count == 6
    assert run_to_its_end(all_of(iterated)) == [1, 2]
    assert watching.findings[0].live.count == 9
    assert active() is None


def test_a_generator_that_is_given_up_leaves_nothing_on():
    watching = watch(policy="collect")

    @watching
    def generated():
        yield 1
        yield 2

    running = generated()
    next(running)
    assert active() is watching
    running.close()
    assert active() is None


def test_select_and_ignore():
    with watch(policy="collect", ignore=["stale-gradient"]) as watching:
        train(*parts())
    assert codes(watching) == []
    with watch(policy="collect", select=["ZG4"]) as watching:
        train(*parts())
    assert codes(watching) == []
    with watch(policy="collect", select="ZG402,stale-gradient") as watching:
        train(*parts())
    assert codes(watching) == ["ZG101"]


def test_active_is_the_innermost_watch():
    assert active() is None
    with watch(policy="collect") as outer:
        assert active() is outer
        with watch(policy="collect") as inner:
            assert active() is inner
        assert active() is outer
    assert active() is None


def test_an_allow_comment_is_honoured():
    model, optimizer = parts()
    with watch(policy="raise"):
        for _ in range(4):
            model(torch.randn(4, 3)).pow(2).mean().backward()
            optimizer.step()  # zerograd: allow[stale-gradient] on purpose


def test_an_error_about_an_absent_gradient_is_explained():
    model, _ = parts()
    with pytest.raises(AttributeError, match="'NoneType'") as caught, watch() as watching:
        for p in model.parameters():
            p.grad.zero_()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG104"
    assert finding.message == "p.grad is used where it is or may be None"
    assert finding.advice == "test `is not None` first, or clear with zero_grad()"
    if sys.version_info >= (3, 11):
        assert "ZG104 absent-gradient-used" in caught.value.__notes__[0]


def test_a_type_error_about_an_absent_gradient_is_explained():
    model, _ = parts()
    with pytest.raises(TypeError), watch() as watching:
        for p in model.parameters():
            p.grad += torch.ones_like(p)
    assert codes(watching) == ["ZG104"]
    (finding,) = watching.findings  # zero_grad() would be no mend: it may well be what left None
    assert finding.advice == (
        "use it after the backward() that fills it, or test `is not None` first"
    )


def test_other_errors_are_left_alone():
    with pytest.raises(AttributeError) as caught, watch() as watching:
        None.zero_()
    assert codes(watching) == []
    assert not getattr(caught.value, "__notes__", [])


def test_inspect_tells_the_phases():
    model, optimizer = parts()

    def gradients():
        return {row.gradient for row in zerograd.inspect(model, optimizer)}

    with watch(policy="collect"):
        assert gradients() == {"absent"}
        model(torch.randn(4, 3)).pow(2).mean().backward()
        assert gradients() == {"fresh"}
        optimizer.step()
        assert gradients() == {"spent"}
        model(torch.randn(4, 3)).pow(2).mean().backward()
        assert gradients() == {"stale"}
        rows = zerograd.inspect(model, optimizer)
        assert rows[0].owner == "optimizer"
        assert rows[0].norm > 0
        optimizer.zero_grad(set_to_none=False)
        assert gradients() == {"zero"}
    assert "<td>0.weight</td>" in rows._repr_html_()
    assert "0.weight" in str(rows)


def test_assert_cleared_is_for_peoples_own_tests():
    model, optimizer = parts()
    zerograd.assert_cleared(model)
    model(torch.randn(4, 3)).sum().backward()
    with pytest.raises(AssertionError, match=r"not cleared: 0\.weight"):
        zerograd.assert_cleared(model, optimizer)
    optimizer.zero_grad()
    zerograd.assert_cleared(model)


def test_a_new_order_of_calls_is_seen_at_once_however_long_the_old_one_ran():
    model, optimizer = parts()
    with watch(policy="collect") as watching:
        train(model, optimizer, steps=500, clear=True)
        assert codes(watching) == []
        for step in range(500):
            model(torch.randn(4, 3)).pow(2).mean().backward()
            optimizer.step()
            if step != 250:
                optimizer.zero_grad()
        (finding,) = watching.findings
    assert finding.live.step in (750, 751)
    assert finding.live.count == 1


def test_work_by_hand_that_ends_is_noticed_within_sixteen_rounds():
    model, optimizer = parts()
    with watch(policy="collect") as watching:
        for step in range(400):
            model(torch.randn(4, 3)).pow(2).mean().backward()
            optimizer.step()
            if step < 300:
                for p in model.parameters():
                    p.grad = None
    (finding,) = watching.findings
    assert finding.rule.code == "ZG101"
    assert 300 <= finding.live.step <= 318


class Sink:
    def __init__(self):
        self.events = []

    def write(self, event, *, iteration, extra=None):
        self.events.append((event.kind.value, event.owner, iteration))


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_trace_gets_every_event_in_the_users_names(by_hand):
    sink = Sink()
    model, optimizer = parts()
    with watch(policy="collect", trace=sink):
        for _ in range(200):
            if by_hand:
                for p in model.parameters():
                    p.grad = None
            else:
                optimizer.zero_grad()
            model(torch.randn(4, 3)).pow(2).mean().backward()
            optimizer.step()
    kinds = [kind for kind, _, _ in sink.events]
    assert kinds.count("backward") == kinds.count("step") == 200
    assert kinds.count("clear") >= 199
    steps = [(owner, iteration) for kind, owner, iteration in sink.events if kind == "step"]
    assert steps == [("optimizer", n) for n in range(200)]


def test_more_kinds_of_history_than_can_be_told_apart_are_said_not_to_be_checked():
    experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(100))
    optimizer = torch.optim.SGD(experts.parameters(), lr=0.1)
    torch.manual_seed(0)
    with watch(policy="collect") as watching:
        for _ in range(60):
            optimizer.zero_grad()
            x = torch.randn(8, 4)
            sum(experts[n](x) for n in torch.randperm(100)[:8].tolist()).sum().backward()
            optimizer.step()
    assert codes(watching) == []
    (said,) = watching.not_checked
    assert "histories differ" in said


NOTEBOOK = [
    """
    import torch, zerograd
    model = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = zerograd.watch(policy="collect").start()
    """,
    """
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()

        opt.step()
    """,
    """
    watching.stop()
    (found,) = watching.findings
    print(found.rule.code, found.spot.cell, found.spot.line, found.spot)
    zerograd.inspect(model)
    """,
]


def test_in_a_notebook_a_watch_lasts_over_cells_and_names_cell_and_line():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(text).strip()) for text in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = notebook.cells[2].outputs
    assert outputs[0]["text"].split()[:3] == ["ZG101", "2", "4"]
    assert "cell 2:4" in outputs[0]["text"]
    assert "<table>" in outputs[1]["data"]["text/html"]


def test_importing_the_package_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; import zerograd; print(zerograd.__version__)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_copies_of_a_function_in_two_files_are_two_places():
    code = "def train():\n    model(x).sum().backward()\n    opt.step()\n"
    model, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    made = []
    for name in ("first_copy.py", "second_copy.py"):
        space = {"model": model, "x": x, "opt": opt}
        exec(compile(code, name, "exec"), space)
        made.append(space["train"])
    with zerograd.watch(policy="collect") as watching:
        for train in made:
            opt.zero_grad()
            train()
            train()
    places = {finding.spot.path for finding in watching.findings}
    assert places == {"first_copy.py", "second_copy.py"}


def test_a_step_that_a_pool_takes_is_named_where_its_optimizer_was_made():
    model = nn.Linear(2, 1)
    with zerograd.watch(policy="collect") as watching, ThreadPoolExecutor(1) as pool:
        made = torch.optim.SGD(model.parameters(), lr=0.1)
        line = sys._getframe().f_lineno - 1
        for _ in range(4):
            model(torch.ones(1, 2)).sum().backward()
            pool.submit(made.step).result()
    assert [(each.rule.code, each.spot.line) for each in watching.findings] == [("ZG101", line)]
    assert watching.findings[0].spot.path == __file__


class Sums(torch.amp.GradScaler):
    """A scaler whose update is its own, and whose scale hands on to torch's."""

    def scale(self, outputs):
        return super().scale(outputs)

    def update(self, new_scale=None):
        self._scale.fill_(self._scale.item())
        self._per_optimizer_states.clear()


@pytest.mark.parametrize(("updates", "codes"), [(True, []), (False, ["ZG302"])])
def test_a_scaler_with_methods_of_its_own_is_heard(updates, codes):
    def train():
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = Sums("cpu", init_scale=4.0)
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(net(torch.ones(3, 2)).mean()).backward()
            if updates or not scaler._per_optimizer_states:
                scaler.step(optimizer)
            if updates:
                scaler.update()

    with zerograd.watch(policy="collect") as watch:
        train()
    assert [each.rule.code for each in watch.findings] == codes
    assert "is_heard" not in vars(Sums.update)


def test_a_scaler_whose_class_is_made_under_watch_is_heard_and_left_as_it_was():
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with zerograd.watch(policy="collect") as watch:

        class Fixed(torch.amp.GradScaler):
            def update(self, new_scale=None):
                self._per_optimizer_states.clear()

        scaler = Fixed("cpu", init_scale=4.0)
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(net(torch.ones(3, 2)).mean()).backward()
            scaler.update()
            scaler.step(optimizer)
    # That no update follows the last step is the same fault.
    assert [each.rule.code for each in watch.findings] == ["ZG305"]
    assert "is_heard" not in vars(Fixed.update)
    assert "__init_subclass__" not in vars(torch.amp.GradScaler)


def test_what_torch_warns_of_names_the_line_that_it_names_without_us():
    net = torch.nn.Linear(2, 1)
    used = (each for each in net.parameters())
    assert list(used)
    with zerograd.watch(policy="collect"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.amp.GradScaler("cuda")
        net(torch.ones(1, 2)).sum().backward()
        torch.nn.utils.clip_grad_norm_(used, 1.0)
        torch.nn.utils.clip_grad_norm(net.parameters(), 1.0)
    expected = 2 if torch.cuda.is_available() else 3
    assert [each.filename for each in told] == [__file__] * expected
