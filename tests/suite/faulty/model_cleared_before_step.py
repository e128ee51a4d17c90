"""As above, through the module and in a trainer class."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.loss_fn = nn.CrossEntropyLoss()

    def train_batch(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.model.zero_grad()  # expect: ZG102
        self.optimizer.step()
        return loss.item()

    def fit(self, batches):
        for x, y in batches:
            self.train_batch(x, y)


torch.manual_seed(5)
batches = [(torch.randn(4, 6), torch.randint(0, 2, (4,))) for _ in range(5)]
Trainer(nn.Linear(6, 2)).fit(batches)
