import torch


def final(clear, lr):
    w = torch.nn.Parameter(torch.ones(1))
    opt = torch.optim.SGD([w], lr=lr)
    for _ in range(200):
        if clear:
            opt.zero_grad()
        (w.square() / 2).sum().backward()
        opt.step()
    return abs(w.item())


for lr in (0.01, 0.1, 3.9):
    cleared, forgotten = final(True, lr), final(False, lr)
    print(f"lr {lr}: |w| = {cleared:.2g} cleared, {forgotten:.2g} forgotten")
