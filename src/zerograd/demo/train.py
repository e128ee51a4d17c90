"""Learn which points lie inside a circle. It starts well, then gets stuck: why?"""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.rand(512, 2) * 2 - 1
inside = (points.norm(dim=1) < 0.7).float()

model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(120):
    for batch in torch.randperm(512).split(32):
        loss = criterion(model(points[batch]).squeeze(1), inside[batch])
        loss.backward()
        optimizer.step()
    if epoch % 30 == 29:
        right = ((model(points).squeeze(1) > 0) == inside.bool()).float().mean()
        print(f"epoch {epoch + 1:3}: {right:.0%} of the points right")
