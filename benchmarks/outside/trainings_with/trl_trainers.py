"""TRL: supervised fine-tuning and preferences."""

import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, TrainerCallback
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

from benchmarks.outside.training import main

_QUIET = {
    "per_device_train_batch_size": 2,
    "max_steps": 4,
    "report_to": [],
    "use_cpu": True,
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_strategy": "no",
    "gradient_accumulation_steps": 2,
    "bf16": False,
    "gradient_checkpointing": False,
}


def _tokenizer():
    words = {f"w{n}": n for n in range(28)} | {"[PAD]": 28, "[EOS]": 29, "[UNK]": 30}
    plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]"
    )


def _config():
    size = {"n_layer": 1, "n_head": 1, "n_embd": 8, "n_positions": 32}
    return GPT2Config(vocab_size=32, bos_token_id=29, eos_token_id=29, pad_token_id=28, **size)


def _sentence(seed):
    return " ".join(f"w{(seed * 7 + k) % 28}" for k in range(5))


class _Clearing(TrainerCallback):
    def __init__(self, clear):
        self.clear = clear

    def on_pre_optimizer_step(self, *_, model, **__):
        self.clear(model)


def _train(kind, arguments, rows, fault, clear, **more):
    model = more.pop("model", None) or GPT2LMHeadModel(_config())
    trainer = kind(
        model=model,
        args=arguments(output_dir=tempfile.mkdtemp(), **_QUIET),
        train_dataset=Dataset.from_list(rows),
        processing_class=_tokenizer(),
        callbacks=[_Clearing(clear)],
        **more,
    )
    for each in list(trainer.callback_handler.callbacks):
        if type(each).__name__ == "PrinterCallback":
            trainer.remove_callback(each)
    trainer.train()
    return model.parameters()


def supervised(fault):
    def clear(model):
        if fault == "between":
            model.zero_grad()  # found: between ZG102

    rows = [{"text": _sentence(n)} for n in range(8)]
    return _train(SFTTrainer, SFTConfig, rows, fault, clear)


def preferences(fault):
    def clear(model):
        if fault == "between":
            model.zero_grad()  # found: between ZG102

    rows = [
        {"prompt": _sentence(n), "chosen": _sentence(n + 1), "rejected": _sentence(n + 2)}
        for n in range(8)
    ]
    reference = GPT2LMHeadModel(_config())
    return _train(DPOTrainer, DPOConfig, rows, fault, clear, ref_model=reference)


def rewards(fault):
    from transformers import GPT2ForSequenceClassification

    def clear(model):
        if fault == "between":
            model.zero_grad()  # found: between ZG102

    config = _config()
    config.num_labels = 1
    rows = [{"chosen": _sentence(n), "rejected": _sentence(n + 2)} for n in range(8)]
    model = GPT2ForSequenceClassification(config)
    return _train(RewardTrainer, RewardConfig, rows, fault, clear, model=model)


if __name__ == "__main__":
    main()
