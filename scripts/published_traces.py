"""Write what ``overhead explain --trace`` says of published traces, to
overhead/traces/published.json.

The traces themselves are not in this repository: they are files of others. CORPUS is a folder with
OWNER/REPOSITORY/PATH of each, and ``index.jsonl``: a line of JSON for each file with ``repo``,
``path``, ``commit``, and what the file tells of its maker. OWN is a folder with the traces of three
programs of ours, and ``own.json``: the times of their steps with and without the profiler.

python scripts/published_traces.py CORPUS OWN
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
_OUT = ROOT / "overhead" / "traces" / "published.json"
sys.path.insert(0, str(ROOT))

from overhead.errors import BadFile  # noqa: E402
from overhead.explaining.record import BETWEEN, Explanation  # noqa: E402
from overhead.explaining.trace_file import explain_traces  # noqa: E402
from overhead.results import Reason  # noqa: E402
from overhead.traces.published import (  # noqa: E402
    NoMark,
    OwnProgram,
    PublishedTrace,
    PublishedTraces,
    Recorder,
)

_FEWEST = 20
"""Launches that must have found the device idle; of fewer the 10 and 90 % points are not told."""
_MADE_BY_HAND = {
    "GindaChen/nsys-ai": ("mock.sqlite", "healthy_1pct.sqlite", "healthy_judged_1pct.sqlite"),
}
"""Files that a program wrote, and no profiler: their makers say so."""
_NO_NAME = ("", "a device", "GPU", "0")


def trace_of(corpus: Path, told: dict[str, Any]) -> PublishedTrace:
    """What the program says of one file. ``told``: its line of the index."""
    path = corpus / told["repo"] / told["path"]
    known: dict[str, Any] = {
        "repository": told["repo"],
        "path": told["path"],
        "commit": told["commit"],
        "licence": (told.get("licence") or "")[:100],
        "recorder": _recorder(told),
        "versions": _versions(told),
    }
    try:
        found = explain_traces([path])
    except BadFile as error:
        why = _code(error.fault)
        return PublishedTrace(**known, answer="refused", because=why, left_out="no device")
    if not _has_device(found):
        return PublishedTrace(
            **known,
            answer="processor",
            left_out="no device",
            steps=found.profiled_steps,
            library=_library(found),
        )
    delays = found.launch_delays
    lost = [why for why in found.verdict.sentences if _code(why) == "no-verdict"]
    operations = [row for row in found.operations if row.name != BETWEEN]
    numbers: dict[str, Any] = {
        "gpu": "" if found.program.device in _NO_NAME else found.program.device,
        "library": _library(found),
        "answer": found.verdict.kind,
        "because": _why(found),
        "steps": found.profiled_steps,
        "idle": _idle(found),
        "launches": _digits(found.per_step.launches.value or 0.0),
        "operations": _digits(sum(row.count for row in operations)),
        "host_us": _digits(_host_ns(found) / 1e3),
    }
    if delays is not None:
        numbers["found_idle"] = delays.found_idle
        if delays.latency_ns is not None and delays.found_idle >= _FEWEST:
            numbers["latency_us"] = _micro(delays.latency_ns)
            numbers["low_us"] = _micro(delays.low_ns)
            numbers["high_us"] = _micro(delays.high_ns)
    return PublishedTrace(**known, **numbers, left_out=_left_out(told, found, bool(lost)))


def _digits(number: float) -> float:
    return float(f"{number:.5g}")


def _micro(time_ns: float | None) -> float:
    """The time in microseconds, to a nanosecond."""
    return round(float(time_ns or 0.0) / 1e3, 3)


def _host_ns(found: Explanation) -> float:
    """The host's work of a step, without what its DataLoader takes, which launches nothing."""
    rows = [row for row in found.operations if not row.name.startswith("enumerate(DataLoader)")]
    return sum(row.host_ns for row in rows)


def _idle(found: Explanation) -> float | None:
    """The share of a step in which a device has no work: of the device that works longest."""
    devices = [row for row in found.device_time if not row.stream and row.step_ns]
    shares = [row.idle_ns / row.step_ns for row in devices]
    return round(float(min(shares)), 4) if shares else None


def _has_device(found: Explanation) -> bool:
    return found.step.busy.value is not None or found.launch_delays is not None


def _library(found: Explanation) -> str:
    """Whose operations the file holds, by their names."""
    names = [row.name for row in found.operations]
    if any(name.startswith(("aten::", "Optimizer.", "autograd::")) for name in names):
        return "PyTorch"
    return ""


def _left_out(told: dict[str, Any], found: Explanation, is_lossy: bool) -> NoMark:
    """Why this trace has no mark, except for a better one of the same maker."""
    delays = found.launch_delays
    if told["path"].endswith(_MADE_BY_HAND.get(told["repo"], ())):
        return "made"
    if delays is None:
        return "no device"
    if found.program.device in _NO_NAME:
        return "no name"
    if is_lossy:
        return "records"
    if delays.latency_ns is None and delays.found_idle >= _FEWEST:
        return "clocks"
    if delays.found_idle < _FEWEST:
        return "few launches"
    return ""


