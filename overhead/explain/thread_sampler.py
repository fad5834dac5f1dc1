"""Sample what a child process does: stop its main thread at random moments, and read where it is.

The thread is stopped by ``ptrace`` for some 20 us at a time, wherever it is: in a Python instruction, inside compiled
code or in a call of the operating system. So the samples tell how its time divides, and nothing runs inside the
program that would make one part slower than another, as a trace or a profiler does.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import os
import platform
import random
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from overhead.errors import Unavailable
from overhead.explain.sampled_thread import OVER, RUNNING, SampledThread
from overhead.results import because

_SEIZE, _INTERRUPT, _CONTINUE, _DETACH, _REGISTERS = 0x4206, 0x4207, 7, 17, 0x4204
"""Requests of ``ptrace``."""
_GENERAL_REGISTERS, _ARM_SYSTEM_CALL = 1, 0x404
"""Sets of registers of ``ptrace``."""
_EVENT_STOP = 128 << 8 | 5
"""The status of a thread that ``_INTERRUPT`` has stopped: its event, and the signal SIGTRAP."""
_COUNTER_AT = {"x86_64": 16 * 8, "aarch64": 32 * 8}
"""By processor, where the program counter is among the general registers."""
_X86_CALL_AT = 15 * 8
_MOST_REGISTERS_BYTES = 512
_SIGNAL_MASK = 0xFF
_LONGEST_S, _STOP_S = 5.0, 5.0
"""How long samples are taken at most, and how long a thread may take to stop."""
_ENOUGH = 200
"""With so many samples the statement need not run for longer than it does anyway."""
_BETWEEN_S = (50e-6, 250e-6)
"""The time between two stops is random, so that it keeps no step with the program."""
_POINTER_MASK = ~7
_LONGEST_TEXT = 4096
_WORD = 8


@dataclass(frozen=True)
class Sample:
    """Where the thread was at one moment, while the statement ran.

    ``file``: of the running Python function; '' where that is not known. ``instruction``: the address of its
    instruction. ``object``: the file of the machine code that ran; '' for code in no file. ``in_system``: it was in a
    call of the operating system. ``at_s``: when, from the first one.
    """

    file: str
    instruction: int
    object: str
    in_system: bool
    at_s: float


def sampled(thread: SampledThread) -> list[Sample]:
    """The samples of a thread until it says that the statement has run for the last time. Raises ``Unavailable``."""
    if platform.machine() not in _COUNTER_AT:
        raise Unavailable(because("sampling-needs-processor", processor=platform.machine()))
    with _Stopper(thread.pid) as stopper, open(f"/proc/{thread.pid}/mem", "r+b", buffering=0) as memory:
        reader = _Reader(memory.fileno(), thread)
        needs_more = thread.phase + 1
        os.pwrite(memory.fileno(), b"\1", needs_more)
        began = time.perf_counter()
        seen: list[tuple[int, int, int, bool, float]] = []
        while time.perf_counter() - began < _LONGEST_S:
            time.sleep(random.uniform(*_BETWEEN_S))
            if not stopper.stop():
                break
            phase = reader.phase()
            if phase == RUNNING:
                code, instruction = reader.place()
                counter, in_system = stopper.registers()
                seen.append((code, instruction, counter, in_system, time.perf_counter() - began))
                reader.keep_name_of(code)
                if len(seen) == _ENOUGH:
                    os.pwrite(memory.fileno(), b"\0", needs_more)
            stopper.go_on()
            if phase == OVER:
                break
        objects = _Objects(thread.pid)
    return [
        Sample(reader.names.get(code, ""), instruction, objects.of(counter), in_system, at_s)
        for code, instruction, counter, in_system, at_s in seen
    ]


class _Stopper:
    """Stops the main thread of a child process, and lets it go on; the end of the ``with`` block leaves it alone."""

    def __init__(self, pid: int) -> None:
        self._pid, self._stands = pid, False
        self._ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self._ptrace.restype = ctypes.c_long
        self._ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._machine = platform.machine()
        self._buffer = ctypes.create_string_buffer(_MOST_REGISTERS_BYTES)
        # To wait without a limit is what disturbs the thread least; one that never stops is killed.
        self._watch = threading.Timer(_LONGEST_S + _STOP_S, os.kill, (pid, signal.SIGKILL))
        self._watch.daemon = True

    def __enter__(self) -> _Stopper:
        if self._request(_SEIZE) != 0:
            raise Unavailable(because("sampling-not-permitted", error=os.strerror(ctypes.get_errno())))
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._stands or self.stop():
                self._request(_DETACH)
        finally:
            self._watch.cancel()

    def stop(self) -> bool:
        """Stop the thread; False if it has ended. A signal on its way to it is delivered first."""
        if self._request(_INTERRUPT) != 0:
            return False
        while True:
            # The end of the process stays to be seen by who started it.
            found = os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if found is None or found.si_code not in (os.CLD_TRAPPED, os.CLD_STOPPED):
                return False
            os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG)
            self._stands = found.si_status == _EVENT_STOP
            if self._stands:
                return True
            self._request(_CONTINUE, found.si_status & _SIGNAL_MASK)

    def go_on(self) -> None:
        """Let the thread go on."""
        self._stands = False
        self._request(_CONTINUE)

    def registers(self) -> tuple[int, bool]:
        """The program counter, and whether the thread is in a call of the operating system."""
        general = self._register_set(_GENERAL_REGISTERS)
        (counter,) = struct.unpack_from("Q", general, _COUNTER_AT[self._machine])
        if self._machine == "x86_64":
            (call,) = struct.unpack_from("q", general, _X86_CALL_AT)
        else:
            (call,) = struct.unpack_from("i", self._register_set(_ARM_SYSTEM_CALL))
        return counter, call >= 0

    def _register_set(self, which: int) -> bytes:
        place = (ctypes.c_void_p * 2)(ctypes.addressof(self._buffer), _MOST_REGISTERS_BYTES)
        self._ptrace(_REGISTERS, self._pid, which, ctypes.addressof(place))
        return self._buffer.raw

    def _request(self, request: int, data: int = 0) -> int:
        return int(self._ptrace(request, self._pid, None, data))


class _Reader:
    """Reads the state of a stopped thread. ``names``: by the address of a code object, the file of its function."""

    def __init__(self, memory: int, thread: SampledThread) -> None:
        self._memory, self._thread = memory, thread
        self.names: dict[int, str] = {}

    def phase(self) -> int:
        """What the process says that it does."""
        found = self._read(self._thread.phase, 1)
        return found[0] if found else OVER

    def place(self) -> tuple[int, int]:
        """The addresses of the running code object and of its instruction; zeros where there is none."""
        address = self._thread.state
        for offset in self._thread.to_frame:
            address = self._word(address + offset)
        if not address:
            return 0, 0
        return self._word(address + self._thread.code) & _POINTER_MASK, self._word(address + self._thread.instruction)

    def keep_name_of(self, code: int) -> None:
        """Read the file of this code object while the thread stands still, if it is not known yet."""
        if code and code not in self.names:
            self.names[code] = self._text(self._word(code + self._thread.filename))

    def _text(self, address: int) -> str:
        """The characters of a text object; '' if none is there."""
        length = self._word(address + 2 * _WORD)
        if not 0 < length <= _LONGEST_TEXT:
            return ""
        narrow = self._read(address + self._thread.ascii, length + 1)
        if narrow.isascii() and narrow[-1:] == b"\0" and b"\0" not in narrow[:-1]:
            return narrow[:-1].decode("ascii")
        for size, encoding in ((1, "latin-1"), (2, "utf-16-le"), (4, "utf-32-le")):
            wide = self._read(address + self._thread.wide, (length + 1) * size)
            found = wide.decode(encoding, errors="replace")
            if found.endswith("\0") and found[:-1].isprintable():
                return found[:-1]
        return ""

    def _word(self, address: int) -> int:
        found = self._read(address, _WORD)
        return int.from_bytes(found, sys.byteorder) if len(found) == _WORD else 0

    def _read(self, address: int, size: int) -> bytes:
        with contextlib.suppress(OSError, OverflowError, ValueError):
            return os.pread(self._memory, size, address)
        return b""


class _Objects:
    """The files that a process has mapped as machine code, by address."""

    def __init__(self, pid: int) -> None:
        self._found = sorted(_mapped_code(pid))
        self._starts = [start for start, _, _ in self._found]

    def of(self, address: int) -> str:
        """The file with the machine code at this address; '' if there is none."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._found[at][1]:
            return ""
        return self._found[at][2]


def _mapped_code(pid: int) -> Iterator[tuple[int, int, str]]:
    """The start, the end and the file of each mapping of a process that can run."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(maxsplit=5)
            if "x" in fields[1] and len(fields) == 6:
                start, _, end = fields[0].partition("-")
                yield int(start, 16), int(end, 16), fields[5]
