"""The words of the page. Every number in them is read from the recorded runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from zerograd.lab.cards import Card, cards
from zerograd.lab.corrections import Correction, corrections
from zerograd.lab.figures import percent, significant

Recorded = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict before it is revealed."""

    name: str
    text: str
    options: tuple[str, ...]
    answer: int
    reveal: str


@dataclass(frozen=True, slots=True)
class Myth:
    """A saying, what a run shows, and the code to run it again."""

    name: str
    claim: str
    holds: bool  # is the saying right as it stands?
    verdict: str
    text: str
    snippet: str


@dataclass(frozen=True, slots=True)
class Lessons:
    """All texts of the page."""

    questions: list[Question]
    myths: list[Myth]
    cards: list[Card]
    corrections: list[Correction]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def lessons(recorded: Recorded, frameworks: dict[str, dict[str, Any]]) -> Lessons:
    """Return the texts of the page for what was recorded."""
    return Lessons(
        questions(recorded), myths(recorded, frameworks), cards(recorded), corrections(recorded)
    )


def questions(recorded: Recorded) -> list[Question]:
    """Return the questions, each with the answer that the run gave."""
    steps = recorded["three_steps"]
    lost = recorded["lost"]
    subset = recorded["subset"]["backbone"]
    overflow = recorded["overflow"]
    idle = recorded["idle_weight"]["zero"][-1]
    window = recorded["windows"]["20/20/20/4, divided by 4"]
    ahead = steps["ahead_after_3"] * 2 > steps["seeds"]
    skipped = overflow["forgotten"]["skipped"]
    return [
        Question(
            "three-steps",
            "A linear layer trains with plain SGD, once with a clear in each step and once without "
            "any. After 3 steps, which run has the lower loss?",
            ("the one that clears", "the one that forgets", "they are equal"),
            1 if ahead else 0,
            f"The one that forgets, in {steps['ahead_after_3']} of {steps['seeds']} seeds. The bug "
            "looks like a speed-up: the second step goes twice as far, downhill. It turns worse at "
            f"step {steps['turns_worse_median']} (median), and after 200 steps it is ahead in "
            f"{steps['ahead_after_200']} of {steps['seeds']}.",
        ),
        Question(
            "lost",
            "Somebody writes loss.backward(), then optimizer.zero_grad(), then optimizer.step(). "
            "What does the loss do in 50 steps?",
            ("it explodes", "it falls as usual", "it does not move at all"),
            2,
            f"It stays at {lost['before_step'][0]:.4f} from the first step to the last, and the "
            "weights are bit-equal to the start. Nothing piles up: the step finds nothing to use. "
            f"With the clear at the top the same loop goes from {lost['top'][0]:.4f} to "
            f"{lost['top'][-1]:.4f}.",
        ),
        Question(
            "subset",
            "The optimizer holds the head of a net, and optimizer.zero_grad() is called in every "
            "step. What does the gradient of the backbone do in 20 steps?",
            ("it stays as large as it was", "it grows", "there is none"),
            1,
            f"Its norm goes from {subset[0]:.2f} to {subset[-1]:.2f}. The optimizer clears what "
            "it holds; backward() fills all that the loss reaches. model.zero_grad() clears both.",
        ),
        Question(
            "overflow",
            f"A loss scaler meets one overflow, in step {overflow['overflow_at']} of "
            f"{overflow['steps']}. The loop never clears. How many steps are skipped?",
            ("1", "2 or 3", str(skipped)),
            2,
            f"{skipped}, all from there on. The infinity stays in the bucket, so each later step "
            "overflows again, and each halves the scale: from 65536 to "
            f"{overflow['forgotten']['scales'][-1]:.2g}. With a clear it is "
            f"{overflow['cleared']['skipped']} skipped step, and a scale of "
            f"{overflow['cleared']['scales'][-1]:g}.",
        ),
        Question(
            "idle",
            "A weight of 1.0 gets no gradient for 1000 steps of AdamW (lr 0.01, weight decay 0.1). "
            "Its buffer is cleared to zero, not to None. Where does it end?",
            ("at 1.0", f"near {idle:.2f}", "at 0"),
            1,
            f"At {idle:.3f}. A zero is a gradient to the optimizer, and the decay goes on. Cleared "
            f"to None it is skipped and ends at {recorded['idle_weight']['none'][-1]:.1f}.",
        ),
        Question(
            "ragged",
            "Four micro-batches of 20, 20, 20 and 4 samples make one update. Each mean loss is "
            "divided by 4. How far, in a small net, is the gradient from that of the whole batch?",
            (f"about {percent(window)}", "about 5 %", "only rounding"),
            0,
            f"{percent(window)} of its norm; other data, another error. The 4 samples of the last "
            "piece weigh as much as 20 others. Weighted by samples the error is only rounding; not "
            "divided at all the gradient is 4 times too large.",
        ),
    ]


