"""First contact with a machine: open every case of the named stacks, run it briefly, say what works and what doesn't.

    python scripts/smoke_stacks.py [--limit SECONDS] [--case TEXT] STACK...

Prints one line a case: ok with a rough T(n), or the reason why not. A case that crashes or hangs costs itself alone:
cases run in a child process, which is replaced. The figures are for orientation, they are no measurements.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from overhead.probes import registry
from overhead.probes.base import Chain, Probe, Unavailable, Unsupported, Unverified
from overhead.results import Case, Target

LADDER = (1, 10, 100)
REPEATS = 3
STAGED = 20
"""Units of the chain whose calls are timed one by one; they count as issued."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", metavar="STACK")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a case may take")
    parser.add_argument("--case", default="", help="only cases whose key holds this text")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return child(registry()[options.stacks[0]], options.case, options.child)
    unknown = set(options.stacks) - set(registry())
    if unknown:
        parser.error(f"no such stack: {', '.join(sorted(unknown))}; there are {', '.join(sorted(registry()))}")
    bad = 0
    for stack in options.stacks or sorted(registry()):
        for environment in registry()[stack].environments():
            bad += smoke(stack, environment, options.case, options.limit)
    return min(bad, 1)


def smoke(stack: str, environment: dict[str, str], only: str, limit: float) -> int:
    """All cases of a stack in one environment; the number of those that went wrong."""
    print(f"== {stack} {environment or ''}", flush=True)
    first, bad = 0, 0
    while True:
        command = [sys.executable, __file__, stack, "--child", str(first), "--case", only]
        running, key = None, "targets"
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            for event in _events(process, limit):
                if event["event"] == "start":
                    running, key = event["index"], event["key"]
                else:
                    print(event["text"], flush=True)
                    bad += event["bad"]
            code = process.wait()
            errors.seek(0)
            last_words = errors.read().decode(errors="replace").splitlines()[-12:]
        if code == 0:
            return bad
        bad += 1
        cause = f"no word for {limit:g} s" if code == -9 else f"the process ended with {code}"
        print(f"  CRASH {key}: {cause}", *[f"        {line}" for line in last_words], sep="\n", flush=True)
        if running is None:
            return bad
        first = running + 1


def _events(process: subprocess.Popen[str], limit: float) -> Iterator[dict[str, Any]]:
    """The child's lines as they come; kills it after ``limit`` seconds of silence."""
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=limit)
        except queue.Empty:
            process.kill()
            return
        if line is None:
            return
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        yield event if isinstance(event, dict) else {"event": "line", "text": f"        {line.rstrip()}", "bad": 0}


def child(probe: Probe, only: str, first: int) -> int:
    """Run the cases from number ``first`` on, a JSON line an event."""
    faulthandler.enable()
    try:
        found = [(target, case) for target in probe.targets() for case in probe.space(target).star()]
    except Unavailable as error:
        _say(f"  unavailable: {error.reason}  [{error.mend}]", bad=False)
        return 0
    found = [(target, case) for target, case in found if only in f"{target.key} {case.key}"]
    shown = None
    for index, (target, case) in enumerate(found):
        if index < first:
            continue
        if target.key != shown and first == 0:
            _say(f" {target.key} {target.versions}", bad=False)
        shown = target.key
        print(json.dumps({"event": "start", "index": index, "key": f"{target.key} {case.key}"}), flush=True)
        text, bad = _try(probe, target, case)
        _say(f"  {text}", bad=bad)
    return 0


def _say(text: str, *, bad: bool) -> None:
    print(json.dumps({"event": "line", "text": text, "bad": bad}), flush=True)


def _try(probe: Probe, target: Target, case: Case) -> tuple[str, bool]:
    chain: Chain | None = None
    try:
        began = time.perf_counter_ns()
        chain = probe.open(target, case)
        opened = (time.perf_counter_ns() - began) / 1e6
        text = f"{run(chain)}  opened in {opened:.0f} ms  {json.dumps(chain.window())}"
        return f"ok    {case.key}: {text}", False
    except (Unavailable, Unsupported) as error:
        return f"none  {case.key}: {type(error).__name__}: {error}", False
    except Unverified as error:
        return f"WRONG {case.key}: {error}", True
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-3:]
        places = " <- ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(where))
        return f"FAIL  {case.key}: {type(error).__name__}: {error} ({places})", True
    finally:
        if chain is not None:
            chain.close()


def run(chain: Chain) -> str:
    """Run the ladder; rough T(n) in us. Raises ``Unverified`` where the count is wrong."""
    issued = chain.executed()
    words = []
    best: dict[int, float] = {}
    for n in (n for n in LADDER if n <= chain.max_n):
        times = []
        for _ in range(REPEATS + 1):
            chain.prepare(n)
            began = time.perf_counter_ns()
            chain.issue(n)
            middle = time.perf_counter_ns()
            chain.wait()
            times.append((time.perf_counter_ns() - began, middle - began))
            issued += n
        total, issue = min(times[1:])
        best[n] = total
        words.append(f"T({n})={total / 1e3:.1f} us (issue {issue / 1e3:.1f})")
    done = chain.executed()
    if done != issued and chain.executes:
        raise Unverified(f"issued {issued}, executed {done}")
    if {10, 100} <= set(best):
        words.append(f"slope {(best[100] - best[10]) / 90e3:.3f} us/{chain.unit}")
    words += [
        _optional("device", lambda: str(chain.device(64))),
        _optional("making", lambda: str(chain.making() or "")),
    ]
    before = chain.executed()
    stages = _optional("stages", lambda: _stages(chain))
    counted = chain.executed() - before
    if chain.executes and counted != (STAGED if stages else 0):
        raise Unverified(f"{STAGED} units were timed call by call, {counted} executed")
    words.append(stages)
    return "  ".join(word for word in words if word)


def _optional(name: str, ask: Callable[[], str]) -> str:
    try:
        found = ask()
    except Exception as error:  # optional verbs: what went wrong is the answer
        return f"{name}: {type(error).__name__}: {error}"
    return "" if found in ("None", "") else f"{name}: {found}"


def _stages(chain: Chain) -> str:
    chain.prepare(STAGED)
    return " ".join(f"{name}={sorted(times)[len(times) // 2]}" for name, times in chain.stages(STAGED).items())


if __name__ == "__main__":
    raise SystemExit(main())
