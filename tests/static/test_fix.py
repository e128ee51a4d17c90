"""Fixes: which text comes out, to the byte."""

from __future__ import annotations

import ast
import json
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.static.notebooks import notebook
from tests.static.test_engine import CASES, EXPECTED, SETTING
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Edit, Finding
from zerograd.rules.stale_gradient import RULE
from zerograd.static.check import Asked, Checker, check_source
from zerograd.static.checked import Checked
from zerograd.static.fixing.edits import CannotEdit, Layout, apply_edits, spliced
from zerograd.static.fixing.fixer import Fixer
from zerograd.static.source import Source

HEAD = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
critic = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def run(data: bytes, path: str = "train.py") -> Checked:
    result = Checker(Asked(fix=True)).check(data, path)
    assert result.crashes == []
    assert result.problems == []
    return result


def fixed(body: str) -> str:
    """Return the body after all fixes; nothing is left to find, and the head is untouched."""
    text = HEAD + dedent(body).lstrip("\n")
    result = run(text.encode())
    assert [each.rule.code for each in result.findings] == []
    new = result.fixed["train.py"].data.decode() if result.fixed else text
    assert new.startswith(HEAD)
    return new.removeprefix(HEAD)


def expected(body: str) -> str:
    return dedent(body).lstrip("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                opt.step()  # go
                print(x)
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step()  # go
                opt.zero_grad()
                print(x)
            """,
            id="own line, comment kept",
        ),
        pytest.param(
            """
            for x in data:
            \tmodel(x).sum().backward()
            \topt.step()
            """,
            """
            for x in data:
            \tmodel(x).sum().backward()
            \topt.step()
            \topt.zero_grad()
            """,
            id="tabs",
        ),
        pytest.param(
            """
            for x in data: model(x).sum().backward(); opt.step()
            """,
            """
            for x in data: model(x).sum().backward(); opt.step(); opt.zero_grad()
            """,
            id="one line",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                opt.step(); print(x)  # both
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step(); opt.zero_grad(); print(x)  # both
            """,
            id="before a semicolon",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward(); \\
                    opt.step()
            """,
            """
            for x in data:
                model(x).sum().backward(); \\
                    opt.step(); opt.zero_grad()
            """,
            id="continued line",
        ),
        pytest.param(
            """
            for i, x in enumerate(data):
                model(x).sum().backward()
                if i % 4 == 3: opt.step()
            """,
            """
            for i, x in enumerate(data):
                model(x).sum().backward()
                if i % 4 == 3: opt.step(); opt.zero_grad()
            """,
            id="one-line if",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                opt.step(
                    # nothing
                )
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step(
                    # nothing
                )
                opt.zero_grad()
            """,
            id="call of several lines",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                scaler.scale(model(x).sum()).backward()
                scaler.step(opt)
                scaler.update()
                print(x)
            """,
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                scaler.scale(model(x).sum()).backward()
                scaler.step(opt)
                scaler.update()
                opt.zero_grad()
                print(x)
            """,
            id="behind the scaler's update",
        ),
        pytest.param(
            """
            for epoch in range(3):
                opt.zero_grad(set_to_none=False)
                for x in data:
                    model(x).sum().backward()
                    opt.step()
            """,
            """
            for epoch in range(3):
                opt.zero_grad(set_to_none=False)
                for x in data:
                    model(x).sum().backward()
                    opt.step()
                    opt.zero_grad(set_to_none=False)
            """,
            id="spelled as the user spells it",
        ),
        pytest.param(
            """
            for x in data:
                größe = "ä"; model(x).sum().backward(); opt.step()
            """,
            """
            for x in data:
                größe = "ä"; model(x).sum().backward(); opt.step(); opt.zero_grad()
            """,
            id="columns behind letters of two bytes",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                for p in model.parameters():
                    # start anew
                    p.grad = None
                opt.step()
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step()
                for p in model.parameters():
                    # start anew
                    p.grad = None
            """,
            id="a clear by hand is moved whole",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                opt.zero_grad(); opt.step()
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step(); opt.zero_grad()
            """,
            id="moved within a line",
        ),
        pytest.param(
            """
            for i, x in enumerate(data):
                opt.zero_grad()  # every time
                (model(x).sum() / 4).backward()
                if (i + 1) % 4 == 0:
                    opt.step()
                    print(i)
            """,
            """
            for i, x in enumerate(data):
                (model(x).sum() / 4).backward()
                if (i + 1) % 4 == 0:
                    opt.step()
                    opt.zero_grad()  # every time
                    print(i)
            """,
            id="a clear goes under the guard, with its comment",
        ),
        pytest.param(
            """
            for x in data:
                for p in model.parameters(): p.grad.zero_()
                model(x).sum().backward()
                opt.step()
            """,
            """
            for x in data:
                for p in model.parameters(): p.grad = None
                model(x).sum().backward()
                opt.step()
            """,
            id="no room for a guard",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                if 1: nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                if 1: scaler.unscale_(opt); nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
            """,
            id="unscale before a clip within a line",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.unscale_(opt)  # for the clip
                scaler.step(opt)
                scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                scaler.unscale_(opt)  # for the clip
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
            """,
            id="an unscale that came too late",
        ),
        pytest.param(
            """
            for x in data:
                opt.zero_grad()
                opt.step()
                model(x).sum().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            """,
            """
            for x in data:
                opt.zero_grad()
                model(x).sum().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            """,
            id="a step goes behind its backward and the clip",
        ),
        pytest.param(
            """
            other = torch.optim.SGD(critic.parameters(), lr=0.1)
            for x in data:
                opt.zero_grad()
                critic(model(x)).sum().backward()
                opt.step()
                critic(x).sum().backward()
                other.step()
            """,
            """
            other = torch.optim.SGD(critic.parameters(), lr=0.1)
            for x in data:
                opt.zero_grad()
                critic(model(x)).sum().backward()
                opt.step()
                other.zero_grad()
                critic(x).sum().backward()
                other.step()
            """,
            id="a clear before the backward, where another loss fills too",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                opt.step()
            """,
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                scaler.step(opt)
                scaler.update()
            """,
            id="a step past the scaler",
        ),
        pytest.param(
            """
            for x in data:
                opt.zero_grad()
                opt.step()  # why
                opt.zero_grad(); model(x).sum().backward()
            """,
            """
            for x in data:
                opt.zero_grad()
                opt.zero_grad(); model(x).sum().backward()
                opt.step()  # why
            """,
            id="a comment goes with its statement, whatever it goes behind",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                opt.step()
            for x in data:
                model(x).sum().backward()
                opt.zero_grad()
                opt.step()
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step()
                opt.zero_grad()
            for x in data:
                model(x).sum().backward()
                opt.step()
                opt.zero_grad()
            """,
            id="a clear gets its own line though the same line stands further down",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for i, x in enumerate(data):
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                scaler.step(opt)
                if i < total:
                    scheduler.step()
                    scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            for i, x in enumerate(data):
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                scaler.step(opt)
                scaler.update()
                if i < total:
                    scheduler.step()
            """,
            id="an update leaves its condition, which would else make two",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for epoch in range(9):
                for x in data:
                    opt.zero_grad()
                    scaler.scale(model(x).sum()).backward()
                    scaler.step(opt)
                scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            for epoch in range(9):
                for x in data:
                    opt.zero_grad()
                    scaler.scale(model(x).sum()).backward()
                    scaler.step(opt)
                    scaler.update()
            """,
            id="an update of each epoch goes to the step of each batch",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            other = torch.optim.SGD(critic.parameters(), lr=0.1)
            for x in data:
                opt.zero_grad()
                other.zero_grad()
                scaler.scale(critic(model(x)).sum()).backward()
                scaler.step(opt)
                scaler.update()
                scaler.step(other)
                scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            other = torch.optim.SGD(critic.parameters(), lr=0.1)
            for x in data:
                opt.zero_grad()
                other.zero_grad()
                scaler.scale(critic(model(x)).sum()).backward()
                scaler.step(opt)
                scaler.step(other)
                scaler.update()
            """,
            id="of two updates the early one goes",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                loss = model(x).sum()
                if not loss.isfinite():
                    scaler.update()
                    continue
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                loss = model(x).sum()
                if not loss.isfinite():
                    continue
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
            """,
            id="an update that has nothing to look at goes",
        ),
        pytest.param(
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                if clipping:
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.unscale_(opt)
                scaler.step(opt)
                scaler.update()
            """,
            """
            scaler = torch.amp.GradScaler()
            for x in data:
                opt.zero_grad()
                scaler.scale(model(x).sum()).backward()
                scaler.unscale_(opt)
                if clipping:
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
            """,
            id="an unscale is moved before a condition, and not written twice",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                opt.step()
                print(model.weight.grad.norm())
            """,
            """
            for x in data:
                opt.zero_grad()
                model(x).sum().backward()
                opt.step()
                print(model.weight.grad.norm())
            """,
            id="no clear before gradients are looked at",
        ),
        pytest.param(
            """
            other = torch.optim.SGD(critic.parameters(), lr=0.1)
            for x, y in data:
                (critic(x) - y).square().mean().backward()
                other.step()
                other.zero_grad()
                opt.zero_grad()
                (-critic(model(x)).mean()).backward()
                opt.step()
            """,
            """
            other = torch.optim.SGD(critic.parameters(), lr=0.1)
            for x, y in data:
                (critic(x) - y).square().mean().backward()
                other.step()
                opt.zero_grad()
                (-critic(model(x)).mean()).backward()
                opt.step()
                other.zero_grad()
            """,
            id="a clear that comes before the other loss goes behind its step",
        ),
        pytest.param(
            """
            w = torch.zeros(4, 1, requires_grad=True)
            for x in data:
                (x @ w).sum().backward()
                w.data -= 0.1 * w.grad.data
            """,
            """
            w = torch.zeros(4, 1, requires_grad=True)
            for x in data:
                (x @ w).sum().backward()
                w.data -= 0.1 * w.grad.data
                w.grad = None
            """,
            id="a tensor is cleared by its gradient, for it has no zero_grad",
        ),
        pytest.param(
            """
            w = torch.zeros(4, 1, requires_grad=True)
            for x in data:
                (x @ w).sum().backward()
                w.grad.zero_()
                w.data -= 0.1 * w.grad
            """,
            """
            w = torch.zeros(4, 1, requires_grad=True)
            for x in data:
                (x @ w).sum().backward()
                w.data -= 0.1 * w.grad
                w.grad.zero_()
            """,
            id="a clear that comes before an update by hand",
        ),
        pytest.param(
            """
            opts = [opt, torch.optim.SGD(critic.parameters(), lr=0.1)]
            for x in data:
                (model(x) + critic(x)).sum().backward()
                [each.step() for each in opts]
            """,
            """
            opts = [opt, torch.optim.SGD(critic.parameters(), lr=0.1)]
            for x in data:
                (model(x) + critic(x)).sum().backward()
                [each.step() for each in opts]
                [each.zero_grad() for each in opts]
            """,
            id="a step over several in a comprehension",
        ),
        pytest.param(
            """
            nets = {"a": model, "b": critic}
            opts = {k: torch.optim.SGD(n.parameters(), lr=0.1) for k, n in nets.items()}
            for x in data:
                for k in nets:
                    nets[k](x).sum().backward()
                    opts[k].step()
            """,
            """
            nets = {"a": model, "b": critic}
            opts = {k: torch.optim.SGD(n.parameters(), lr=0.1) for k, n in nets.items()}
            for x in data:
                for k in nets:
                    nets[k](x).sum().backward()
                    opts[k].step()
                    opts[k].zero_grad()
            """,
            id="one of several, by a key that changes",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                for group in opt.param_groups:
                    for p in group["params"]:
                        p.grad = None
                opt.step()
            """,
            """
            for x in data:
                model(x).sum().backward()
                opt.step()
                for group in opt.param_groups:
                    for p in group["params"]:
                        p.grad = None
            """,
            id="a clear by hand in two loops moves as a whole",
        ),
        pytest.param(
            """
            for x in data:
                model(x).sum().backward()
                model.zero_grad()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad
            """,
            """
            for x in data:
                model.zero_grad()
                model(x).sum().backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad
            """,
            id="no clear into the loop that updates one parameter after the other",
        ),
        pytest.param(
            """
            update = lambda: opt.step()
            for x in data:
                model(x).sum().backward()
                update()
            """,
            """
            update = lambda: opt.step()
            for x in data:
                model(x).sum().backward()
                update()
                opt.zero_grad()
            """,
            id="a step kept under a name, cleared behind the call of that name",
        ),
        pytest.param(
            """
            opts = [opt, torch.optim.SGD(critic.parameters(), lr=0.1)]
            for x in data:
                (model(x) + critic(x)).sum().backward()
                list(map(lambda each: each.step(), opts))
            """,
            """
            opts = [opt, torch.optim.SGD(critic.parameters(), lr=0.1)]
            for x in data:
                (model(x) + critic(x)).sum().backward()
                list(map(lambda each: each.step(), opts))
                list(map(lambda each: each.zero_grad(), opts))
            """,
            id="steps that are mapped, cleared in the same way",
        ),
        pytest.param(
            """
            w = torch.zeros(3, requires_grad=True)
            for x in data:
                (x * w).sum().backward()
                with torch.no_grad():
                    g = w.grad
                    w -= 0.1 * g
            """,
            """
            w = torch.zeros(3, requires_grad=True)
            for x in data:
                (x * w).sum().backward()
                with torch.no_grad():
                    g = w.grad
                    w -= 0.1 * g
                    w.grad = None
            """,
            id="a gradient that was given a name before the update",
        ),
        pytest.param(
            """
            w = torch.zeros(3, requires_grad=True)
            for x in data:
                (x * w).sum().backward()
                w.grad.zero_()
                with torch.no_grad():
                    w -= 0.1 * w.grad
            """,
            """
            w = torch.zeros(3, requires_grad=True)
            for x in data:
                (x * w).sum().backward()
                with torch.no_grad():
                    w -= 0.1 * w.grad
                    w.grad.zero_()
            """,
            id="a clear by hand moves behind the update in place",
        ),
        pytest.param(
            """
            for epoch in range(9):
                for i, x in enumerate(data):
                    (model(x).sum() / 4).backward()
                    if (i + 1) % 4 == 0:
                        opt.step()
                        opt.zero_grad()
                if len(data) % 4:
                    opt.step()
            """,
            """
            for epoch in range(9):
                for i, x in enumerate(data):
                    (model(x).sum() / 4).backward()
                    if (i + 1) % 4 == 0:
                        opt.step()
                        opt.zero_grad()
                if len(data) % 4:
                    opt.step()
                    opt.zero_grad()
            """,
            id="what is left of an epoch is cleared behind its own step",
        ),
        pytest.param(
            """
            for i, x in enumerate(data):
                opt.zero_grad()
                (model(x).sum() / 4).backward()
                if (i + 1) % 4 == 0:
                    opt.step()
                    opt.zero_grad()
            """,
            """
            for i, x in enumerate(data):
                (model(x).sum() / 4).backward()
                if (i + 1) % 4 == 0:
                    opt.step()
                    opt.zero_grad()
            """,
            id="a clear that stands behind the step already is not moved there once more",
        ),
    ],
)
def test_the_fixed_text(before: str, after: str) -> None:
    assert fixed(before) == expected(after)


