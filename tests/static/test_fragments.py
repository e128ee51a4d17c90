"""Code as people post it: cut out of its surroundings, without its imports."""

from __future__ import annotations

import pytest

import zerograd
from zerograd.static.fragments import parse_fragment

LOOP = """\
        for step, batch in enumerate(bar, start=1):
            loss = net(batch) / accum
            loss.backward()
            if (step + 1) % accum == 0:
                optimizer.step()
                optimizer.zero_grad()
"""
BODY = """\
            optimizer_a.zero_grad()
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                optimizer_a.step()
"""
METHOD = """\
    def train_step(self, batch):
        loss = self.net(batch).sum()
        self.optimizer.zero_grad
        loss.backward()
        self.optimizer.step()
"""
CLAUSE = """\
            elif args.attack == "pgd":
                delta = torch.zeros_like(X)
                for _ in range(args.steps):
                    delta.requires_grad = True
                    loss = criterion(model(X + delta), y)
                    opt.zero_grad()
                    loss.backward()
                    delta.data = delta + delta.grad.sign()
"""
LOST_FIRST_INDENT = """\
for x in data:
            loss = net(x).sum()
            loss.backward()
            opt.step()
        print(loss)
"""
FALLS_BACK = """\
            loss = net(x).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()
        print(loss)
    return loss
"""
COUNTED_ELSEWHERE = """\
optimizer.zero_grad()
loss.backward()
if i % accumulation_steps == 0:
    optimizer.step()
"""


def pairs(text: str) -> list[tuple[str, int]]:
    return [(each.rule.code, each.spot.line) for each in zerograd.check_source(text, "posted.py")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOP, [("ZG504", 4)]),
        (BODY, [("ZG501", 1)]),
        (METHOD, [("ZG103", 3)]),
        (CLAUSE, [("ZG202", 8)]),
        (LOST_FIRST_INDENT, [("ZG101", 4)]),
        (FALLS_BACK, []),
        (COUNTED_ELSEWHERE, [("ZG501", 1)]),
    ],
)
def test_what_is_cut_out_is_judged_where_it_stands(
    text: str, expected: list[tuple[str, int]]
) -> None:
    assert pairs(text) == expected


def test_columns_are_those_of_the_text() -> None:
    (finding,) = zerograd.check_source(METHOD, "posted.py")
    assert finding.spot.column == 9


def test_a_first_line_without_its_indentation_keeps_its_own_columns() -> None:
    tree = parse_fragment("opt.step()\n    opt.zero_grad()\n")
    assert tree is not None
    assert [(each.lineno, each.col_offset) for each in tree.body] == [(1, 0), (2, 4)]


def test_names_without_their_imports_are_what_all_call_so() -> None:
    text = """
model = nn.Linear(2, 2)
optimizer = optim.Adam(model.parameters())
for x in data:
    optimizer.zero_grad()
    F.relu(model(x)).sum().backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), 1.0)
"""
    assert pairs(text) == [("ZG304", 8)]


def test_an_optimizer_that_is_called_optim_is_no_module() -> None:
    text = """
for x in data:
    optim.zero_grad()
    loss = net(x).sum()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optim)
    scaler.update()
"""
    assert pairs(text) == [("ZG301", 6)]


def test_a_module_is_one_beside_an_optimizer_whose_name_ends_so() -> None:
    text = """
optF = optim.Adam(net.parameters())
for x in data:
    F.cross_entropy(net(x), x).backward()
    optF.step()
"""
    assert pairs(text) == [("ZG101", 5)]


def test_a_broken_line_is_still_refused() -> None:
    with pytest.raises(zerograd.ZerogradError):
        zerograd.check_source("    for x in\n        opt.step()\n", "posted.py")


@pytest.mark.parametrize("text", ["", "# nothing\n", "    \n", "x = 1\n y = 2\n  z = 3\n"])
def test_what_is_no_fragment_is_left_alone(text: str) -> None:
    parse_fragment(text)
