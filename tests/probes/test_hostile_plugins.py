"""Test that a plugin file that ends, stops or disturbs a process costs no other process more than
one line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from overhead.blocks.terminal import show
from overhead.cli import main
from overhead.errors import Unavailable, Unsupported, one_line
from overhead.machine import redacted
from overhead.measure.sampling.events import reason_of
from overhead.probes.common import entry_points
from overhead.results import MissingEntry, MissingStack, Target, decode_entry, encode_entry
from overhead.runner.listing import Listed, listing_blocks
from overhead.runner.progress import Progress
from tests.fakes.plugins import forget_plugins_afterwards
from tests.probes.test_entry_points import GOOD, python

HANGING = GOOD.format(name="hanging").replace(
    "return [Target", "import time; time.sleep(600); return [Target"
)
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (
            "list",
            "import os; os._exit(0)",
            "while it was imported: the process ended with exit code 0",
        ),
        ("run", "import time; time.sleep(600)", "while it was imported: no answer for 3 s"),
        (
            "run",
            GOOD.format(name="bad") + "\n    def environments(self): os._exit(0)\nimport os",
            "exit code 0",
        ),
        ("list", "raise BaseException('odd')", "BaseException: odd"),
        ("list", "x = 1", "registers no stack"),
        ("list", "x = ", "SyntaxError"),
    ],
)
def test_the_command_refuses_a_plugin_that_exits_or_hangs_while_it_is_imported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    code: str,
    words: str,
) -> None:
    forget_plugins_afterwards(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(entry_points, "IMPORT_S", 3.0)
    (tmp_path / "p.py").write_text(code)
    assert main([command, "--plugin", "p.py"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("overhead: p.py: ")
    assert words in line
    assert not (tmp_path / "reports").exists()


def test_a_command_ends_cleanly_although_a_plugin_prints_and_has_threads_and_exit_handlers(
    tmp_path: Path,
) -> None:
    lines = "import atexit, sys, threading, time\natexit.register(time.sleep, 600)\n"
    lines += "threading.Thread(target=time.sleep, args=(600,)).start()\n"
    lines += "print('noise')\nsys.stdout.write('noise')\nsys.stdout = sys.stderr = None\n"
    (tmp_path / "p.py").write_text(lines + GOOD.format(name="good"))
    done = python(tmp_path, "-m", "overhead", "list", "-p", "good", "--plugin", "p.py", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["stack"] for row in json.loads(done.stdout)] == ["good"]


@posix
@pytest.mark.parametrize(("command", "number"), [("list", "SIGTERM"), ("check", "SIGINT")])
def test_after_a_signal_the_command_removes_its_workers_and_temporary_folders(
    tmp_path: Path, command: str, number: str
) -> None:
    process, workers = start_and_hang(tmp_path, command)
    process.send_signal(getattr(signal, number))
    assert process.wait(60) == 130
    assert not psutil.wait_procs(workers, timeout=5)[1]
    assert not list((tmp_path / "temporary").iterdir())


def start_and_hang(
    folder: Path, command: str
) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """A command that waits for the answer of a plugin's stack, and the processes that it
    started.
    """
    plugin = folder / "p.py"
    temporary = folder / "temporary"
    asked = folder / "asked"
    tell = f"open({str(asked)!r}, 'w'); import time;"
    plugin.write_text(HANGING.replace("import time;", tell))
    temporary.mkdir()
    # Background jobs and their children ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = [command, "--plugin", str(plugin), "-p", "hanging"]
    process = subprocess.Popen(
        [sys.executable, "-m", "overhead", *arguments],
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    give_up = time.monotonic() + 60
    while not asked.exists():
        assert time.monotonic() < give_up
        assert process.poll() is None
        time.sleep(0.05)
    return process, psutil.Process(process.pid).children(recursive=True)


HOSTILE = "\x1b[2J\udcff" + "x" * 300_000


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error", [Unavailable(HOSTILE, HOSTILE), Unsupported(HOSTILE), ValueError(HOSTILE), Wordless()]
)
def test_the_message_of_any_exception_can_be_written_to_a_file(error: Exception) -> None:
    mend = getattr(error, "mend", "")
    line = MissingEntry(unavailable=MissingStack(stack="bad", reason=reason_of(error), mend=mend))
    assert decode_entry(encode_entry(redacted(line)))
    assert one_line(error)


def test_the_terminal_output_removes_control_characters_from_texts_of_a_stack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "a\x1b[2J\x9b\u202eb [red]c"
    target = Target(stack="bad", api="CPU", adapter=text, driver=text)
    missing = MissingStack(stack="bad", reason=text, mend=text, environment={"A": text})
    show(
        listing_blocks(
            [Listed(stack="bad", title=text, targets=[target], missing=[missing], note=text)]
        )
    )
    Progress().note(text)
    said = "".join(capsys.readouterr())
    assert said.replace("\n", "").isprintable()
    assert said.count("[red]c") == 7
