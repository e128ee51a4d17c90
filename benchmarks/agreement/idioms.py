"""Every way of writing a clear, a backward, a step, a clip: what real code is made of."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from benchmarks.agreement.tree import Block, Line, Node

CLEARS = {
    "optimizer": 8,
    "set_to_none=True": 2,
    "set_to_none=False": 3,
    "module": 4,
    "grad = None": 3,
    "grad.zero_()": 3,
    "grad.data.zero_()": 2,
    "grad.detach_().zero_()": 2,
    "grad.fill_(0)": 2,
    "grad *= 0": 2,
    "del grad": 2,
    "param_groups": 2,
    "comprehension": 2,
    "_foreach_zero_": 2,
    "helper": 3,
    "method": 2,
    "unguarded zero_()": 2,
}
HELPERS = {
    "reset": ["def reset(o):", "    o.zero_grad()"],
    "wipe": [
        "def wipe(m):",
        "    for p in m.parameters():",
        "        if p.grad is not None:",
        "            p.grad.zero_()",
    ],
    "advance": ["def advance(o):", "    o.step()"],
    "fill": ["def fill(value):", "    value.backward()"],
    "advance_and_reset": ["def advance_and_reset(o):", "    o.step()", "    o.zero_grad()"],
    "learn": [
        "def learn(o, value):",
        "    o.zero_grad()",
        "    value.backward()",
        "    o.step()",
    ],
    "pieces": [
        "def pieces(batch, size):",
        "    for at in range(0, len(batch), size):",
        "        yield batch[at : at + size]",
    ],
    "apply": ["def apply(act):", "    act()"],
    "Minder": [
        "class Minder:",
        "    def __init__(self, net, opt):",
        "        self.net = net",
        "        self.opt = opt",
        "",
        "    def zero_grad(self):",
        "        for p in self.net.parameters():",
        "            p.grad = None",
        "",
        "    def backward(self, loss):",
        "        loss.backward()",
        "",
        "    def step(self):",
        "        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)",
        "        self.opt.step()",
    ],
    "Holder": [
        "class Holder:",
        "    def __init__(self, o):",
        "        self.o = o",
        "",
        "    def clean(self):",
        "        self.o.zero_grad()",
        "",
        "    def advance(self):",
        "        self.o.step()",
    ],
}
# Clears by hand that stand in one loop over the parameters: what is done to each.
_BY_HAND = {
    "grad = None": ["p.grad = None"],
    "del grad": ["del p.grad"],
    "unguarded zero_()": ["p.grad.zero_()"],
}
_GUARDED = {
    "grad.zero_()": ["p.grad.zero_()"],
    "grad.data.zero_()": ["p.grad.data.zero_()"],
    "grad.detach_().zero_()": ["p.grad.detach_()", "p.grad.zero_()"],
    "grad.fill_(0)": ["p.grad.fill_(0)"],
    "grad *= 0": ["p.grad *= 0"],
}


@dataclass(slots=True)
class Pair:
    """A network and the optimizer that holds it, as the program calls them."""

    net: str
    opt: str
    holder: str = ""  # an object of the program's own around the optimizer


@dataclass(slots=True)
class Idioms:
    """Writes single events; remembers which functions of its own the program needs."""

    random: random.Random
    scaler: str = ""
    needs: dict[str, None] = field(default_factory=dict)
    favourite: str = ""  # the clear this author writes mostly

    def helper(self, name: str) -> str:
        self.needs[name] = None
        return name

    def clear(self, pair: Pair) -> list[Node]:
        kinds, weights = zip(*CLEARS.items(), strict=True)
        if not self.favourite:
            self.favourite = self.random.choices(kinds, weights)[0]
        kind = self.favourite
        if self.random.random() < 0.3:
            kind = self.random.choices(kinds, weights)[0]
        return [self.clear_as(kind, pair)]

    def clear_as(self, kind: str, pair: Pair) -> Node:
        """Write one clear in this way."""
        tag = f"clear: {kind}"
        net, opt = pair.net, pair.opt
        if pair.holder and kind in ("optimizer", "helper"):
            kind, tag = "method", "clear: method"  # who has one uses it
        elif kind == "method" and not pair.holder:
            kind, tag = "optimizer", "clear: optimizer"
        if kind == "optimizer":
            return Line(f"{opt}.zero_grad()", tag)
        if kind == "method":
            return Line(f"{pair.holder}.clean()", tag)
        if kind.startswith("set_to_none"):
            return Line(f"{opt}.zero_grad({kind})", tag)
        if kind == "module":
            return Line(f"{net}.zero_grad()", tag)
        if kind == "helper":
            name = self.random.choice(["reset", "wipe"])
            return Line(f"{self.helper(name)}({opt if name == 'reset' else net})", tag)
        held = f"{net}.parameters()"
        present = "if p.grad is not None"
        if kind == "comprehension":
            return Line(f"[p.grad.zero_() for p in {held} {present}]", tag)
        if kind == "_foreach_zero_":
            listed = f"grads = [p.grad for p in {held} {present}]"
            filled = Block("if grads:", [Line("torch._foreach_zero_(grads)")])
            return Block("if True:", [Line(listed), filled], tag, whole=True)
        if kind == "param_groups":
            inner = Block('for p in group["params"]:', [Line("p.grad = None")])
            return Block(f"for group in {opt}.param_groups:", [inner], tag, whole=True)
        head = f"for p in {held}:"
        if kind in _BY_HAND:
            return Block(head, [Line(text) for text in _BY_HAND[kind]], tag, whole=True)
        inside: list[Node] = [Line(text) for text in _GUARDED[kind]]
        return Block(head, [Block(f"{present}:", inside)], tag, whole=True)

    def backward(self, loss: str, *, divide: int = 0) -> list[Node]:
        """Write the backward of a loss expression."""
        if divide:
            loss = f"{loss} / {divide}"
        if self.scaler and self.random.random() < 0.96:
            return [
                Line(f"loss = {loss}"),
                Line(f"{self.scaler}.scale(loss).backward()", "backward: scaled"),
            ]
        kind = self.random.choices(
            ["loss", "chained", "autograd", "helper", "twice"], [10, 3, 2, 2, 1]
        )[0]
        if kind == "chained":
            text = f"({loss}).backward()" if divide else f"{loss}.backward()"
            return [Line(text, "backward: chained")]
        first = Line(f"loss = {loss}")
        if kind == "autograd":
            return [first, Line("torch.autograd.backward(loss)", "backward: torch.autograd")]
        if kind == "helper":
            return [first, Line(f"{self.helper('fill')}(loss)", "backward: helper")]
        if kind == "twice":
            return [
                first,
                Line("loss.backward(retain_graph=True)", "backward: retain_graph"),
                Line("loss.backward()", "backward: loss"),
            ]
        return [first, Line("loss.backward()", "backward: loss")]

    def clip(self, net: str) -> Node:
        kind = self.random.choices(["norm", "value", "foreach"], [6, 2, 1])[0]
        if kind == "value":
            return Line(
                f"nn.utils.clip_grad_value_({net}.parameters(), 0.5)", "clip: clip_grad_value_"
            )
        if kind == "foreach":
            return Line(
                f"torch.nn.utils.clip_grad_norm_(list({net}.parameters()), max_norm=1.0)",
                "clip: clip_grad_norm_",
            )
        return Line(f"nn.utils.clip_grad_norm_({net}.parameters(), 1.0)", "clip: clip_grad_norm_")

    def step(self, pair: Pair, *, clip: float = 0.15) -> list[Node]:
        """Write the step, and what stands right before it."""
        clips = self.random.random() < clip
        if self.scaler:
            return self._scaled_step(pair, clips or self.random.random() < 0.3)
        nodes: list[Node] = [self.clip(pair.net)] if clips else []
        if self.random.random() < 0.15:
            return [*nodes, Line(f"{self.helper('advance')}({pair.opt})", "step: helper")]
        if pair.holder and self.random.random() < 0.6:
            return [*nodes, Line(f"{pair.holder}.advance()", "step: method")]
        return [*nodes, Line(f"{pair.opt}.step()", "step: optimizer")]

    def _scaled_step(self, pair: Pair, clips: bool) -> list[Node]:
        nodes: list[Node] = []
        if clips:
            if self.random.random() < 0.75:
                nodes.append(Line(f"{self.scaler}.unscale_({pair.opt})", "scaler: unscale_"))
            nodes.append(self.clip(pair.net))
        return [*nodes, Line(f"{self.scaler}.step({pair.opt})", "step: scaler")]

    def update(self) -> Node:
        return Line(f"{self.scaler}.update()", "scaler: update")

    def by_hand(self, net: str) -> list[Node]:
        """Write a step without an optimizer."""
        inner = Block(f"for p in {net}.parameters():", [Line("p -= 0.01 * p.grad")])
        return [Block("with torch.no_grad():", [inner], "step: by hand", whole=True)]

    def closure(self, pair: Pair, loss: str, *, clears: bool) -> list[Node]:
        """Write a step with a closure that does it all."""
        body: list[Node] = [
            *(self.clear(pair) if clears else []),
            Line(f"loss = {loss}"),
            Line("loss.backward()"),
            Line("return loss"),
        ]
        return [
            Block("def closure():", body, whole=True),
            Line(f"{pair.opt}.step(closure)", "step: closure"),
        ]
