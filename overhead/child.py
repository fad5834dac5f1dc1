"""A child process: send it jobs, receive typed answers, limit its time and memory, and end it
within a bounded time.

The parent uses ``ChildProcess``, and the child ``serve``. Each job and each answer is a line of
JSON. The parent alone needs psutil: a child may run in another Python, which has little installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import io
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from overhead import scratch
from overhead.errors import WithReason
from overhead.results import Reason, because
from overhead.windows_job import EndsWithParent

if TYPE_CHECKING:
    import psutil

_KILL_S = 5.0
"""How long a killed child may take to disappear."""
_OUTPUT_S = 1.0
"""How long the output of a dead child may take to end."""
_LONGEST_LINE_BYTES = 16 << 20
"""A longer line is received in parts. The parent cannot read them, and ends the child before it
fills the memory.
"""
_PR_SET_PDEATHSIG = 1
_EXIT_S = 5.0
"""How long a child that has closed its answers may take to exit."""
_FIRST_BYTES, _LAST_BYTES = 1 << 20, 4000
"""What is kept of what a process prints: a statement that prints at each call would fill the disk
at 1 GB a second.
"""
FAMILY = "OVERHEAD_FAMILY"
"""The environment variable by which the descendants of a child are found, also those in sessions of
their own.
"""


class ChildEnded(WithReason):
    """No more answers come from a child. ``why``: it was silent for too long (``time``), took too
    much ``memory``, or ended by itself (``died``); ``rubbish``: something else wrote to its pipe.
    """

    def __init__(self, why: Literal["time", "memory", "died", "rubbish"], reason: Reason) -> None:
        super().__init__(reason)
        self.why = why


@dataclasses.dataclass(frozen=True)
class ChildLimits:
    """When a child is killed. ``silence_s``: the longest time without an answer. ``memory_bytes``:
    of resident memory, 0 for three quarters of the machine's.

    ``count_descendants``: the processes that the child started count too, which requires reading
    the list of all processes. ``poll_s``: seconds between two checks of the memory while the parent
    waits for an answer.
    """

    silence_s: float = math.inf
    memory_bytes: int = 0
    count_descendants: bool = False
    poll_s: float = 0.1


class PrintedText:
    """What a process prints to a pipe: all is read, and the first MiB and the last 4,000 bytes are
    kept.

    The process never waits for long, and the disk gets nothing. A thread reads, and closes the pipe
    at its end.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._first, self._last = bytearray(), bytearray()
        self._left_out = False
        self._reading = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._reading.start()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        room = _FIRST_BYTES - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        if len(self._last) > _LAST_BYTES:
            self._left_out = True
            del self._last[:-_LAST_BYTES]

    def text(self, wait_s: float = 0.0) -> str:
        """What was printed so far; where it is long, a line with dots stands for what was left out.

        ``wait_s``: the longest time to wait for the end of the pipe. A dead process may have
        printed what has not been read yet, and a descendant may hold the pipe open.
        """
        self._reading.join(wait_s)
        # A line of dots where bytes between the first and the last were dropped.
        between = b"\n...\n" if self._left_out else b""
        return (bytes(self._first) + between + bytes(self._last)).decode(errors="replace")


_Received = TypeVar("_Received")
_Job = TypeVar("_Job")
Send = Callable[[Any], None]


