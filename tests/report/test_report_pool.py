"""The processes that read many files end quietly when the report is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import sys, time
from pathlib import Path
import overhead.report as report
from overhead.runner.ending import ending_on_signals

report._POOL_FROM_FILES, report.every = 0, lambda: [0, 1]
try:
    with ending_on_signals(), report._mapping([Path(sys.argv[1])]) as mapping:
        results = mapping(time.sleep, [3.0])  # the other process waits for work
        print("started", flush=True)
        list(results)
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forked processes read the files on Linux only")
@pytest.mark.needs("jinja2", "matplotlib", "seaborn")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_pool_without_tracebacks(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        subprocess.run(["kill", f"-{number.value}", "--", f"-{child.pid}"], check=True)
        out, errors = child.communicate(timeout=60)
    assert (out, errors) == ("ended\n", "")
