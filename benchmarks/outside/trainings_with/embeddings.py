"""pytorch-metric-learning with losses that have weights of their own, and sentence-transformers."""

import tempfile

import torch
from torch import nn

from benchmarks.outside.training import main


def proxies(fault):
    from pytorch_metric_learning import losses, miners

    net = nn.Linear(4, 6)
    loss_of, miner = losses.ProxyAnchorLoss(3, 6), miners.MultiSimilarityMiner()
    one = torch.optim.Adam(net.parameters(), 1e-2)
    two = torch.optim.SGD(loss_of.parameters(), 1e-2)
    told = []
    for _ in range(6):
        x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
        one.zero_grad()
        if fault != "never":
            two.zero_grad()
        made = net(x)
        loss = loss_of(made, y, miner(made, y))
        loss.backward()
        if fault == "between":
            two.zero_grad()  # found: between ZG102
        one.step()
        two.step()  # found: never ZG101
        told.append(loss.detach())
    return [*net.parameters(), *loss_of.parameters(), *told]


def trained_by_the_package(fault):
    from pytorch_metric_learning import losses, trainers

    net = nn.Linear(4, 6)
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
    trainers.MetricLossOnly(
        models={"trunk": net},
        optimizers={"trunk_optimizer": torch.optim.Adam(net.parameters())},
        batch_size=6,
        loss_funcs={"metric_loss": losses.TripletMarginLoss()},
        dataset=data,
        data_device="cpu",
        dataloader_num_workers=0,
    ).train(num_epochs=2)
    return net.parameters()


def _sentences():
    from sentence_transformers import SentenceTransformer, models
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers import models as kinds
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = {f"w{n}": n for n in range(28)} | {"[PAD]": 28, "[UNK]": 29}
    plain = Tokenizer(kinds.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    folder = tempfile.mkdtemp()
    PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    BertModel(BertConfig(vocab_size=32, intermediate_size=8, **size)).save_pretrained(folder)
    words = models.Transformer(folder)
    return SentenceTransformer(modules=[words, models.Pooling(8)], device="cpu")


def sentence_trainer(fault):
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )
    from transformers import TrainerCallback

    class Clearing(TrainerCallback):
        def on_pre_optimizer_step(self, *_, model, **__):
            if fault == "between":
                model.zero_grad()  # found: between ZG102

    model = _sentences()
    rows = [{"anchor": f"w{n} w{n + 1}", "positive": f"w{n + 2} w{n}"} for n in range(16)]
    for loss in (
        losses.MultipleNegativesRankingLoss(model),
        losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2),
    ):
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=tempfile.mkdtemp(),
                per_device_train_batch_size=4,
                max_steps=4,
                report_to=[],
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_list(rows),
            loss=loss,
            callbacks=[Clearing()],
        )
        for each in list(trainer.callback_handler.callbacks):
            if type(each).__name__ == "PrinterCallback":
                trainer.remove_callback(each)
        trainer.train()
    return model.parameters()


def sentences_by_hand(fault):
    from sentence_transformers import losses
    from torch.nn.utils import clip_grad_norm_

    model = _sentences()
    loss_of = losses.CosineSimilarityLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    told = []
    for turn in range(6):
        pairs = [model.tokenize([f"w{turn + k}" for k in range(3)]) for turn in (turn, turn + 5)]
        loss = loss_of(pairs, torch.ones(3))
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()  # found: never ZG101
        if fault != "never":
            optimizer.zero_grad()
        told.append(loss.detach())
    return [*model.parameters(), *told]


if __name__ == "__main__":
    main()
