"""nvbench (NVIDIA's ``cuda-bench``) for ``main.py agreement``. Each subject runs in a separate
process.

If a subject gives no number, the output of its process is printed, and the subject runs once more
without nvbench's blocking kernel. Values come from nvbench's JSON, or from its log if there is no
JSON.

Our own measurement of graphs runs in the same process just before nvbench, with the same recording
and stream. The reason: for some seconds a node may take up to a sixth longer (docs/cuda.md, two
speeds of a node).
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from scripts.agreement.protocol import INTERVAL, PATIENCE_S, ToolAnswer
from scripts.agreement.subjects import (
    GRAPH_NODES,
    LCG_STEP,
    LCG_STEP_GRAPH,
    TORCH_ADD,
    TORCH_ADD_GRAPH,
    adding,
    stepping,
)

_SUBJECTS = (TORCH_ADD, LCG_STEP, TORCH_ADD_GRAPH, LCG_STEP_GRAPH)
_QUANTITIES = ("batch", "cold")
OUR_ANSWERS_SUFFIX = ".ours"
"""Suffix of the file with our own figures, which is next to the file of nvbench."""
_GRAPH_SECONDS = 1.5
"""Duration of our own measurement of a graph, s."""
LIMIT_S = 100.0
"""Time limit for the process of a tool or subject, s. nvbench ends each of its two measurements
after ``PATIENCE_S``.
"""
_LOGGED = re.compile(r"(Batch|Cold): ([\d.]+)ms GPU")
_MOST_REASONS = 3
"""So many reasons of a missing value are printed: a log may repeat a warning."""
_TOLD = re.compile(r"^\s*(Warn|Fail|Skip)\w*:?\s*(.+)$", re.MULTILINE | re.IGNORECASE)


def nvbench() -> list[ToolAnswer]:
    """Batch and cold times of every subject. Raises ``ModuleNotFoundError`` if cuda-bench is not
    installed.
    """
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bench") is None:
        raise ModuleNotFoundError("no module cuda.bench: pip install 'cuda-bench[cu13]'")
    found: list[ToolAnswer] = []
    for index in range(len(_SUBJECTS)):
        found += ask(index)
    return found


def ask(index: int, child: Callable[[int, Path, bool], str] | None = None) -> list[ToolAnswer]:
    """The answers for one subject. ``child`` runs a process that writes the JSON, and returns the
    output of it.
    """
    subject = _SUBJECTS[index]
    run_child = child or _child
    reasons = []
    with tempfile.TemporaryDirectory() as folder:
        for blocking in (True, False):
            path = Path(folder, f"{blocking}.json")
            output = run_child(index, path, blocking)
            text = path.read_text("utf-8") if path.exists() else ""
            their_answers = answers(subject, text, output)
            if any(answer.value is not None for answer in their_answers):
                return their_answers + _our_answers(path)
            with_or_without = "with" if blocking else "without"
            reasons.append(f"{with_or_without} its blocking kernel: {their_answers[0].reason}")
            print(
                f"nvbench, {subject}, {reasons[-1]}; its process said:",
                *output.splitlines()[-40:],
                sep="\n    ",
                file=sys.stderr,
                flush=True,
            )
    reason = "; ".join(reasons)
    return [ToolAnswer("nvbench", subject, quantity, reason=reason) for quantity in _QUANTITIES]


def _our_answers(path: Path) -> list[ToolAnswer]:
    """Our own figures that were measured in the process that wrote this file of nvbench; [] where
    we measured none.
    """
    ours = path.with_suffix(OUR_ANSWERS_SUFFIX)
    if not ours.exists():
        return []
    return msgspec.json.decode(ours.read_bytes(), type=list[ToolAnswer])


def answers(subject: str, text: str, output: str) -> list[ToolAnswer]:
    """The values in nvbench's JSON, or else those in its log, or else the reason why there are
    none.

    ``text``: the JSON, '' if there is none. ``output``: the log.
    """
    try:
        summaries = _summaries(text)
    except (ValueError, KeyError, TypeError) as error:
        unread = (
            f"its JSON of {len(text)} characters can't be read ({type(error).__name__}: {error})"
        )
        summaries = _Summaries({}, unread)
    logged_ns = {kind.lower(): float(ms) * 1e6 for kind, ms in _LOGGED.findall(output)}
    warnings = [warning.strip() for _, warning in _TOLD.findall(output)]
    reasons = "; ".join([summaries.skip_reason, *warnings][:_MOST_REASONS]).strip("; ")
    last_line = (output.strip() or "it said nothing").splitlines()[-1]
    reason = f"{reasons or 'no such summary'}; last: {last_line}"

    their_answers = []
    for quantity in _QUANTITIES:
        seconds = summaries.value_by_tag.get(f"nv/{quantity}/time/gpu/mean")
        value = seconds * 1e9 if seconds is not None else logged_ns.get(quantity)
        if value is None:
            their_answers.append(ToolAnswer("nvbench", subject, quantity, reason=reason))
        else:
            their_answers.append(ToolAnswer("nvbench", subject, quantity, value))
    return their_answers


class _Summaries(NamedTuple):
    """What nvbench's JSON says: values by tag, times in s, and why benchmarks were skipped."""

    value_by_tag: dict[str, float | None]
    skip_reason: str


