"""``main.py soak``: kill runs at random moments, and resume each of them until it has ended.

After each kill no line of the journal is lost and no worker is left; after the end no other file is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil
from rich.console import Console

from overhead.loading import files
from overhead.loading.reduce import load
from overhead.results import EndedLine, RoundLine

_PLUGIN = Path(__file__).parents[2] / "tests" / "fakes" / "stacks" / "faulty.py"
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
_WORKER_GONE_S = 5.0


def soak(options: argparse.Namespace, console: Console) -> bool:
    """Kill ``--seeds`` times. Returns whether nothing was lost and nothing was left."""
    counts: Counter[str] = Counter()
    rng = random.Random(1)
    while counts["kills"] < options.seeds:
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            _one_run(Path(folder), rng, counts, options.seeds)
    console.print(json.dumps(counts) if options.json else dict(counts))
    return not any(counts[name] for name in ("lost lines", "orphans", "left files", "failed"))


def _one_run(folder: Path, rng: random.Random, counts: Counter[str], most: int) -> None:
    temporary, out = folder / "tmp", folder / "out"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "FAULTS": ""}
    first = ["--profile", "quick", "-p", "faulty", "--out", str(out / "r.json")]
    journal = out / "r.jsonl"
    counts["runs"] += 1
    while True:
        resume = journal.exists() and b'"planned"' in journal.read_bytes()
        before = _lines(journal) if resume else 0
        command = [sys.executable, "-m", "overhead", "run", "--plugin", str(_PLUGIN)]
        process = subprocess.Popen(
            [*command, *(["--resume", str(journal)] if resume else first)],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(rng.uniform(0.3, 6.0) if counts["kills"] < most else None)
        except subprocess.TimeoutExpired:
            _kill(process, rng, counts)
            counts["lost lines"] += resume and _lines(journal) < before
            if journal.exists() or not (out / "r.json").exists():
                continue
        else:
            counts["failed"] += process.returncode != 0
        break
    counts["ended"] += 1
    counts["failed"] += not load(out / "r.json").records
    counts["left files"] += len(list(temporary.iterdir())) + len(list(out.iterdir())) - 2


def _kill(process: subprocess.Popen[bytes], rng: random.Random, counts: Counter[str]) -> None:
    """Kill the run, or one of its workers and then the run."""
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    if family and rng.random() < 0.3:
        rng.choice(family).kill()
        counts["worker kills"] += 1
        time.sleep(rng.uniform(0.0, 1.0))
    process.send_signal(rng.choice(_SIGNALS))
    process.wait()
    counts["kills"] += 1
    _, alive = psutil.wait_procs(family, timeout=_WORKER_GONE_S)
    counts["orphans"] += sum(one.status() != psutil.STATUS_ZOMBIE for one in alive if one.is_running())


def _lines(journal: Path) -> int:
    """How many rounds and ended processes the journal has; of a journal that has gone, as many as its samples."""
    path = journal if journal.exists() else journal.with_suffix(".samples.jsonl.gz")
    return sum(isinstance(line, RoundLine | EndedLine) for line in files.read_journal(path))
