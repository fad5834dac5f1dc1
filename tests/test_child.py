"""A child process is ended at its limits and with its descendants, in a bounded time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from overhead.child import ChildEnded, ChildLimits, ChildProcess, PrintedText
from overhead.results import Reason, because, codes_of

GENEROUS_S = 60.0
MIB = 1 << 20
QUICK = ChildLimits(GENEROUS_S, poll_s=0.05)


def python(code: str, limits: ChildLimits = QUICK) -> ChildProcess[bytes]:
    return ChildProcess("", None, bytes, limits, python=[sys.executable, "-c", code])


def test_the_memory_of_descendants_counts_only_if_asked_for() -> None:
    inner = (
        f"kept = bytearray({400 * MIB}); print('ready', flush=True); import time; time.sleep(600)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with python(code, ChildLimits(GENEROUS_S, 200 * MIB, poll_s=0.05)) as process:
        assert process.receive().strip() == b"ready"
        with pytest.raises(ChildEnded, match="process-silent"):
            process.receive(0.5)
    silent = code.replace("print('ready', flush=True); ", "")
    limits = ChildLimits(GENEROUS_S, 200 * MIB, count_descendants=True)
    out_of_memory = pytest.raises(ChildEnded, match="process-out-of-memory")
    with python(silent, limits) as process, out_of_memory:
        process.receive()


def test_ending_a_child_ends_the_processes_that_it_started() -> None:
    inner = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with python(
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    ) as process:
        descendant = psutil.Process(int(process.receive()))
        process.end()
        _, alive = psutil.wait_procs([descendant], timeout=20)
        assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


PRINTS_AND_FAILS = """
from overhead.child import Parent
parent = Parent()
print("printed by a library")
raise ValueError("no such device")
"""


@pytest.mark.parametrize("buffering", ["", "1"])
def test_what_a_child_printed_does_not_replace_its_exception_as_the_reason(
    monkeypatch: pytest.MonkeyPatch, buffering: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", buffering)  # empty: standard output has a buffer
    with (
        python(PRINTS_AND_FAILS) as process,
        pytest.raises(ChildEnded, match="ValueError: no such device"),
    ):
        process.receive()


READS_ITS_INPUT = """
import subprocess, sys
from overhead.child import input_lines
lines = input_lines()
child = subprocess.run([sys.executable, "-c", "input()"], stderr=subprocess.PIPE, text=True)
print("EOFError" in child.stderr, flush=True)
print(next(lines), sys.stdin.read(), flush=True)
"""


def test_processes_and_libraries_that_a_child_starts_do_not_get_its_standard_input() -> None:
    with python(READS_ITS_INPUT) as process:
        process.send("the job")
        assert process.receive().strip() == b"True"
        assert process.receive().strip() == rb"""b'"the job"\n'"""


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_daemon_that_holds_the_output_open_does_not_block_receive_and_ends_with_the_child() -> (
    None
):
    for rest in ("time.sleep(600)", ""):
        with python(DAEMON + rest) as process:
            daemon = psutil.Process(int(process.receive()))
            if not rest:
                with pytest.raises(ChildEnded, match="process-exited"):
                    process.receive()
            began = time.monotonic()
            process.end()
            assert time.monotonic() - began < 20
        assert not psutil.wait_procs([daemon], timeout=GENEROUS_S)[1]


STARTS_A_CHILD = f"""
import sys, time
from overhead.child import ChildProcess
command = [sys.executable, "-c", {DAEMON + "time.sleep(600)"!r}]
with ChildProcess("", None, bytes, python=command) as one:
    print(int(one.receive()), flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_daemon_of_a_child_of_a_child_ends_too() -> None:
    with python(STARTS_A_CHILD) as process:
        daemon = psutil.Process(int(process.receive()))
        process.end()
    assert not psutil.wait_procs([daemon], timeout=20)[1]


PARENT = """
import os, subprocess, sys
code = "from overhead.child import input_lines; import ctypes, subprocess, sys, time; "
code += "lines = input_lines(); "
command = [sys.executable, "-c", code + sys.argv[1]]
pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child = subprocess.Popen(command, start_new_session=True, **pipes)
child.stdin.write(b"go\\n")
child.stdin.flush()
print(child.pid, child.stdout.readline().decode(), flush=True)
os.kill(os.getpid(), 9)
"""
READY = "next(lines); print('', flush=True); "
DESCENDANT = (
    "next(lines); one = subprocess.Popen(['sleep', '600']); print(one.pid, flush=True);"
    " time.sleep(600)"
)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the death of a parent")
@pytest.mark.parametrize(
    "busy",
    [
        READY + "time.sleep(600)",
        READY + "ctypes.CDLL(None).sleep(600)",
        READY + "ctypes.PyDLL(None).sleep(600)",  # keeps the interpreter lock
        DESCENDANT,
    ],
)
def test_a_child_that_hangs_ends_with_its_parent(busy: str) -> None:
    done = subprocess.run([sys.executable, "-c", PARENT, busy], stdout=subprocess.PIPE, text=True)
    left = [psutil.Process(int(pid)) for pid in done.stdout.split() if psutil.pid_exists(int(pid))]
    assert done.stdout.split()
    _, alive = psutil.wait_procs(left, timeout=20)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


KILLED_PARENT = """
import os, sys
from overhead.child import ChildProcess
child = ChildProcess("", None, bytes, python=[sys.executable, "-c", sys.argv[1]])
print(child.pid, child.receive().decode(), flush=True)
os.kill(os.getpid(), 9)
"""
HANGS_WITH_THE_LOCK = """
import ctypes, subprocess, sys
one = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(one.pid, flush=True)
ctypes.PyDLL("kernel32").Sleep(600_000)
"""


@pytest.mark.skipif(
    sys.platform != "win32", reason="only Windows has jobs that end with the last handle"
)
def test_a_child_that_hangs_and_what_it_started_end_with_a_killed_parent() -> None:
    command = [sys.executable, "-c", KILLED_PARENT, HANGS_WITH_THE_LOCK]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    left = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    assert not psutil.wait_procs(left, timeout=20)[1]


def test_an_endless_line_is_received_in_parts() -> None:
    with python("import sys\nwhile True: sys.stdout.write('x' * 2**20)") as process:
        assert len(process.receive()) == 16 * MIB


FAKE = """
import os, sys, time
from overhead.child import serve
def handle(job, send):
    print("printed")
    exec(job)
serve(str, handle)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module whose jobs are Python text, and whose answers are integers."""
    (tmp_path / "fake_module.py").write_text(FAKE)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    )
    return "fake_module"