def _summaries(text: str) -> _Summaries:
    """The summaries of all states in nvbench's JSON.

    Raises ``ValueError``, ``KeyError`` or ``TypeError`` if the text is no such JSON.
    """
    value_by_tag = {}
    skip_reasons = []
    for benchmark in json.loads(text)["benchmarks"]:
        for state in benchmark["states"]:
            for summary in state.get("summaries") or []:
                value_by_tag[summary["tag"]] = _value(summary)
            if state.get("skip_reason"):
                skip_reasons.append(str(state["skip_reason"]))
    return _Summaries(value_by_tag, "; ".join(skip_reasons))


def _value(summary: Any) -> float | None:
    """The number in a summary. None if it is null (infinite noise) or not a number."""
    entries = {entry.get("name"): entry.get("value") for entry in summary.get("data") or []}
    try:
        return float(entries["value"])
    except (KeyError, TypeError, ValueError):
        return None


def _child(index: int, path: Path, blocking: bool) -> str:
    """Run the process of one subject. Returns its output and its exit status as text."""
    arguments = [str(index), str(path), str(int(blocking))]
    command = [sys.executable, "-m", "scripts.agreement.nvbench", *arguments]
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryFile() as output:
        try:
            code = subprocess.call(command, cwd=root, stdout=output, stderr=output, timeout=LIMIT_S)
            end = f"ended with {code}"
        except subprocess.TimeoutExpired:
            end = f"was stopped after {LIMIT_S:.0f} s"
        output.seek(0)
        text = output.read().decode(errors="replace").rstrip()
    return f"{text}\nthe process {end}"


def _run(index: int, path: str, blocking: bool) -> None:
    """Measure one subject on the first device. Runs in the process of the subject."""
    faulthandler.enable()
    from cuda import bench

    name = _SUBJECTS[index]
    measure: Callable[[Any], None]
    if name == TORCH_ADD:
        measure = _on_add
    elif name == LCG_STEP:
        measure = _on_step
    else:
        measure = _on_graph(name, Path(path))

    def subject(state: Any) -> None:
        """What nvbench calls: an error is printed and told to nvbench as a skip."""
        try:
            if not blocking:
                state.set_disable_blocking_kernel(True)
            measure(state)
        except Exception as error:
            traceback.print_exc()
            state.skip(f"{type(error).__name__}: {error}")

    bench.register(subject)
    most_noise = ["--max-noise", f"{100 * INTERVAL:g}"]
    longest = ["--timeout", f"{PATIENCE_S:g}"]
    # During such short kernels the GPU clock stays low. nvbench would treat this as throttling and
    # discard the results.
    no_throttling = ["--throttle-threshold", "0"]
    limits = [*most_noise, *longest, *no_throttling]
    bench.run_all_benchmarks(["nvbench", "--devices", "0", *limits, "--json", path])


def _in_torch(state: Any, act: Callable[[], object]) -> None:
    """Measure a torch call on nvbench's stream. The stream must not stay current, because nvbench
    destroys it later.
    """
    import torch

    address = state.get_stream().addressof()
    with torch.cuda.stream(torch.cuda.ExternalStream(address)):
        act()
        torch.cuda.synchronize()
        state.exec(lambda launch: act(), batched=True)


def _on_add(state: Any) -> None:
    """Measure torch's addition."""
    _in_torch(state, adding())


def _on_step(state: Any) -> None:
    """Measure launches of the LCG step on nvbench's stream."""
    launch, session = stepping()
    stream = state.get_stream().addressof()
    launch(stream)
    state.exec(lambda _: launch(stream), batched=True)
    session.close()


class _Stream:
    """One of our streams, in the form that nvbench accepts."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


def _on_graph(subject: str, path: Path) -> Callable[[Any], None]:
    """Measure our chain of the graph and write the answers next to ``path``. Returns the function
    that lets nvbench measure the launch of the same graph.
    """
    import torch

    from scripts.agreement.ours import measured, opened

    our_stream = torch.cuda.Stream()
    with torch.cuda.stream(our_stream):
        chain = opened(subject)
        our_answers = measured({subject: chain}, _GRAPH_SECONDS)
    path.with_suffix(OUR_ANSWERS_SUFFIX).write_bytes(msgspec.json.encode(our_answers))

    def on_driver_graph(state: Any) -> None:
        """Measure the launch of a graph that the CUDA driver's calls made."""
        call = chain.session.driver.call
        stream = chain.session.stream
        executable = chain.executable(GRAPH_NODES)
        state.set_stream(_Stream(stream))
        state.exec(lambda _: call("cuGraphLaunch", executable, stream), batched=True)

    def on_torch_graph(state: Any) -> None:
        """Measure the replay of a graph that torch captured."""
        replay = chain.graphs.launcher(GRAPH_NODES)
        state.set_stream(_Stream(our_stream.cuda_stream))
        with torch.cuda.stream(our_stream):
            state.exec(lambda _: replay(), batched=True)

    return on_driver_graph if subject == LCG_STEP_GRAPH else on_torch_graph


if __name__ == "__main__":
    _run(int(sys.argv[1]), sys.argv[2], sys.argv[3] == "1")
