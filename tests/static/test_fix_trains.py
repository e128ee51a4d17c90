"""Fixed loops run on real torch: they train as the loop written right, bit for bit."""

from __future__ import annotations

from textwrap import dedent

import pytest

from zerograd.static.check import Asked, Checker, check_source

torch = pytest.importorskip("torch")

START = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
other = nn.Linear(4, 1)
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
dataloader = [(torch.randn(3, 4), torch.randn(3, 1)) for _ in range(9)]
"""

# The three wrong and three right loops of the lesson on zeroing gradients.
RIGHT = """
for data, target in dataloader:
    optimizer.zero_grad()
    output = model(data)
    loss = loss_fn(output, target)
    loss.backward()
    optimizer.step()
"""
FORGOTTEN = RIGHT.replace("    optimizer.zero_grad()\n", "")
AFTER_BACKWARD = """
for data, target in dataloader:
    output = model(data)
    loss = loss_fn(output, target)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
"""
BY_HAND_RIGHT = """
for data, target in dataloader:
    for param in model.parameters():
        if param.grad is not None:
            param.grad.zero_()
    output = model(data)
    loss = loss_fn(output, target)
    loss.backward()
    optimizer.step()
"""
ON_NONE = BY_HAND_RIGHT.replace("        if param.grad is not None:\n    ", "")

WINDOW = """
for i, (data, target) in enumerate(dataloader):
    loss = loss_fn(model(data), target) / 3
    loss.backward()
    if (i + 1) % 3 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
WINDOW_CLEARED = """
for i, (data, target) in enumerate(dataloader):
    optimizer.zero_grad()
    loss = loss_fn(model(data), target) / 3
    loss.backward()
    if (i + 1) % 3 == 0:
        optimizer.step()
"""
CLIPPED = RIGHT.replace(
    "    optimizer.step()",
    "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    optimizer.step()",
)
CLIPPED_LATE = RIGHT + "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n"

SCALED_RIGHT = """
scaler = torch.amp.GradScaler("cpu", growth_interval=2)
for data, target in dataloader:
    optimizer.zero_grad()
    loss = loss_fn(model(data), target)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()
"""
BOTH_RIGHT = """
scaler = torch.amp.GradScaler("cpu", growth_interval=2)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for data, target in dataloader:
    optimizer.zero_grad()
    second.zero_grad()
    loss = loss_fn(model(data) + other(data), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.step(second)
    scaler.update()
"""
BOTH_EARLY = BOTH_RIGHT.replace("    scaler.update()\n", "").replace(
    "    scaler.step(second)\n", "    scaler.update()\n    scaler.step(second)\n"
)
LBFGS = """
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
for data, target in dataloader:
    def closure():
        optimizer.zero_grad()
        loss = loss_fn(model(data), target)
        loss.backward()
        return loss
    optimizer.step(closure)
"""
BY_WEIGHT = """
for data, target in dataloader:
    loss_fn(model(data), target).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
"""

ADVERSARIES = """
optimizer_o = torch.optim.SGD(other.parameters(), lr=0.1)
for data, target in dataloader:
    optimizer_o.zero_grad()
    loss_d = loss_fn(other(data * model(data).detach()), target)
    loss_d.backward()
    optimizer_o.step()
    optimizer.zero_grad()
    loss_g = other(data * model(data)).mean()
    loss_g.backward()
    optimizer.step()
"""
LEAKED = ADVERSARIES.replace("    optimizer_o.zero_grad()\n", "").replace(
    "    optimizer_o.step()\n", "    optimizer_o.step()\n    optimizer_o.zero_grad()\n"
)
ATTACK = """
model.requires_grad_(False)
data, target = dataloader[0]
delta = torch.zeros_like(data, requires_grad=True)
for _ in range(5):
    loss = loss_fn(model(data + delta), target)
    loss.backward()
    delta.data = (delta.data + 0.1 * delta.grad.sign()).clamp(-1, 1)
    delta.grad = None
other.weight.data = delta.data
"""
SCALED = SCALED_RIGHT.replace("    scaler.unscale_(optimizer)\n", "").replace(
    "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n", ""
)
BYPASSED = SCALED.replace(
    "    scaler.step(optimizer)\n    scaler.update()\n", "    optimizer.step()\n"
)


def fixed(text: str) -> str:
    """Return the text with every fix applied, and demand that nothing is left to find."""
    result = Checker(Asked(fix=True)).check(text.encode(), "train.py")
    assert result.crashes == []
    assert result.fixes == 1
    assert result.findings == []
    return result.fixed["train.py"].data.decode()


