"""Programs that ``overhead explain`` was not built on. Each function returns a step; a device is used if there is one.

overhead explain scripts/explain_programs.py:gpt2_forward
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Step = Any
EXPECTED = {
    "gpt2_forward": ("host", "CUDA graph"),
    "resnet18_training": ("host", "CUDA graph"),
    "lstm": ("host", "CUDA graph"),
    "unet_denoising": ("host", "CUDA graph"),
    "physics_loop": ("host", "torch.compile"),
    "mlp_training": ("host", "CUDA graph"),
    "qwen2_decode": ("host", "torch.compile reduce-overhead"),
    "jax_scan": ("device", None),
}
"""The verdict and the best alternative expected on an H200, written down before the first of them was measured there.

The reads of ``physics_loop`` and ``qwen2_decode`` forbid the capture of the whole step.
"""


class _Gpt2Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.joint(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.after(x))))


def gpt2_forward(layers: int = 12, width: int = 768, heads: int = 12, length: int = 64) -> Step:
    """The forward pass of GPT-2's shapes on one sequence."""
    torch.manual_seed(0)
    embedding = nn.Embedding(50257, width).to(DEVICE)
    blocks = nn.Sequential(*(_Gpt2Block(width, heads) for _ in range(layers))).to(DEVICE)
    tokens = torch.randint(50257, (1, length), device=DEVICE)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step() -> Any:
        return blocks(embedding(tokens))[:, -1] @ embedding.weight.T

    return step


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.short: Any = nn.Identity()
        if stride > 1 or before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Any) -> Any:
        inner = self.norm_two(self.two(self.norm_one(self.one(x)).relu()))
        return (inner + self.short(x)).relu()


def resnet18_training(batch: int = 4, size: int = 64) -> Step:
    """A training step of ResNet-18's shapes."""
    torch.manual_seed(0)
    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    stages = [_Residual(widths[i], widths[i + 1], 2 if i in (2, 4, 6) else 1) for i in range(8)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    model = nn.Sequential(*stem, *stages, *head).to(DEVICE)
    images = torch.randn(batch, 3, size, size, device=DEVICE)
    return _training(model, images, torch.arange(batch, device=DEVICE) % 10, functional.cross_entropy)


def lstm(width: int = 128, length: int = 32, batch: int = 8) -> Step:
    """An LSTM cell in a Python loop over a sequence."""
    torch.manual_seed(0)
    cell = nn.LSTMCell(width, width).to(DEVICE)
    inputs = torch.randn(length, batch, width, device=DEVICE)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step() -> Any:
        hidden = state = torch.zeros(batch, width, device=DEVICE)
        for each in inputs:
            hidden, state = cell(each, (hidden, state))
        return hidden

    return step


class _UNet(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, width, 3, 1, 1)
        self.down = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.middle = nn.Sequential(nn.GroupNorm(8, 2 * width), nn.SiLU(), nn.Conv2d(2 * width, 2 * width, 3, 1, 1))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.last = nn.Conv2d(2 * width, 4, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        high = functional.silu(self.first(x))
        low = functional.silu(self.down(high))
        low = low + self.middle(low)
        return self.last(torch.cat([high, self.up(low)], 1))


def unet_denoising(width: int = 32, size: int = 32) -> Step:
    """One denoising step of a small UNet; the image is carried from step to step."""
    torch.manual_seed(0)
    model = _UNet(width).to(DEVICE)
    image = torch.randn(1, 4, size, size, device=DEVICE)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step() -> Any:
        image.mul_(0.99).sub_(model(image), alpha=0.01)
        return image

    return step


def physics_loop(side: int = 64, iterations: int = 20) -> Step:
    """Heat in a plate: one time step is some iterations of Jacobi's method, then a look at the residual."""
    torch.manual_seed(0)
    plate = torch.rand(side, side, device=DEVICE)

    def step() -> float:
        residual = plate
        for _ in range(iterations):
            around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
            residual = 0.25 * around - plate[1:-1, 1:-1]
            plate[1:-1, 1:-1] += 0.8 * residual
        return float(residual.abs().max())

    return step


def mlp_training(width: int = 256, batch: int = 64) -> Step:
    """A training step of a perceptron with Adam."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    inputs = torch.randn(batch, width, device=DEVICE)
    return _training(model.to(DEVICE), inputs, inputs.sum(1, keepdim=True), functional.mse_loss, torch.optim.Adam)


def qwen2_decode(size: str = "qwen2.5-0.5b") -> Step:
    """One token of a Qwen2 decoder, read back as a chat program does."""
    from overhead.decode.decoders import SHAPES
    from overhead.decode.lowering.decoder import Decoder, FedBackStep, randomised

    shape = SHAPES[size]
    model = FedBackStep(randomised(Decoder(shape), seed=1)).to(DEVICE)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step() -> int:
        model.position.remainder_(shape.slots - 1)
        token, _ = model()
        return int(token.item())

    return step


def jax_scan(width: int = 64, length: int = 100) -> Step:
    """A recurrence in ``jax.lax.scan``, translated as a whole."""
    import jax
    import jax.numpy as jnp

    matrix = jax.random.normal(jax.random.key(0), (width, width)) / width**0.5

    @jax.jit  # type: ignore[untyped-decorator]
    def run(state: Any) -> Any:
        return jax.lax.scan(lambda s, _: (jnp.tanh(matrix @ s), None), state, length=length)[0]

    state = jnp.ones(width)

    def step() -> Any:
        nonlocal state
        state = run(state)
        return state

    return step


def _training(model: Any, inputs: Any, targets: Any, loss_of: Any, optimiser_of: Any = torch.optim.SGD) -> Step:
    optimiser = optimiser_of(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimiser.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step
