"""An attack whose optimizer is made anew each round, and only clears the input's gradient."""

import torch
from torch import nn

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
batches = [(torch.rand(6, 4), torch.randint(0, 3, (6,))) for _ in range(4)]
criterion = nn.CrossEntropyLoss()


def attacked(x, y):
    adversarial = (x + torch.empty_like(x).uniform_(-0.1, 0.1)).requires_grad_()
    for _ in range(3):
        helper = torch.optim.SGD([adversarial], lr=0.001)
        helper.zero_grad()
        criterion(model(adversarial), y).backward()
        moved = adversarial.detach() + 0.01 * adversarial.grad.sign()
        adversarial = moved.clamp(0, 1).requires_grad_()
    return (model(adversarial).argmax(1) != y).sum().item()


for _ in range(2):
    for x, y in batches:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    print(sum(attacked(x, y) for x, y in batches))
