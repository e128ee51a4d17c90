import torch

w = torch.nn.Parameter(torch.ones(1_000_000))
opt = torch.optim.SGD([w], lr=0.1)
(w * w).sum().backward()
address = w.grad.data_ptr()
opt.zero_grad(set_to_none=False)
print("zeros were written into the same memory:", w.grad.data_ptr() == address)
opt.zero_grad()
print("after the default clear the buffer is", w.grad)
