"""The parent's side of one worker process: start, listen with limits, tell why it ended."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from overhead.results import JournalLine
from overhead.runner import doing
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.protocol import GO, Job, Message, UnknownLine, decode, encode

POLL_SECONDS = 1.0
"""How often the sleeping parent looks at the worker's resident memory."""
RELEASE_S = 5.0
"""So long a worker may take to release its objects; many that are told to together have it together."""


class Died(Exception):
    """The worker ended before it should: the assignment it was at (-1: none) and the reason in words."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


class WorkerProcess:
    """A running worker. ``listen`` gives its lines one by one; ``go`` hands it the baton."""

    def __init__(
        self,
        job: Job,
        environment: Mapping[str, str],
        *,
        silence_s: float,
        memory_bytes: int,
        interpreter: Interpreter = HERE,
    ) -> None:
        self.silence_s, self.memory_bytes = silence_s, memory_bytes
        self._until = 0.0
        self._folder = tempfile.TemporaryDirectory(prefix="overhead-")
        self._note = Path(self._folder.name) / "doing"
        self._errors = open(Path(self._folder.name) / "stderr", "w+b")  # noqa: SIM115 - closed in end()
        doing.create(self._note)
        self.job = msgspec.structs.replace(job, doing_file=str(self._note))
        self._process = subprocess.Popen(
            interpreter.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **interpreter.environment, **environment},
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._send(encode(self.job))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _send(self, raw: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # listen() notices a dead worker, and an ended one is closed
            self._process.stdin.write(raw)
            self._process.stdin.flush()

    def go(self) -> None:
        """Hand over the baton, or say that a round is safe."""
        self._send(GO)

    def release(self) -> None:
        """Let the worker, which has done its job, release its objects and end."""
        self._until = time.monotonic() + RELEASE_S
        self._send(GO)

    def listen(self) -> Message | JournalLine | None:
        """The worker's next line, None at its orderly end. Raises ``Died``."""
        deadline = time.monotonic() + self.silence_s
        while True:
            try:
                raw = self._lines.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._check_memory()
                if time.monotonic() > deadline:
                    raise self._death(f"gave no answer for {self.silence_s:.0f} s and was ended") from None
                continue
            if not raw:
                self._check_end()
                return None
            try:
                return decode(raw)
            except UnknownLine as error:
                raise self._death(f"answered with rubbish: {error}") from None

    def _check_memory(self) -> None:
        try:
            resident = psutil.Process(self._process.pid).memory_info().rss
        except psutil.Error:
            return
        if resident > self.memory_bytes:
            raise self._death(
                f"took {resident / 2**30:.1f} GiB of memory, over its limit of "
                f"{self.memory_bytes / 2**30:.1f} GiB, and was ended"
            )

    def _check_end(self) -> None:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            raise self._death("closed its answers and hung") from None
        if code == 0:
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise self._death(f"{how}{self._last_words()}")

    def _death(self, reason: str) -> Died:
        index, what = doing.read(self._note)
        self.kill()
        return Died(index, f"the worker {reason} (while {what})")

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-4000:].decode(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {said[:300]}" if said else ""

    def kill(self) -> None:
        """End the worker and what it started."""
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Give back everything; kills a worker that is still there, at once where it was not released."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=max(0.0, self._until - time.monotonic()))
        self.kill()
        self._errors.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()
