"""Find where the main thread of this process keeps its Python frame and its instruction, for a
sampler to read.

A sampler is another process: it cannot ask Python, and reads this process's memory. The layout of
that memory differs by version of CPython. So no layout is written down here. The process looks in
its own memory for values that it knows, such as the address of the code that runs, and notes the
offsets where they are. An unknown layout is refused; it cannot be misread.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

from msgspec import Struct

from overhead.errors import Unavailable
from overhead.results import because

LINUX: Any = os
"""The module ``os``, of which Linux alone has some functions. Types are checked for all systems."""
OUTSIDE, RUNNING, OVER = 0, 1, 2
"""What the byte at ``SampledThread.phase`` says: CALL does not run, runs, or has run for the last
time.
"""
WORD = 8
"""Bytes of a pointer; other processors are refused."""
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_SUITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folders of Python's own modules, and of this package."""
_WORDS_OF_STATE = 64
_WORDS_OF_POINTED = 4
_WORDS_OF_FRAME = 16
_WORDS_OF_CODE = 40
"""So many words of a structure are searched: far more than was needed.

Found in CPython 3.11 to 3.13: the frame from byte 56 or 72 of the state on, the instruction at byte
56 of the frame, and the file's name at byte 112 of the code object.
"""
POINTER_MASK = ~7
"""Objects lie at multiples of 8 bytes. From CPython 3.14 on, a pointer in a frame has tags in its
low bits.
"""
_LARGEST_HEADER = 96
"""The most bytes of a text or code object before its characters or instructions."""


def read_memory(memory: int, address: int, size: int) -> bytes:
    """The bytes at this address of a process; none where it has no memory: an address that was read
    from a changing program may be wrong.

    ``memory``: the descriptor of its file ``/proc/PID/mem``.
    """
    try:
        return bytes(LINUX.pread(memory, size, address))
    except (OSError, OverflowError, ValueError):
        return b""


