import torch

kinds = [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop]
kinds += [torch.optim.Adagrad, torch.optim.Rprop, torch.optim.NAdam]
for kind in kinds:
    w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    opt = kind([w], lr=0.01)
    w.square().sum().backward()
    opt.step()
    print(f"{kind.__name__}: .grad after step() is {w.grad.tolist()}")
