"""Each named shape of a training loop, as a history, and what is found in it."""

from __future__ import annotations

import pytest

from tests.lifecycle.histories import Loop
from zerograd.lifecycle.rule import RuleKind, Witness
from zerograd.rules import ALL_RULES

GAN = {"opt_g": ["gen"], "opt_d": ["disc"]}
AGENT = {"opt_actor": ["actor"], "opt_critic": ["critic"]}
SHARED = {"opt_actor": ["encoder", "actor"], "opt_critic": ["encoder", "critic"]}
PAIR = {"opt_a": ["a"], "opt_b": ["b"]}

CORRECT = [
    Loop("plain", "clear opt\nbackward net\nstep opt"),
    Loop("clear at the end, nothing before the loop", "backward net\nstep opt\nclear opt"),
    Loop("clear to zero", "clear opt to_none=no\nbackward net\nstep opt"),
    Loop("a rotated loop: the step comes first", "step opt\nclear opt\nbackward net"),
    Loop("several losses, one step", "clear opt\nbackward net\nbackward net\nstep opt"),
    Loop(
        "a window of four",
        "backward net averaged=yes\nstep opt when i % 4 == 3\nclear opt when i % 4 == 3",
    ),
    Loop(
        "a window cleared at its start",
        "clear opt when i % 4 == 0\nbackward net averaged=yes\nstep opt when i % 4 == 3",
    ),
    Loop(
        "a window whose tail is carried into the next epoch exactly",
        "backward net averaged=yes\nstep opt when n % 4 == 3\nclear opt when n % 4 == 3",
        epochs=5,
        batches=10,
    ),
    Loop(
        "a window whose short tail is stepped at the end of the epoch",
        "backward net averaged=yes\n"
        "step opt when i % 4 == 3 or i == N - 1\nclear opt when i % 4 == 3 or i == N - 1",
        epochs=5,
        batches=10,
    ),
    Loop(
        "windows bounded to full ones",
        "backward net averaged=yes when i < 8\nstep opt when i in (3, 7)\n"
        "clear opt when i in (3, 7)",
        epochs=4,
        batches=10,
    ),
    Loop(
        "windows that grow during training",
        "backward net averaged=yes\n"
        "step opt when i % (2 + e) == 1 + e\nclear opt when i % (2 + e) == 1 + e",
        epochs=6,
        batches=60,
    ),
    Loop(
        "windows of any size, by how many tokens came",
        "backward net averaged=yes\n"
        "step opt when (n * n + n // 7) % 3 == 1\nclear opt when (n * n + n // 7) % 3 == 1",
        epochs=8,
        batches=31,
    ),
    Loop(
        "windows of two and three in turn",
        "backward net averaged=yes\nstep opt when i % 5 in (1, 4)\nclear opt when i % 5 in (1, 4)",
        epochs=3,
        batches=20,
    ),
    Loop(
        "a window of one",
        "clear opt\nbackward net\nstep opt when i % 1 == 0",
        epochs=3,
        batches=5,
    ),
    Loop(
        "a NaN guard that clears and goes on to the next batch",
        "backward net\nclear opt finite=no when i % 3 == 0\n"
        "step opt when i % 3 != 0\nclear opt when i % 3 != 0",
        epochs=3,
        batches=9,
    ),
    Loop(
        "a NaN guard that clears and steps all the same",
        "backward net\nclear opt finite=no when i in (2, 3, 4)\nstep opt\nclear opt",
    ),
    Loop(
        "a NaN guard inside windows",
        "backward net averaged=yes\nclear opt finite=no when n in (5, 9, 21, 25)\n"
        "step opt when i % 4 == 3\nclear opt when i % 4 == 3",
        epochs=5,
        batches=16,
    ),
    Loop(
        "a guard against loss spikes: batches are dropped now and then",
        "clear opt\nbackward net\nstep opt when n % 5 not in (2, 3)",
        epochs=4,
        batches=25,
    ),
    Loop(
        "batches skipped before their backward",
        "clear opt\nbackward net when i % 3\nstep opt when i % 3",
    ),
    Loop(
        "one loss without gradient: the step is made all the same",
        "clear opt\nbackward net when i != 4\nstep opt",
    ),
    Loop("a demo that only steps, to move a scheduler", "step opt"),
    Loop("an unused head", "clear opt\nbackward net\nstep opt", holdings={"opt": ["net", "head"]}),
    Loop(
        "two heads, each batch fills one",
        "clear opt\nbackward body one when i % 2\nbackward body two when not i % 2\nstep opt",
        holdings={"opt": ["body", "one", "two"]},
    ),
    Loop(
        "frozen parts: filled by nobody, held by the optimizer",
        "clear opt\nbackward head\nstep opt",
        holdings={"opt": ["backbone", "head"]},
    ),
    Loop(
        "parts thawed later",
        "clear opt\nbackward head when n < 4\nbackward head backbone when n >= 4\nstep opt",
        holdings={"opt": ["backbone", "head"]},
    ),
    # closures and steps that are not plain
    Loop(
        "LBFGS: each return of the closure is a step",
        "clear opt\nbackward net\nstep opt\nclear opt\nbackward net\nstep opt",
    ),
    Loop(
        "SAM: the first step clears inside the optimizer",
        "backward net\nclear opt inside=yes\nbackward net\nstep opt\nclear opt",
    ),
    Loop(
        "SAM that clears nothing inside, but in the loop",
        "clear opt\nbackward net\nclear opt inside=yes\nbackward net\nstep opt",
    ),
    Loop(
        "an optimizer in the backward, one for each parameter",
        "backward w1\nstep o1\nclear o1\nbackward w2\nstep o2\nclear o2",
        holdings={"o1": ["w1"], "o2": ["w2"]},
    ),
    Loop(
        "weights updated by hand",
        "backward w\nstep w\nclear w to_none=no",
        holdings={"w": ["w"]},
    ),
    Loop(
        "gradients combined by hand from several losses (PCGrad)",
        "clear opt\nbackward net\nclear opt\nbackward net\nassign opt\nstep opt\nclear opt",
    ),
    Loop(
        "one loss looked at and thrown away, then the real one",
        "clear opt\nbackward net\nclear opt\nbackward net\nstep opt",
    ),
    # two optimizers
    Loop(
        "GAN: D first, each cleared before its own backward",
        "clear opt_d\nbackward disc\nbackward disc\nstep opt_d\n"
        "clear opt_g\nbackward gen disc\nstep opt_g",
        holdings=GAN,
    ),
    Loop(
        "GAN: G first, D cleared after",
        "clear opt_g\nbackward gen disc\nstep opt_g\n"
        "clear opt_d\nbackward disc\nbackward disc\nstep opt_d",
        holdings=GAN,
    ),
    Loop(
        "GAN: all cleared at the end of each part",
        "backward gen disc\nstep opt_g\nclear opt_g\nclear opt_d\n"
        "backward disc\nstep opt_d\nclear opt_d",
        holdings=GAN,
    ),
    Loop(
        "GAN: the fake not detached, G cleared before its backward",
        "clear opt_d\nbackward gen disc\nstep opt_d\nclear opt_g\nbackward gen disc\nstep opt_g",
        holdings=GAN,
    ),
    Loop(
        "WGAN-GP: real, fake and penalty, five critic steps to one",
        "clear opt_d\nbackward disc\nbackward disc\nbackward disc\nstep opt_d\n"
        "clear opt_g when i % 5 == 4\nbackward gen disc when i % 5 == 4\n"
        "step opt_g when i % 5 == 4",
        holdings=GAN,
        batches=20,
    ),
    Loop(
        "GAN in windows: D filled by two spots, G by one",
        "clear opt_d when i % 2 == 0\nbackward disc averaged=yes\nbackward disc averaged=yes\n"
        "step opt_d when i % 2\n"
        "clear opt_g when i % 2 == 0\nclear opt_d when i % 2\nbackward gen averaged=yes\n"
        "step opt_g when i % 2",
        holdings=GAN,
    ),
    Loop(
        "one loss, two optimizers, both cleared",
        "clear opt_a\nclear opt_b\nbackward a b\nstep opt_a\nstep opt_b",
        holdings=PAIR,
    ),
    Loop(
        "one loss, two optimizers, each clipped before its own step",
        "backward a b\nclip opt_a\nstep opt_a\nclip opt_b\nstep opt_b\nclear opt_a\nclear opt_b",
        holdings=PAIR,
    ),
    Loop(
        "one loss, two optimizers, all clipped between their steps",
        "backward a b\nstep opt_a\nclip all\nstep opt_b\nclear opt_a\nclear opt_b",
        holdings=PAIR | {"all": ["a", "b"]},
    ),
    Loop(
        "two optimizers over the same parameters, of which only one is in use",
        "clear opt_a\nclear opt_b\nbackward a\nstep opt_a",
        holdings={"opt_a": ["a"], "opt_b": ["a"]},
    ),
    Loop(
        "one loss, a fast and a slow optimizer, the slow one first",
        "backward a b\nstep opt_b when i % 2\nclear opt_b when i % 2\nstep opt_a\nclear opt_a",
        holdings=PAIR,
    ),
    Loop(
        "one loss, a fast and a slow optimizer, the fast one first",
        "backward a b\nstep opt_a\nclear opt_a\nstep opt_b when i % 2\nclear opt_b when i % 2",
        holdings=PAIR,
    ),
    Loop(
        "actor-critic with a shared encoder, one loss",
        "clear opt_actor\nclear opt_critic\nbackward encoder actor critic\n"
        "step opt_actor\nstep opt_critic",
        holdings={"opt_actor": ["encoder", "actor"], "opt_critic": ["critic"]},
    ),
    Loop(
        "actor-critic, two losses through the encoder, both cleared before each",
        "clear opt_actor\nclear opt_critic\nbackward encoder actor\nstep opt_actor\n"
        "clear opt_actor\nclear opt_critic\nbackward encoder critic\nstep opt_critic",
        holdings=SHARED,
    ),
    Loop(
        "actor-critic, both losses first, then both steps",
        "clear opt_actor\nclear opt_critic\nbackward encoder actor\nbackward encoder critic\n"
        "step opt_actor\nstep opt_critic",
        holdings={"opt_actor": ["encoder", "actor"], "opt_critic": ["critic"]},
    ),
    Loop(
        "multi-head with a shared encoder, one optimizer each",
        "clear opt_e\nclear opt_a\nclear opt_b\nbackward enc a\nbackward enc b\n"
        "step opt_a\nstep opt_b\nstep opt_e",
        holdings={"opt_e": ["enc"], "opt_a": ["a"], "opt_b": ["b"]},
    ),
    Loop(
        "DDPG: the actor's loss fills the critic, which is cleared before its own",
        "clear opt_critic\nbackward critic\nstep opt_critic\n"
        "clear opt_actor\nbackward actor critic\nstep opt_actor",
        holdings=AGENT,
    ),
    Loop(
        "TD3: the policy is updated at every other step",
        "clear opt_critic\nbackward critic\nstep opt_critic\n"
        "clear opt_actor when i % 2\nbackward actor critic when i % 2\nstep opt_actor when i % 2",
        holdings=AGENT,
    ),
    Loop(
        "SAC: critics, actor and temperature",
        "clear opt_critic\nbackward critic\nstep opt_critic\n"
        "clear opt_actor\nbackward actor critic\nstep opt_actor\n"
        "clear opt_alpha\nbackward alpha\nstep opt_alpha",
        holdings=AGENT | {"opt_alpha": ["alpha"]},
    ),
    # attacks
    Loop(
        "an attack that clears its input",
        "backward x leaf=yes\nstep x leaf=yes\nclear x leaf=yes",
        holdings={"opt": ["net"], "x": ["x"]},
    ),
    Loop(
        "an attack inside training: the model is filled by it and cleared",
        "backward x net\nclear opt\nbackward net\nstep opt\nclear opt\nclear x",
        holdings={"opt": ["net"]},
    ),
    # scalers
    Loop("AMP", "clear opt\nbackward net scaler=s\nstep opt scaler=s\nupdate s"),
    Loop(
        "AMP with a clip",
        "clear opt\nbackward net scaler=s\nunscale opt scaler=s\nclip opt\n"
        "step opt scaler=s\nupdate s",
    ),
    Loop(
        "AMP: the scaler skips steps",
        "clear opt\nbackward net scaler=s\nstep opt scaler=s when i % 3\n"
        "skip opt scaler=s when i % 3 == 0\nupdate s",
    ),
    Loop(
        "AMP in windows, all under the guard",
        "backward net scaler=s averaged=yes\nunscale opt scaler=s when i % 4 == 3\n"
        "clip opt when i % 4 == 3\nstep opt scaler=s when i % 4 == 3\nupdate s when i % 4 == 3\n"
        "clear opt when i % 4 == 3",
    ),
    Loop(
        "one scaler, two optimizers, a single update",
        "clear opt_a\nclear opt_b\nbackward a b scaler=s\n"
        "step opt_a scaler=s\nstep opt_b scaler=s\nupdate s",
        holdings=PAIR,
    ),
    Loop(
        "one scaler, two optimizers over the same parameters, a single update",
        "clear opt_a\nbackward a scaler=s\nstep opt_a scaler=s\nstep opt_b scaler=s\nupdate s",
        holdings={"opt_a": ["a"], "opt_b": ["a"]},
    ),
    Loop(
        "two scalers, each with its optimizer and its update",
        "clear opt_a\nbackward a scaler=s\nstep opt_a scaler=s\nupdate s\n"
        "clear opt_b\nbackward b scaler=t\nstep opt_b scaler=t\nupdate t",
        holdings=PAIR,
    ),
    Loop(
        "AMP GAN: an update after each step, the other is cleared before its own",
        "clear opt_d\nbackward disc scaler=s\nstep opt_d scaler=s\nupdate s\n"
        "clear opt_g\nbackward gen disc scaler=s\nstep opt_g scaler=s\nupdate s",
        holdings=GAN,
    ),
    Loop(
        "unscaled by hand, stepped past the scaler, updated after",
        "clear opt\nbackward net scaler=s\nunscale opt scaler=s\nstep opt\nupdate s",
    ),
    # ranks
    Loop(
        "DDP: all but the last micro-batch without synchronising",
        "backward net averaged=yes when i % 4 < 3\n"
        "backward net averaged=yes synchronised=yes when i % 4 == 3\n"
        "step opt when i % 4 == 3\nclear opt when i % 4 == 3",
    ),
    Loop(
        "DDP GAN: two synchronised backwards from two spots",
        "clear opt_d\nbackward disc synchronised=yes\nbackward disc synchronised=yes\nstep opt_d\n"
        "clear opt_g\nbackward gen synchronised=yes\nstep opt_g",
        holdings=GAN,
    ),
    # gradients that nobody owns
    Loop(
        "a backbone of no optimizer, cleared with the model",
        "backward backbone head\nstep opt\nclear opt\nclear backbone",
        holdings={"opt": ["head"]},
    ),
    Loop(
        "an optimizer of a model that is only attacked: the module is cleared, nothing steps",
        "clear net\nclear x\nbackward net x",
        holdings={"opt": ["net"]},
    ),
]