def _code(why: object) -> str:
    """The code of a reason; of an error in words, which has none, "not a trace"."""
    return why.code if isinstance(why, Reason) else "not a trace"


def _why(found: Explanation) -> str:
    """The code of why there is no verdict: of the reason inside the sentence, if it has one."""
    if found.verdict.kind != "unclear":
        return ""
    for sentence in found.verdict.sentences:
        if not isinstance(sentence, Reason):
            continue
        if sentence.code == "no-verdict":
            return _code(sentence.values.get("why", ""))
        if "no-verdict" in sentence.code or "differ" in sentence.code:
            return sentence.code
    return next(map(_code, found.verdict.sentences), "")


def _recorder(told: dict[str, Any]) -> Recorder:
    if told["format"].startswith("nsys"):
        return "Nsight Systems"
    names = " ".join(map(str, told.get("gpu", ())))
    if "roctracer_version" in told or "hip_runtime_version" in told or "AMD" in names:
        return "Kineto with roctracer"
    if told["format"] == "kineto":
        return "Kineto with CUPTI"
    return "other"


def _versions(told: dict[str, Any]) -> str:
    if told.get("nsys"):
        return f"Nsight Systems {told['nsys']}"
    cuda = told.get("cuda_runtime_version")
    if cuda:
        return f"CUDA {int(cuda) // 1000}.{int(cuda) % 1000 // 10}"
    rocm = told.get("hip_runtime_version")
    if rocm:
        number = int(rocm)
        return f"ROCm {number // 10_000_000}.{number // 100_000 % 100}"
    return ""


def one_mark_a_maker(traces: list[PublishedTrace]) -> list[PublishedTrace]:
    """The traces, with one mark for each maker, GPU and recorder: of the trace with most launches
    that found the device idle.
    """
    best: dict[object, PublishedTrace] = {}
    for trace in traces:
        key = (trace.repository, trace.gpu, trace.recorder)
        if trace.is_shown and (key not in best or trace.found_idle > best[key].found_idle):
            best[key] = trace
    marked = []
    for trace in traces:
        key = (trace.repository, trace.gpu, trace.recorder)
        if trace.is_shown and best[key] is not trace:
            trace = msgspec.structs.replace(trace, left_out="another")
        marked.append(trace)
    return marked


def own_programs(folder: Path) -> list[OwnProgram]:
    """What we measured ourselves, with and without the profiler."""
    times = json.loads((folder / "own.json").read_text("utf-8"))
    programs = []
    for path in sorted(folder.glob("*.json.gz")):
        name = path.name.partition(".")[0]
        found = explain_traces([path])
        delays = found.launch_delays
        assert delays is not None, path
        assert delays.latency_ns is not None, path
        rows = [row for row in found.operations if row.name != BETWEEN]
        programs.append(
            OwnProgram(
                name=name,
                gpu=times["gpu"],
                recorder="Kineto with CUPTI",
                library="PyTorch",
                versions=f"PyTorch {times['torch'].partition('+')[0]}, CUDA {times['cuda']}",
                day=datetime.date.fromtimestamp(path.stat().st_mtime).isoformat(),
                launches=_digits(found.per_step.launches.value or 0.0),
                operations=_digits(sum(row.count for row in rows)),
                found_idle=delays.found_idle,
                latency_us=_micro(delays.latency_ns),
                low_us=_micro(delays.low_ns),
                high_us=_micro(delays.high_ns),
                idle=_idle(found) or 0.0,
                host_us=times[name]["without"],
                profiled_host_us=times[name]["with"],
            )
        )
    return programs


def _said(corpus: Path, told: dict[str, Any]) -> PublishedTrace:
    print(told["repo"], told["path"], flush=True)
    return trace_of(corpus, told)


def main() -> None:
    """Read every trace of the corpus, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("own", type=Path)
    given = parser.parse_args()
    index = (given.corpus / "index.jsonl").read_text("utf-8").splitlines()
    files = [json.loads(line) for line in index]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        traces = list(pool.map(_said, [given.corpus] * len(files), files, chunksize=4))
    program = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    data = PublishedTraces(
        program.stdout.strip(), own_programs(given.own), one_mark_a_maker(traces)
    )
    lines = [f'{{"program": "{data.program}",', '"own": [']
    lines.append(",\n".join(msgspec.json.encode(own).decode() for own in data.own))
    lines += ["],", '"trace": [']
    lines.append(",\n".join(msgspec.json.encode(trace).decode() for trace in data.trace))
    lines.append("]}")
    # One line for each trace, so that a change shows which.
    _OUT.write_text("\n".join(lines) + "\n", "utf-8")
    print(collections.Counter(trace.answer for trace in data.trace))
    print(collections.Counter(trace.left_out for trace in data.trace))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
