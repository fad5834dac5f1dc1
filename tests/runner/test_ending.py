"""Every signal that ends a run ends it like Ctrl-C: nothing measured is lost, and nothing else is
left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from overhead.loading.reduce import load
from overhead.scratch import ending_on_signals

PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "faulty.py"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("SIGINT", ""),
        *(
            pytest.param(name, "", marks=pytest.mark.slow)
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1")
        ),
        pytest.param("SIGTERM", "hang", marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_and_keeps_what_it_measured(
    tmp_path: Path, name: str, fault: str
) -> None:
    temporary, out = tmp_path / "temporary", tmp_path / "out"
    temporary.mkdir()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # background jobs ignore these two signals
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "overhead",
            "run",
            "--plugin",
            str(PLUGIN),
            "-p",
            "faulty",
            "--out",
            str(out),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "FAULTS": fault},
    )
    give_up = time.monotonic() + 300
    wanted = b'"opened"' if fault else b'"round"'  # the case hangs in its first samples
    while not any(wanted in path.read_bytes() for path in out.glob("*.jsonl")):
        assert time.monotonic() < give_up
        assert process.poll() is None
        time.sleep(0.1)
    workers = [child.pid for child in psutil.Process(process.pid).children()]
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    (journal,) = out.iterdir()
    assert f"overhead show {journal}" in said
    assert load(journal).records
    assert workers
    assert not any(map(alive, workers))
    assert not list(temporary.iterdir())


def test_a_run_ignores_a_signal_that_its_process_ignored_before() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_does_not_interrupt_the_end_of_a_run() -> None:
    cleaned: list[bool] = []

    def run() -> None:
        with ending_on_signals():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
