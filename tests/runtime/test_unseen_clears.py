"""Clears that no call tells of, in every spelling, wherever they stand between two calls."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
batches = [torch.randn(4, 4) for _ in range(BATCHES)]

def clear():
    for p in net.parameters():
        if p.grad is not None:
            CLEAR

def fill(x):
    net(x).pow(2).sum().backward()

for i, x in enumerate(batches):
"""

SPELLINGS = {
    "to None": "p.grad = None",
    "zero_": "p.grad.zero_()",
    "data": "p.grad.data.zero_()",
    "detached": "p.grad.detach().mul_(0)",
    "fill": "p.grad.data.fill_(0)",
    "new data": "p.grad.data = torch.zeros_like(p.grad)",
    "numpy": "p.grad.numpy()[...] = 0",
    "foreach": "torch._foreach_zero_([p.grad])",
    "zeros": "p.grad = torch.zeros_like(p)",
}

SILENT = {
    "after the step": "fill(x); opt.step(); clear()",
    "before the backward": "clear(); fill(x); opt.step()",
    "between two backwards": "fill(x); clear(); fill(x); opt.step()",
    "after a second backward": "fill(x); opt.step(); fill(x); clear()",
    "after two backwards and the step": "fill(x); fill(x); opt.step(); clear()",
    "before a step on nothing, each second time": (
        "_ = fill(x) if i % 2 else None; nn.utils.clip_grad_norm_(net.parameters(), 1.0); "
        "opt.step(); clear()"
    ),
    "with a scaler": (
        "scaler.scale(net(x).sum()).backward(); scaler.unscale_(opt); scaler.step(opt); "
        "clear(); scaler.update()"
    ),
}