FAULTY = [
    Loop("nothing clears", "backward net\nstep opt", (("ZG101", 2),)),
    Loop(
        "cleared once an epoch",
        "clear opt when i == 0\nbackward net\nstep opt",
        (("ZG101", 3),),
        epochs=2,
    ),
    Loop(
        "cleared on one branch only",
        "clear opt when i % 2\nbackward net\nstep opt",
        (("ZG101", 3),),
    ),
    Loop(
        "the wrong optimizer is cleared",
        "clear opt_a\nbackward a b\nstep opt_a\nstep opt_b",
        (("ZG101", 4),),
        holdings=PAIR,
    ),
    Loop(
        "one bucket of the optimizer is not cleared",
        "clear head\nbackward body head\nstep opt",
        (("ZG101", 3),),
        holdings={"opt": ["body", "head"]},
    ),
    Loop(
        "windows that never clear",
        "backward net averaged=yes\nstep opt when i % 4 == 3",
        (("ZG101", 2),),
        batches=12,
    ),
    Loop(
        "LBFGS whose closure does not clear",
        "backward net\nstep opt\nbackward net\nstep opt",
        (("ZG101", 2), ("ZG101", 4)),
    ),
    Loop(
        "the scaler skips, and nothing clears",
        "backward net scaler=s\nskip opt scaler=s\nupdate s",
        (("ZG101", 2),),
    ),
    Loop("cleared between backward and step", "backward net\nclear opt\nstep opt", (("ZG102", 2),)),
    Loop(
        "cleared between backward and step, with a head that is never filled",
        "backward net\nclear opt\nstep opt",
        (("ZG102", 2),),
        holdings={"opt": ["net", "head"]},
    ),
    Loop("the step before its backward", "clear opt\nstep opt\nbackward net", (("ZG102", 2),)),
    Loop("the step first, the clear last", "step opt\nbackward net\nclear opt", (("ZG102", 1),)),
    Loop("nothing fills", "clear opt\nstep opt", (("ZG401", 2),)),
    Loop(
        "the optimizer holds other parameters than the loss fills",
        "clear opt\nbackward copy\nstep opt",
        (("ZG105", 2), ("ZG401", 3)),
    ),
    Loop(
        "two steps on the same gradients",
        "clear opt\nbackward net\nstep opt\nstep opt",
        (("ZG402", 4),),
    ),
    Loop(
        "a gradient used while it is None",
        "clear opt\ntouch net\nbackward net\nstep opt",
        (("ZG104", 2),),
    ),
    Loop(
        "an input whose gradient grows",
        "backward x\nstep x leaf=yes",
        (("ZG202", 2),),
        holdings={"opt": ["net"], "x": ["x"]},
    ),
    Loop(
        "a backbone that no optimizer owns",
        "clear opt\nbackward backbone head\nstep opt",
        (("ZG105", 2),),
        holdings={"opt": ["head"]},
    ),
    Loop("filled and cleared, never stepped", "clear opt\nbackward net", (("ZG203", 1),)),
    Loop(
        "GAN: D is never cleared, D first",
        "backward disc\nstep opt_d\nclear opt_g\nbackward gen disc\nstep opt_g",
        (("ZG101", 2),),
        holdings=GAN,
    ),
    Loop(
        "GAN: D polluted by G's loss",
        "clear opt_d\nclear opt_g\nbackward gen disc\nstep opt_g\nbackward disc\nstep opt_d",
        (("ZG201", 6),),
        holdings=GAN,
    ),
    Loop(
        "GAN: D polluted by G's loss, its own in two backwards, cleared at the end",
        "backward gen disc\nstep opt_g\nbackward disc\nbackward disc\nstep opt_d\n"
        "clear opt_g\nclear opt_d",
        (("ZG201", 5),),
        holdings=GAN,
    ),
    Loop(
        "GAN: G polluted by D's loss through a fake that is not detached",
        "clear opt_d\nclear opt_g\nbackward gen disc\nstep opt_d\n"
        "clear opt_d\nbackward gen disc\nstep opt_g",
        (("ZG201", 7),),
        holdings=GAN,
    ),
    Loop(
        "the critic's encoder polluted by the actor's loss",
        "clear opt_actor\nclear opt_critic\nbackward encoder actor\nstep opt_actor\n"
        "backward encoder critic\nstep opt_critic",
        (("ZG201", 6),),
        holdings={"opt_actor": ["actor"], "opt_critic": ["encoder", "critic"]},
    ),
    Loop(
        "clipped with the scale still in",
        "clear opt\nbackward net scaler=s\nclip opt\nstep opt scaler=s\nupdate s",
        (("ZG301", 3),),
    ),
    Loop(
        "no scaler update",
        "clear opt\nbackward net scaler=s\nstep opt scaler=s",
        (("ZG302", 3),),
    ),
    Loop(
        "no scaler update, in a run of one step",
        "clear opt\nbackward net scaler=s\nstep opt scaler=s",
        (("ZG302", 3),),
        batches=1,
    ),
    Loop(
        "two scalers, one update forgotten",
        "clear opt_a\nbackward a scaler=s\nstep opt_a scaler=s\nupdate s\n"
        "clear opt_b\nbackward b scaler=t\nstep opt_b scaler=t",
        (("ZG302", 7),),
        holdings=PAIR,
    ),
    Loop(
        "stepped past the scaler",
        "clear opt\nbackward net scaler=s\nstep opt\nupdate s",
        (("ZG303", 3),),
    ),
    Loop(
        "one of two optimizers stepped past the scaler",
        "clear opt_a\nclear opt_b\nbackward a b scaler=s\n"
        "step opt_a scaler=s\nstep opt_b\nupdate s",
        (("ZG303", 5),),
        holdings=PAIR,
    ),
    Loop("clipped after the step", "clear opt\nbackward net\nstep opt\nclip opt", (("ZG304", 4),)),
    Loop(
        "the scaler updated between two steps on one loss",
        "clear opt_a\nclear opt_b\nbackward a b scaler=s\n"
        "step opt_a scaler=s\nupdate s\nstep opt_b scaler=s\nupdate s",
        (("ZG305", 5),),
        holdings=PAIR,
    ),
    Loop(
        "the scaler updated between unscale and step",
        "clear opt_a\nclear opt_b\nbackward a scaler=s\nbackward b scaler=s\n"
        "unscale opt_a scaler=s\nunscale opt_b scaler=s\n"
        "step opt_a scaler=s\nupdate s\nstep opt_b scaler=s\nupdate s",
        (("ZG305", 8),),
        holdings=PAIR,
    ),
    Loop(
        "cleared at every micro-batch of a window",
        "clear opt\nbackward net averaged=yes\nstep opt when i % 4 == 3",
        (("ZG501", 1),),
    ),
    Loop(
        "cleared after every micro-batch but the last",
        "backward net averaged=yes\nstep opt when i % 4 == 3\nclear opt",
        (("ZG501", 3),),
    ),
    Loop(
        "cleared at every micro-batch of a window that is stepped twice",
        "clear opt\nbackward net averaged=yes\nstep opt when i % 4 == 3\nstep opt when i % 4 == 3",
        (("ZG402", 4), ("ZG501", 1)),
    ),
    Loop(
        "cleared at every micro-batch, its loss filling a network that is cleared and stepped too",
        "clear opt_a\nbackward a b averaged=yes\nstep opt_a when i % 4 == 3\n"
        "clear opt_b\nbackward b averaged=yes\nstep opt_b",
        (("ZG501", 1),),
        holdings=PAIR,
    ),
    Loop(
        "a tail that leaks into the next epoch",
        "backward net averaged=yes\nstep opt when i % 4 == 3\nclear opt when i % 4 == 3",
        (("ZG502", 2),),
        epochs=4,
        batches=10,
    ),
    Loop(
        "a tail that is dropped",
        "clear opt when i == 0\nbackward net averaged=yes\nstep opt when i % 4 == 3\n"
        "clear opt when i % 4 == 3",
        (("ZG502", 3),),
        epochs=4,
        batches=10,
    ),
    Loop(
        "a window whose losses are summed",
        "backward net averaged=no\nstep opt when i % 4 == 3\nclear opt when i % 4 == 3",
        (("ZG503", 2),),
    ),
    Loop(
        "a window of two whose losses are summed",
        "backward net averaged=no\nstep opt when i % 2\nclear opt when i % 2",
        (("ZG503", 2),),
    ),
    Loop(
        "DDP: both micro-batches synchronised",
        "backward net averaged=yes synchronised=yes\nstep opt when i % 2\nclear opt when i % 2",
        (("ZG505", 1),),
    ),
    Loop(
        "DDP: every micro-batch synchronised",
        "backward net averaged=yes synchronised=yes\nstep opt when i % 4 == 3\n"
        "clear opt when i % 4 == 3",
        (("ZG505", 1),),
    ),
]


@pytest.mark.parametrize("loop", CORRECT, ids=lambda loop: loop.name)
def test_nothing_is_found_in_a_correct_loop(loop: Loop) -> None:
    assert loop.findings() == set()


@pytest.mark.parametrize("loop", FAULTY, ids=lambda loop: loop.name)
def test_a_faulty_loop_is_found_at_its_line(loop: Loop) -> None:
    assert loop.findings() == set(loop.expect)


def test_every_rule_that_histories_can_break_is_broken_by_some_loop() -> None:
    broken = {code for loop in FAULTY for code, _ in loop.expect}
    by_history = {
        rule.code
        for rule in ALL_RULES
        if rule.kind is not RuleKind.SYNTAX and Witness.RUNTIME in rule.seen_by
    }
    assert by_history - broken == {"ZG601"}, "ranks are compared by the live witness itself"
