"""What names tell: the words by which people call optimizers, schedulers, scalers.

A name is asked only last, when nothing else says what an object is.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
FRAME = re.compile(r"@\d+")  # the call in which a name is local

OPTIMIZER_WORDS = frozenset(
    [
        "opt",
        "opts",
        "optim",
        "optims",
        "optimizer",
        "optimizers",
        "optimiser",
        "optimisers",
        "optimizor",
        "optimzer",
        "adam",
        "adamw",
        "sgd",
        "lbfgs",
        "rmsprop",
        "sparseadam",
    ]
)
_OPTIMIZER_STEMS = ("opt", "adam", "sgd", "lbfgs", "rmsprop")  # one of them is in each such word
_SCHEDULER_WORDS = frozenset(
    [
        "sched",
        "scheduler",
        "schedulers",
        "schedule",
        "lr",
        "scheduled",
        "warmup",
        "annealer",
        "annealing",
        "decay",
        "plateau",
        "cosine",
    ]
)
# words that make a name one *about* an optimizer: optimizer_name, optim_params
_ABOUT = frozenset(
    (
        *("name", "names", "params", "param", "config", "cfg", "conf", "args", "arg", "kwargs"),
        *("state", "states", "dict", "type", "class", "cls", "fn", "group", "groups", "path"),
        *("in", "bwd", "steps", "num", "kw", "settings", "options", "factory", "builder", "file"),
        *("use", "is", "has", "hparams", "key", "keys", "str", "idx", "index", "id"),
    )
)
# what an optimizer has worked on, or is to: `optimized_loss`, `optimal_policy`, `optimize_every`
_WORKED_ON = frozenset(("optimized", "optimised", "optimal", "optimum", "optimize", "optimise"))
_ARCHITECTURE = frozenset(("arch", "architecture", "alpha", "alphas"))
_OTHERWISE = _SCHEDULER_WORDS | _ABOUT | _WORKED_ON
_ALGORITHMS = frozenset(("adam", "adamw", "sgd", "lbfgs", "rmsprop", "sparseadam"))
# words of what is done around a step or a backward, and is neither
_BESIDE = frozenset(
    (
        *("pre", "post", "before", "after", "on", "patch", "hook", "hooks", "register", "set"),
        *("get", "is", "has", "num", "global", "count", "function", "fn", "norm"),
        *("should", "steps", "scheduler", "sched", "warmup", "nesterov", "lookahead", "ema"),
        *("prepare", "skip", "no"),
        *("warp", "warping", "flow", "lstm", "gru", "rnn"),  # backward in time
    )
)
_ODD = frozenset(("nan", "nans", "inf", "infs", "nonfinite"))
# words of functions that look at gradients, and leave them
_LOOKING = frozenset(
    (
        *("get", "compute", "count", "log", "track", "print", "check", "has", "is", "find", "show"),
        *("ratio", "fraction", "share", "percent", "percentage", "norm", "norms", "stats", "num"),
    )
)
# words that leave a step what it is: any other may make it the half of one, or what opens it
_WHOLE = frozenset(
    (
        *("step", "do", "make", "take", "run", "perform", "apply", "second", "final"),
        *("clip", "unscale", "zero", "clear", "reset", "update", "lr", "all", "inner", "outer"),
        *("grad", "grads", "gradient", "gradients", "weight", "weights", "param", "params"),
        *("parameters", "model", "optim", "optimizer", "optimizers", "opt", "train", "training"),
        *("and", "with", "muon", *_ALGORITHMS),
    )
)
_FILLING = frozenset(("accumulate", "compute", "calculate", "calc"))
# words after "gradients" that leave them what the name is about: compute_grads_for_batch
_LEADING_ON = frozenset(
    (
        *("for", "with", "on", "of", "from", "in", "at", "by", "to", "via", "per", "over", "using"),
        *("and", "then", "step", "batch", "sample", "samples", "all", "only", "local"),
    )
)
_COMPUTING = frozenset(("compute", "calculate", "calc", "estimate", "size", "length"))
_SCALER_WORDS = frozenset(("scaler", "scalers", "gradscaler", "gscaler", "lossscaler", "ampscaler"))
_OF_SCALARS = frozenset(["grad", "amp"])
_TRAINABLE = frozenset(
    (
        *("net", "nets", "model", "models", "network", "policy", "critic", "actor", "generator"),
        *("discriminator", "encoder", "decoder", "classifier", "backbone", "gen", "disc", "agent"),
        *("unet", "vae", "autoencoder", "module"),
    )
)
# words in the names of networks that follow another one, or are kept to compare with
_FOLLOWING = frozenset(
    ("target", "targets", "teacher", "ema", "ref", "reference", "old", "frozen", "swa", "averaged")
)
_ENVIRONMENTS = frozenset(("env", "envs", "environment", "environments", "simulator", "gym"))
_PIPELINES = frozenset(("pp", "pipe", "pipeline", "stage", "schedule"))
_LOSSES = frozenset(("loss", "losses", "criterion", "crit", "cri", "objective", "mse", "bce", "ce"))
# last words of what is about a network and is none
_ABOUT_MODELS = frozenset(
    (
        *("name", "names", "path", "paths", "dir", "file", "folder", "url", "type", "kind", "id"),
        *("config", "cfg", "args", "kwargs", "options", "version", "revision", "tag", "key"),
        *("length", "size", "dim", "dims", "width", "depth", "count", "rate", "lr", "seed"),
        *("dtype", "device", "time", "steps", "iters", "epochs", "freq", "interval"),
        # what goes into a network, or comes out of it
        *("state", "states", "dict", "hidden", "input", "inputs", "output", "outputs", "out"),
        *("logits", "action", "actions", "loss", "losses", "score", "scores", "pred", "preds"),
        *("prob", "probs", "reward", "rewards", "batch", "grad", "grads"),
    )
)
MODULE_WORDS = frozenset(
    ["net", "nets", "model", "models", "network", "networks", "module", "self"]
)

# classes of torch.optim and of packages that keep its interface
OPTIMIZER_CLASSES = re.compile(
    r"(Adam|AdamW|Adamax|SparseAdam|NAdam|RAdam|Adagrad|Adadelta|Adafactor|SGD|ASGD|RMSprop|RMSProp|"
    r"Rprop|LBFGS|Lion|LAMB|Lamb|LARS|Lars|Ranger|AdaBelief|Shampoo|Muon|SOAP|Sophia|Yogi|Novograd|"
    r"NvNovoGrad|MADGRAD|AdaBound|Prodigy|DAdapt\w*|ScheduleFree|Lookahead|ZeroRedundancyOptimizer|"
    r"DistributedOptimizer|Optimizer|Optim)(TF|8bit|Fused|ScheduleFree|W|Free|\d+bit)*$"
)
CLIPS = frozenset(
    [
        "clip_grad_norm_",
        "clip_grad_norm",
        "clip_grad_value_",
        "clip_grad_value",
        "clip_gradient",
        "clip_gradients",
        "clip_grads_with_norm_",
        "clip_grad",
        "dispatch_clip_grad",
        "clip_grad_by_norm_",
        "gradient_clipping",
    ]
)
# what a name that nothing here defines stands for, by all custom
WELL_KNOWN = {
    "torch": "torch",
    "th": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "optim": "torch.optim",
    "np": "numpy",
    "math": "math",
    "time": "time",
    "os": "os",
    "Variable": "torch.autograd.Variable",
    "GradScaler": "torch.cuda.amp.GradScaler",
    "autocast": "torch.cuda.amp.autocast",
    "clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "clip_grad_value_": "torch.nn.utils.clip_grad_value_",
}
# frameworks with the same words and other rules
OF_ARRAYS = frozenset(
    ("numpy", "scipy", "matplotlib", "pandas", "seaborn", "sklearn", "tqdm", "PIL", "pytest")
)
FOREIGN = frozenset(
    (
        *("mxnet", "mindspore", "chainer", "tensorflow", "jittor", "keras", "theano", "cntk"),
        *("jax", "mlx", "paddle", "tinygrad", "warp"),
    )
)
_OF_SPIKES = frozenset(("spikingjelly", "snntorch", "norse", "bindsnet", "braincog"))
_DATA = frozenset(
    ("loader", "loaders", "dataloader", "dataloaders", "dataset", "datasets", "batches")
)
# Programs ask about the same few names again and again.
_remembered = lru_cache(maxsize=16_384)


@_remembered
def words_of(path: str) -> tuple[str, ...]:
    """Return the lower-case words of a dotted name, last part only, with its subscripts.

    >>> words_of("self.optimizerD")
    ('optimizer', 'd')
    >>> words_of("made@5['critic']['opt']")
    ('made', 'critic', 'opt')
    """
    last = FRAME.sub("", path.rsplit(".", 1)[-1])
    return tuple([word.lower() for word in _SPLIT.findall(last)])


@_remembered
def is_optimizer_name(path: str) -> bool:
    """Does the name alone suggest an optimizer? `opts[0]` does, and `options["opt"]`."""
    lower = path.lower()
    if not any(stem in lower for stem in _OPTIMIZER_STEMS):
        return False  # most names: seen without taking them apart
    base, bracket, key = path.rpartition("[")
    if bracket:
        return is_optimizer_name(base) or is_optimizer_name(key)
    words = words_of(path)
    about = not _OTHERWISE.isdisjoint(words) or lower.endswith(".optimization")  # of settings
    if about or words[-1:] in (("loss",), ("losses",)):  # it may be all signs
        return False
    if not _ALGORITHMS.isdisjoint(words[1:]):
        return False  # local_sgd, fused_adam: a way of training, or a class
    return not OPTIMIZER_WORDS.isdisjoint(words) or any(word.startswith("optim") for word in words)


def shared_kinds(name: str, other: str) -> list[str]:
    """Return the words by which two names say of what kind they are, if they are the same.

    Where the other one is called an optimizer, what it shares with `sch_g` is not the kind.

    >>> shared_kinds("solver_d", "solver_g"), shared_kinds("sch_g", "opt_g")
    (['solver'], [])
    """
    mine, theirs = words_of(name), words_of(other)
    if name == other or len(mine) < 2 or len(theirs) < 2 or is_optimizer_name(other):
        return []
    pairs = ((mine[0], theirs[0]), (mine[-1], theirs[-1]))
    return [one for one, two in pairs if one == two and len(one) > 2 and one not in _TRAINABLE]


@_remembered
def is_scheduler_name(path: str) -> bool:
    """Does the name suggest a learning-rate scheduler?"""
    return any(word in _SCHEDULER_WORDS or word.startswith("sched") for word in words_of(path))


def is_only_a_scheduler(path: str) -> bool:
    """Is it called a scheduler, and not an optimizer that is scheduled?"""
    words = words_of(path)
    return is_scheduler_name(path) and OPTIMIZER_WORDS.isdisjoint(words)


@_remembered
def is_scaler_name(path: str) -> bool:
    """Does the name suggest a loss scaler? Many write `grad_scalar`."""
    words = words_of(path)
    return not _SCALER_WORDS.isdisjoint(words) or (
        words[-1:] == ("scalar",) and not _OF_SCALARS.isdisjoint(words)
    )


def resets_neurons(dotted: str) -> bool:
    """Is it `spikingjelly….reset_net`, say? What neurons remember is emptied, and no gradient."""
    return dotted.split(".", 1)[0] in _OF_SPIKES and "reset" in words_of(dotted)


@_remembered
def is_network_name(path: str) -> bool:
    """Does the name suggest something with parameters to train?"""
    words = words_of(path)
    return not _TRAINABLE.isdisjoint(words) and words[-1] not in _ABOUT_MODELS


@_remembered
def is_of_architecture(name: str) -> bool:
    """Is it `arch_parameters`: what a search over architectures trains beside the weights?"""
    return not _ARCHITECTURE.isdisjoint(words_of(name)) and "param" in name.lower()


@_remembered
def is_data_name(path: str) -> bool:
    """Does the name suggest something that is read from, batch after batch?"""
    return not _DATA.isdisjoint(words_of(path)[-1:])


@_remembered
def is_follower_name(path: str) -> bool:
    """Is it, by its name, a network that follows another, and that no optimizer trains?"""
    return not _FOLLOWING.isdisjoint(words_of(path.rsplit(".", 1)[-1].split("@", 1)[0]))


def is_environment_name(path: str) -> bool:
    """Is it, by its name, a world to act in, which is stepped with actions?"""
    return not _ENVIRONMENTS.isdisjoint(words_of(path.split("@", 1)[0]))


def is_pipeline_name(path: str) -> bool:
    """Does the name suggest what runs the stages of a pipeline, forward and back?"""
    return not _PIPELINES.isdisjoint(words_of(path))


def is_loss_name(path: str) -> bool:
    """Does the name suggest a function that gives a loss?"""
    return not _LOSSES.isdisjoint(words_of(path))


@_remembered
def is_called_a_network(path: str) -> bool:
    """Is it the name of a network, and not of what one gives: `gen`, but not `gen_images`?"""
    words = words_of(path)
    return bool(words) and words[-1] in _TRAINABLE


@_remembered
def is_model_name(path: str) -> bool:
    """Does the name call it a model, and not something about one, as `model_path` does?"""
    words = words_of(path)
    return any("model" in word for word in words) and words[-1] not in _ABOUT_MODELS


@_remembered
def is_optimizer_class(name: str) -> bool:
    """Is `name` the name of a class of optimizers?"""
    last = name.rsplit(".", 1)[-1]
    return not last.startswith("Local") and bool(OPTIMIZER_CLASSES.search(last))


@_remembered
def is_step_name(name: str) -> bool:
    """Does a method of an optimizer step: second_step, clip_and_step, but not virtual_step?

    Only words that are known to say so do: what `begin_step` does is for its author to tell.

    >>> is_step_name("clip_and_step"), is_step_name("begin_step"), is_step_name("schedulers_step")
    (True, False, False)
    """
    words = words_of(name)
    return "step" in words and _WHOLE.issuperset(words)


@_remembered
def is_half_a_step(name: str) -> bool:
    """Does it go part of the way, for all one can tell: first_step of SAM, virtual_step?

    One that computes a step only gives back what somebody else subtracts.
    """
    words = words_of(name)
    return (
        "step" in words
        and not _WHOLE.issuperset(words)
        and _BESIDE.isdisjoint(words)
        and _COMPUTING.isdisjoint(words)
        and not is_scheduler_name(name)
    )


@_remembered
def fills_by_name(name: str) -> bool:
    """Does a method fill gradients, by its name: forward_backward, accumulate_gradients?

    The gradients must be what it computes: compute_gradient_penalty computes something else.
    """
    words = words_of(name)
    if not _BESIDE.isdisjoint(words):
        return False
    if "backward" in words:
        return True
    if _FILLING.isdisjoint(words):
        return False
    after = [words[at + 1 :] for at, word in enumerate(words) if word.startswith("grad")]
    return any(not rest or rest[0] in _LEADING_ON for rest in after)


@_remembered
def clears_by_name(name: str) -> bool:
    """Does a function of this name clear gradients, by all custom?"""
    lower = name.lower()
    words = words_of(name)
    if not _ODD.isdisjoint(words) or not _LOOKING.isdisjoint(words):
        return False  # zero_nan_grads(net): those that are no numbers; get_zero_grad_ratio(net)
    return lower in ("zero_grad", "zero_grads", "clear_grad", "clear_grads", "cleargrads") or (
        "grad" in lower
        and (any(word in lower for word in ("zero", "reset", "clear")) or words[-1:] == ("none",))
    )


@_remembered
def clips_by_name(name: str) -> bool:
    """Does a function of this name clip gradients, by all custom?

    >>> clips_by_name("clip_grad_norm_"), clips_by_name("_clip_grads"), clips_by_name("clip_loss")
    (True, True, False)
    """
    lower = name.lower()
    return "grad" in lower and "clip" in lower


def names_parameters(path: str) -> bool:
    """Does the name say parameters, as `head_params` does and `params.lr` does not?"""
    return any(word.startswith("param") for word in words_of(path))
