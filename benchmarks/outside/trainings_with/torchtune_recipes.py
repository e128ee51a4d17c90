"""torchtune: the loops of its recipes, with windows, and with optimizers in the backward."""

import torch
from torch import nn
from torchtune import training
from torchtune.models.llama2 import llama2, lora_llama2
from torchtune.modules.loss import CEWithChunkedOutputLoss
from torchtune.modules.peft import get_adapter_params, set_trainable_params

from benchmarks.outside.training import main

_SIZE = {
    "vocab_size": 32,
    "num_layers": 2,
    "num_heads": 2,
    "num_kv_heads": 2,
    "embed_dim": 8,
    "max_seq_len": 16,
}


def _batches(count=12):
    return [torch.randint(0, 32, (2, 9)) for _ in range(count)]


def full_finetune(fault):
    net, losses = llama2(**_SIZE), []
    for each in net.parameters():
        nn.init.normal_(each, std=0.02)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    loss_of = CEWithChunkedOutputLoss(num_output_chunks=2)
    net.set_num_output_chunks(2)
    tokens = total = 0
    for turn, batch in enumerate(_batches()):
        count = batch[:, 1:].numel()
        tokens += count
        loss = loss_of(net(batch[:, :-1]), batch[:, 1:]) * count
        total = total + loss.detach()
        loss.backward()
        if fault == "early":
            optimizer.zero_grad(set_to_none=True)  # found: early ZG102
        if turn % 3 == 2:
            training.scale_grads(net, torch.tensor(1 / tokens))
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()  # found: never ZG101
            if fault != "never":
                optimizer.zero_grad(set_to_none=True)
            losses.append(total / tokens)
            tokens = total = 0
    return [*net.parameters(), *losses]


def in_the_backward(fault):
    net = llama2(**_SIZE)
    for each in net.parameters():
        nn.init.normal_(each, std=0.02)
    optimizers = {each: torch.optim.AdamW([each], 1e-3) for each in net.parameters()}
    training.register_optim_in_bwd_hooks(model=net, optim_dict=optimizers)
    training.create_optim_in_bwd_wrapper(model=net, optim_dict=optimizers)
    for batch in _batches():
        logits = net(batch[:, :-1])
        nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:]).backward()
    return net.parameters()


def adapters(fault):
    net, losses = lora_llama2(["q_proj", "v_proj"], **_SIZE, lora_rank=2, lora_alpha=4), []
    for each in net.parameters():
        nn.init.normal_(each, std=0.02)
    set_trainable_params(net, get_adapter_params(net))
    optimizer = torch.optim.AdamW((p for p in net.parameters() if p.requires_grad), 1e-2)
    for batch in _batches():
        if fault != "never":
            optimizer.zero_grad()
        logits = net(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


if __name__ == "__main__":
    main()