def weights(text: str) -> list[bytes]:
    names: dict[str, object] = {}
    exec(compile(text, "train.py", "exec"), names)
    both = [*names["model"].parameters(), *names["other"].parameters()]  # type: ignore[attr-defined]
    return [each.detach().numpy().tobytes() for each in both]


def drop(line: str, text: str) -> str:
    assert text.count(line) == 1
    return text.replace(line, "")


@pytest.mark.parametrize(
    ("code", "wrong", "right"),
    [
        pytest.param("ZG101", FORGOTTEN, RIGHT, id="forgetting to zero before backward"),
        pytest.param("ZG102", AFTER_BACKWARD, RIGHT, id="zeroing after backward"),
        pytest.param("ZG104", ON_NONE, BY_HAND_RIGHT, id="zeroing a gradient that is None"),
        pytest.param(
            "ZG103", RIGHT.replace("zero_grad()", "zero_grad"), RIGHT, id="naming without calling"
        ),
        pytest.param("ZG501", WINDOW_CLEARED, WINDOW, id="clearing inside a window"),
        pytest.param(
            "ZG101",
            drop("        optimizer.zero_grad()\n", WINDOW),
            WINDOW,
            id="window not cleared",
        ),
        pytest.param("ZG304", CLIPPED_LATE, CLIPPED, id="clipping after the step"),
        pytest.param(
            "ZG301",
            drop("    scaler.unscale_(optimizer)\n", SCALED_RIGHT),
            SCALED_RIGHT,
            id="clipping before unscale",
        ),
        pytest.param(
            "ZG302", drop("    scaler.update()\n", SCALED_RIGHT), SCALED_RIGHT, id="no update"
        ),
        pytest.param("ZG305", BOTH_EARLY, BOTH_RIGHT, id="update between two steps"),
        pytest.param(
            "ZG101",
            drop("        optimizer.zero_grad()\n", LBFGS),
            LBFGS,
            id="closure not cleared",
        ),
        pytest.param(
            "ZG101", drop("            p.grad = None\n", BY_WEIGHT), BY_WEIGHT, id="by hand"
        ),
        pytest.param(
            "ZG102",
            RIGHT.replace(
                "    loss.backward()\n    optimizer.step()",
                "    optimizer.step()\n    loss.backward()",
            ),
            RIGHT,
            id="step before backward",
        ),
        pytest.param("ZG201", LEAKED, ADVERSARIES, id="another optimizer's loss left behind"),
        pytest.param(
            "ZG101",
            drop("    optimizer_o.zero_grad()\n", ADVERSARIES),
            ADVERSARIES,
            id="one of two optimizers not cleared",
        ),
        pytest.param("ZG202", drop("    delta.grad = None\n", ATTACK), ATTACK, id="leaf grows"),
        pytest.param("ZG303", BYPASSED, SCALED, id="step past the scaler"),
        pytest.param(
            "ZG504", WINDOW.replace("% 3 == 0", "% 3"), WINDOW, id="guard without a comparison"
        ),
    ],
)
def test_the_fixed_loop_trains_as_the_right_one(code: str, wrong: str, right: str) -> None:
    assert [each.rule.code for each in check_source(START + wrong)] == [code]
    assert check_source(START + right) == []
    repaired = fixed(START + wrong)
    assert weights(repaired) == weights(START + right)


def test_the_wrong_loops_really_train_otherwise() -> None:
    """Else the test above would show nothing."""
    right = weights(START + RIGHT)
    assert weights(START + FORGOTTEN) != right
    assert weights(START + AFTER_BACKWARD) != right
    with pytest.raises(AttributeError):
        weights(START + ON_NONE)


def test_fixed_code_of_a_method_trains(tmp_path: object) -> None:
    text = START + dedent("""
        class Trainer:
            def __init__(self):
                self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

            def step(self, data, target):
                loss = loss_fn(model(data), target)
                loss.backward()
                self.opt.step()
                return loss.item()

        trainer = Trainer()
        for data, target in dataloader:
            trainer.step(data, target)
    """)
    repaired = fixed(text)
    assert "        self.opt.step()\n        self.opt.zero_grad()\n" in repaired
    right = text.replace("loss = loss_fn", "self.opt.zero_grad(); loss = loss_fn")
    assert weights(repaired) == weights(right)
