"""Exercise 10, the project: a training script with six faults.

This script trains in six stages. It runs, raises nothing, and its losses look
like losses. Each stage has one fault in how it treats gradients, each of another
kind. Find and mend all six. What a stage is meant to do is said in its docstring;
keep the functions' names and parameters, the optimizers and their settings.

    python 10_six_faults.py             runs it
    zerograd check 10_six_faults.py     reads it   } try without them first,
    zerograd run 10_six_faults.py       watches it }  then see what they say
"""

import torch
from torch import Tensor, nn

Batches = list[tuple[Tensor, Tensor]]
bce = nn.functional.binary_cross_entropy_with_logits
mse = nn.functional.mse_loss


def pretrain(model: nn.Module, batches: Batches, epochs: int) -> None:
    """Learn to predict the targets: one SGD update per batch, `epochs` times over."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(epochs):
        optimizer.zero_grad()
        for inputs, targets in batches:
            loss = mse(model(inputs), targets)
            loss.backward()
            optimizer.step()


def warm_up(model: nn.Module, batches: Batches) -> None:
    """Train with Adam while the step size rises: one update per batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=len(batches))
    for inputs, targets in batches:
        optimizer.zero_grad
        mse(model(inputs), targets).backward()
        optimizer.step()
        scheduler.step()


def train_scaled(model: nn.Module, batches: Batches, max_norm: float) -> None:
    """Train with a loss scaler, the norm of the true gradient clipped at `max_norm`."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = mse(model(inputs), targets)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()


def train_in_windows(model: nn.Module, batches: Batches, window: int) -> None:
    """Make one update from the mean loss of each `window` batches; there is no rest."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for index, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        loss = mse(model(inputs), targets) / window
        loss.backward()
        if (index + 1) % window == 0:
            optimizer.step()


def train_gan(netG: nn.Module, netD: nn.Module, batches: Batches) -> None:
    """Update the discriminator, then the generator, each from its own loss alone.

    A batch holds real samples and noise.
    """
    optG = torch.optim.SGD(netG.parameters(), lr=0.1)
    optD = torch.optim.SGD(netD.parameters(), lr=0.1)
    for real, noise in batches:
        fake = netG(noise)
        on_real = netD(real)
        on_fake = netD(fake.detach())
        lossD = bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))
        lossD.backward()
        optD.step()
        optD.zero_grad()

        optG.zero_grad()
        judged = netD(fake)
        lossG = bce(judged, torch.ones_like(judged))
        lossG.backward()
        optG.step()


def distil(student: nn.Module, teacher: nn.Module, batches: Batches) -> None:
    """Teach the student to answer as the teacher does: one update per batch."""
    optimizer = torch.optim.AdamW(student.parameters(), lr=0.01, weight_decay=0.0)
    for inputs, _ in batches:
        with torch.no_grad():
            wanted = teacher(inputs)
        loss = mse(student(inputs), wanted)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()


def make_net(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs))


def make_batches(count: int) -> Batches:
    generator = torch.Generator().manual_seed(1)
    mix = torch.randn(4, 1, generator=generator)
    batches = []
    for _ in range(count):
        inputs = torch.randn(16, 4, generator=generator)
        batches.append((inputs, inputs @ mix))
    return batches


def main() -> None:
    torch.manual_seed(0)
    model, student, batches = make_net(4, 1), make_net(4, 1), make_batches(24)

    def report(stage: str, judged: nn.Module = model) -> None:
        with torch.no_grad():
            losses = [mse(judged(inputs), targets).item() for inputs, targets in batches]
        print(f"{stage:<18} loss {sum(losses) / len(losses):.4f}")

    report("untrained")
    pretrain(model, batches, epochs=2)
    report("pretrained")
    warm_up(model, batches)
    report("warmed up")
    train_scaled(model, batches, max_norm=1.0)
    report("scaled")
    train_in_windows(model, batches, window=4)
    report("windows")
    netG, netD = make_net(2, 4), make_net(4, 1)
    noise = [torch.randn(16, 2) for _ in batches]
    reals = [(inputs, z) for (inputs, _), z in zip(batches, noise, strict=True)]
    train_gan(netG, netD, reals)
    distil(student, model, batches)
    report("student", student)


if __name__ == "__main__":
    main()