BODY = "for x in data:\n    model(x).sum().backward()\n    opt.step()\n"


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_are_kept(ends: str, last: bool) -> None:
    text = (HEAD + BODY).replace("\n", ends)
    text = text if last else text.removesuffix(ends)
    new = run(text.encode()).fixed["train.py"].data.decode()
    added = f"{ends}    opt.zero_grad()"
    assert new == (f"{text.removesuffix(ends)}{added}{ends}" if last else f"{text}{added}")


def test_the_byte_order_mark_is_kept() -> None:
    data = b"\xef\xbb\xbf" + (HEAD + BODY).encode()
    assert run(data).fixed["train.py"].data == data + b"    opt.zero_grad()\n"


def test_the_encoding_is_kept() -> None:
    data = ("# coding: latin-1\n# gr\u00fcn\n" + HEAD + BODY).encode("latin-1")
    assert run(data).fixed["train.py"].data == data + b"    opt.zero_grad()\n"


def test_a_notebook_is_fixed_in_its_cell_and_keeps_every_other_byte() -> None:
    data = notebook(HEAD, "%time\n!ls", BODY.rstrip("\n"), "print('ä')")
    result = run(data, "train.ipynb")
    new = result.fixed["train.ipynb"].data
    old_lines, new_lines = data.decode().split("\n"), new.decode().split("\n")
    added = [line for line in new_lines if line not in old_lines]
    assert added == ['    "    opt.step()\\n",', '    "    opt.zero_grad()"']
    assert json.loads(new)["cells"][2]["source"][-1] == "    opt.zero_grad()"
    assert json.loads(new)["cells"][1] == json.loads(data)["cells"][1]


