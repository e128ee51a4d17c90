"""transformers' Trainer and Seq2SeqTrainer, with and without PEFT."""

import tempfile

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from benchmarks.outside.training import main


def _words(count=16):
    words = torch.randint(3, 30, (count, 6))
    return [{"input_ids": row, "labels": row} for row in words]


def _decoder():
    size = {"n_layer": 1, "n_head": 1, "n_embd": 8, "n_positions": 16}
    return GPT2LMHeadModel(GPT2Config(vocab_size=32, bos_token_id=1, eos_token_id=2, **size))


def _arguments(kind=TrainingArguments, **more):
    return kind(
        output_dir=tempfile.mkdtemp(),
        **{
            "per_device_train_batch_size": 2,
            "max_steps": 6,
            "report_to": [],
            "use_cpu": True,
            "save_strategy": "no",
            "disable_tqdm": True,
            "logging_strategy": "no",
            **more,
        },
    )


def _silent(trainer):
    for each in list(trainer.callback_handler.callbacks):
        if type(each).__name__ == "PrinterCallback":
            trainer.remove_callback(each)
    return trainer


def windows(fault):
    class Clearing(TrainerCallback):
        def on_substep_end(self, *_, model, **__):
            if fault == "early":
                model.zero_grad()  # found: early ZG501

        def on_pre_optimizer_step(self, *_, model, **__):
            if fault == "between":
                model.zero_grad()  # found: between ZG102

    model = _decoder()
    arguments = _arguments(gradient_accumulation_steps=2, num_train_epochs=2, max_steps=-1)
    trainer = Trainer(model, arguments, train_dataset=_words(14), callbacks=[Clearing()])
    _silent(trainer).train()
    return model.parameters()


def never_cleared(fault):
    class Kept(Trainer):
        def create_optimizer(self, *words):
            optimizer = super().create_optimizer(*words)
            optimizer.zero_grad = lambda *_, **__: None
            return optimizer

    model = _decoder()
    if fault == "never":
        model.zero_grad = lambda *_, **__: None
    kind = Kept if fault == "never" else Trainer
    trainer = _silent(kind(model, _arguments(), train_dataset=_words()))
    trainer.train()  # found: never ZG101
    return model.parameters()


def a_step_of_its_own(fault):
    class Own(Trainer):
        def training_step(self, model, inputs, num_items_in_batch=None):
            model.train()
            loss = self.compute_loss(model, self._prepare_inputs(inputs))
            self.accelerator.backward(loss)
            if fault == "between":
                model.zero_grad()  # found: between ZG102
            return loss.detach()

    model = _decoder()
    _silent(Own(model, _arguments(), train_dataset=_words())).train()
    return model.parameters()


def adapters(fault):
    model = get_peft_model(
        _decoder(), LoraConfig(target_modules=["c_attn"], r=2, task_type="CAUSAL_LM")
    )

    class Frozen(TrainerCallback):
        def on_train_begin(self, *_, model, **__):
            if fault == "frozen":
                model.requires_grad_(False)
                model.base_model.model.transformer.wte.weight.requires_grad_(True)

    trainer = Trainer(model, _arguments(), train_dataset=_words(), callbacks=[Frozen()])
    _silent(trainer).train()  # found: frozen ZG401
    return model.parameters()


def adapters_by_hand(fault):
    model = get_peft_model(
        _decoder(), LoraConfig(target_modules=["c_attn"], r=2, task_type="CAUSAL_LM")
    )
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    losses = []
    for row in _words(8):
        loss = model(input_ids=row["input_ids"][None], labels=row["labels"][None]).loss
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()  # found: never ZG101
        if fault not in ("never", "between"):
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [*model.parameters(), *losses]


def sequences(fault):
    size = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "max_position_embeddings": 16}
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    wide = {"encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "vocab_size": 32}
    model = BartForConditionalGeneration(BartConfig(**size, **heads, **wide, dropout=0.0))

    class Clearing(TrainerCallback):
        def on_pre_optimizer_step(self, *_, model, **__):
            if fault == "between":
                model.zero_grad()  # found: between ZG102

    arguments = _arguments(
        Seq2SeqTrainingArguments,
        gradient_checkpointing=True,
        predict_with_generate=True,
        eval_strategy="steps",
        eval_steps=3,
        label_smoothing_factor=0.1,
        bf16=False,
    )
    trainer = Seq2SeqTrainer(
        model,
        arguments,
        train_dataset=_words(),
        eval_dataset=_words(4),
        callbacks=[Clearing()],
    )
    _silent(trainer).train()
    return model.parameters()


if __name__ == "__main__":
    main()
