"""Where the main thread of a process keeps what a sampler reads: its Python frame, and the instruction there.

The process itself finds the places, by looking for what it knows in its own memory. So no layout of a version of
CPython is written down here, and an unknown layout is refused and not misread.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from types import CodeType, FrameType

from msgspec import Struct

from overhead.errors import Unavailable
from overhead.results import because

OUTSIDE, RUNNING, OVER = 0, 1, 2
"""What ``SampledThread.phase`` holds: the statement does not run, runs, or has run for the last time."""
_WORD = 8
_WORDS_OF_STATE, _WORDS_OF_POINTED, _WORDS_OF_FRAME, _WORDS_OF_CODE = 64, 4, 16, 40
_POINTER_MASK = ~7
"""From CPython 3.14 on, low bits of a pointer in a frame are tags."""
_LARGEST_HEADER = 96
"""The most bytes of a text object before its characters."""


class SampledThread(Struct, frozen=True, kw_only=True, tag="thread"):
    """Places in the memory of a process, and what tells its files apart.

    ``state``: the address of the thread's state. ``to_frame``: offsets that lead from there to the running frame, each
    but the first after reading a pointer. ``code``, ``instruction``: offsets in a frame. ``filename``: in a code
    object. ``ascii``, ``wide``: of the characters in a text object that is ASCII, and in another one. ``phase``: the
    address of the byte that says what the process does; the sampler writes 1 behind it while it needs more samples.
    ``folders``: of installed packages; ``standard``: of the standard library; ``suite``: of this package.
    ``executable``: the interpreter's program.
    """

    pid: int
    state: int
    to_frame: list[int]
    code: int
    instruction: int
    filename: int
    ascii: int
    wide: int
    phase: int
    folders: list[str]
    standard: list[str]
    suite: str
    executable: str


class Phase:
    """A byte at a fixed address, by which this process tells a sampler what it does, and one for its answer."""

    def __init__(self) -> None:
        self._bytes = (ctypes.c_ubyte * 2)(OUTSIDE, 0)

    @property
    def address(self) -> int:
        """Where the two bytes are."""
        return ctypes.addressof(self._bytes)

    def set(self, what: int) -> None:
        """Say what this process does from now on."""
        self._bytes[0] = what

    @property
    def needs_more(self) -> bool:
        """Whether the sampler has too few samples so far."""
        return bool(self._bytes[1])


def this_thread(phase: Phase) -> SampledThread:
    """The places of this thread, which must be the main one. Raises ``Unavailable`` where they cannot be found."""
    if sys.platform != "linux" or sys.implementation.name != "cpython" or struct.calcsize("P") != _WORD:
        raise Unavailable(because("sampling-needs-linux"))
    if threading.get_native_id() != os.getpid():
        raise Unavailable(because("sampling-needs-main-thread"))
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        places = _Places(memory.fileno())
        shallow, deep = places.here(0), places.here(3)
        to_frame = [path for path in shallow.paths if path in deep.paths]
        if not to_frame:
            raise Unavailable(because("interpreter-layout-unknown", version=sys.version.split()[0]))
        return SampledThread(
            pid=os.getpid(),
            state=places.state,
            to_frame=list(to_frame[0]),
            code=shallow.code,
            instruction=shallow.instruction,
            filename=places.filename(this_thread.__code__),
            ascii=places.characters("overhead", "ascii"),
            wide=places.characters("overhead\u00e9", "latin-1"),
            phase=phase.address,
            folders=_package_folders(),
            standard=[os.path.dirname(os.__file__)],
            suite=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
            executable=os.path.realpath(sys.executable),
        )


class _Here(Struct, frozen=True):
    """Offsets that are right for one running frame. ``paths``: all that lead from the state to it."""

    paths: list[tuple[int, ...]]
    code: int
    instruction: int


class _Places:
    """Looks for known values in the memory of this process, through a file, which cannot crash it."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        thread_state = ctypes.pythonapi.PyThreadState_Get
        thread_state.restype = ctypes.c_void_p
        self.state = int(thread_state())

    def here(self, depth: int) -> _Here:
        """The offsets in the frame of this function, called through ``depth`` more functions."""
        if depth:
            return self.here(depth - 1)
        frame = sys._getframe()
        address, code = self._interpreter_frame(frame)
        instruction = self._instruction(address, frame.f_code)
        # The state names the frame that runs, so this function itself reads it, without calling another one.
        paths: list[tuple[int, ...]] = []
        state = os.pread(self._memory, _WORDS_OF_STATE * _WORD, self.state)
        for at, (word,) in enumerate(struct.iter_unpack("Q", state)):
            if word == address:
                paths.append((at * _WORD,))
            try:
                pointed = os.pread(self._memory, _WORDS_OF_POINTED * _WORD, word)
            except (OSError, OverflowError):
                continue
            for inner, (value,) in enumerate(struct.iter_unpack("Q", pointed[: len(pointed) // _WORD * _WORD])):
                if value == address:
                    paths.append((at * _WORD, inner * _WORD))
        paths.sort(key=len)
        return _Here(paths, code, instruction)

    def filename(self, code: CodeType) -> int:
        """The offset of the file's name in a code object."""
        return self._only(self._words(id(code), _WORDS_OF_CODE), id(code.co_filename))

    def characters(self, text: str, encoding: str) -> int:
        """The offset of the characters in a text object."""
        found = self._read(id(text), _LARGEST_HEADER + len(text)).find(text.encode(encoding))
        if found < 0:
            raise Unavailable(because("interpreter-layout-unknown", version=sys.version.split()[0]))
        return found

    def _interpreter_frame(self, frame: FrameType) -> tuple[int, int]:
        """The address of the interpreter's own frame, which the frame object names, and the offset of its code."""
        for word in self._words(id(frame), _WORDS_OF_FRAME):
            inner = self._words(word, _WORDS_OF_FRAME) if word else ()
            for index, value in enumerate(inner):
                if value & _POINTER_MASK == id(frame.f_code):
                    return word, index * _WORD
        raise Unavailable(because("interpreter-layout-unknown", version=sys.version.split()[0]))

    def _instruction(self, address: int, code: CodeType) -> int:
        """The offset in a frame of the pointer into the instructions of its code."""
        end = id(code) + code.__sizeof__()
        for index, value in enumerate(self._words(address, _WORDS_OF_FRAME)):
            if id(code) + _LARGEST_HEADER < value < end:
                return index * _WORD
        raise Unavailable(because("interpreter-layout-unknown", version=sys.version.split()[0]))

    def _only(self, words: tuple[int, ...], value: int) -> int:
        if value not in words:
            raise Unavailable(because("interpreter-layout-unknown", version=sys.version.split()[0]))
        return words.index(value) * _WORD

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        found = self._read(address, count * _WORD)
        return struct.unpack(f"{len(found) // _WORD}Q", found[: len(found) // _WORD * _WORD])

    def _read(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._memory, size, address)
        except (OSError, OverflowError, ValueError):  # no memory of this process is there
            return b""


def _package_folders() -> list[str]:
    return sorted({entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))})
