"""REINFORCE over episodes, the clear forgotten."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(25)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for episode in range(5):
    log_probs, rewards = [], []
    for t in range(6):
        dist = Categorical(logits=policy(torch.randn(4)))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        rewards.append(torch.rand(()))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    policy_loss = -(torch.stack(log_probs) * returns).sum()
    policy_loss.backward()
    optimizer.step()  # expect: ZG101
