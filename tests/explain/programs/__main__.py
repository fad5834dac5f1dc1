"""Run ``overhead explain`` on each program, quiet and beside busy processes, and print what was known and what it says.

python -m tests.explain.programs [--busy N ...] [--out FOLDER] [NAME ...]
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

FOLDER = Path(__file__).parent
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    pass"
LONGEST_S = 300


def known_bounds() -> dict[str, str]:
    """By the name of a program: the verdicts that are right, with | between them."""
    files = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))
    return {path.stem: path.read_text().splitlines()[0].removeprefix("# bound: ") for path in files}


def explained(name: str) -> dict[str, Any]:
    """What ``explain --json`` says of a program; ``failed`` if it says nothing."""
    step = f"{FOLDER / name}.py:build"
    command = [sys.executable, "-m", "overhead", "explain", step, "--no-compile", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer within {LONGEST_S} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(name: str, known: str, found: dict[str, Any], seconds: float, busy: int) -> str:
    """One line of the table."""
    if "failed" in found:
        return f"| {name} | {busy} | {known} | failed: {found['failed'][:100]} | | {seconds:.0f} |"
    verdict, first = found["verdict"]["kind"], found["verdict"]["sentences"][0]
    right = "right" if verdict in known.split("|") else "unclear" if verdict == "unclear" else "WRONG"
    return f"| {name} | {busy} | {known} | {verdict}, {right} | {first} | {seconds:.0f} |"


def main() -> int:
    """Print the table; returns 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.explain.programs")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    both = [0, os.cpu_count() or 1]
    parser.add_argument("--busy", type=int, nargs="+", default=both, help="busy processes beside each run")
    parser.add_argument("--out", type=Path, help="a folder for what explain says in full")
    given = parser.parse_args()
    print(
        "| program | busy | bound known | verdict | first sentence | seconds |\n| - | - | - | - | - | - |", flush=True
    )
    wrong = 0
    for name, known in known_bounds().items():
        for busy in given.busy if not given.names or name in given.names else ():
            others = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(busy)]
            try:
                began = time.monotonic()
                found = explained(name)
                line = row(name, known.replace(" ", ""), found, time.monotonic() - began, busy)
            finally:
                for one in others:
                    one.kill()
                    one.wait()
            wrong += "WRONG" in line
            print(line, flush=True)
            if given.out is not None:
                (given.out / f"{name}-{busy}.json").write_text(json.dumps(found))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
