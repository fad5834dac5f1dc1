# bound: host
"""The forward pass of a small transformer encoder."""

import torch


def build() -> object:
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().train()
    x = torch.randn(4, 64, 256, device="cuda")
    return lambda: model(x)
