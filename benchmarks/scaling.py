"""Programs that grow in one way each, to show that the cost of a check grows with the code.

Each shape is a real training loop made large: a long file, deep nesting, many branches,
a long chain of calls, many optimizers, many loops one after another.
"""

from __future__ import annotations

CURVES: dict[str, tuple[int, ...]] = {
    "long_file": (500, 1000, 2000, 5000, 10000),
    "deep_nesting": (5, 10, 20, 40, 80),
    "many_branches": (10, 50, 100, 500, 1000),
    "long_call_chain": (10, 50, 100, 500, 1000),
    "branching_calls": (4, 8, 16, 32, 64),
    "many_optimizers": (2, 8, 32, 128),
    "many_loops": (10, 50, 100, 500),
}

_HEAD = [
    "import torch",
    "from torch import nn",
    "net = nn.Linear(4, 2)",
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
]
_BODY = ["opt.zero_grad()", "loss = net(x).sum()", "loss.backward()", "opt.step()"]


def _indent(lines: list[str], level: int = 1) -> list[str]:
    return ["    " * level + line for line in lines]


def program(shape: str, size: int) -> str:
    """Return the program of one shape and size."""
    return "\n".join([*_HEAD, *_SHAPES[shape](size)]) + "\n"


def _long_file(size: int) -> list[str]:
    filler = [f"value_{n} = compute(x, {n}) + value_{max(n - 1, 0)}" for n in range(size)]
    return ["value_0 = 0", "for x in loader:", *_indent([*_BODY[:2], *filler, *_BODY[2:]])]


def _deep_nesting(size: int) -> list[str]:
    lines = ["for x in loader:"]
    for level in range(size):
        opener = ("if flag_{0}:", "for part_{0} in x:", "with scope_{0}:")[level % 3]
        lines.append("    " * (level + 1) + opener.format(level))
    return [*lines, *_indent(_BODY, size + 1)]


def _many_branches(size: int) -> list[str]:
    branches: list[str] = []
    for n in range(size):
        branches += [f"if flags[{n}] > x.mean():", f"    loss = loss + {n}"]
        if n % 5 == 0:
            branches += [f"if x.sum() > {n}:", "    opt.zero_grad()", "    continue"]
    return ["for x in loader:", *_indent([*_BODY[:2], *branches, *_BODY[2:]])]


def _long_call_chain(size: int) -> list[str]:
    lines: list[str] = []
    for n in range(size):
        inner = [f"call_{n + 1}(o, x)"] if n + 1 < size else ["net(x).sum().backward()"]
        lines += [f"def call_{n}(o, x):", *_indent(inner)]
    return [
        *lines,
        "for x in loader:",
        "    opt.zero_grad()",
        "    call_0(opt, x)",
        "    opt.step()",
    ]


def _branching_calls(size: int) -> list[str]:
    """Each function calls the next one twice: inlining would take 2 ** size calls."""
    lines: list[str] = []
    for n in range(size):
        if n + 1 < size:
            inner = [f"call_{n + 1}(o, x)", f"if x.mean() > {n}:", f"    call_{n + 1}(o, x)"]
        else:
            inner = ["net(x).sum().backward()"]
        lines += [f"def call_{n}(o, x):", *_indent(inner)]
    return [
        *lines,
        "for x in loader:",
        "    opt.zero_grad()",
        "    call_0(opt, x)",
        "    opt.step()",
    ]


def _many_optimizers(size: int) -> list[str]:
    lines: list[str] = []
    loop: list[str] = []
    for n in range(size):
        lines += [f"net{n} = nn.Linear(4, 2)", f"opt{n} = torch.optim.SGD(net{n}.parameters())"]
        loop += [f"opt{n}.zero_grad()", f"net{n}(x).sum().backward()", f"opt{n}.step()"]
    return [*lines, "for x in loader:", *_indent(loop)]


def _many_loops(size: int) -> list[str]:
    lines: list[str] = []
    for n in range(size):
        lines += [f"def train_{n}(net, opt, loader):", "    for x in loader:", *_indent(_BODY, 2)]
    return lines


_SHAPES = {
    "long_file": _long_file,
    "deep_nesting": _deep_nesting,
    "many_branches": _many_branches,
    "long_call_chain": _long_call_chain,
    "branching_calls": _branching_calls,
    "many_optimizers": _many_optimizers,
    "many_loops": _many_loops,
}
