"""The clear stands one indentation too far out."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        optimizer.zero_grad()
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()  # expect: ZG101


if __name__ == "__main__":
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(48, 8), torch.randint(0, 3, (48,)))
    net = Net()
    train(net, DataLoader(data, batch_size=16), optim.Adam(net.parameters()), epochs=2)