def test_the_edits_of_a_notebook_are_counted_within_the_cell() -> None:
    result = Checker(Asked()).check(notebook(HEAD, BODY), "train.ipynb")
    (finding,) = result.findings
    assert finding.fix is not None
    assert [edit.row for edit in finding.fix.edits] == [finding.spot.line] == [3]


def test_a_finding_carries_the_fix_that_cures_it() -> None:
    (finding,) = check_source(HEAD + BODY)
    assert finding.fix is not None
    assert finding.fix.message == "insert `opt.zero_grad()` after line 9"
    assert spliced(HEAD + BODY, finding.fix.edits) == HEAD + BODY + "    opt.zero_grad()\n"


def test_several_faults_are_fixed_one_after_the_other() -> None:
    text = HEAD + BODY * 3
    result = run(text.encode())
    assert result.fixes == 3
    assert result.findings == []


def test_fixes_stay_out_of_what_is_allowed_or_not_asked_for() -> None:
    text = HEAD + BODY.replace("step()", "step()  # zerograd: allow[stale-gradient] on purpose")
    assert run(text.encode()).fixed == {}
    asked = Asked(ignore=("ZG101",), fix=True)
    assert Checker(asked).check((HEAD + BODY).encode(), "train.py").fixed == {}


def finding_at(line: int) -> Finding:
    return Finding(RULE, Spot("a.py", line, 5, line, 15), "m", "a", owner="opt")


