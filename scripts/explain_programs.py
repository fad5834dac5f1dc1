"""Try ``overhead explain`` on example programs. Of each it is known beforehand if the host or the
device limits it.

Each is explained beside N processes that keep processors busy, for each N of ``--busy`` (default:
0, and one a core).

python scripts/explain_programs.py [--busy N ...] [--out FILE] [NAME ...]
overhead explain scripts/explain_programs.py:encoder
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from overhead.explaining.conditions import busy_processes

BOUNDS = {
    "amp_training": "host",
    "boolean_index": "host",
    "collector": "host",
    "cupy_inside": "device",
    "encoder": "host",
    "generate": "host",
    "pageable_upload": "device",
    "products": "device",
    "python_loop": "host",
    "sleeping": "device",
    "triton_inside": "device",
    "two_streams": "device",
}
"""What bounds each program, by its construction."""
_LONGEST_S = 300
"""A program without an answer within so many seconds has failed. Chosen, not measured."""
Step = Any


def amp_training() -> Step:
    """An AMP training step of a small network."""
    layers: list[Any] = []
    for _ in range(8):
        layers += [torch.nn.Linear(256, 256), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda()
    optimiser = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    x = torch.randn(64, 256, device="cuda")
    y = torch.randint(10, (64,), device="cuda")

    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()

    return step


def boolean_index() -> Step:
    """Boolean indexing, which waits for the number of elements. A thousandth of them takes 0.85
    times as long.
    """
    x = torch.randn(1 << 20, device="cuda")
    return lambda: sum(x[x > threshold].sum() for threshold in (0.0, 0.5, 1.0, 1.5))


class _Node:
    """An object of a cycle."""

    def __init__(self) -> None:
        self.itself = self


def collector() -> Step:
    """Many cyclic objects beside launches: the garbage collector takes a large part."""
    kept = [_Node() for _ in range(200_000)]
    x = torch.zeros(256, device="cuda")

    def step() -> int:
        for _ in range(5):
            for _ in range(1000):
                _Node()
            x.add_(1)
        return len(kept)

    return step


def cupy_inside() -> Step:
    """A kernel of CuPy between operations of PyTorch."""
    import cupy

    x = torch.ones(1 << 26, device="cuda")
    seen_by_cupy = cupy.from_dlpack(x)

    def step() -> list[Any]:
        sums = []
        for _ in range(4):
            x.mul_(0.5)
            sums.append(cupy.add(seen_by_cupy, 1.0, out=seen_by_cupy))
        return sums

    return step


def encoder() -> Step:
    """The forward pass of a small transformer encoder."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().train()
    x = torch.randn(4, 64, 256, device="cuda")
    return lambda: model(x)


def generate() -> Step:
    """``generate`` of a tiny Llama: a long step with many small launches and reads."""
    from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found,unused-ignore]

    sizes = {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
    }
    model = LlamaForCausalLM(LlamaConfig(vocab_size=1000, **sizes)).cuda().eval()
    tokens = torch.arange(1, 9, device="cuda")[None]
    return lambda: model.generate(
        tokens, max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0
    )


def pageable_upload() -> Step:
    """An upload from pageable memory before a product."""
    batch = torch.randn(4096, 4096)
    weight = torch.randn(4096, 4096, device="cuda") / 64
    return lambda: batch.to("cuda") @ weight


def products() -> Step:
    """Four products of large matrices."""
    x = torch.randn(4096, 4096, device="cuda") / 64
    return lambda: x @ x @ x @ x @ x


def python_loop() -> Step:
    """A loop in Python beside a few launches."""
    x = torch.zeros(256, device="cuda")

    def step() -> int:
        total = 0
        for i in range(60_000):
            total += i & 7
        for _ in range(10):
            x.add_(1)
        return total

    return step


def sleeping() -> Step:
    """Fifty kernels without any tensor."""
    return lambda: [torch.cuda._sleep(100_000) for _ in range(50)]


def triton_inside() -> Step:
    """A Triton kernel between operations of PyTorch."""
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[untyped-decorator]
    def add_one(x, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(x + at, 1.0 + tl.load(x + at, mask=at < n), mask=at < n)

    x = torch.zeros(1 << 26, device="cuda")
    grid = (x.numel() // 1024,)
    return lambda: [add_one[grid](x.mul_(0.5), x.numel(), block=1024) for _ in range(4)]


def two_streams() -> Step:
    """Products on two streams."""
    x = torch.randn(4096, 4096, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(2)]

    def step() -> None:
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                x @ x
            torch.cuda.current_stream().wait_stream(stream)

    return step


def explained(name: str) -> dict[str, Any]:
    """What ``explain --json`` says of a program, in short; or why it ``failed``."""
    program = f"{__file__}:{name}"
    overhead = [sys.executable, "-m", "overhead"]
    command = [*overhead, "explain", program, "--no-compile", "--json"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer within {_LONGEST_S} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no answer"]
        return {"failed": lines[-1][:200]}
    answer = json.loads(done.stdout)
    kept = ("created", "machine", "step", "replay", "verdict", "alternatives", "host")
    return {key: answer[key] for key in kept}


def main() -> int:
    """Explain the programs; returns 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(prog="scripts/explain_programs.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    parser.add_argument(
        "--busy",
        type=int,
        nargs="+",
        default=[0, os.cpu_count()],
        help="busy processes beside each",
    )
    parser.add_argument(
        "--out", type=Path, help="a JSON file that gets what explain says, by program"
    )
    options = parser.parse_args()
    answers = {}
    if options.out is not None and options.out.exists():
        answers = json.loads(options.out.read_text())
    is_wrong = False
    for name in options.names or BOUNDS:
        for busy in options.busy:
            answer = explained_beside(busy, name)
            verdict = answer.get("verdict", {}).get("kind", "failed")
            if verdict not in (BOUNDS[name], "unclear"):
                is_wrong = True
            seconds = answer["seconds"]
            print(
                f"{name:16} {busy:3} busy  {BOUNDS[name]:7} {verdict:7} {seconds:4} s", flush=True
            )
            host = "busy" if busy else "quiet"
            answers[f"{name}, {host}"] = answer
            if options.out is not None:
                # Written after each program, so that a run that is stopped keeps its answers.
                options.out.write_text(json.dumps(answers, indent=1) + "\n")
    return 1 if is_wrong else 0


def explained_beside(busy: int, name: str) -> dict[str, Any]:
    """What ``explain --json`` says of a program beside so many processes that keep processors busy,
    and how long that took, s.
    """
    began = time.monotonic()
    with busy_processes(busy):
        answer = explained(name)
    seconds = round(time.monotonic() - began)
    return answer | {"seconds": seconds, "busy": busy}


if __name__ == "__main__":
    sys.exit(main())
