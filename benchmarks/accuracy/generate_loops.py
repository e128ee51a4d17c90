"""Write small random training programs, right and wrong, from a seed.

The programs use only what the brute-force interpreter executes exactly: named networks
and optimizers, flags that stay, tests of a counter, tests of the batch, nested loops,
early `continue`, helper functions, a loss scaler. The same seed gives the same program.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass

HEADER = """\
import torch
import torch.nn as nn

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
SECOND = """\
other = nn.Linear(4, 2)
opt2 = torch.optim.SGD(other.parameters(), lr=0.1)
"""


@dataclass(slots=True)
class _Writer:
    """One program while it is being written."""

    random: random.Random
    two: bool
    amp: bool
    helpers: bool
    in_loop: bool = False
    second: bool = False  # this part of the program is about the second network

    def optimizer(self) -> tuple[str, str]:
        """Return the optimizer of the part being written; now and then it is the wrong one."""
        slip = self.two and self.random.random() < 0.05
        return ("opt2", "other") if self.second != slip else ("opt", "net")

    def clear(self) -> list[str]:
        opt, net = self.optimizer()
        forms = [
            [f"{opt}.zero_grad()"],
            [f"{opt}.zero_grad(set_to_none=True)"],
            [f"{net}.zero_grad()"],
            [f"for p in {net}.parameters():", "    p.grad = None"],
        ]
        if self.helpers:
            forms.append([f"reset({opt})"])
        return self.random.choices(forms, [6, 1, 2, 1, 3][: len(forms)])[0]

    def backward(self) -> list[str]:
        _, net = self.optimizer()
        scaled = self.amp and self.random.random() < 0.9
        loss = f"{net}(x).sum()"
        if self.two and self.random.random() < 0.15:
            loss = "(net(x) + other(x)).sum()"
        return [f"loss = {loss}", "scaler.scale(loss).backward()" if scaled else "loss.backward()"]

    def step(self) -> list[str]:
        opt, net = self.optimizer()
        if self.helpers and self.random.random() < 0.2 and not self.amp:
            return [f"advance({opt})"]
        if not self.amp or self.random.random() < 0.05:
            clip = [f"nn.utils.clip_grad_norm_({net}.parameters(), 1.0)"]
            return (clip if self.random.random() < 0.15 else []) + [f"{opt}.step()"]
        lines = []
        if self.random.random() < 0.5:
            if self.random.random() < 0.7:
                lines.append(f"scaler.unscale_({opt})")
            lines.append(f"nn.utils.clip_grad_norm_({net}.parameters(), 1.0)")
        lines.append(f"scaler.step({opt})")
        if self.random.random() < 0.85:
            lines.append("scaler.update()")
        return lines

    def condition(self) -> str:
        fixed = ["args.flag", "args.flag", "not args.flag", "args.other"]
        moving = ["(i + 1) % 2 == 0", "(i + 1) % 3 == 0", "x.sum() > 0", "ready"]
        return self.random.choice(fixed + (moving if self.in_loop else []))

    def piece(self, depth: int) -> list[str]:
        """Return one statement, simple or compound."""
        choice = self.random.random()
        if choice < 0.26:
            return self.clear()
        if choice < 0.52:
            return self.backward()
        if choice < 0.74:
            return self.step()
        if choice < 0.79 and self.in_loop:
            return [f"if {self.condition()}:", "    continue"]
        if depth < 2 and choice < 0.95:
            lines = [f"if {self.condition()}:", *_indent(self.block(depth + 1, 1))]
            if self.random.random() < 0.35:
                lines += ["else:", *_indent(self.block(depth + 1, 1))]
            return lines
        if depth < 2 and self.in_loop:
            return ["for part in x:", *_indent(self.block(depth + 1, 1))]
        return ["print(x)"] if self.in_loop else ["print(net)"]

    def block(self, depth: int, least: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(least, least + 1)):
            lines += self.piece(depth)
        return lines

    def body(self) -> list[str]:
        """Return a loop body: a right one, disturbed a little, or a random one."""
        if self.random.random() < 0.35:
            return self.block(0, 3)
        usual = [self.clear(), self.backward(), self.step()]
        if self.random.random() < 0.4:
            usual = [usual[1], usual[2], usual[0]]
        if self.two and self.random.random() < 0.7:
            self.second = not self.second
            usual += [self.clear(), self.backward(), self.step()]
        for _ in range(self.random.randint(0, 2)):
            place = self.random.randrange(len(usual))
            act = self.random.random()
            if act < 0.25:
                del usual[place]
            elif act < 0.5:
                usual[place] = [f"if {self.condition()}:", *_indent(usual[place])]
            elif act < 0.75:
                usual.insert(place, self.piece(1))
            else:
                other = self.random.randrange(len(usual))
                usual[place], usual[other] = usual[other], usual[place]
            if not usual:
                usual = [self.backward()]
        return [line for part in usual for line in part]


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines] or ["    pass"]


def generate(seed: int) -> str:
    """Return the program of this seed."""
    chance = random.Random(seed)
    writer = _Writer(
        chance,
        two=chance.random() < 0.4,
        amp=chance.random() < 0.25,
        helpers=chance.random() < 0.3,
    )
    lines = HEADER.splitlines()
    if writer.two:
        lines += SECOND.splitlines()
    if writer.amp:
        lines.append("scaler = torch.amp.GradScaler('cuda')")
    if writer.helpers:
        lines += ["", "", "def reset(o):", "    o.zero_grad()"]
        lines += ["", "", "def advance(o):", "    o.step()", "", ""]
    writer.in_loop = True
    body = writer.body()
    if any("ready" in line for line in body):
        body.insert(0, "ready = x.sum() > 1")
    loop = ["for i, x in enumerate(loader):", *_indent(body)]
    writer.in_loop = False
    if chance.random() < 0.3:
        before = writer.clear() if chance.random() < 0.5 else []
        loop = ["for epoch in range(3):", *_indent([*before, *loop])]
    elif chance.random() < 0.2:
        loop = [*writer.clear(), *loop]
    return "\n".join([*lines, *loop]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    print(generate(parser.parse_args().seed), end="")


if __name__ == "__main__":
    main()
