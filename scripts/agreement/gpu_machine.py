"""Everything that a machine with an NVIDIA GPU has to tell, in order, each part with a limit of time.

    python scripts/agreement/gpu_machine.py --out results --list
    python scripts/agreement/gpu_machine.py --out results --part quick --part default
    python scripts/agreement/gpu_machine.py --out results                  # all parts, up to 100 minutes

Each part writes its files and a log into the folder. A part that reaches its limit is interrupted and keeps what it
has; ``overhead show`` shows its journal.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_EXIT_S = 20.0
_OVERHEAD = ("-m", "overhead")
_SCRIPTS = "scripts/agreement"
_PROGRAMS = (
    "gpt2_forward",
    "resnet18_training",
    "lstm",
    "unet_denoising",
    "physics_loop",
    "mlp_training",
    "qwen2_decode",
    "jax_scan",
)
_DECODING = [
    word
    for stack in ("torch", "cuda-driver", "cuda-graph", "dawn", "wgpu-native", "onnxruntime")
    for word in ("-p", stack)
]
"""Without torch.compile, for which all others would wait: opening a process takes a minute for 0.5 billion parameters,
and compilation several more."""


@dataclass(frozen=True)
class MachinePart:
    """Arguments of Python, where ``{out}`` is the folder, and the limit."""

    arguments: Sequence[str]
    limit_s: float


def _plain() -> MachinePart:
    return MachinePart(
        (f"{_SCRIPTS}/plain_processes.py", "--processes", "8", "--callers", "", "--out", "{out}/plain.json"), 150
    )


def _explained(program: str, *more: str) -> MachinePart:
    out = ("--out", f"{{out}}/explain-{program}.json", "--html", f"{{out}}/explain-{program}.html")
    return MachinePart((*_OVERHEAD, "explain", f"scripts/explain_programs.py:{program}", *out, *more), 300)


def _run(name: str, limit_s: float, *more: str) -> MachinePart:
    return MachinePart((*_OVERHEAD, "run", "--out", f"{{out}}/{name}.json", *more), limit_s)


PARTS: Mapping[str, MachinePart] = {
    "plain-before": _plain(),
    "quick": _run("quick", 300, "--profile", "quick"),
    "plain-after": _plain(),
    "default": _run("default", 660, "--profile", "default"),
    **{f"explain-{program}": _explained(program) for program in _PROGRAMS},
    "decode-tiny": _run("decode-tiny", 300, "--workload", "qwen2.5-tiny"),
    "decode-0.5b": _run("decode-0.5b", 660, "--workload", "qwen2.5-0.5b", "--profile", "default", *_DECODING),
    "decode-compiled": _run("decode-compiled", 400, "--workload", "qwen2.5-0.5b", "-p", "torch-compile"),
    "decode-1.5b": _run(
        "decode-1.5b", 660, "--workload", "qwen2.5-1.5b", "-p", "torch", "-p", "cuda-graph", "-p", "dawn"
    ),
    "time": MachinePart(
        (*_OVERHEAD, "time", "x.add_(1)", "-s", "import torch; x = torch.zeros(256, device='cuda')"), 90
    ),
}


def perform(name: str, out: Path) -> tuple[int, float]:
    """The exit code and the seconds of a part; its output goes into ``NAME.log``."""
    part, began = PARTS[name], time.monotonic()
    command = [sys.executable, *(argument.format(out=out) for argument in part.arguments)]
    with (out / f"{name}.log").open("w") as log:
        child = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            child.wait(part.limit_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(_EXIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
    return child.wait(), time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for files and logs")
    parser.add_argument("--part", action="append", choices=PARTS, help="this part only (repeatable)")
    parser.add_argument("--list", action="store_true", help="print the parts and their limits")
    options = parser.parse_args(arguments)
    if options.list:
        for name, part in PARTS.items():
            print(f"{name}: {part.limit_s:.0f} s: python {' '.join(part.arguments)}")
        return 0
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in options.part or PARTS:
        code, seconds = perform(name, out)
        failed |= code != 0
        print(f"{name}: exit {code} after {seconds:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
