"""Which programs are run, with which of their own options, and which are not, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CLEAN, CASES, EXAMPLES = "clean", "cases", "examples"
CHECKOUTS = {
    CLEAN: "OrderLab+TrainCheck-Benchmarks/false-positive",
    CASES: ("OrderLab+TrainCheck-Evaluation-Workloads/silent-issue-detection/bug-reprod-scripts"),
    EXAMPLES: "pytorch+examples",
}


@dataclass(frozen=True)
class Program:
    """One program and how it is run.

    Args:
        words: the script and its options, or `-m` and a module.
        folder: where it stands in the checkout.
        data: folders of the synthetic data that it expects beside it, and under which name.
        edit: what is replaced in the script: `device="cuda"`, and how many epochs.
        first: a script of its own to run before, unwatched.
        repeats: whether a second run prints the same; not if processes race for one model.
        expects: codes of the rules that should speak.
    """

    group: str
    name: str
    words: tuple[str, ...]
    folder: str = ""
    data: tuple[tuple[str, str], ...] = ()
    edit: tuple[tuple[str, str], ...] = ()
    first: str = ""
    repeats: bool = True
    expects: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()

    def place(self, checkouts: Path) -> Path:
        return checkouts / CHECKOUTS[self.group] / (self.folder or self.name)


_ALL_DATA = ((".", "data"), (".", "../data"))
_NO_GPU = (("device='cuda'", "device='cpu'"), ('device="cuda"', 'device="cpu"'))


def _clean() -> list[Program]:
    mnist = ("--epochs", "1", "--no-cuda")
    programs = [
        Program(CLEAN, f"CNN/{part}/{name}", ("main.py", *mnist), data=_ALL_DATA)
        for part, name in (
            ("trainset", "MNIST-1epo"),
            ("trainset", "MNIST-3epo"),
            ("trainset", "MNIST-3epo-larger-model"),
            ("trainset", "MNIST-3epo-CIFAR10"),
            ("validset", "MNIST-FashionMNIST"),
            ("validset", "MNIST-Longer"),
            ("validset", "MNIST-HighRes-CIFAR10"),
        )
    ]
    programs += [
        Program(CLEAN, f"CNN/validset/pytorch-cifar-{net}", ("main.py",), data=_ALL_DATA)
        for net in ("ResNet18", "VGG11", "EfficientNet")
    ]
    for part, name, kind in (
        ("trainset", "RNN_TANH-1epo", "RNN_TANH"),
        ("trainset", "RNN_TANH-3epo", "RNN_TANH"),
        ("validset", "GRU-3epo", "GRU"),
        ("validset", "LSTM-3epo", "LSTM"),
        ("validset", "RNN_RELU-3epo", "RNN_RELU"),
        ("validset", "RNN_TANH-Longer", "RNN_TANH"),
        ("validset", "RNN_TANH-different-hyperparam", "RNN_TANH"),
    ):
        words = ("main.py", "--epochs", "1", "--model", kind, "--emsize", "16", "--nhid", "16")
        name = f"RNN/{part}/word_language_model-{name}"
        programs.append(Program(CLEAN, name, words, data=_ALL_DATA))
    dataset = ("--dataset_name", "wikitext", "--dataset_config_name", "wikitext-2-raw-v1")
    small = ("--per_device_train_batch_size", "2", "--max_train_steps", "8", "--output_dir", "out")
    for part, name, script, model, more in (
        ("trainset", "gpt2-88m-1epo", "run_clm", "distilgpt2", ()),
        ("trainset", "gpt2-88m-3epo", "run_clm", "distilgpt2", ()),
        ("trainset", "gpt2-88m-3epo-accelerate-naive", "run_clm", "gpt2", ()),
        ("trainset", "gpt2-88m-3epo-fp16", "run_clm", "distilgpt2", ()),
        ("validset", "gpt2-137m-3epo", "run_clm", "gpt2", ()),
        ("validset", "gpt2-137m-3epo-bf16", "run_clm", "gpt2", ()),
        ("validset", "gpt2-88m-10epo", "run_clm", "distilgpt2", ()),
        ("validset", "fim-gpt2-88m-3epo", "run_fim", "distilgpt2", ("--fim_rate", "0.5")),
        ("validset", "mlm-roberta-base-3epo", "run_mlm", "roberta-base", ()),
    ):
        words = (f"{script}_no_trainer.py", *dataset, "--model_name_or_path", model, *small, *more)
        programs.append(Program(CLEAN, f"Transformers/{part}/language-modeling-{name}", words))
    return programs


def _cases() -> list[Program]:
    two_epochs = (('"num_epoch": 10', '"num_epoch": 2'),)
    return [
        Program(
            CASES,
            f"{folder}/{script}",
            (script,),
            folder=folder,
            data=_ALL_DATA,
            edit=(*_NO_GPU, *edit),
            expects=expects,
        )
        for folder, script, edit, expects in (
            ("stackoverflow-60335387", "bug.py", two_epochs, ("ZG101",)),
            ("stackoverflow-60335387", "fixed.py", two_epochs, ()),
            ("pytorch-forum-84911", "bug.py", (("train(\n    10,", "train(\n    3,"),), ("ZG401",)),
            ("pytorch-forum-84911", "fixed.py", (), ()),
            ("pytorch-51800", "mnist_51800_buggy.py", (), ()),
            ("pytorch-51800", "mnist_51800_correct.py", (), ()),
        )
    ]


def _examples() -> list[Program]:
    one = ("--epochs", "1")
    tiny = (*one, "--emsize", "16", "--nhid", "16", "--dry-run")
    places = ((".", "data"), (".", "../data"))
    programs = [
        Program(EXAMPLES, "mnist", ("main.py", *one), data=places),
        Program(EXAMPLES, "mnist_rnn", ("main.py", *one), data=places),
        Program(EXAMPLES, "mnist_hogwild", ("main.py", *one), data=places, repeats=False),
        Program(
            EXAMPLES,
            "mnist_forward_forward",
            ("main.py", "--epochs", "3", "--train_size", "320", "--test_size", "64"),
            data=places,
        ),
        Program(EXAMPLES, "siamese_network", ("main.py", *one, "--dry-run"), data=places),
        Program(EXAMPLES, "vae", ("main.py", *one, "--batch-size", "32"), data=places),
        Program(EXAMPLES, "regression", ("main.py",)),
        Program(EXAMPLES, "dcgan", ("main.py", "--dataset", "fake", "--niter", "1", "--dry-run")),
        Program(
            EXAMPLES,
            "time_sequence_prediction",
            ("train.py", "--steps", "1"),
            first="generate_sine_wave.py",
        ),
        Program(EXAMPLES, "gcn", ("main.py", "--epochs", "4")),
        Program(EXAMPLES, "gat", ("main.py", "--epochs", "2"), data=(("cora", "cora"),)),
        Program(
            EXAMPLES,
            "imagenet",
            ("main.py", "--epochs", "1", "-b", "2", "-j", "0", "--seed", "1", "pictures"),
            data=(("pictures", "pictures"),),
        ),
        Program(
            EXAMPLES,
            "super_resolution",
            ("main.py", "--upscale_factor", "3", "--batchSize", "1", "--nEpochs", "1"),
            data=(("BSDS300", "dataset/BSDS300"),),
        ),
        Program(
            EXAMPLES,
            "fast_neural_style",
            (
                *("neural_style/neural_style.py", "train", "--dataset", "style", "--epochs", "1"),
                *("--save-model-dir", ".", "--image-size", "64", "--batch-size", "1"),
                *("--style-size", "64", "--log-interval", "1"),
            ),
            data=(("style", "style"),),
        ),
        *(
            Program(
                EXAMPLES,
                f"reinforcement_learning/{name}",
                (f"{name}.py", "--log-interval", "2"),
                folder="reinforcement_learning",
            )
            for name in ("reinforce", "actor_critic")
        ),
        *(
            Program(
                EXAMPLES,
                f"word_language_model, {kind}",
                ("main.py", "--model", kind, *tiny),
                folder="word_language_model",
                data=(("wikitext-2", "data/wikitext-2"),),
            )
            for kind in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU", "Transformer")
        ),
        *(
            Program(
                EXAMPLES,
                f"fx/{name}",
                (f"{name}.py",),
                folder="fx",
                repeats=name != "profiling_tracer",  # which prints how long each part took
            )
            for name in (
                *("custom_tracer", "inline_function", "invert", "module_tracer"),
                *("primitive_library", "profiling_tracer", "proxy_based_graph_creation"),
                *("replace_op", "subgraph_rewriter_basic_use", "wrap_output_dynamically"),
            )
        ),
        Program(
            EXAMPLES,
            "distributed/ddp",
            ("example.py",),
            launcher=("torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            repeats=False,
        ),
        Program(EXAMPLES, "distributed/rpc/rnn", ("main.py",), repeats=False),
        Program(
            EXAMPLES,
            "distributed/rpc/rl",
            ("main.py", "--world-size", "2", "--log-interval", "1"),
            repeats=False,
        ),
    ]
    return programs


PROGRAMS = (*_clean(), *_cases(), *_examples())

NOT_RUN = {
    CLEAN: ("`language-modeling-gpt2-137m-3epo-distributed` asks for two GPUs under FSDP.",),
    CASES: (
        "`pytorch-115607` calls `torch._dynamo.optimize` with options that left torch after 2.2.",
        "`pytorch-104336`, `deepspeed-1801`, `deepspeed-5794` and `x-jxmnop-ddp-out-of-sync` need "
        "several GPUs, DeepSpeed or a Trainer of an older transformers. The fault of the last one, "
        "the raw module called under DistributedDataParallel, is among our own tests of ZG601.",
        "`transformers-34204` trains nothing and downloads a processor.",
        "The other folders are about data, numbers or models, not about the life of a gradient.",
    ),
    EXAMPLES: (
        "`language_translation` and `legacy/snli` need torchtext, which ended before torch 2.13.",
        "`distributed/FSDP2`, `distributed/tensor_parallelism`, `distributed/minGPT-ddp`, "
        "`distributed/ddp-tutorial-series`, `distributed/FSDP` and the rest of `distributed/rpc` "
        "ask for GPUs.",
        "`cpp/` is not Python.",
    ),
}