class SampledThread(Struct, frozen=True, kw_only=True, tag="thread"):
    """Where the sampler reads, and how it tells whose a file is. Offsets are in bytes.

    | field | meaning | |---|---| | ``state`` | address of the interpreter's state of the thread | |
    ``to_frame`` | offsets from the state to the running frame: add one, read a pointer there, add
    the next, … | | ``code``, ``instruction`` | offsets in a frame: of its code object, of the
    pointer to its instruction | | ``filename`` | offset in a code object: of the name of its file |
    | ``ascii``, ``wide`` | offset of the characters in a text object: in one that is all ASCII, in
    another one | | ``phase`` | address of the byte that says what the process does; the sampler
    answers in the next byte | | ``folders``, ``standard`` | folders of installed packages, and of
    the standard library | | ``suite`` | folder of this package | | ``executable`` | file of the
    interpreter |
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
    """Two bytes at a fixed address: this process writes the first for the sampler, which answers in
    the second.
    """

    def __init__(self) -> None:
        self._bytes = (ctypes.c_ubyte * 2)(OUTSIDE, 0)

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return ctypes.addressof(self._bytes)

    def set(self, what: int) -> None:
        """Say what this process does from now on: ``OUTSIDE``, ``RUNNING`` or ``OVER``."""
        self._bytes[0] = what

    @property
    def needs_more(self) -> bool:
        """Whether the sampler has too few samples so far."""
        return bool(self._bytes[1])


def this_thread(phase: Phase) -> SampledThread:
    """Where another process must read to find what this thread, the main one, runs: addresses and
    offsets in the memory of the interpreter, which differ by version. Raises ``Unavailable`` where
    they cannot be found.

    ``phase``: two bytes, by which this process and the sampler tell each other what they do.
    """
    is_known_system = sys.platform == "linux" and sys.implementation.name == "cpython"
    if not is_known_system or struct.calcsize("P") != WORD:
        raise Unavailable(because("sampling-needs-linux"))
    # On Linux the main thread has the number of its process. The sampler stops that one.
    if threading.get_native_id() != os.getpid():
        raise Unavailable(because("sampling-needs-main-thread"))
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        places = _Places(memory.fileno())
        shallow = places.offsets_at_depth(0)
        # Another word of the state may have the frame's address by chance, or keep that of one
        # frame for ever. Only a path to the running frame is right at two depths of the stack.
        deep = places.offsets_at_depth(3)
        common_paths = [path for path in shallow.paths if path in deep.paths]
        if not common_paths:
            raise _unknown_layout()
        return SampledThread(
            pid=os.getpid(),
            # Where the thread's state is, and the offsets from there to the frame that runs.
            state=places.state,
            to_frame=list(common_paths[0]),
            code=shallow.code,
            instruction=shallow.instruction,
            # The offset of the file's name in a code object, and those of the characters in a text.
            filename=places.filename(this_thread.__code__),
            ascii=places.characters("overhead", "ascii"),
            # The letter é makes a text that is not ASCII, whose characters lie at another offset.
            wide=places.characters("overhead\u00e9", "latin-1"),
            phase=phase.address,
            folders=_package_folders(),
            standard=[_STANDARD_LIBRARY],
            suite=_SUITE,
            executable=os.path.realpath(sys.executable),
        )


class _FrameOffsets(Struct, frozen=True):
    """What was found in one running frame. ``paths``: offsets that lead from the interpreter's
    state of the thread to this frame, the shortest first. ``code``, ``instruction``: offsets in the
    frame, of its code object and of the pointer to its running instruction.
    """

    paths: list[tuple[int, ...]]
    code: int
    instruction: int


class _Places:
    """Looks for known values in the memory of this process, to find where the interpreter keeps
    such values: at which offset of a structure.

    It reads the memory as a file. A wrong address is an error there; by ``ctypes`` it would end the
    process.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        thread_state = ctypes.pythonapi.PyThreadState_Get
        thread_state.restype = ctypes.c_void_p
        self.state = int(thread_state())

    def offsets_at_depth(self, depth: int) -> _FrameOffsets:
        """Where the frame of this function is found, and what lies where in it. The function calls
        itself ``depth`` times before, so that its frame is another one for each depth.
        """
        if depth:
            return self.offsets_at_depth(depth - 1)
        frame = sys._getframe()
        address, code = self._interpreter_frame(frame)
        instruction = self._instruction(address, frame.f_code)
        # From here on this function calls no other Python function: the state names the frame that
        # runs, and in a function that it calls that would be another frame.
        paths: list[tuple[int, ...]] = []
        state = LINUX.pread(self._memory, _WORDS_OF_STATE * WORD, self.state)
        # Every word of the state may be the address of the frame, or lead to it in one more step.
        for index, (word,) in enumerate(struct.iter_unpack("Q", state)):
            if word == address:
                paths.append((index * WORD,))
            # CPython 3.11 and 3.12 name the frame in a small structure to which the state points.
            try:
                pointed = LINUX.pread(self._memory, _WORDS_OF_POINTED * WORD, word)
            except (OSError, OverflowError):  # the word is no address
                continue
            whole_words = len(pointed) // WORD
            for inner, value in enumerate(struct.unpack_from(f"{whole_words}Q", pointed)):
                if value == address:
                    paths.append((index * WORD, inner * WORD))
        paths.sort(key=len)
        return _FrameOffsets(paths, code, instruction)

    def filename(self, code: CodeType) -> int:
        """The offset in a code object of the name of its file."""
        words = self._words(id(code), _WORDS_OF_CODE)
        return _offset_of(id(code.co_filename), words)

    def characters(self, text: str, encoding: str) -> int:
        """The offset of the characters in a text object, for texts that are stored as this one is:
        the interpreter keeps ASCII in another way. ``encoding``: how the characters are stored.
        """
        object_bytes = self._read(id(text), _LARGEST_HEADER + len(text))
        offset = object_bytes.find(text.encode(encoding))
        if offset < 0:
            raise _unknown_layout()
        return offset

    def _interpreter_frame(self, frame: FrameType) -> tuple[int, int]:
        """The address of the interpreter's own frame, and the offset in it of its code object.

        ``frame`` is a Python object. It points to the interpreter's frame, which is the structure
        that points to the code that runs.
        """
        # ``_words``: what memory holds there; none where a word is no address.
        for pointed in self._words(id(frame), _WORDS_OF_FRAME):
            for index, value in enumerate(self._words(pointed, _WORDS_OF_FRAME)):
                # In CPython, ``id`` of an object is its address. The mask removes the tags that a
                # pointer in a frame has from 3.14 on.
                if value & POINTER_MASK == id(frame.f_code):
                    return pointed, index * WORD
        raise _unknown_layout()

    def _instruction(self, address: int, code: CodeType) -> int:
        """The offset, in the interpreter's frame at this address, of the pointer to the running
        instruction.

        The instructions of a function are at the end of its code object. The first word of the
        frame that points there is the pointer: the frame's other words point to objects, each as a
        whole.
        """
        # This leaves out pointers to the code object itself, and to its beginning.
        first_instruction = id(code) + _LARGEST_HEADER
        end = id(code) + code.__sizeof__()
        for index, value in enumerate(self._words(address, _WORDS_OF_FRAME)):
            if first_instruction < value < end:
                return index * WORD
        raise _unknown_layout()

    def _words(self, address: int, count: int) -> Sequence[int]:
        """The words at this address; fewer where the readable memory ends, none where it is no
        address.
        """
        found = self._read(address, count * WORD)
        return struct.unpack_from(f"{len(found) // WORD}Q", found)

    def _read(self, address: int, size: int) -> bytes:
        return read_memory(self._memory, address, size)


def _offset_of(value: int, words: Sequence[int]) -> int:
    """The offset in bytes of a value among the words of an object. Raises ``Unavailable``."""
    if value not in words:
        raise _unknown_layout()
    return words.index(value) * WORD


def _unknown_layout() -> Unavailable:
    """The error where this CPython keeps a value at an unknown place, as a newer version may."""
    return Unavailable(because("interpreter-layout-unknown", version=sys.version.split()[0]))


def _package_folders() -> list[str]:
    """The folders of this interpreter where ``pip``, or the packages of a Linux distribution,
    install.
    """
    installed = ("site-packages", "dist-packages")
    return sorted({entry for entry in sys.path if entry.endswith(installed)})