def myths(recorded: Recorded, frameworks: dict[str, dict[str, Any]]) -> list[Myth]:
    """Return the sayings with what the runs say to each."""
    grid = recorded["grid"]
    classes = recorded["optimizers"]
    unchanged = sum(state == "unchanged" for state in classes.values())
    heads = {row["optimizer"]: row for row in recorded["idle_head"]}
    moved = {row["optimizer"]: row for row in recorded["after_clearing"]}
    adds = [name for name, row in frameworks.items() if row["second"] == 8]
    returns = [name for name, row in frameworks.items() if row["second"] == 5]
    per_update = recorded["exchanges"]["per_update"]
    ways = recorded["poison"]["ways"]
    gaps = sum(one["momentum_gap"] == 0 for one in recorded["replay"])
    return [
        Myth(
            "clears-by-itself",
            "PyTorch empties the gradients after each backward by itself.",
            False,
            "wrong",
            "Each backward() adds to what is there: 3, then 3 + 5 = 8, then 8 + 3 = 11.",
            "accumulates",
        ),
        Myth(
            "anywhere",
            "The clear can stand anywhere in the loop.",
            False,
            "wrong in one place",
            "At the top, just before backward() and right after step() the weights come out "
            "bit-equal, for SGD, SGD with momentum and Adam. Between backward() and step() the "
            "model never learns. It does not pile up there, as is sometimes said: it loses.",
            "placement",
        ),
        Myth(
            "only-sgd",
            "Only SGD needs it; better optimizers clear for you.",
            False,
            "wrong",
            f"{unchanged} of the {len(classes)} classes in torch.optim leave .grad bit for bit as "
            "it was. The other one, LBFGS, fills it through its closure and does not clear either.",
            "optimizers",
        ),
        Myth(
            "erases",
            "Clearing erases what the model has learnt.",
            False,
            "wrong, with a catch",
            "The call moves no weight. But what it leaves matters to the next step(): on zeros, "
            "momentum and decay go on and moved the weights by "
            f"{percent(moved['SGD, momentum']['by_step_on_zero'])} (SGD with momentum) and "
            f"{percent(moved['Adam']['by_step_on_zero'])} (Adam) of their norm; on None by 0.",
            "weights",
        ),
        Myth(
            "none-is-zero",
            "None or zero, the model ends up the same.",
            False,
            "only if every parameter is used in every step",
            "With all parameters used: bit-equal, in all "
            f"{len(heads)} optimizers tried. With a head that is idle in two of three steps the "
            f"weights differ by {percent(heads['SGD, momentum']['idle'])} (momentum), "
            f"{percent(heads['Adam']['idle'])} (Adam), "
            f"{significant(heads['SGD']['idle'])} (plain SGD).",
            "none_or_zero",
        ),
        Myth(
            "diverges",
            "Forget it, and training diverges.",
            False,
            "sometimes",
            f"Of {grid['pairs']} paired runs (three tasks, six optimizers, {grid['seeds']} seeds) "
            f"{grid['diverged']} diverged, {grid['worse']} ended worse, {grid['close']} within "
            f"10 % and {grid['better']} ended better. After 10 steps the forgetful run was ahead "
            f"in {grid['ahead_after_10']}. In {grid['better_with_larger_rate']} of the "
            f"{grid['better']} that ended better, clearing with a ten times larger step size beat "
            "the plain cleared run as well: its steps had been too small. On the bowl below, with "
            "a step size of 3.9, it is the cleared run that explodes. So a check must not wait for "
            "divergence. The shares describe this grid and not the world.",
            "diverges",
        ),
        Myth(
            "ever-larger",
            "Without clearing the updates get larger and larger.",
            False,
            "not in general",
            "Plain SGD that never clears is SGD with momentum exactly 1.0: no friction. On a bowl "
            "it swings through the minimum and back, as far as it came, and never settles.",
            "updates_grow",
        ),
        Myth(
            "saves-communication",
            "Clearing less often saves communication between GPUs.",
            False,
            "wrong",
            "DDP exchanges gradients in every backward(), cleared or not: "
            f"{per_update['clear every micro-batch']:g} all-reduces for a window of 4 with a clear "
            f"in each, {per_update['clear once a window']:g} with one clear, and "
            f"{per_update['clear once a window, no_sync()']:g} inside no_sync().",
            "communication",
        ),
        Myth(
            "most-frameworks",
            "Most deep learning frameworks accumulate gradients.",
            False,
            f"{len(adds)} of the {len(frameworks)} asked",
            f"{_listed(adds)} keep a gradient on the parameter and add to it. {_listed(returns)} "
            "hand gradients back as values: there is no bucket and nothing to clear. PyTorch has "
            "that route as well (torch.autograd.grad, torch.func.grad).",
            "frameworks",
        ),
        Myth(
            "momentum-one",
            "Plain SGD that never clears is SGD with momentum exactly 1.0.",
            True,
            "true, bit for bit",
            "Both step on the plain sum of all gradients so far. No friction, so it rolls through "
            "the minimum and back. In the replay above the two lie on each other in all "
            f"{gaps} runs with plain SGD: largest difference 0.",
            "momentum_one",
        ),
        Myth(
            "times-zero",
            "Multiplying a gradient by 0 does not always clear it.",
            True,
            "true",
            "nan times 0 is nan. After one NaN batch, with steps skipped while a gradient is not "
            f"finite, zeros and None went on to a loss of {ways['zero']['final_loss']:.4f} and "
            f"{ways['none']['final_loss']:.4f}; multiplying by 0 took "
            f"{ways['times zero']['steps_taken']} of {recorded['poison']['steps']} steps and "
            f"stayed at {ways['times zero']['final_loss']:.2f}.",
            "poison",
        ),
        Myth(
            "allocates",
            "None is leaner because no tensor of zeros has to be allocated.",
            False,
            "right outcome, wrong reason",
            "Writing zeros allocates "
            f"{recorded['clear_cost']['zero']['allocated']} bytes: it reuses the buffer. None "
            f"frees it ({recorded['clear_cost']['none']['freed']:,} bytes here), so that it is not "
            "there while the forward pass builds up its activations.",
            "memory",
        ),
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]
