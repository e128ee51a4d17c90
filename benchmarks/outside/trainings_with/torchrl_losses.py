"""TorchRL: losses with several networks, target updates, on made-up transitions."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import Bounded
from torchrl.modules import (
    NormalParamExtractor,
    ProbabilisticActor,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import ClipPPOLoss, SACLoss, SoftUpdate, TD3Loss

from benchmarks.outside.training import main

_STATE, _ACTION = 4, 2


def _net(before, after):
    return nn.Sequential(nn.Linear(before, 8), nn.Tanh(), nn.Linear(8, after))


def _actor():
    net = nn.Sequential(_net(_STATE, 2 * _ACTION), NormalParamExtractor())
    module = TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"])
    return ProbabilisticActor(
        module,
        in_keys=["loc", "scale"],
        spec=Bounded(-1, 1, (_ACTION,)),
        distribution_class=TanhNormal,
        return_log_prob=True,
    )


class _Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = _net(_STATE + _ACTION, 1)

    def forward(self, state, action):
        return self.net(torch.cat([state, action], -1))


def _batch(size=16):
    done = torch.zeros(size, 1, dtype=torch.bool)
    after = {
        "observation": torch.randn(size, _STATE),
        "reward": torch.randn(size, 1),
        "done": done,
        "terminated": done,
    }
    return TensorDict(
        {
            "observation": torch.randn(size, _STATE),
            "action": torch.rand(size, _ACTION) * 1.8 - 0.9,
            "action_log_prob": torch.randn(size),
            "sample_log_prob": torch.randn(size),
            "next": TensorDict(after, [size]),
        },
        [size],
    )


def soft_actor_critic(fault):
    values = ValueOperator(_Values(), in_keys=["observation", "action"])
    losses = SACLoss(_actor(), values, num_qvalue_nets=2, action_spec=Bounded(-1, 1, (_ACTION,)))
    target = SoftUpdate(losses, eps=0.9)
    actor = torch.optim.Adam(losses.actor_network_params.flatten_keys().values(), lr=1e-3)
    critic = torch.optim.Adam(losses.qvalue_network_params.flatten_keys().values(), lr=1e-3)
    alpha = torch.optim.Adam([losses.log_alpha], lr=1e-3)
    told = []
    for _ in range(6):
        found = losses(_batch())
        for optimizer in (actor, critic, alpha):
            if fault != "never":
                optimizer.zero_grad()
        for name in ("loss_actor", "loss_qvalue", "loss_alpha"):
            found[name].backward()
            told.append(found[name].detach())
        if fault == "between":
            critic.zero_grad()  # found: between ZG102
        actor.step()  # found: never ZG101
        critic.step()  # found: never ZG101
        alpha.step()  # found: never ZG101
        target.step()
    return [*losses.parameters(), *told]


def proximal_policy(fault):
    values = ValueOperator(_net(_STATE, 1), in_keys=["observation"])
    losses = ClipPPOLoss(_actor(), values)
    losses.make_value_estimator()
    optimizer = torch.optim.Adam(losses.parameters(), lr=1e-3)
    told = []
    for _ in range(3):
        batch = _batch(32)
        for _ in range(3):
            found = losses(batch[torch.randperm(32)[:16]])
            loss = sum(found[key] for key in found if key.startswith("loss_"))
            loss.backward()
            nn.utils.clip_grad_norm_(losses.parameters(), 0.5)
            optimizer.step()  # found: never ZG101
            if fault != "never":
                optimizer.zero_grad()
            told.append(loss.detach())
    return [*losses.parameters(), *told]


def twin_delayed(fault):
    policy = TensorDictModule(
        nn.Sequential(_net(_STATE, _ACTION), nn.Tanh()),
        in_keys=["observation"],
        out_keys=["action"],
    )
    values = ValueOperator(_Values(), in_keys=["observation", "action"])
    losses = TD3Loss(policy, values, action_spec=Bounded(-1, 1, (_ACTION,)), num_qvalue_nets=2)
    target = SoftUpdate(losses, eps=0.9)
    actor = torch.optim.Adam(losses.actor_network_params.flatten_keys().values(), lr=1e-3)
    critic = torch.optim.Adam(losses.qvalue_network_params.flatten_keys().values(), lr=1e-3)
    told = []
    for turn in range(9):
        batch = _batch()
        value_loss, *_ = losses.value_loss(batch)
        value_loss.backward()
        critic.step()  # found: never ZG101
        if fault != "never":
            critic.zero_grad()
        told.append(value_loss.detach())
        if turn % 2 == 0:
            actor_loss, *_ = losses.actor_loss(batch)
            actor_loss.backward()
            actor.step()
            actor.zero_grad()
            target.step()
            told.append(actor_loss.detach())
    return [*losses.parameters(), *told]


if __name__ == "__main__":
    main()
