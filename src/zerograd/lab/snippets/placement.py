import torch
from torch import nn


def train(place):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    start = model.weight.detach().clone()
    for _ in range(50):
        if place == "top":
            opt.zero_grad()
        loss = (model(torch.randn(8, 4)) - 1).square().mean()
        if place == "before backward":
            opt.zero_grad()
        loss.backward()
        if place == "before step":
            opt.zero_grad()
        opt.step()
        if place == "after step":
            opt.zero_grad()
    return model.weight.detach(), start


top, start = train("top")
for place in ("before backward", "after step", "before step"):
    end, _ = train(place)
    print(f"{place}: same as top {torch.equal(end, top)}, never moved {torch.equal(end, start)}")
