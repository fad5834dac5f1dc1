"""A child process that obeys line by line, is ended past a limit of time or memory, and dies with its parent.

``Child`` is the parent's side; a module that is run as one calls ``serve``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil

POLL_S = 0.1
_PR_SET_PDEATHSIG = 1
Answer = dict[str, Any]


class Ended(Exception):
    """The child is gone; ``why``: ``time limit``, ``memory limit``, or ``died`` and its last word."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Child:
    """A running child. ``peak_bytes``: the most resident memory that it and its own children were seen to hold."""

    def __init__(self, module: str, environment: Mapping[str, str], memory_bytes: int) -> None:
        self.memory_bytes, self.peak_bytes = memory_bytes, 0
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in end()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(os.getpid())], env={**os.environ, **environment}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True,
        )  # fmt: skip
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put("")

    def ask(self, do: str, limit_s: float = float("inf"), **what: Any) -> Answer:
        """The child's answer. Raises ``Ended``; past ``limit_s``, or its limit of memory, the child is killed."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a dead child is noticed below
            self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
            self._process.stdin.flush()
        deadline = time.monotonic() + limit_s
        while True:
            try:
                line = self._lines.get(timeout=POLL_S)
            except queue.Empty:
                self._look(deadline)
                continue
            if not line:
                raise Ended(f"died{self._last_word()}")
            answer: Answer = json.loads(line)
            return answer

    def _look(self, deadline: float) -> None:
        family = self._family()
        held = 0
        for process in family:
            with contextlib.suppress(psutil.Error):
                held += process.memory_info().rss
        self.peak_bytes = max(self.peak_bytes, held)
        why = "memory limit" if held > self.memory_bytes else "time limit" if time.monotonic() > deadline else ""
        if why:
            self.end()
            raise Ended(why)

    def _family(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(self.pid)
            return [first, *first.children(recursive=True)]
        return []

    def _last_word(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        said = [line.strip() for line in self._errors.read()[-4000:].splitlines() if line.strip()]
        return f" with exit code {self._process.returncode}" + (f": {said[-1][:300]}" if said else "")

    def end(self) -> None:
        """Kill it and what it started. Harmless when called again."""
        for process in reversed(self._family()):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.wait()
        self._reader.join()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()


def serve(answers: Callable[[Answer], Answer]) -> None:
    """The child's side: answer request by request until the parent ends, by whatever way it does.

    What libraries print goes to standard error. Nothing may be imported before this that takes long.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _die_with(int(sys.argv[1]))
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        out.write(json.dumps(answers(json.loads(requests.get()))) + "\n")
        out.flush()


def _listen(requests: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    _end_all()


def _die_with(parent: int) -> None:
    """Linux tells a child of its parent's death at once; elsewhere the end of its input does."""
    if sys.platform == "linux":
        signal.signal(signal.SIGTERM, lambda *_: _end_all())
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            _end_all()


def _end_all() -> None:
    """This process and, as it leads a group, the compilers that it started."""
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
