"""Notebooks: a finding names the cell and the line in it, whatever magic the cell begins with."""

from __future__ import annotations

import textwrap
import warnings

import pytest

pytest.importorskip("torch")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

CELLS = [
    """
    import torch, zerograd
    watching = zerograd.watch().start()
    def parts():
        model = torch.nn.Linear(2, 1)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)
    """,
    """
    %%time
    model, opt = parts()
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        opt.step()
    """,
    """
    %%capture
    model, opt = parts()
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        for p in model.parameters():
            p.grad.zero_()
        opt.step()
    """,
    """
    model, opt = parts()
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        for p in model.parameters():
            p.grad.zero_()
        opt.step()
    """,
    """
    %%capture
    %%time
    def fit(model, opt):
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            opt.step()
    """,
    """
    fit(*parts())
    """,
    """
    watching.stop()
    for each in watching.findings:
        print(each.rule.code, each.spot.cell, each.spot.line, *[step.code for step in each.trail])
    """,
]


@pytest.fixture(scope="module")
def outputs():
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(text).strip()) for text in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]


def test_a_cell_magic_hides_neither_the_cell_nor_the_line(outputs):
    told = [line.split()[:3] for line in outputs[-1].splitlines()]
    assert told == [
        *(["ZG101", "2", "5"], ["ZG102", "3", "6"]),
        ["ZG102", "4", "5"],  # the same lines, without the magic
        ["ZG101", "5", "6"],
    ]


def test_what_a_timed_cell_does_is_told_in_its_own_words(outputs):
    assert outputs[-1].splitlines()[0].split()[3:] == ["opt.step()", "opt.step()"]


def test_a_warning_names_the_cell_too(outputs):
    assert "notebook:cell 2:5: GradientWarning: ZG101 stale-gradient: opt.step()" in outputs[1]
