"""Neither this package nor a library or browser that it starts looks up a host or asks a proxy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import no_network

pytestmark = [pytest.mark.slow, pytest.mark.needs("namespaces")]
BROWSERS = ("chromium", "firefox")
LOOK_UP = "import socket; socket.getaddrinfo('proof.example', 443)"
ASK_PROXY = "import urllib.request; urllib.request.urlopen('http://proof.example')"
# Each prints the stacks that worked.
LIST = """
from overhead.runner.listing import list_stacks
print(*{row.stack for row in list_stacks(stacks=sys.argv[1:]) if row.targets})
"""
CHECK = """
from overhead.checking.check import check
rows = check(stacks=sys.argv[1:], seconds=0.1).rows
print(*{row.what.split("@")[0] for row in rows if row.result == "verified"})
"""
RUN = """
from pathlib import Path
from overhead.profiles import Plan
from overhead.runner.progress import Listener
from overhead.runner.run import RunRequest, measure
from overhead.runner.schedule import Choice
cases = dict.fromkeys(("cheap", "fast", "slow", "polling"), 1)
times = dict(sampling_s=1.0, wall_s=60.0, case_s=0.02)
plan = Plan(processes=1, precision=0.5, max_cases=cases, max_rounds=6, **times)
request = RunRequest(sys.argv[1:], Choice(), "default", plan, out=Path("run.json"))
print(*{record.stack for record in measure(request, Listener()).fingerprint.records})
"""


def sent(folder: Path, code: str, *arguments: str) -> tuple[str, list[str]]:
    """The output of this code in Python, and what it asked a name server or a proxy."""
    program = [sys.executable, "-c", code, *arguments]
    command = [*no_network.UNSHARE, sys.executable, no_network.__file__, "asked", *program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=500, cwd=folder)
    return done.stdout, (folder / "asked").read_text().splitlines()


@pytest.mark.parametrize("code", [LOOK_UP, ASK_PROXY])
def test_the_test_detects_a_program_that_sends_something(tmp_path: Path, code: str) -> None:
    assert any("proof.example" in asked for asked in sent(tmp_path, code)[1])


@pytest.mark.needs(*BROWSERS, "onnxruntime", "onnxscript", "lavapipe", "swiftshader")
@pytest.mark.parametrize(
    ("code", "working"),
    [(LIST, {*BROWSERS, "onnxruntime"}), (CHECK, {*BROWSERS, "onnxruntime"}), (RUN, {*BROWSERS})],
    ids=["list", "check", "run"],
)
def test_no_stack_sends_anything(tmp_path: Path, code: str, working: set[str]) -> None:
    stacks = "import sys\nfrom overhead.probes import registry\nsys.argv[1:] = sorted(registry())\n"
    output, asked = sent(tmp_path, stacks + code)
    assert asked == []
    assert {*output.split()} >= working