def conversation(module: str, job: str, silence_s: float = GENEROUS_S) -> ChildProcess[int]:
    return ChildProcess(
        module, job, msgspec.json.Decoder(int).decode, ChildLimits(silence_s, 200 * MIB)
    )


def test_a_child_answers_each_job_and_what_it_prints_is_no_answer(fake: str) -> None:
    with conversation(fake, "send(1); os.system('echo noise'); send(2)") as child:
        assert (child.receive(), child.receive()) == (1, 2)
        child.send("send(3)")
        assert next(iter(child)) == 3
    assert not psutil.pid_exists(child.pid)


@pytest.mark.parametrize(
    ("job", "why", "reason"),
    [
        ("time.sleep(600)", "time", because("process-silent", limit_s=1.0)),
        ("kept = bytearray(400 << 20); time.sleep(600)", "memory", None),
        (
            "raise ValueError('no such device')",
            "died",
            because(
                "with-text",
                why=because("process-exited", exit_code=1),
                text="ValueError: no such device",
            ),
        ),
        (
            "sys.exit()",
            "died",
            because("with-text", why=because("process-exited", exit_code=0), text="printed"),
        ),
        pytest.param(
            "os.kill(os.getpid(), 9)",
            "died",
            because("with-text", why=because("process-killed", signal="SIGKILL"), text="printed"),
            marks=pytest.mark.skipif(os.name == "nt", reason="no such signal"),
        ),
        ("send('text')", "rubbish", because("pipe-of-answers-written")),
    ],
)
def test_the_parent_is_told_why_a_child_ended(
    fake: str, job: str, why: str, reason: Reason | None
) -> None:
    silence_s = 1.0 if why == "time" else GENEROUS_S
    with conversation(fake, job, silence_s) as child, pytest.raises(ChildEnded) as ended:
        child.receive()
    assert ended.value.why == why
    assert reason is None or ended.value.reason == reason
    assert (why == "memory") == ("process-out-of-memory" in codes_of(ended.value.reason))
    assert not psutil.pid_exists(child.pid)


PRINTS_A_LOT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))  # of a file; a pipe has no such limit
for _ in range(200): sys.stderr.write("y" * 100_000)
sys.stderr.write("\\nthe last words\\n")
sys.exit(3)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of a file")
def test_what_a_child_prints_to_standard_error_fills_no_file_and_its_last_words_are_told() -> None:
    with python(PRINTS_A_LOT) as process, pytest.raises(ChildEnded, match="last words") as ended:
        process.receive()
    assert ended.value.reason == because(
        "with-text", why=because("process-exited", exit_code=3), text="the last words"
    )


def test_of_a_long_text_the_first_and_the_last_part_are_kept() -> None:
    read, write = os.pipe()
    printed = PrintedText(os.fdopen(read, "rb", buffering=0))
    with os.fdopen(write, "wb") as pipe:
        pipe.write(b"the first line\n")
        for _ in range(300):
            pipe.write(b"y" * 100_000)
        pipe.write(b"\nthe last line\n")
    text = printed.text(GENEROUS_S)
    assert text.startswith("the first line\n")
    assert text.endswith("\nthe last line\n")
    assert len(text) < 2 * MIB
