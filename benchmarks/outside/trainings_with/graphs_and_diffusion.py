"""PyTorch Geometric and diffusers: the loops of their examples, on synthetic data."""

import torch
from accelerate import Accelerator
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

from benchmarks.outside.training import main


class _Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(4, 8), GCNConv(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, data):
        x = self.first(data.x, data.edge_index).relu()
        x = self.second(x, data.edge_index).relu()
        return self.head(global_mean_pool(x, data.batch))


def graphs(fault):
    graphs = [
        Data(x=torch.randn(6, 4), edge_index=torch.randint(0, 6, (2, 12)), y=torch.randn(1, 1))
        for _ in range(48)
    ]
    model, losses = _Graphs(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        for data in DataLoader(graphs, batch_size=8):
            if fault != "never":
                optimizer.zero_grad()
            loss = (model(data) - data.y).pow(2).mean()
            loss.backward()
            if fault == "between":
                optimizer.zero_grad()  # found: between ZG102
            optimizer.step()  # found: never ZG101
            losses.append(loss.detach())
    return [*model.parameters(), *losses]


def diffusion(fault):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    unet = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )
    noise_scheduler = DDPMScheduler(num_train_timesteps=20)
    average = EMAModel(unet.parameters())
    model, optimizer = accelerator.prepare(unet, torch.optim.AdamW(unet.parameters(), lr=1e-3))
    for _ in range(12):
        with accelerator.accumulate(model):
            clean = torch.randn(2, 1, 8, 8)
            noise = torch.randn_like(clean)
            steps = torch.randint(0, 20, (2,))
            noisy = noise_scheduler.add_noise(clean, noise, steps)
            loss = (model(noisy, steps).sample - noise).pow(2).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            if fault == "between":
                model.zero_grad()  # found: between ZG102
            optimizer.step()  # found: never ZG101
            if fault != "never":
                optimizer.zero_grad()
        if accelerator.sync_gradients:
            average.step(unet.parameters())
    return unet.parameters()


if __name__ == "__main__":
    main()