def test_a_fix_that_leaves_the_finding_is_not_offered() -> None:
    source = Source.parse(BODY, "a.py")
    fixer = Fixer(lambda each: [finding_at(3)], lambda found, each: list(found))
    assert fixer.offer(source, [finding_at(3)], [finding_at(3)])[0].fix is None


def test_a_fix_that_brings_a_new_finding_is_not_offered() -> None:
    source = Source.parse(BODY, "a.py")
    fixer = Fixer(lambda each: [finding_at(2)], lambda found, each: list(found))
    assert fixer.offer(source, [finding_at(3)], [finding_at(3)])[0].fix is None


def test_a_fix_that_cures_is_offered() -> None:
    source = Source.parse(BODY, "a.py")
    fixer = Fixer(lambda each: [], lambda found, each: list(found))
    assert fixer.offer(source, [finding_at(3)], [finding_at(3)])[0].fix is not None


@pytest.mark.parametrize(
    "body",
    [
        """
        scaler = torch.amp.GradScaler()
        def end(n):
            if n % 2:
                scaler.update()
        for i, x in enumerate(data):
            opt.zero_grad()
            scaler.scale(model(x).sum()).backward()
            scaler.step(opt)
            end(i)
        """,
        """
        scaler = torch.amp.GradScaler()
        for x in data:
            opt.zero_grad()
            scaler.scale(model(x).sum()).backward()
            if clipping:
                scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        """,
        """
        for x in data:
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
            params = [each for each in model.parameters() if each.requires_grad]
            nn.utils.clip_grad_norm_(params, 1.0)
        """,
    ],
    ids=["an update elsewhere would be a second", "a second unscale", "a name given in between"],
)
def test_a_fix_that_would_make_torch_raise_is_not_offered(body: str) -> None:
    result = run((HEAD + dedent(body)).encode())
    assert result.findings
    assert result.fixed == {}


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(CannotEdit):
        spliced("abc", [Edit(1, 1, 1, 3, ""), Edit(1, 2, 1, 4, "")])


