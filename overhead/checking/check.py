"""Check a plugin or a stack from the parent process: a hang or a crash of a case becomes one row, the others go on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead import scratch
from overhead.checking.child import CheckEnded, CheckJob, RowChecked, decode_message
from overhead.checking.findings import CheckFinding, CheckRow, Result
from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.errors import UsageError
from overhead.runner.campaign import WorkerLimits
from overhead.runner.discovery import known_stacks

SECONDS = 10.0
"""No case but the base case of a target begins later than this after the start, unless every case is wanted."""
_SILENCE_S = WorkerLimits.silence_s
"""The longest that one step of a case may take: as long as in a run, which waits for compilers too."""


class Report(Struct, frozen=True):
    """The result of a check. ``failed``: something is wrong, or nothing could be checked."""

    rows: list[CheckRow]

    @property
    def failed(self) -> bool:
        return any(row.failed for row in self.rows) or not any(
            row.result in ("verified", "opened") for row in self.rows
        )


def check(
    plugins: Sequence[str | Path] = (),
    stacks: Sequence[str] = (),
    *,
    seconds: float = SECONDS,
    silence_s: float = _SILENCE_S,
    answered: Callable[[CheckRow], None] = lambda row: None,
) -> Report:
    """Check the stacks that the plugin files register, or the named ``stacks``.

    ``seconds``: 0 checks every case. ``silence_s``: the longest that a step may take. ``answered`` is called with each
    row. Raises ``UsageError`` if there is nothing to check.
    """
    for plugin in map(Path, plugins):
        if not plugin.is_file():
            raise UsageError(f"{plugin}: no such file")
    if not plugins and not stacks:
        raise UsageError("name what to check: --plugin FILE.py or -p STACK")
    if not plugins:
        known_stacks(stacks)
    rows: list[CheckRow] = []

    def keep(row: CheckRow) -> None:
        rows.append(row)
        answered(row)

    began = time.monotonic()
    environment, most = 0, 1
    while environment < most:
        left = max(0.1, seconds - (time.monotonic() - began)) if seconds else 0.0
        done = [row.what for row in rows]
        job = CheckJob([str(p) for p in plugins], list(stacks), environment, done, left, 0.8 * silence_s)
        if found := _one_child(job, silence_s, keep):
            environment, most = environment + 1, found
    if not rows:
        names = ", ".join(map(str, plugins))
        raise UsageError(f"{names}: no stack to check; a file with a workload alone is checked with -p STACK")
    return Report(rows)


def _one_child(job: CheckJob, silence_s: float, keep: Callable[[CheckRow], None]) -> int:
    """Run one child. The number of environments if it has checked everything, 0 if the rest needs another child."""
    trace_file = scratch.folder() / "trace"
    job = msgspec.structs.replace(job, trace_file=str(trace_file))
    row, step, began = "loading", "starting", time.monotonic()
    try:
        with ChildProcess("overhead.checking.child", job, decode_message, ChildLimits(silence_s)) as child:
            for message in child:
                if isinstance(message, CheckEnded):
                    return message.environments
                if isinstance(message, RowChecked):
                    keep(message.row)
                else:
                    row, step = message.row, message.step
    except ChildEnded as ended:
        finding = CheckFinding("error", step, str(ended), _where(trace_file, job.plugins))
        result: Result = "hung" if ended.why == "time" else "crashed"
        keep(CheckRow(row, result, "", [finding], round(time.monotonic() - began, 2)))
    return int(" " not in row or row.rpartition(" ")[2] in ("environments", "targets", "space"))


def _where(trace_file: Path, plugins: Sequence[str]) -> str:
    """The innermost line of the stack's own code in the traceback that a dying or stuck child wrote; empty if none."""
    text = trace_file.read_text(errors="replace") if trace_file.is_file() else ""
    threads = re.split(r"^(?=(?:Current thread|Thread) 0x)", text, flags=re.MULTILINE)
    main = next((thread for thread in threads if thread.startswith("Current")), threads[-1])  # the oldest comes last
    for file, line, function in re.findall(r'File "(.+)", line (\d+) in (.+)', main):
        own = (
            Path(file).name in {Path(plugin).name for plugin in plugins}
            if plugins
            else "/probes/" in Path(file).as_posix()
        )
        if own:
            return f"{Path(file).name}:{line}, in {function}"
    return ""
