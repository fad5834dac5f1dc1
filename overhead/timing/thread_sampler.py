"""Sample what a child process does: stop its main thread at random moments, and read where it is.

``ptrace`` stops the thread for some 20 µs at a time, wherever it is: in a Python instruction, in
compiled code or in a call of the operating system. So the share of samples in a part is its share
of the time. A profiler in the program would not tell that: it runs at each call of a function, and
makes code with many calls slower than other code.
"""

from __future__ import annotations

import bisect
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
from overhead.results import because
from overhead.timing.sampled_thread import (
    LINUX,
    OVER,
    POINTER_MASK,
    RUNNING,
    WORD,
    SampledThread,
    read_memory,
)

# Requests, sets of registers and a status of ptrace: Linux's headers <linux/ptrace.h> and
# <linux/elf.h>.
_SEIZE, _INTERRUPT, _CONTINUE, _DETACH, _REGISTERS = 0x4206, 0x4207, 7, 17, 0x4204
_GENERAL_REGISTERS, _ARM_SYSTEM_CALL = 1, 0x404
_EVENT_STOP = 128 << 8 | 5
"""The status of a thread that ``_INTERRUPT`` has stopped: PTRACE_EVENT_STOP, and the number of
SIGTRAP.

Every other stop is a signal on its way to the thread.
"""
_KILL: int = getattr(signal, "SIGKILL", 0)
"""Windows has no such signal. Only Linux uses it here."""
_SIGNAL_MASK = 0xFF
"""The bits of a status that name the signal."""
_COUNTER_AT = {"x86_64": 16 * WORD, "aarch64": 32 * WORD}
"""By processor, the offset of the program counter (rip, pc) among the general registers:
<sys/user.h>, <asm/ptrace.h>.

Other processors are refused.
"""
_X86_CALL_AT = 15 * WORD
"""The offset of orig_rax, the number of the call of the operating system: below zero outside such a
call.
"""
_MOST_REGISTERS_BYTES = 512
"""The general registers need 216 bytes on x86 and 272 on Arm."""
_LONGEST_TEXT = 4096
"""Characters of a file's name. A longer text is no name, but memory that was misread."""

_LONGEST_S = 5.0
"""No sample is taken later. The process runs CALL for 2 s (``user_statement``), and longer if one
call takes longer.
"""
_STOP_S = 5.0
"""A thread that takes longer to stop hangs in the kernel. Its process is killed then."""
_ENOUGH = 200
"""From here on the process need not go on for the sampler: a share of one half is known to ± 7
points by then.
"""
_BETWEEN_S = (50e-6, 250e-6)
"""Seconds between two stops, at random: equal ones could keep step with the program, and always hit
the same part.
"""


@dataclass(frozen=True)
class Sample:
    """Where the thread was at one moment, while CALL ran.

    ``file``: of the running Python function; '' where that is not known. ``instruction``: the
    address of its bytecode instruction. ``object``: the file of the machine code that ran; '' for
    code in no file. ``in_system``: the thread was in a call of the operating system. ``at_s``:
    seconds since the sampler began.
    """

    file: str
    instruction: int
    object: str
    in_system: bool
    at_s: float


@dataclass(frozen=True)
class _Stop:
    """A sample before its addresses are looked up, which would make the thread stand still for
    longer.
    """

    code: int
    instruction: int
    counter: int
    in_system: bool
    at_s: float


def sampled(thread: SampledThread) -> list[Sample]:
    """Where a thread of another process was at random moments while CALL, the user's statement, ran
    there, until that process says that it has run for the last time. Raises ``Unavailable`` where
    processes cannot be sampled.
    """
    if platform.machine() not in _COUNTER_AT:
        raise Unavailable(because("sampling-needs-processor", processor=platform.machine()))
    with (
        _Stopper(thread.pid) as stopper,
        # Also written: one byte tells the process whether to run CALL for longer.
        open(f"/proc/{thread.pid}/mem", "r+b", buffering=0) as memory,
    ):
        reader = _Reader(memory.fileno(), thread)
        stops = _stops(stopper, reader)
        # Inside the block: the process may end after it, and its list of files with it.
        mapped_files = _MappedFiles(thread.pid)
    # Addresses become files only now, so that the thread stood still for less time.
    samples = []
    for stop in stops:
        file = reader.names.get(stop.code, "")
        object = mapped_files.of(stop.counter)
        samples.append(Sample(file, stop.instruction, object, stop.in_system, stop.at_s))
    return samples