def test_taking_out_the_only_statement_of_a_block_leaves_a_pass() -> None:
    source = Source.parse("if a:\n    b()\nc()\n", "a.py")
    layout = Layout(source)
    inner = source.tree.body[0].body[0]  # type: ignore[attr-defined]
    assert apply_edits(source, layout.remove(inner)).text == "if a:\n    pass\nc()\n"


def test_a_statement_on_a_continued_line_has_no_line_of_its_own() -> None:
    source = Source.parse("a(); \\\n  b()\nc()\n", "a.py")
    layout = Layout(source)
    changed = apply_edits(source, layout.insert_after(source.tree.body[1], "d()"))
    assert changed.text == "a(); \\\n  b(); d()\nc()\n"


def test_a_string_of_several_lines_is_not_reindented() -> None:
    text = 'if a:\n    f("""\n    x""")\n    c()\nd()\n'
    source = Source.parse(text, "a.py")
    layout = Layout(source)
    inner = source.tree.body[0].body[0]  # type: ignore[attr-defined]
    with pytest.raises(CannotEdit):
        layout.move_after(inner, source.tree.body[1])


# -- any layout: fixing twice changes nothing the second time

CLEAR, FILL, STEP = "opt.zero_grad()", "model(x).sum().backward()", "opt.step()"
LINES = [
    CLEAR,
    FILL,
    STEP,
    "opt.zero_grad",
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "print(x)",
    "scaler.scale(model(x).sum()).backward()",
    "scaler.unscale_(opt)",
    "scaler.step(opt)",
    "scaler.update()",
    "for p in model.parameters(): p.grad = None",
]
GUARDS = ["", "", "", "if i % 4 == 3:", "if flag:", "with torch.no_grad():"]


