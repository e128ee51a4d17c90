"""What the programs get instead of the network, a GPU and their large data.

Python imports this at start-up. Each part is put on when the library it is for is
imported, so a program that does not use a library never loads it.
"""

import importlib.abc
import importlib.util
import os
import random
import sys

DATA = os.environ.get("OUTSIDE_DATA", ".")
WORDS = [f"w{n}" for n in range(200)]


random.seed(0)


def numpy(module):
    module.random.seed(0)
    module.Inf = module.inf  # its name until numpy 2


def torch(module):
    module.manual_seed(0)
    if not module.cuda.is_available():
        module.Tensor.cuda = module.nn.Module.cuda = lambda self, *_, **__: self
        module.cuda.set_device = lambda *_: None
    load = module.nn.Module.load_state_dict

    def load_state_dict(self, state, *more, **options):
        return None if isinstance(state, Untrained) else load(self, state, *more, **options)

    module.nn.Module.load_state_dict = load_state_dict


class Untrained(dict):
    """Weights that would have been downloaded: the model keeps its random ones."""


def distributed(module):
    init = module.init_process_group

    def init_process_group(backend=None, *more, **options):
        return init("gloo" if backend == "nccl" else backend, *more, **options)

    module.init_process_group = init_process_group


def torchvision_files(module):
    module.check_integrity = lambda path, md5=None: os.path.isfile(path)


def torchvision_models(module):
    module.WeightsEnum.get_state_dict = lambda self, *_, **__: Untrained()


def efficientnet(module):
    module.EfficientNet.from_pretrained = module.EfficientNet.from_name


def pictures(module):
    module.ANTIALIAS = module.LANCZOS  # its name until Pillow 10


def gymnasium(module):
    make = module.make

    def easy(*words, **options):
        env = make(*words, **options)
        env.spec.reward_threshold = 14  # solved after a few episodes
        return env

    module.make = easy


def requests(module):
    class Answer:
        def __init__(self, path):
            self.raw = open(path, "rb")  # noqa: SIM115

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.raw.close()

    module.get = lambda url, **_: Answer(os.path.join(DATA, os.path.basename(url)))


def datasets(module):
    def load_dataset(name, *_, split=None, **__):
        texts = [" ".join(WORDS[(n + k) % 200] for k in range(30)) for n in range(40)]
        if name == "glue":
            columns = {"sentence1": texts, "sentence2": texts[::-1], "label": [1.0, 2.0] * 20}
        else:
            columns = {"text": texts}
        made = module.Dataset.from_dict(columns)
        parts = module.DatasetDict({"train": made, "validation": made.select(range(12))})
        return parts if split is None else made

    module.load_dataset = load_dataset


def transformers(module):
    def config(name, *_, **__):
        if "gpt" in name:
            return module.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=256, n_positions=64)
        small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        return module.RobertaConfig(
            **small, intermediate_size=16, vocab_size=256, max_position_embeddings=80
        )

    def tokenizer(name, *_, **__):
        from tokenizers import Tokenizer, models, pre_tokenizers

        marks = ["[UNK]", "[PAD]", "[MASK]", "[CLS]", "[SEP]"]
        vocabulary = {word: n for n, word in enumerate([*marks, *WORDS])}
        inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        inner.pre_tokenizer = pre_tokenizers.Whitespace()
        return module.PreTrainedTokenizerFast(
            tokenizer_object=inner,
            unk_token="[UNK]",
            pad_token="[PAD]",
            mask_token="[MASK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            model_max_length=32,
        )

    def untrained(auto):
        def from_pretrained(name, *_, **options):
            return auto.from_config(options.get("config") or config(name))

        auto.from_pretrained = from_pretrained

    module.is_torch_tpu_available = lambda *_, **__: False  # gone since transformers 5
    module.AutoConfig.from_pretrained = config
    module.AutoTokenizer.from_pretrained = tokenizer
    for auto in (module.AutoModel, module.AutoModelForCausalLM, module.AutoModelForMaskedLM):
        untrained(auto)


def accelerate(module):
    # The name of its XLA when the programs were written.
    type.__setattr__(module.DistributedType, "TPU", module.DistributedType.XLA)


def hub(module):
    if not hasattr(module, "Repository"):  # gone since huggingface_hub 1; imported, never used
        module.Repository = object


def transformers_utils(module):
    if not hasattr(module, "send_example_telemetry"):  # gone since transformers 5
        module.send_example_telemetry = lambda *_, **__: None


PARTS = {
    "numpy": numpy,
    "torch": torch,
    "torch.distributed": distributed,
    "torchvision.datasets.utils": torchvision_files,
    "torchvision.models._api": torchvision_models,
    "efficientnet_pytorch": efficientnet,
    "gymnasium": gymnasium,
    "PIL.Image": pictures,
    "requests": requests,
    "datasets": datasets,
    "accelerate": accelerate,
    "huggingface_hub": hub,
    "transformers": transformers,
    "transformers.utils": transformers_utils,
}


class Finder(importlib.abc.MetaPathFinder):
    """Finds what Python would find, and puts our part on when it has been loaded."""

    def __init__(self):
        self._busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in PARTS or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            PARTS[name](sys.modules[name])  # transformers puts another in its place

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
