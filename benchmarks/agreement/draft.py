"""A program in parts, while it is being written."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from benchmarks.agreement.idioms import Idioms, Pair
from benchmarks.agreement.tree import Node

OVERFLOW = "2.0**127"  # a scale that the first losses do not survive


@dataclass(slots=True)
class Draft:
    """What a program makes, and the loop body that trains."""

    random: random.Random
    write: Idioms
    theme: str
    own: str = ""  # "self." in a class
    made: list[tuple[str, str]] = field(default_factory=list)  # names and constructors, in order
    before: list[Node] = field(default_factory=list)  # ahead of the loop
    body: list[Node] = field(default_factory=list)
    after_epoch: list[Node] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    imports: dict[str, None] = field(default_factory=dict)
    epochs: bool = False
    counter: bool = False  # the loop counts in a variable of its own

    def network(self, name: str, sizes: str = "4, 4") -> str:
        """Make a network; return what the program calls it."""
        self.made.append((name, f"nn.Linear({sizes})"))
        return self.own + name

    def optimizer(self, name: str, parameters: str) -> str:
        """Make an optimizer; return what the program calls it."""
        kind = self.random.choice(["SGD", "SGD", "Adam", "AdamW"])
        self.made.append((name, f"torch.optim.{kind}({parameters}, lr=0.01)"))
        return self.own + name

    def pair(self, net: str, opt: str) -> Pair:
        """Make a network and its optimizer."""
        made = Pair(self.network(net), "")
        made.opt = self.optimizer(opt, f"{made.net}.parameters()")
        self.pairs.append(made)
        if self.chance(0.2):
            self.write.helper("Holder")
            self.made.append((f"{opt}_holder", f"Holder({made.opt})"))
            made.holder = f"{self.own}{opt}_holder"
        return made

    def scaler(self) -> None:
        """Make a loss scaler; a few skip their first steps, which a large scale makes overflow."""
        scale = OVERFLOW if self.chance(0.15) else "8.0"
        self.made.append(("scaler", f'torch.amp.GradScaler("cpu", init_scale={scale})'))
        self.write.scaler = self.own + "scaler"

    def chance(self, p: float) -> bool:
        return self.random.random() < p