def _stops(stopper: _Stopper, reader: _Reader) -> list[_Stop]:
    """Stop the thread at random moments, and read where it is each time that CALL, the user's
    statement, runs. Ends when the process says that CALL is over, or has ended, or after 5 s.
    """
    reader.ask_for_more(True)
    began = time.perf_counter()
    stops: list[_Stop] = []
    while time.perf_counter() - began < _LONGEST_S:
        time.sleep(random.uniform(*_BETWEEN_S))
        if not stopper.stop():
            break
        phase = reader.phase()
        if phase == RUNNING:
            code, instruction = reader.place()
            counter, in_system = stopper.registers()
            stops.append(_Stop(code, instruction, counter, in_system, time.perf_counter() - began))
            reader.keep_name_of(code)
            # The process may end CALL from now on. Until it does, more samples are taken.
            if len(stops) == _ENOUGH:
                reader.ask_for_more(False)
        stopper.go_on()
        if phase == OVER:
            break
    return stops


class _Stopper:
    """Stops the main thread of a child process by ``ptrace``, the system's interface for debuggers,
    and lets it go on.

    The end of the ``with`` block ends this, and the thread runs as before. Entering it raises
    ``Unavailable`` where the system allows no process to stop another, as in many containers.
    """

    def __init__(self, pid: int) -> None:
        """Get ready to stop the main thread of the process ``pid``; ``with`` begins it."""
        self._pid = pid
        self._is_stopped = False
        # None: what this process has loaded already, the C library among it.
        self._ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self._ptrace.restype = ctypes.c_long
        self._ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._machine = platform.machine()
        self._buffer = ctypes.create_string_buffer(_MOST_REGISTERS_BYTES)
        # stop() waits for the thread without a limit: to ask again and again takes CPU time from
        # the program. The watch ends that wait if the thread never stops: it kills the process.
        self._watch = threading.Timer(_LONGEST_S + _STOP_S, os.kill, (pid, _KILL))
        self._watch.daemon = True

    def __enter__(self) -> _Stopper:
        if self._request(_SEIZE) != 0:
            raise Unavailable(
                because("sampling-not-permitted", error=os.strerror(ctypes.get_errno()))
            )
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._is_stopped or self.stop():
                self._request(_DETACH)
        finally:
            self._watch.cancel()

    def stop(self) -> bool:
        """Stop the thread; False if its process has ended.

        A signal on its way to the thread stops it too. The thread gets the signal, and is then
        stopped again.
        """
        # A request that fails: the process is there no more.
        if self._request(_INTERRUPT) != 0:
            return False
        while True:
            # WNOWAIT only looks. Without it this would take the end of the process from whoever
            # started it, and who needs its exit code.
            found = LINUX.waitid(
                LINUX.P_PID, self._pid, LINUX.WSTOPPED | LINUX.WEXITED | LINUX.WNOWAIT
            )
            if found is None or found.si_code not in (
                LINUX.CLD_TRAPPED,
                LINUX.CLD_STOPPED,
            ):  # it has ended
                return False
            # The thread has stopped. Only that news is taken.
            LINUX.waitid(LINUX.P_PID, self._pid, LINUX.WSTOPPED | LINUX.WNOHANG)
            # Another status is a signal that the thread is to get: its low byte, as the mask says.
            self._is_stopped = found.si_status == _EVENT_STOP
            if self._is_stopped:
                return True
            self._request(_CONTINUE, found.si_status & _SIGNAL_MASK)

    def go_on(self) -> None:
        """Let the thread go on."""
        self._is_stopped = False
        self._request(_CONTINUE)

    def registers(self) -> tuple[int, bool]:
        """The program counter, which is the address of the machine code that the stopped thread
        runs, and whether the thread is in a call of the operating system.
        """
        general = self._register_set(_GENERAL_REGISTERS)
        (counter,) = struct.unpack_from("Q", general, _COUNTER_AT[self._machine])
        # The number of the system call: x86 keeps it among these, Arm in a set of its own.
        if self._machine == "x86_64":
            (system_call,) = struct.unpack_from("q", general, _X86_CALL_AT)
        else:
            (system_call,) = struct.unpack_from("i", self._register_set(_ARM_SYSTEM_CALL))
        return counter, system_call >= 0  # below zero outside such a call

    def _register_set(self, which: int) -> bytes:
        # What ptrace takes is a ``struct iovec``: an address and a length.
        place = (ctypes.c_void_p * 2)(ctypes.addressof(self._buffer), _MOST_REGISTERS_BYTES)
        self._ptrace(_REGISTERS, self._pid, which, ctypes.addressof(place))
        return self._buffer.raw

    def _request(self, request: int, data: int = 0) -> int:
        """Make a request of ``ptrace``; 0 if it succeeded."""
        return int(self._ptrace(request, self._pid, None, data))