class ChildProcess(Generic[_Received]):
    """A running child process: a Python module that calls ``serve``. The parent sends it jobs and
    receives answers, each a line of JSON. The end of a ``with`` block ends it, with all that it
    started.

    ``decode`` makes an answer from a line of JSON. ``python``: the interpreter and its options.
    Iterating gives the answers. Sending never fails.
    """

    def __init__(
        self,
        module: str,
        job: object,
        decode: Callable[[bytes], _Received],
        limits: ChildLimits = ChildLimits(),
        environment: Mapping[str, str] | None = None,
        python: Sequence[str] = (sys.executable,),
    ) -> None:
        """Start the module in a new process, which inherits this environment and ``environment``,
        and send it the first ``job``, unless that is None.
        """
        import psutil

        self._decode = decode
        self._limits = limits
        # A child without a limit of its own may take three quarters of the machine's memory.
        three_quarters = int(psutil.virtual_memory().total * 0.75)
        self._memory_bytes = limits.memory_bytes or three_quarters
        # What this child starts inherits the mark, also in sessions of its own, so that ``kill``
        # finds it. It stands behind the marks of the processes that started this one.
        self._mark = f"{uuid.uuid4().hex} "
        marked = {
            **os.environ,
            **(environment or {}),
            FAMILY: os.environ.get(FAMILY, "") + self._mark,
            scratch.PARENT: str(scratch.folder()),  # where the child makes its temporary files
        }
        self._process = subprocess.Popen(
            [*python, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=marked,
            # No signal of the terminal reaches the child. Windows has no sessions, but process
            # groups.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        # On Windows a job object, which ends the child and what it started when it is closed.
        self._job = EndsWithParent(self._process)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._errors = PrintedText(self._process.stderr)
        # A thread reads the answers, so that ``receive`` can look at the limits while it waits.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        of_answers = (self._process.stdout, self._lines)
        self._reader = threading.Thread(target=_read, args=of_answers, daemon=True)
        self._reader.start()
        if job is not None:
            self.send(job)

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._process.pid

    def send(self, job: object) -> None:
        """Send a job. If the child has ended, this does nothing; ``receive`` reports the end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # ValueError: the pipe was closed by end()
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()

    def receive(self, limit_s: float | None = None) -> _Received:
        """The next answer. ``limit_s``: the longest time to wait for it; None: ``silence_s`` of the
        child's limits.

        Raises ``ChildEnded``, after killing a child that exceeded a limit.
        """
        line = self._line(self._limits.silence_s if limit_s is None else limit_s)
        if not line:  # the end of its output: it has ended, or closed the pipe
            code = self.exit_code(_EXIT_S)
            printed = last_line(self._errors.text(_OUTPUT_S))
            raise ChildEnded("died", _reason_of_end(code, printed))
        try:
            return self._decode(line)
        # Something else wrote to the pipe of the answers, so no further line can be trusted.
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise ChildEnded("rubbish", because("pipe-of-answers-written")) from None

    def __iter__(self) -> Iterator[_Received]:
        while True:
            yield self.receive()

    def _line(self, limit_s: float) -> bytes:
        """The next line of the child; empty at the end of its output. Raises ``ChildEnded`` if the
        child exceeds a limit meanwhile: ``limit_s`` seconds without a line, or its memory.
        """
        began = time.monotonic()
        exited = False
        while True:
            try:
                return self._lines.get(timeout=self._limits.poll_s)
            except queue.Empty:
                # It had exited one poll ago, and no line has come since: a process that it started
                # still holds the pipe open, so that the end of the output does not come.
                if exited:
                    return b""
                exited = self._process.poll() is not None
                self._check_limits(time.monotonic() - began, limit_s)

    def _check_limits(self, waited_s: float, limit_s: float) -> None:
        """Kill the child and raise ``ChildEnded`` if it takes too much memory now, or has been
        silent for more than ``limit_s``.
        """
        import psutil

        # Resident memory of the child, with what it started if the limits say so, bytes.
        used = 0
        for process in self._family(descendants=self._limits.count_descendants):
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                used += process.memory_info().rss
        if used > self._memory_bytes:
            self.kill()
            raise ChildEnded("memory", because("process-out-of-memory", gib=used / 2**30))
        if waited_s > limit_s:
            self.kill()
            raise ChildEnded("time", because("process-silent", limit_s=limit_s))

    def _family(self, *, descendants: bool = True) -> list[psutil.Process]:
        """The child and the processes that it started. Empty if it has exited: another process may
        have its id.
        """
        import psutil

        if self._process.poll() is None:
            with contextlib.suppress(psutil.Error):
                child = psutil.Process(self.pid)
                started = child.children(recursive=True) if descendants else []
                return [child, *started]
        return []

    def exit_code(self, limit_s: float) -> int | None:
        """The exit code (negative for a signal). None if the child still runs after ``limit_s``
        seconds.
        """
        try:
            return self._process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the child and the processes that it started; any thread may do this. ``end`` must
        follow.

        They are found in three ways, because each way misses some: as descendants, as the group of
        the child, and by the mark in their environment.
        """
        import psutil

        # First the child and its descendants, the child last.
        for process in reversed(self._family()):
            with contextlib.suppress(psutil.Error):
                process.kill()
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)  # what a child has left that exited already
        # Last what has its mark, again and again until none is left.
        deadline = time.monotonic() + _KILL_S
        while self._kill_marked() and time.monotonic() < deadline:
            pass  # one of them may have started another in the meantime
        self.exit_code(_KILL_S)

    def _kill_marked(self) -> bool:
        """Kill the processes that have this child's mark in their environment, which all that it
        started inherited. Returns whether there were any. ``FAMILY``: the name of the variable that
        holds the marks.
        """
        import psutil

        was_any = False
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):  # of another user, or ended meanwhile
                is_ours = self._mark in process.environ().get(FAMILY, "")
                # A zombie is dead already, and would be found again and again.
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    process.kill()
                    was_any = True
        return was_any

    def __enter__(self) -> ChildProcess[_Received]:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, exit_s: float = 0.0) -> None:
        """Give the child ``exit_s`` seconds to exit, then kill it and the processes that it
        started.

        A second call does nothing. While such a process holds an output pipe, its reading thread
        continues.
        """
        # It may exit by itself; then everything that is left is killed. ``_job`` does the same on
        # Windows. The last second is for output that has not been read yet.
        self.exit_code(exit_s)
        self.kill()
        self._job.close()
        self._reader.join(_OUTPUT_S)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


