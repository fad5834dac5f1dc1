"""A small process that starts one browser in a new process group and cleans up after it.

When its standard input ends, it kills the group and removes the profile folder. If the worker is killed, this process
still runs and cleans up.

It is a separate script. Its arguments are the profile folder and the command line of the browser. It imports only the
standard library and psutil. It writes ``ended CODE`` when the browser exits, or ``failed REASON`` if it does not start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import psutil

_GRACE_SECONDS = 3.0
_LONGEST_FOLDER = 50
"""Chromium puts a socket into its temporary folder. The path of a socket may have about 100 characters."""


def main(profile: str, command: list[str]) -> int:
    if hasattr(os, "fork") and os.fork():
        os._exit(0)  # a killed worker's children are killed too, so this process must not be a child of it
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    temporary = profile
    try:
        if len(profile) > _LONGEST_FOLDER and os.name != "nt":
            temporary = tempfile.mkdtemp(prefix="overhead-browser-", dir="/tmp")
        with open(os.path.join(profile, "log"), "wb") as log:
            browser = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=profile,
                env={**os.environ, "TMPDIR": temporary},
            )
    except OSError as error:
        _report(f"failed {error}")
        _remove(temporary)
        _remove(profile)
        return 1
    threading.Thread(target=lambda: _report(f"ended {browser.wait()}"), daemon=True).start()
    sys.stdin.buffer.read()
    _end(browser)
    _remove(temporary)
    _remove(profile)
    _report("removed")
    return 0


def _report(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")


def _end(browser: subprocess.Popen[bytes]) -> None:
    """Kill the process group of the browser; on a system without process groups, its tree of children."""
    children = _children(browser.pid)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(browser.pid, signal.SIGKILL)
    else:
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        browser.kill()
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and (browser.poll() is None or _group_lives(browser.pid)):
        time.sleep(0.02)


def _children(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


def _group_lives(group: int) -> bool:
    """Whether a process of the group still runs. Zombies do not count: they hold no files."""
    return any(_runs_in(process, group) for process in psutil.process_iter())


def _runs_in(process: psutil.Process, group: int) -> bool:
    if sys.platform == "win32":  # there are no process groups to ask for
        return False
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


def _remove(profile: str) -> None:
    for _ in range(20):
        shutil.rmtree(profile, ignore_errors=True)
        if not os.path.exists(profile):
            return
        time.sleep(0.1)  # a browser process that is ending may still hold a file, mostly on Windows


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