def findings_of(text, tmp_path, *, batches=75, notes=True):
    path = tmp_path / "program.py"
    path.write_text(text.replace("BATCHES", str(batches)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zerograd.watch(policy="collect", show_notes=notes) as watching:
            exec(compile(path.read_text(), str(path), "exec"), {"__name__": "program"})
    assert watching.not_checked == []
    return [(each.rule.code, each.live.step) for each in watching.findings], watching


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_a_clear_by_hand_is_a_clear(body, spelling, tmp_path):
    text = HEAD.replace("CLEAR", spelling) + f"    {body}\n"
    found, watching = findings_of(text, tmp_path)
    assert found == []
    assert watching.metrics()["zerograd/looks"] < 300  # of 90 iterations; later ever fewer


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_clip_of_what_was_cleared_by_hand_clips_nothing(spelling, tmp_path):
    clip = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"
    text = HEAD.replace("CLEAR", spelling) + f"    clear(); {clip}; fill(x); opt.step()\n"
    found, _ = findings_of(text, tmp_path)
    told = [code for code, _ in found]
    # Gradients assigned by hand may be anything, zeros too.
    assert told == ["ZG304"] or (told == [] and spelling.endswith("zeros_like(p)"))


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_what_is_lost_by_hand_is_told(spelling, tmp_path):
    text = HEAD.replace("CLEAR", spelling) + "    fill(x); clear(); opt.step()\n"
    found, _ = findings_of(text, tmp_path, batches=8)
    assert found == [("ZG102", 2)] or found == [("ZG102", 1)]


PLAINLY_WRITTEN = [
    *(each for name, each in SPELLINGS.items() if name != "numpy"),
    *("p.grad[:] = 0", "p.grad.mul_(0)", "p.grad.copy_(torch.zeros_like(p))"),
    *("nn.init.zeros_(p.grad)", "torch.zero_(p.grad)", "setattr(p, 'grad', None)", "del p.grad"),
]


@pytest.mark.parametrize("spelling", PLAINLY_WRITTEN)
def test_what_is_lost_by_hand_is_told_where_it_is_cleared(spelling, tmp_path):
    text = (
        f"{HEAD}    fill(x)\n    for p in net.parameters():\n        {spelling}\n    opt.step()\n"
    )
    found, watching = findings_of(text.replace("CLEAR", "pass"), tmp_path, batches=8)
    (finding,) = watching.findings
    assert found[0][0] == "ZG102"
    assert text.splitlines()[finding.spot.line - 1].strip() == spelling


def test_zeros_put_into_a_part_of_a_gradient_are_no_clear(tmp_path):
    text = HEAD + "    fill(x)\n    net.weight.grad[:2] = 0\n    opt.step()\n    opt.zero_grad()\n"
    assert findings_of(text.replace("CLEAR", "pass"), tmp_path)[0] == []


@pytest.mark.parametrize("cleared", ["p.grad.numpy()[...] = 0", "g = p.grad; g.zero_()"])
def test_a_clear_whose_line_is_not_found_is_told_as_one_between_backward_and_step(
    cleared, tmp_path
):
    text = f"{HEAD}    fill(x)\n    for p in net.parameters():\n        {cleared}\n    opt.step()\n"
    _, watching = findings_of(text.replace("CLEAR", "pass"), tmp_path, batches=8)
    (finding,) = watching.findings
    assert finding.message.startswith("gradients are cleared between backward() and opt.step()")
    assert finding.advice == "clear after opt.step(), or before backward()"
    assert [each.text for each in finding.trail] == [
        "fills the gradients",
        "finds them cleared, and steps on nothing",
    ]


@pytest.mark.parametrize("spelling", ["p.grad = None", "p.grad.zero_()", "p.grad.data.zero_()"])
def test_a_window_cleared_by_hand_too_often_is_told(spelling, tmp_path):
    body = "    clear(); (net(x).sum() / 2).backward()\n    if i % 2: opt.step()\n"
    found, _ = findings_of(HEAD.replace("CLEAR", spelling) + body, tmp_path, batches=40)
    assert [code for code, _ in found] == ["ZG501"]


@pytest.mark.parametrize("late", [0, 80, 300])
def test_a_clear_by_hand_left_out_from_some_iteration_on_is_told(late, tmp_path):
    body = f"    fill(x); opt.step()\n    if i < {late}: clear()\n"
    text = HEAD.replace("CLEAR", "p.grad.data.zero_()") + body
    found, _ = findings_of(text, tmp_path, batches=late + 70)
    assert [code for code, _ in found] == ["ZG101"]


def test_gradients_that_are_zero_by_nature_are_not_cleared(tmp_path):
    """Nothing passes a dead relu; whoever scales such zeros by hand has cleared nothing."""
    text = HEAD.replace("CLEAR", "p.grad.mul_(0.5)").replace(
        "net(x).pow(2)", "torch.relu(net(x) - 100)"
    )
    for body in ("fill(x); clear(); opt.step(); opt.zero_grad()", "fill(x); opt.step(); clear()"):
        found, _ = findings_of(text + f"    {body}\n", tmp_path)
        assert found == []


def test_the_same_step_on_nothing_is_told_though_another_one_lies_between(tmp_path):
    text = (
        HEAD.replace("CLEAR", "p.grad.zero_()") + "    opt.step(); fill(x); opt.step(); clear()\n"
    )
    found, _ = findings_of(text, tmp_path)
    assert [code for code, _ in found] == ["ZG401"]


def test_a_stale_step_is_told_where_looks_are_always_put_off(tmp_path):
    """Each second stale step follows a clear, so the rare looks could miss it for ever."""
    text = HEAD.replace("CLEAR", "p.grad = None") + (
        "    opt.step()\n    if i % 2: clear()\n"
        "    nn.Linear(4, 1)(x).sum().backward()\n    fill(x)\n"
    )
    found, _ = findings_of(text, tmp_path, batches=60)
    assert [code for code, _ in found] == ["ZG101"]


TASKS = {
    "a loop over tasks": "for t in range(3): net(x)[:, t].pow(2).mean().backward()",
    "a loop over heads": "for head in heads: head(net(x)).pow(2).mean().backward()",
    "a list of losses": "[loss.backward() for loss in (net(x).sum(), net(x).pow(2).sum())]",
    "a helper": "back(net(x).sum()); back(net(-x).sum())",
}
MICRO = {
    "a guard": "net(x).pow(2).mean().backward()\n    if i % 4 < 3: continue",
    "a count": "for _ in range(3): net(torch.randn(4, 4)).pow(2).mean().backward()",
    "pieces": "for part in x.chunk(2): net(part).pow(2).mean().backward()",
    "a helper": "back(net(x).pow(2).mean())\n    if i % 4 < 3: continue",
}
_BACK = "def back(loss):\n    loss.backward()\n\n"
_HEADS = "heads = [nn.Linear(4, 1) for _ in range(3)]\n"


@pytest.mark.parametrize("body", TASKS.values(), ids=TASKS)
def test_losses_of_several_tasks_are_no_window(body, tmp_path):
    text = HEAD.replace("CLEAR", "pass").replace("for i,", _BACK + _HEADS + "for i,")
    found, _ = findings_of(text + f"    {body}\n    opt.step(); opt.zero_grad()\n", tmp_path)
    assert [code for code, _ in found if code == "ZG503"] == []


def test_batches_that_their_own_data_keep_from_the_step_are_no_window(tmp_path):
    small = "torch.randn(4, 4) / (99 if n % 3 == 2 else 1) for n in"
    text = HEAD.replace("CLEAR", "pass").replace("torch.randn(4, 4) for _ in", small)
    body = "net(x).sum().backward()\n    if x.norm() > 1: continue\n    opt.step(); opt.zero_grad()"
    found, _ = findings_of(f"{text}    {body}\n", tmp_path)
    assert [code for code, _ in found if code == "ZG503"] == []


@pytest.mark.parametrize("body", MICRO.values(), ids=MICRO)
def test_micro_batches_that_nobody_divides_are_a_window(body, tmp_path):
    text = HEAD.replace("CLEAR", "pass").replace("for i,", _BACK + "for i,")
    found, _ = findings_of(text + f"    {body}\n    opt.step(); opt.zero_grad()\n", tmp_path)
    assert [code for code, _ in found] == ["ZG503"]


SCALED = """
    scaler.scale(net(x).sum()).backward(); scaler.step(opt)
    END
    scaler.update(); opt.zero_grad()
"""


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("first", [0, 3])
def test_a_run_that_ends_before_the_update_has_not_left_it_out(end, first, tmp_path):
    text = HEAD.replace("CLEAR", "pass") + SCALED.replace(
        "END", f"if i == {first}: raise {end.__name__}"
    )
    with pytest.raises(end), zerograd.watch(policy="collect") as watching:
        exec(compile(text.replace("BATCHES", "5"), "program.py", "exec"), {})
    assert watching.findings == []


def test_nor_has_a_script_that_exits_there(tmp_path):
    path = tmp_path / "program.py"
    text = HEAD.replace("CLEAR", "pass").replace("BATCHES", "5")
    path.write_text(text + SCALED.replace("END", "if i == 3: raise SystemExit"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "zerograd", "run", str(path)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "No findings" in done.stderr


def test_a_run_that_ends_well_without_the_update_has(tmp_path):
    text = HEAD.replace("CLEAR", "pass") + SCALED.replace("END", "break")
    found, _ = findings_of(text, tmp_path, batches=5)
    assert [code for code, _ in found] == ["ZG302"]


def test_notes_wait_while_an_error_stands_at_the_same_line(tmp_path):
    text = HEAD.replace("CLEAR", "pass") + "    fill(x)\n    if i % 4 == 3: opt.step()\n"
    found, _ = findings_of(text, tmp_path)
    assert [code for code, _ in found] == ["ZG101"]


LEAKED = """
import torch
from torch import nn

def fill(value):
    value.backward()

gen, disc = nn.Linear(4, 4), nn.Linear(4, 4)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.01)
opt_d = torch.optim.AdamW(disc.parameters(), lr=0.01)
for _ in range(BATCHES):
    x = torch.randn(8, 4)
    opt_g.zero_grad()
    for p in disc.parameters():
        if p.grad is not None:
            p.grad.data.zero_()
    fill(disc(gen(x)).sum())
    opt_g.step()
    fill(disc(x).sum())
    opt_d.step()
"""


def test_another_optimizers_step_ends_no_doubt_about_a_clear(tmp_path):
    # Found spent at one line both with zeros and without, by turns: a leak, and no stale gradient.
    found, _ = findings_of(LEAKED, tmp_path)
    assert [code for code, _ in found] == ["ZG201"]


def zero(net):
    for p in net.parameters():
        p.grad.zero_()


def zero_data(net):
    for p in net.parameters():
        p.grad.data.zero_()


@pytest.mark.parametrize("clear", [None, zero, zero_data, torch.nn.Module.zero_grad])
def test_what_a_first_backward_leaves_as_zeros_is_not_cleared(clear):
    """A teacher that begins as the student has no error, and no optimizer either."""
    torch.manual_seed(0)
    student = torch.nn.Linear(6, 3)
    teacher = copy.deepcopy(student)
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    with zerograd.watch(policy="collect", select=["ZG1"]) as watching:
        for _ in range(12):
            x = torch.randn(4, 6)
            opt.zero_grad()
            y = student(x)
            ((y - teacher(x)).pow(2).mean() + y.pow(2).mean()).backward()
            opt.step()
            if clear is not None:
                clear(teacher)
    codes = [each.rule.code for each in watching.findings]
    assert codes == (["ZG105"] if clear is None else [])
