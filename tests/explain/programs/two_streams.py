# bound: device
"""Products on two streams."""

import torch


def build() -> object:
    x, streams = torch.randn(4096, 4096, device="cuda"), [torch.cuda.Stream() for _ in range(2)]

    def step() -> None:
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                x @ x
            torch.cuda.current_stream().wait_stream(stream)

    return step