class _Reader:
    """Reads from the memory of a stopped thread which Python code it runs. ``thread``: the
    addresses and offsets where the interpreter keeps that. ``names``: the file of a function, by
    the address of its code object.
    """

    def __init__(self, memory: int, thread: SampledThread) -> None:
        self._memory, self._thread = memory, thread
        self.names: dict[int, str] = {}

    def ask_for_more(self, needs_more: bool) -> None:
        """Tell the process whether it must run CALL for longer (``Phase.needs_more``)."""
        LINUX.pwrite(self._memory, bytes([needs_more]), self._thread.phase + 1)

    def phase(self) -> int:
        """What the process says that it does; ``OVER`` where its memory cannot be read any more."""
        found = self._read(self._thread.phase, 1)
        return found[0] if found else OVER

    def place(self) -> tuple[int, int]:
        """The addresses of the running code object and of its instruction; zeros where no Python
        runs.
        """
        # Each offset leads to a pointer, the last one to that of the running frame.
        address = self._thread.state
        for offset in self._thread.to_frame:
            address = self._word(address + offset)
        frame = address
        if not frame:
            return 0, 0
        # From CPython 3.14 on, a pointer in a frame has tags in its low bits: the mask removes
        # them.
        code = self._word(frame + self._thread.code) & POINTER_MASK
        return code, self._word(frame + self._thread.instruction)

    def keep_name_of(self, code: int) -> None:
        """Read the file of this code object, if it is not known yet.

        It is read while the thread stands still: later the program may have freed the object.
        """
        if code and code not in self.names:
            self.names[code] = self._text(self._word(code + self._thread.filename))

    def _text(self, address: int) -> str:
        """The characters of a text object; '' if none is there.

        A text object has its length in its third word. Its characters end with a zero, and have 1,
        2 or 4 bytes each, as the largest of them needs. The bits that say so are not at one place
        in all versions of CPython, so each size is tried: the right one gives a text that can be
        printed and has the zero at its end.
        """
        length = self._word(address + 2 * WORD)
        if not 0 < length <= _LONGEST_TEXT:
            return ""
        narrow = self._read(address + self._thread.ascii, length + 1)
        characters, end = narrow[:-1], narrow[-1:]
        if end == b"\0" and b"\0" not in characters and characters.isascii():
            return characters.decode("ascii")
        for size, encoding in ((1, "latin-1"), (2, "utf-16-le"), (4, "utf-32-le")):
            wide = self._read(address + self._thread.wide, (length + 1) * size)
            found = wide.decode(encoding, errors="replace")
            if found.endswith("\0") and found[:-1].isprintable():
                return found[:-1]
        return ""

    def _word(self, address: int) -> int:
        """The word at this address; 0 where nothing can be read."""
        found = self._read(address, WORD)
        return int.from_bytes(found, sys.byteorder) if len(found) == WORD else 0

    def _read(self, address: int, size: int) -> bytes:
        return read_memory(self._memory, address, size)


@dataclass(frozen=True)
class _Mapping:
    """The file of the machine code between two addresses."""

    start: int
    end: int
    file: str


class _MappedFiles:
    """The files that a process has loaded as machine code, by address."""

    def __init__(self, pid: int) -> None:
        self._mappings = sorted(_mapped_code(pid), key=lambda mapping: mapping.start)
        self._starts = [mapping.start for mapping in self._mappings]

    def of(self, address: int) -> str:
        """The file with the machine code at this address; '' if there is none."""
        before = bisect.bisect_right(self._starts, address)
        if before == 0:
            return ""
        mapping = self._mappings[before - 1]
        return mapping.file if address < mapping.end else ""


def _mapped_code(pid: int) -> Iterator[_Mapping]:
    """The files that a process has loaded as machine code, each with the addresses where it is.

    A line of the kernel's list: ``7f1c7a400000-7f1c7b000000 r-xp 00400000 08:01 393
    /usr/lib/libc.so.6``, where ``x`` allows to run it. Code that a compiler has made in memory has
    no name.
    """
    # The name of a file may be no valid UTF-8.
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(maxsplit=5)
            has_name = len(fields) == 6
            if not has_name:
                continue
            addresses, rights, *_, file = fields
            if "x" in rights:
                start, _, end = addresses.partition("-")
                yield _Mapping(int(start, 16), int(end, 16), file)
