import torch


def train(clear, momentum):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum)
    for _ in range(200):
        if clear:
            opt.zero_grad()
        x = torch.randn(16, 3)
        (model(x) - x.prod(dim=1, keepdim=True)).square().mean().backward()
        opt.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


forgotten, heavy = train(False, momentum=0.0), train(True, momentum=1.0)
print("bit-equal after 200 steps:", torch.equal(forgotten, heavy))