class Parent:
    """The parent as the child sees it. Calling it sends an answer at once; ``lines`` are the jobs,
    as JSON.

    Making it redirects standard output to standard error, and reads standard input (see
    ``input_lines``), so do what may hang only afterwards.
    """

    def __init__(self) -> None:
        """Take standard output for the answers and standard input for the jobs, so that no library
        writes to the one or reads from the other.
        """
        sys.stdout.flush()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The reason of a death is the last line printed. A block buffer is written at exit,
            # after the traceback.
            sys.stdout.reconfigure(line_buffering=True)
        # Answers go to a copy of the pipe. What libraries print goes to standard error, where it
        # cannot stand between the answers.
        self._out = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
        os.dup2(2, 1)
        self.lines = input_lines()

    def __call__(self, answer: object) -> None:
        self.add(answer)
        self.flush()

    def add(self, answer: object) -> None:
        """Write an answer that the next ``flush`` delivers."""
        self._out.write(msgspec.json.encode(answer) + b"\n")

    def flush(self) -> None:
        """Deliver the answers that ``add`` wrote."""
        self._out.flush()

    def wait(self) -> None:
        """Wait until the parent sends another line, and ignore its content."""
        next(self.lines)


def serve(job_type: type[_Job], handle: Callable[[_Job, Parent], None]) -> None:
    """In the child: call ``handle`` for each job until the parent ends; its second argument sends
    an answer. ``job_type``: what a line of the parent, which is JSON, is read as.

    Output that libraries print goes to standard error. What ``handle`` raises ends the process.
    """
    parent = Parent()
    decode = msgspec.json.Decoder(job_type).decode
    for line in parent.lines:
        handle(decode(line), parent)


def _reason_of_end(code: int | None, printed: str) -> Reason:
    """How a child ended. ``code``: None if it still runs; negative for a signal. ``printed``: the
    last line of its errors.
    """
    if code is None:
        ended = because("process-closed-answers")
    elif code < 0:
        ended = because("process-killed", signal=signal.Signals(-code).name)
    else:
        ended = because("process-exited", exit_code=code)
    # The last line of an error usually is the message of the exception.
    return because("with-text", why=ended, text=printed) if printed else ended


def last_line(text: str) -> str:
    """The last line that is not blank, at most 300 characters; empty if there is none."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1][:300] if lines else ""


def _read(pipe: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    # This thread closes the pipe: close() in another thread would wait until the read returns.
    with pipe:
        while line := pipe.readline(_LONGEST_LINE_BYTES):
            lines.put(line)
    lines.put(b"")


def input_lines() -> Iterator[bytes]:
    """The lines that the parent sends; called in the child, once, before it does anything that may
    hang.

    When the parent ends for any reason, this process and its group are killed within seconds, even
    if its main thread hangs. Standard input is empty afterwards.
    """
    # Linux ends this process with its parent; elsewhere only the thread below sees the end.
    _end_with_parent()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # A thread always reads, because the end of the input is how it sees the end of the parent.
    threading.Thread(target=_read_input, args=(_take_input(), lines), daemon=True).start()
    return iter(lines.get, None)  # without an end: no line is None, and the thread ends the process


def _take_input() -> int:
    """A new descriptor of the pipe that was standard input, which is the null device afterwards.

    On Windows OpenBLAS, while it is loaded, would hang until a pending read of standard input
    returns. On every system a child process would inherit the pipe.
    """
    # Number 0 becomes the null device, and the pipe gets another number.
    pipe, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return pipe


def _read_input(pipe: int, lines: queue.SimpleQueue[bytes]) -> None:
    # The file is never closed: at exit the interpreter would abort if this thread is reading from
    # it.
    with contextlib.suppress(OSError):
        for line in open(pipe, "rb", closefd=False):  # noqa: SIM115
            lines.put(line)
    _kill_group()


def _end_with_parent() -> None:
    """Let Linux end this process when its parent ends, also if a library hangs with the interpreter
    lock.

    Then no Python code runs. So the handler of the signal SIGHUP, which has the number 1, is the C
    function ``alarm``: ``alarm(1)`` ends the process one second later by SIGALRM. Until then
    ``_read_input`` can kill the whole group.
    """
    if sys.platform == "linux":
        # ``prctl``: the system shall send SIGHUP when the parent ends.
        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        libc.signal(signal.SIGHUP, ctypes.cast(libc.alarm, ctypes.c_void_p))
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)


def _kill_group() -> None:
    """Kill this process and, if it leads a group, the processes that it started."""
    if sys.platform != "win32" and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
