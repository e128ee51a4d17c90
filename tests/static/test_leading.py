"""Which lines lead to events, and that nothing of a file stays behind once it is checked."""

import ast
import subprocess
import sys
import textwrap

from zerograd.static.engine.identity.unit import Unit
from zerograd.static.source import Source

MODULE = """
def plain(x):
    return x + 1

def clears(opt):
    opt.zero_grad()

def calls(opt):
    clears(opt)

def calls_a_method(trainer):
    trainer.fit_one()

def only_defines():
    def clears():
        pass

class Trainer:
    def fit_one(self):
        self._update()

    def _update(self):
        self.loss.backward()

    def step(self):
        self.loss.backward()

    def names_itself(self, env, unself):
        env.step(1)
        unself.step(2)

    def asks_itself(self):
        self.step()
"""


def leading_functions(text: str) -> set[str]:
    unit = Unit(Source.parse(text, "a.py"))
    functions = (node for node in ast.walk(unit.source.tree) if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if unit.has_events(node)}


def test_what_calls_a_function_with_events_leads_to_them_too():
    assert leading_functions(MODULE.replace(".step(", ".advance(").replace(" step(", " go(")) == {
        "clears",
        "calls",
        "calls_a_method",
        "fit_one",
        "_update",
        "go",
    }


def test_a_method_that_everything_has_counts_only_on_self():
    text = textwrap.dedent(
        """
        class Trainer:
            def update(self):
                self.loss.backward()

            def another(self, env):
                env.update(1)
                unself.update(2)

            def own(self):
                self.update()
        """
    )
    assert leading_functions(text) == {"update", "own"}


def test_what_is_only_said_leads_nowhere():
    text = textwrap.dedent(
        """
        def clears(opt):
            opt.zero_grad()

        def told(x):
            x += 1  # as for backward compatibility, calls(opt) and clears(opt)
            raise ValueError("call loss.backward() first, then clears(opt)")

        def counts(args):
            return args.gradient_accumulation_steps * args.steps

        def asks(opt, loss):
            getattr(opt, "zero_grad")()

        def formats(loss):
            print(f"that was {loss.backward()}")
        """
    )
    assert leading_functions(text) == {"clears", "asks", "formats"}


def test_a_name_that_only_speaks_of_an_event_leads_nowhere():
    text = textwrap.dedent(
        """
        def counts(self):
            self.step += 1
            self.step = 0
            return self.step % self.every

        def keeps(self):
            self.step_store = []

        def sets(args):
            return dict(max_norm=args.clip_grad, prefetch=args.backward_prefetch)

        def is_asked(p):
            return p.requires_grad

        def checkpoints(self):
            return self.grad_checkpointing

        class Double:
            def backward(ctx, given):
                return 2 * given
        """
    )
    assert leading_functions(text) == set()


def test_a_name_that_is_called_assigned_or_handed_on_leads_to_events():
    text = textwrap.dedent(
        """
        def calls(self, loss):
            self.backward_all(loss)

        def hands_over(engine):
            engine.run(do_backward_twice)

        def do_backward_twice(loss):
            pass

        def freezes(p):
            p.requires_grad = False

        def freezes_by_name(p):
            setattr(p, "requires_grad", False)

        def binds(opt):
            return opt.step

        def lists(opt):
            run_all([opt.step])

        def binds_before_a_sum(opt, x):
            act = opt.step
            +x

        def updates(self):
            self.grad_scaler.update()

        def reads(p):
            return p.grad * 2
        """
    )
    functions = {line.split("(")[0][4:] for line in text.splitlines() if line.startswith("def ")}
    assert leading_functions(text) == functions


TRAINER = """
import torch

class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(self, loader):
        def closure():
            loss = self.net(batch).sum()
            loss.backward()
            return closure
        for batch in loader:
            if batch:
                self.opt.zero_grad()
            self.opt.step(closure)

Trainer(torch.nn.Linear(2, 2)).fit([])
"""


def test_a_checked_file_leaves_nothing_for_the_garbage_collector():
    script = f"""
import gc
from zerograd import check_source

check_source({TRAINER!r})  # imports and caches
gc.disable()
gc.collect()
check_source({TRAINER!r})
print(gc.collect())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50  # of some thousand
