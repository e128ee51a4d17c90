"""Two networks are two, however they were made, kept and named, and so are their optimizers.

Each way to make two networks goes with each way to make their optimizers. Cleared together and
stepped one after the other, they are right only if they are told apart; never cleared, both
steps are wrong.
"""

from __future__ import annotations

import textwrap

import pytest

import zerograd

# name -> (what stands before, how the two are made, the one, the other)
NETWORKS = {
    "two names": ("", "a = nn.Linear(3, 3)\nb = nn.Linear(3, 3)", "a", "b"),
    "a maker": ("def make():\n    return nn.Linear(3, 3)", "a, b = make(), make()", "a", "b"),
    "a maker with a name inside": (
        "def make():\n    net = nn.Sequential(nn.Linear(3, 3))\n    net.eval()\n    return net",
        "a = make()\nb = make()",
        *("a", "b"),
    ),
    "a maker of elsewhere": ("import models", "a = models.get('x')\nb = models.get('y')", "a", "b"),
    "a maker of elsewhere, one name": (
        "import models",
        "nets = []\nn = models.get('x')\nnets.append(n)\nn = models.get('y')\nnets.append(n)",
        *("nets[0]", "nets[1]"),
    ),
    "a maker inside a maker": (
        "def make():\n    def one():\n        return nn.Linear(3, 3)\n    return one(), one()",
        "a, b = make()",
        *("a", "b"),
    ),
    "a generator": (
        "def make(n):\n    for _ in range(n):\n        yield nn.Linear(3, 3)",
        "a, b = make(2)",
        *("a", "b"),
    ),
    "partial": (
        "from functools import partial\nmk = partial(nn.Linear, 3)",
        "a, b = mk(3), mk(3)",
        *("a", "b"),
    ),
    "lambda": ("mk = lambda n: nn.Linear(n, n)", "a, b = mk(3), mk(3)", "a", "b"),
    "map": ("def mk(n):\n    return nn.Linear(n, n)", "a, b = map(mk, (3, 3))", "a", "b"),
    "a copy": ("import copy", "a = nn.Linear(3, 3)\nb = copy.deepcopy(a)", "a", "b"),
    "one name, moved": (
        "",
        "n = nn.Linear(3, 3)\na = n.cuda()\nn = nn.Linear(3, 3)\nb = n.cuda()",
        *("a", "b"),
    ),
    "one name, a list": (
        "",
        "nets = []\nn = nn.Linear(3, 3)\nnets.append(n)\nn = nn.Linear(3, 3)\nnets.append(n)",
        *("nets[0]", "nets[1]"),
    ),
    "one name, a dict": (
        "",
        "nets = {}\nn = nn.Linear(3, 3)\nnets['a'] = n\nn = nn.Linear(3, 3)\nnets['b'] = n",
        *("nets['a']", "nets['b']"),
    ),
    "one name, round for round": (
        "",
        "nets = {}\nfor k in ('a', 'b'):\n    net = nn.Linear(3, 3)\n    nets[k] = net",
        *("nets['a']", "nets['b']"),
    ),
    "one name, round for unknown round": (
        "",
        "nets = {}\nfor k in cfg.names:\n    net = nn.Linear(3, 3)\n    nets[k] = net.cuda()",
        *("nets['a']", "nets['b']"),
    ),
    "a list": ("", "nets = [nn.Linear(3, 3), nn.Linear(3, 3)]", "nets[0]", "nets[1]"),
    "a list, appended to": (
        "",
        "nets = []\nfor _ in range(2):\n    nets.append(nn.Linear(3, 3))",
        *("nets[0]", "nets[1]"),
    ),
    "a list, appended to by another": (
        "def add(nets):\n    nets.append(nn.Linear(3, 3))",
        "nets = []\nadd(nets)\nadd(nets)",
        *("nets[0]", "nets[1]"),
    ),
    "a list, handed to another": (
        "def add(nets, net):\n    nets.append(net)",
        "nets = []\nadd(nets, nn.Linear(3, 3))\nadd(nets, nn.Linear(3, 3))",
        *("nets[0]", "nets[1]"),
    ),
    "a list with places": (
        "",
        "nets = [None, None]\nnets[0] = nn.Linear(3, 3)\nnets[1] = nn.Linear(3, 3)",
        *("nets[0]", "nets[1]"),
    ),
    "a list with places, counted": (
        "",
        "nets = [None] * 2\nfor i in range(2):\n    nets[i] = nn.Linear(3, 3)",
        *("nets[0]", "nets[1]"),
    ),
    "a comprehension": ("", "nets = [nn.Linear(3, 3) for _ in range(2)]", "nets[0]", "nets[1]"),
    "a comprehension of unknown length": (
        "def make(i):\n    net = nn.Linear(3, 3)\n    return net",
        "nets = [make(i) for i in cfg.sizes]",
        *("nets[0]", "nets[1]"),
    ),
    "a comprehension, unpacked": ("", "a, b = [nn.Linear(3, 3) for _ in range(2)]", "a", "b"),
    "a generator, unpacked": ("", "a, b = (nn.Linear(3, 3) for _ in range(2))", "a", "b"),
    "a tuple, unpacked with a star": (
        "def make():\n    return nn.Linear(3, 3), nn.Linear(3, 3), 1",
        "a, *rest = make()",
        *("a", "rest[0]"),
    ),
    "a ModuleList": (
        "",
        "nets = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])",
        *("nets[0]", "nets[1]"),
    ),
    "a ModuleDict": (
        "",
        "nets = nn.ModuleDict()\nfor k in ('a', 'b'):\n    nets[k] = nn.Linear(3, 3)",
        *("nets['a']", "nets['b']"),
    ),
    "a dict, filled by another": (
        "def add(nets, key, net):\n    nets[key] = net",
        "nets = {}\nadd(nets, 'a', nn.Linear(3, 3))\nadd(nets, 'b', nn.Linear(3, 3))",
        *("nets['a']", "nets['b']"),
    ),
    "a dict, updated": (
        "",
        "nets = {}\nnets.update(a=nn.Linear(3, 3))\nnets.update({'b': nn.Linear(3, 3)})",
        *("nets['a']", "nets['b']"),
    ),
    "a dict of unknown keys": (
        "",
        "nets = {k: nn.Linear(3, 3) for k in cfg.names}",
        *("nets['a']", "nets['b']"),
    ),
    "a dict that a maker fills": (
        "def build(cfg):\n    nets = {}\n    for k, v in cfg.items():\n"
        "        nets[k] = nn.Linear(v, v)\n    return nets",
        "nets = build(cfg)",
        *("nets['a']", "nets['b']"),
    ),
    "a dict that makes what is missing": (
        "from collections import defaultdict",
        "nets = defaultdict(lambda: nn.Linear(3, 3))",
        *("nets['a']", "nets['b']"),
    ),
    "attributes": (
        "class Box:\n    pass",
        "box = Box()\nfor k in ('a', 'b'):\n    setattr(box, k, nn.Linear(3, 3))",
        *("box.a", "box.b"),
    ),
    "a registry": (
        "class Registry:\n    def __init__(self):\n        self.items = {}\n"
        "    def add(self, key, net):\n        self.items[key] = net\n"
        "    def __getitem__(self, key):\n        return self.items[key]",
        "r = Registry()\nr.add('a', nn.Linear(3, 3))\nr.add('b', nn.Linear(3, 3))",
        *("r['a']", "r['b']"),
    ),
    "parts": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.f = self._make(3)\n        self.g = self._make(3)\n"
        "    def _make(self, n):\n        return nn.Linear(n, n)",
        "net = Net()",
        *("net.f", "net.g"),
    ),
    "parts in a list": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.heads = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])",
        "net = Net()",
        *("net.heads[0]", "net.heads[1]"),
    ),
    "a namespace": (
        "from types import SimpleNamespace",
        "m = SimpleNamespace(a=nn.Linear(3, 3), b=nn.Linear(3, 3))",
        *("m.a", "m.b"),
    ),
    "a namespace, set": (
        "from types import SimpleNamespace",
        "m = SimpleNamespace(a=nn.Linear(3, 3))\nm.b = nn.Linear(3, 3)",
        *("m.a", "m.b"),
    ),
    "a named tuple": (
        "from collections import namedtuple\nPair = namedtuple('Pair', 'a b')",
        "p = Pair(nn.Linear(3, 3), nn.Linear(3, 3))",
        *("p.a", "p.b"),
    ),
} | {
    f"objects, {name}": (
        "class Agent:\n    def __init__(self, name):\n        self.net = nn.Linear(3, 3)",
        *(made, f"{one}.net", f"{other}.net"),
    )
    for name, made, one, other in (
        ("two names", "x = Agent(1)\ny = Agent(2)", "x", "y"),
        ("a list", "agents = [Agent(1), Agent(2)]", "agents[0]", "agents[1]"),
        ("a comprehension", "agents = [Agent(i) for i in range(2)]", "agents[0]", "agents[1]"),
        ("a dict", "agents = {n: Agent(n) for n in ('p', 'q')}", "agents['p']", "agents['q']"),
        (
            "one name",
            "agents = []\nagent = Agent(1)\nagents.append(agent)\nagent = Agent(2)\n"
            "agents.append(agent)",
            *("agents[0]", "agents[1]"),
        ),
        (
            "appended",
            "agents = []\nfor i in cfg.names:\n    agent = Agent(i)\n    agents.append(agent)",
            *("agents[0]", "agents[1]"),
        ),
        (
            "a dict of unknown keys",
            "agents = {}\nfor n in cfg.names:\n    agents[n] = Agent(n)",
            *("agents['p']", "agents['q']"),
        ),
    )
}
# name -> (how they are made, the clear of both, the one, the other)
OPTIMIZERS = {
    "two names": (
        "oa = optim.Adam({a}.parameters())\nob = optim.Adam({b}.parameters())",
        "oa.zero_grad()\nob.zero_grad()",
        *("oa", "ob"),
    ),
    "a maker": (
        "oa = optimizer_of({a})\nob = optimizer_of({b})",
        "oa.zero_grad()\nob.zero_grad()",
        *("oa", "ob"),
    ),
    "a dict": (
        "opts = {{}}\nput(opts, 'a', {a})\nput(opts, 'b', {b})",
        "for o in opts.values():\n    o.zero_grad()",
        *("opts['a']", "opts['b']"),
    ),
    "a comprehension": (
        "opts = [optim.SGD(n.parameters(), 0.1) for n in ({a}, {b})]",
        "for o in opts:\n    o.zero_grad()",
        *("opts[0]", "opts[1]"),
    ),
    "a dict comprehension": (
        "opts = {{k: optim.SGD(n.parameters(), 0.1) for k, n in zip('ab', ({a}, {b}))}}",
        "for o in opts.values():\n    o.zero_grad()",
        *("opts['a']", "opts['b']"),
    ),
    "appended": (
        "opts = []\nfor n in ({a}, {b}):\n    o = optim.Adam(n.parameters())\n    opts.append(o)",
        "for o in opts:\n    o.zero_grad()",
        *("opts[0]", "opts[1]"),
    ),
}
HELPERS = """\
import torch
from torch import nn, optim

def optimizer_of(net):
    return optim.Adam(net.parameters())

def put(opts, key, net):
    opts[key] = optim.Adam(net.parameters())

"""