@st.composite
def loops(draw: st.DrawFn) -> str:
    unit = draw(st.sampled_from(["    ", "\t", "  "]))
    lines = ["scaler = torch.amp.GradScaler()"] if draw(st.booleans()) else []
    lines.append("for i, x in enumerate(data):")
    for _ in range(draw(st.integers(1, 6))):
        statements = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=2))
        comment = draw(st.sampled_from(["", "", "  # why"]))
        guard = draw(st.sampled_from(GUARDS))
        simple = [each for each in statements if not each.startswith("for")] or [CLEAR]
        if guard:
            style = draw(st.booleans())
            if style:
                lines.append(f"{unit}{guard} {'; '.join(simple)}{comment}")
            else:
                lines += [
                    f"{unit}{guard}",
                    *(f"{unit}{unit}{each}{comment}" for each in statements),
                ]
        elif draw(st.booleans()):
            lines.append(f"{unit}{'; '.join(simple)}{comment}")
        else:
            lines += [f"{unit}{each}{comment}" for each in statements]
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    last = draw(st.sampled_from(["", ends]))
    return HEAD.replace("\n", ends) + ends.join(lines) + last


@settings(max_examples=150, deadline=None)
@given(text=loops())
def test_fixing_twice_changes_nothing_the_second_time(text: str) -> None:
    before = Checker(Asked()).check(text.encode(), "train.py")
    result = run(text.encode())
    new = result.fixed["train.py"].data if result.fixed else text.encode()
    ast.parse(new)
    assert len(result.findings) + result.fixes <= len(before.findings)
    again = run(new)
    assert again.fixed == {}
    assert [each.key for each in again.findings] == [each.key for each in result.findings]
    # Only lines of the loop are touched, and no line is lost that is not a known statement.
    assert new.decode().startswith(text[: text.index("for i")])
    assert new.count(b"# why") == text.count("# why")


@pytest.mark.parametrize("number", range(4))
def test_the_fixes_of_loops_cure_and_bring_nothing(number: int) -> None:
    checked = 0
    for name, text in list(CASES.items())[number::12]:  # each third of them, in four parts
        source = (SETTING + EXPECTED.sub("", text)).encode()
        found = Checker(Asked()).check(source, "train.py").findings
        if not any(each.fix is not None for each in found):
            continue
        checked += 1
        result = run(source)
        assert len(result.findings) + result.fixes <= len(found), name
        left = {(each.rule.code, each.owner) for each in result.findings}
        assert left <= {(each.rule.code, each.owner) for each in found}, name
        assert run(result.fixed["train.py"].data).fixed == {}, name
    assert checked > 20


def test_as_many_are_offered_as_are_made() -> None:
    text = HEAD + expected(
        """
        for x in data:
            opt.zero_grad
            model(x).sum().backward()
            opt.step()
        for x in data:
            model(x).sum().backward()
            opt.zero_grad()
            opt.step()
        """
    )
    offered = Checker(Asked()).check(text.encode(), "train.py")
    assert [each.rule.code for each in offered.findings] == ["ZG103", "ZG102"]
    assert sum(each.fix is not None for each in offered) == run(text.encode()).fixes == 2
