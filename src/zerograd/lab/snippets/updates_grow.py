import torch

w = torch.nn.Parameter(torch.ones(1))
opt = torch.optim.SGD([w], lr=0.1)
sizes = []
for _ in range(200):  # never cleared
    (w.square() / 2).sum().backward()
    sizes.append(abs(w.grad.item()))
    opt.step()
for first in (0, 50, 100, 150):
    print(f"steps {first + 1}-{first + 50}: largest buffer {max(sizes[first : first + 50]):.2f}")