def _program(networks: str, optimizers: str, *, cleared: bool, inside: bool) -> str:
    before, made, a, b = NETWORKS[networks]
    held, clear, oa, ob = OPTIMIZERS[optimizers]
    round_ = [clear] if cleared else []
    for net, optimizer in ((a, oa), (b, ob)):
        round_ += [f"loss = {net}(x).sum()", "loss.backward()", f"{optimizer}.step()"]
    body = [
        made,
        held.format(a=a, b=b),
        "for x in loader:",
        textwrap.indent("\n".join(round_), "    "),
    ]
    text = "\n".join(body)
    if inside:
        text = "def main(loader, cfg):\n" + textwrap.indent(text, "    ")
    return f"{HELPERS}{before}\n\n{text}\n"


@pytest.mark.parametrize("optimizers", OPTIMIZERS)
@pytest.mark.parametrize("networks", NETWORKS)
def test_two_networks_are_two(networks: str, optimizers: str) -> None:
    for inside in (True, False):
        right = _program(networks, optimizers, cleared=True, inside=inside)
        assert not zerograd.check_source(right, "right.py"), right
        wrong = _program(networks, optimizers, cleared=False, inside=inside)
        steps = [n for n, line in enumerate(wrong.splitlines(), 1) if line.endswith(".step()")]
        found = [(each.rule.code, each.spot.line) for each in zerograd.check_source(wrong, "w.py")]
        assert sorted(found) == [("ZG101", line) for line in steps], wrong
