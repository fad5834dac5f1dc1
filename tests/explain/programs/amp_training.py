# bound: host
"""An AMP training step of a small network."""

import torch


def build() -> object:
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda()
    optimiser = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    x, y = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")

    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()

    return step
