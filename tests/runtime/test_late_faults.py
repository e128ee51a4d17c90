"""Faults that begin at the first batch, or long after the loop has become a habit.

Each is told within two rounds of its beginning, whatever the optimizer and wherever
the loop stands.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402

HEAD = """
import threading
import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.OPTIMIZER
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
other = nn.Linear(1, 1)
opt_other = torch.optim.SGD(other.parameters(), lr=0.01)

def loss(through=lambda out: out):
    return mse_loss(through(model(torch.randn(8, 4))), torch.randn(8, 1))
"""

# In each, `late` says whether the fault has begun, and `turn` counts the windows of three.
LOOPS = {
    "ZG101 never cleared again": """
    if not late: opt.zero_grad()
    loss().backward(); opt.step()
""",
    "ZG101 by hand": """
    loss().backward(); opt.step()
    if not late:
        for p in model.parameters(): p.grad = None
""",
    "ZG101 by hand, to zeros that no counter tells of": """
    loss().backward(); opt.step()
    if not late:
        for p in model.parameters(): p.grad.data.zero_()
""",
    "ZG101 half of it cleared": """
    if not late: opt.zero_grad()
    else: model[0].zero_grad()
    loss().backward(); opt.step()
""",
    "ZG101 windows": """
    for _ in range(3): (loss() / 3).backward()
    opt.step()
    if not late: opt.zero_grad()
""",
    "ZG101 a closure": """
    def closure():
        if not late: opt.zero_grad()
        value = loss(); value.backward(); return value
    opt.step(closure)
""",
    "ZG102": """
    if not late: opt.zero_grad()
    loss().backward()
    if late: opt.zero_grad()
    opt.step()
""",
    "ZG102 by hand": """
    opt.zero_grad(); loss().backward()
    if late:
        for p in model.parameters(): p.grad = None
    opt.step()
""",
    "ZG201": """
    opt.zero_grad(); loss(other).backward(); opt.step()
    if not late: opt_other.zero_grad()
    other(torch.randn(8, 1)).mean().backward(); opt_other.step(); opt_other.zero_grad()
""",
    "ZG202": """
    model.requires_grad_(False)
    mse_loss(model(image), torch.zeros(8, 1)).backward()
    image.data += 0.01 * image.grad.sign()
    if not late: image.grad.zero_()
""",
    "ZG301": """
    opt.zero_grad(); scaler.scale(loss()).backward()
    if not late: scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt); scaler.update()
""",
    "ZG302": """
    opt.zero_grad(); scaler.scale(loss()).backward(); scaler.step(opt)
    if not late: scaler.update()
""",
    "ZG303": """
    opt.zero_grad(); scaler.scale(loss()).backward()
    if late: opt.step()
    else: scaler.step(opt); scaler.update()
""",
    "ZG304": """
    opt.zero_grad(); loss().backward()
    if not late: nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if late: nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
    "ZG305": """
    opt.zero_grad(); opt_other.zero_grad(); scaler.scale(loss(other)).backward(); scaler.step(opt)
    if late: scaler.update()
    scaler.step(opt_other); scaler.update()
""",
    "ZG401": """
    opt.zero_grad(); value = loss()
    if not late or not i: value.backward()
    opt.step()
""",
    "ZG402": """
    opt.zero_grad(); loss().backward(); opt.step()
    if late: opt.step()
""",
    "ZG501": """
    for n in range(3):
        if not n or late: opt.zero_grad()
        (loss() / 3).backward()
        if n % 3 == 2: opt.step()
""",
    "ZG503": """
    for n in range(3):
        if late: loss().backward()
        else: (loss() / 3).backward()
    opt.step(); opt.zero_grad()
""",
}
OPTIMIZERS = {
    "plain": "SGD(model.parameters(), lr=0.001, foreach=False)",
    "foreach": "Adam(model.parameters(), foreach=True)",
    "fused": "AdamW(model.parameters(), fused=True)",
}
PLACES = {
    "module": "LOOP",
    "function": "def train():\n    global image\nLOOP\ntrain()\n",
    "thread": (
        "def train():\n    global image\nLOOP\n"
        "thread = threading.Thread(target=train); thread.start(); thread.join()\n"
    ),
}


def program(body, begins, optimizer="plain", place="module"):
    loop = f"image = torch.zeros(8, 4, requires_grad=True)\nfor i in range({begins + 12}):\n"
    loop += f"    late = i >= {begins}\n{body.strip(chr(10))}\n"
    if place != "module":
        loop = "".join(f"    {line}\n" for line in loop.splitlines())
    return HEAD.replace("OPTIMIZER", OPTIMIZERS[optimizer]) + PLACES[place].replace("LOOP", loop)


def findings_of(text, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zerograd.watch(policy="collect", show_notes=True) as watching:
            try:
                exec(compile(text, str(path), "exec"), {"__name__": "program"})
            except RuntimeError as error:  # torch itself refuses a second step without update()
                assert "update()" in str(error)
    assert watching.not_checked == []
    return [(each.rule.code, each.live.step) for each in watching.findings]


def assert_told(name, begins, found):
    assert [code for code, _ in found] == [name[:5]]
    assert begins <= found[0][1] <= begins + 2


@pytest.mark.parametrize("begins", [0, 29, 100])
@pytest.mark.parametrize("name", LOOPS)
def test_a_fault_is_told_within_two_rounds_of_its_beginning(name, begins, tmp_path):
    assert_told(name, begins, findings_of(program(LOOPS[name], begins), tmp_path))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("place", PLACES)
def test_wherever_the_loop_stands_and_whatever_optimizer_it_has(place, optimizer, tmp_path):
    name = "ZG101 never cleared again"
    text = program(LOOPS[name], 80, optimizer, place)
    assert_told(name, 80, findings_of(text, tmp_path))


def test_after_a_thousand_right_rounds(tmp_path):
    for name in ("ZG101 never cleared again", "ZG102", "ZG402"):
        assert_told(name, 1000, findings_of(program(LOOPS[name], 1000), tmp_path))


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("begins", [100, 500, 503])
def test_where_one_network_waits_for_every_fifth_turn(begins, by_hand, tmp_path):
    clear = "for p in model.parameters(): p.grad = None" if by_hand else "opt.zero_grad()"
    body = f"""
    opt_other.zero_grad(); other(torch.ones(2, 1)).sum().backward(); opt_other.step()
    if i % 5 == 0:
        loss().backward(); opt.step()
        if not late:
            {clear}
"""
    found = findings_of(program(body, begins), tmp_path)
    assert [code for code, _ in found] == ["ZG101"]
    assert begins <= found[0][1] <= begins + 10  # two turns of its own
    right = program(body, begins).replace(f"late = i >= {begins}", "late = False")
    assert findings_of(right, tmp_path) == []


def test_none_of_these_loops_is_at_fault_before(tmp_path):
    for name, body in LOOPS.items():
        text = program(body, 100).replace("late = i >= 100", "late = False")
        assert findings_of(text, tmp_path) == [], name


def test_a_tail_that_leaks_is_told_though_epochs_are_long(tmp_path):
    """Most windows of an epoch are only ticked off; they count all the same."""
    text = program("", 0).partition("image =")[0] + (
        "for epoch in range(3):\n    for i in range(401):\n        (loss() / 4).backward()\n"
        "        if (i + 1) % 4 == 0: opt.step(); opt.zero_grad()\n"
    )
    assert [code for code, _ in findings_of(text, tmp_path)] == ["ZG502"]
