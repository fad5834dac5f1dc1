"""Run a list of C calls in a plain Python loop (``ffi``) or in a compiled loop of the same calls
(``native``).

numba compiles the loop. The source depends only on the structure of the list and contains no
addresses, so each source is compiled once per machine. Sources and machine code are kept in
``NUMBA_CACHE_DIR`` or the user's cache folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from overhead import scratch
from overhead.errors import first_line_of
from overhead.probes.base import Unavailable
from overhead.probes.common import loops
from overhead.probes.common.loops import Issue, Script, Stages, Statement
from overhead.results import because

ABIS = ("x86_64", "amd64", "aarch64", "arm64")
"""Processors on which every integer and pointer argument can be passed as a 64-bit word."""
_LOW_HALF = 0xFFFFFFFF
_INSTALL_NUMBA = "pip install numba"
_RESERVED_WORDS = 8
"""The first words of the table of a compiled loop: one for failures, one for the clock, and one for
the log of each section. The table begins with more words than there are.
"""
_FAILURES_AT = 0
_CLOCK_AT = 1
_LOGS_AT = 2
_READING_BYTES = 16
"""The size of a clock reading in a log: two words of 64 bits, such as a C ``timespec``."""


class NativeUnavailable(Unavailable):
    """The loop cannot be compiled: numba or a symbol is missing, or the ABI is unknown."""


@dataclass(frozen=True)
class Slot:
    """A variable of the loop, by number. It holds the result of a call, such as a handle."""

    index: int


@dataclass(frozen=True)
class Cycle:
    """An argument whose value changes with the unit: ``values[unit % len(values)]``.

    Head and tail use the value of the first unit of their group.
    """

    values: tuple[int, ...]


Word = int | Slot | Cycle


@dataclass(frozen=True)
class NativeCall:
    """A C call. Arguments and result are integers or pointers. The upper bits of a narrower result
    are undefined.

    The Python loop calls ``function`` with ``ffi_args`` (default: ``args``). A ``Cycle`` in
    ``ffi_args`` holds objects. The compiled loop calls ``address`` with ``args``. ``result``: where
    the result is kept. ``stage``: the part of a unit that the call belongs to (default: ``name``).
    ``checked``: a nonzero low half of the result is a failure, which ``NativeLoop.failure``
    returns.
    """

    name: str
    function: Callable[..., Any]
    address: int
    args: tuple[Word, ...]
    result: Slot | None = None
    stage: str = ""
    ffi_args: tuple[Any, ...] = ()
    checked: bool = False


@dataclass(frozen=True)
class Store:
    """A write of one 64-bit word to memory. The Python loop calls ``function(value)`` instead."""

    name: str
    function: Callable[[Any], Any]
    pointer: int
    value: int | Slot
    stage: str = ""


@dataclass(frozen=True)
class NativeProgram:
    """C calls for units in groups: for each group ``head`` once, ``body`` once per unit, then
    ``tail`` once.

    ``per``: units in a group (the last group may be smaller); 0: all units are one group.
    """

    head: tuple[NativeCall | Store, ...] = ()
    body: tuple[NativeCall | Store, ...] = ()
    tail: tuple[NativeCall | Store, ...] = ()
    per: int = 1


class NativeLoop(Protocol):
    """A loop that issues n units. ``failure()``: bitwise or of all results of checked calls so far;
    0: none failed.
    """

    failure: Callable[[], int]

    def __call__(self, n: int, /) -> None: ...


def compile_ffi(program: NativeProgram) -> NativeLoop:
    """The program as a plain Python loop: ``loop(n)`` issues n units."""
    failures = _Failures()
    issue = loops.compile_python(_python_script(program, failures))
    return _loop(issue, lambda: failures.bits)


def compile_native(program: NativeProgram) -> NativeLoop:
    """The program as a loop that numba compiles: ``loop(n)`` issues n units without the GIL. Raises
    ``NativeUnavailable`` if it cannot be compiled here.

    The compiled loop finds all addresses and arguments in a table, where it also leaves the bits of
    failed calls: the bitwise or of the results of checked calls, which ``loop.failure()`` returns.
    """
    # Its text, without clock readings, and its table.
    rendered = _Native(program)
    lines = loops.lines_without_clock(rendered.script)
    table = np.array(rendered.table, np.int64)
    issue = functools.partial(_compiled(rendered, lines), table)
    # ``_loop``: the function with ``failure`` as its attribute.
    return _loop(issue, lambda: int(table[_FAILURES_AT]))


def compile_stages(program: NativeProgram, caller: str) -> Stages:
    """A function ``stages(n)`` that runs the loop of the program with clock readings, and returns
    the durations by stage (a named part of a unit, such as ``launch``), ns.

    ``caller``: ``native`` for a compiled loop, else a Python loop. Each duration includes one clock
    reading. The stage ``clock`` contains nothing else, so it tells what a reading costs. The cost
    of a stage per unit is the sum of its durations, less one reading for each of them, divided by
    n. Adjacent calls of one stage are timed together.

    The compiled loop writes its readings to logs, one for each section (a part of the loop that is
    timed separately), whose addresses are in its table.
    """
    if caller != "native":
        # What fails in this loop is not looked at: it only times.
        return loops.compile_python_stages(_python_script(program, _Failures()))
    rendered = _Native(program)
    clock = _clock()

    # In the text of the loop, t is the table, and p0 the address at which the next readings of
    # section 0 are written, and so on.
    def read(section: int, reading: int) -> str:
        """The statement by which the C clock writes a reading to the log."""
        # ``call(address, arguments)`` of the loop. ``clock.first``: the text of the arguments
        # before the pointer, if the clock has some.
        return f"call(t[{_CLOCK_AT}], ({clock.first}p{section} + {_READING_BYTES * reading},))"

    def keep(section: int, readings: int) -> str:
        """The statement that moves on to the next row of the log."""
        return f"p{section} += {_READING_BYTES * readings}"

    counts = loops.reading_counts(rendered.script)
    # The addresses of the logs, where each call of the loop begins to write.
    starts = [f"p{section} = t[{_LOGS_AT + section}]" for section in range(len(counts))]
    loop = _compiled(rendered, [*starts, *loops.lines_with_clock(rendered.script, read, keep)])
    table = np.array(rendered.table, np.int64)
    table[_CLOCK_AT] = clock.address

    def stages(n: int) -> dict[str, NDArray[np.int64]]:
        """Run n units with new logs, and return the durations by stage, ns."""
        logs = []
        for runs, readings in zip(_runs_of_sections(program, n), counts, strict=True):
            # Axes: the runs of the section, the readings of a run, the two words of a reading.
            # Filled before the loop, because the first write to a memory page would cause a page
            # fault inside a stage.
            logs.append(np.ones((runs, readings, 2), np.int64))
        # The loop writes to these addresses.
        table[_LOGS_AT : _LOGS_AT + len(logs)] = [log.ctypes.data for log in logs]
        loop(table, n)
        return loops.stage_durations(rendered.script, [clock.nanoseconds(log) for log in logs])

    return stages


def _runs_of_sections(program: NativeProgram, n: int) -> list[int]:
    """How often each section of the loop runs for n units, which is how many rows of readings its
    log must hold. The sections are head, body and tail: head and tail run once per group, body once
    per unit. If each unit is a group, all three are one section.
    """
    if program.per == 1:
        return [n]
    groups = 1  # all units are one group
    if program.per:
        groups = math.ceil(n / program.per)  # the last group may be smaller
    return [groups, n, groups]


def _loop(issue: Issue, failure: Callable[[], int]) -> NativeLoop:
    """The function ``issue`` itself, so that a call has no layer more, with ``failure`` as its
    attribute.
    """
    issue.failure = failure  # type: ignore[attr-defined]
    return issue  # type: ignore[return-value]


def _script_of(
    program: NativeProgram,
    render: Callable[[NativeCall | Store], Statement],
    names: Mapping[str, Any],
) -> Script:
    """The loop of the program as text. ``render``: writes a call as a line, differently for the
    Python loop and the compiled one. ``names``: the objects that these lines use.
    """
    head = tuple(map(render, program.head))
    body = tuple(map(render, program.body))
    tail = tuple(map(render, program.tail))
    # ``per``: units in a group, before which the head runs, and after which the tail.
    return Script(head, body, tail, program.per, names)


def _turn(length: int) -> str:
    """The text of the index of unit ``u`` in a cycle of this length: ``u % length``, which for a
    power of two is a faster mask of bits.
    """
    is_power_of_two = length & (length - 1) == 0
    return f"u & {length - 1}" if is_power_of_two else f"u % {length}"


@dataclass
class _Failures:
    """The bitwise or of the low halves of all results of checked calls; 0: none failed."""

    bits: int = 0

    def note(self, result: Any) -> None:
        """Add the result of a call that failed."""
        self.bits |= int(result) & _LOW_HALF


def _python_script(program: NativeProgram, failures: _Failures) -> Script:
    """The text of the loop that makes the program's calls from Python (``NativeCall.function``),
    with names for all functions and arguments. In the loop, ``failures`` gets the results of
    checked calls that are not 0.
    """
    names: dict[str, Any] = {}

    def bind(value: Any) -> str:
        """Give the value a name of the loop (``c0``, ``c1``, ...), and return the name."""
        name = f"c{len(names)}"
        names[name] = value
        return name

    def word(value: Any) -> str:
        """The text of an argument: a variable with an earlier result, the object of this unit, or
        one object.
        """
        if isinstance(value, Slot):
            return f"s{value.index}"
        # ``_turn``: the text of the index, ``u % length``; ``u`` is the index of the unit.
        if isinstance(value, Cycle):
            return f"{bind(value.values)}[{_turn(len(value.values))}]"
        return bind(value)

    def render(call: NativeCall | Store) -> Statement:
        """The line of the loop for a call. Its result is kept in a variable (``s0``, ``s1``, ...)
        if a later call needs it. If it is checked, a result that is not 0 is a failure, which the
        line notes.
        """
        stage = call.stage or call.name
        function = bind(call.function)
        # A ``Store`` writes a word to memory, in Python by its function.
        if isinstance(call, Store):
            return Statement(f"{function}({word(call.value)})", stage)
        words = [word(value) for value in call.ffi_args or call.args]
        code = f"{function}({', '.join(words)})"
        slot = f"s{call.result.index}" if call.result else ""
        if call.checked:
            # The result needs a name, because the line first tests it and then notes it.
            result = slot or "result"
            code = f"if {result} := {code}: {bind(failures.note)}({result})"
        elif slot:
            code = f"{slot} = {code}"
        return Statement(code, stage)

    return _script_of(program, render, names)


class _Native:
    """The text of a loop of C calls, which numba compiles, and the table of all addresses and
    arguments that the loop uses. ``slots``: the numbers of the variables that hold results.

    The source contains no numbers of this process, so that its machine code can be kept on disk.
    The first words of the table are reserved: see ``_RESERVED_WORDS``.
    """

    def __init__(self, program: NativeProgram) -> None:
        """Write all calls as lines, which fills the table behind its reserved first words (for
        failures, the clock and the logs).
        """
        self.table = [0] * _RESERVED_WORDS
        self.script = _script_of(program, self._render, {})
        # ``call.result``: the variable that keeps the result of the call, if a later one needs it.
        slots = set()
        for call in program.head + program.body + program.tail:
            if isinstance(call, NativeCall) and call.result:
                slots.add(call.result.index)
        self.slots = sorted(slots)

    def _place(self, *values: int) -> int:
        """Append addresses or arguments to the table, and return the index of the first.

        The words of the table are signed (int64), so an unsigned number from 2^63 on is stored as
        the negative number with the same bits.
        """
        index = len(self.table)
        for value in values:
            is_negative_word = value >= 1 << 63
            # 2^64 less: the same bits as a signed number.
            self.table.append(value - (1 << 64) if is_negative_word else value)
        return index

    def _word(self, value: Word) -> str:
        """The text of an argument in the loop: a variable that holds an earlier result
        (``Slot``), or a word of the table ``t``, in which the argument is placed.
        """
        if isinstance(value, Slot):
            return f"s{value.index}"
        if isinstance(value, Cycle):  # one of several values, which the units use in turn
            first = self._place(*value.values)
            # ``_turn``: the text of ``u % length``; ``u`` is the index of the unit.
            return f"t[{first} + ({_turn(len(value.values))})]"
        return f"t[{self._place(value)}]"

    def _render(self, call: NativeCall | Store) -> Statement:
        """The line of the loop for a call or a write to memory. ``call`` and ``store`` are the
        functions of ``numba_intrinsics``. The address of the function and each argument become
        words of the table. The result is kept in a variable if a later call needs it; if it is
        checked, the bits of its low half are added to ``failed``. Raises ``NativeUnavailable`` for
        a function that the library lacks (address 0).
        """
        stage = call.stage or call.name
        if isinstance(call, Store):
            pointer = self._word(call.pointer)
            return Statement(f"store({pointer}, {self._word(call.value)})", stage)
        if not call.address:
            raise NativeUnavailable(because("library-exports-no-symbol", symbol=call.name))

        function = self._word(call.address)
        # With a comma after each, since one argument in parentheses would be no tuple.
        words = "".join([f"{self._word(word)}, " for word in call.args])
        code = f"call({function}, ({words}))"
        slot = f"s{call.result.index}" if call.result else ""
        if slot:
            code = f"{slot} = {code}"
        if call.checked:
            # Only the low half counts: the upper bits of a narrower result are undefined. The text
            # ends as in ``failed |= s0 & 4294967295``.
            code = f"{code}; failed |= {slot}" if slot else f"failed |= {code}"
            code = f"{code} & {_LOW_HALF}"
        return Statement(code, stage)

    def source(self, lines: Sequence[str]) -> str:
        """The source of a module that defines ``loop(table, n)``, which runs these lines.

        ``failed`` begins with the failures of earlier calls of ``loop``, which the first word of
        the table holds. The variables for results are set to 0 before the first call fills them.
        """
        slots = [f"s{slot} = 0" for slot in self.slots]
        body = ["failed = t[0]", *slots, *lines, "t[0] = failed"]
        return "\n".join(
            [
                "import numba",
                "from overhead.probes.common.numba_intrinsics import call, store",
                "",
                # ``nogil``: the loop does not hold Python's lock. ``cache``: numba keeps the
                # machine code.
                "@numba.njit('void(int64[::1], int64)', nogil=True, cache=True)",
                "def loop(t, n):",
                *["    " + line for line in body],
                "",
            ]
        )


def _compiled(rendered: _Native, lines: Sequence[str]) -> Callable[..., None]:
    """The function ``loop(table, n)`` with these lines, compiled by numba, which keeps the machine
    code on disk. Raises ``NativeUnavailable`` if this processor is unknown or numba fails.

    The name of its module is a hash of its source and of what it imports, so the kept machine code
    of another version is never used.
    """
    # On ``ABIS`` every argument can be passed as a word of 64 bits, as the loop does. In a Python
    # of 32 bits pointers are shorter.
    is_32_bit_python = sys.maxsize < 1 << 32
    if platform.machine().lower() not in ABIS or is_32_bit_python:
        raise NativeUnavailable(because("calling-convention-unknown", processor=platform.machine()))
    try:
        import numba  # noqa: F401
        from numba.misc.appdirs import user_cache_dir
    # numba raises ImportError or SystemError if numpy is newer than it supports.
    except Exception as error:
        raise NativeUnavailable(
            because("numba-does-not-load", text=first_line_of(error)), _INSTALL_NUMBA
        ) from error

    # The text of ``call`` and ``store``, which the loop imports.
    intrinsics = Path(loops.__file__).with_name("numba_intrinsics.py").read_bytes()
    # The text contains no addresses, so it is the same in every process, and so is its hash.
    text = rendered.source(lines)
    name = "loop_" + hashlib.sha256(intrinsics + text.encode()).hexdigest()[:24]
    folder = Path(user_cache_dir("overhead", appauthor=False)) / "native"
    if os.environ.get("NUMBA_CACHE_DIR"):
        folder = Path(os.environ["NUMBA_CACHE_DIR"])
    try:
        module = sys.modules.get(name) or _load(name, text, folder)
        function: Callable[..., None] = module.loop
    except NativeUnavailable:
        raise
    except Exception as error:  # numba compiles while the file is imported
        raise NativeUnavailable(
            because("numba-cannot-compile", text=first_line_of(error)), _INSTALL_NUMBA
        ) from error
    return function


def _load(name: str, text: str, folder: Path) -> Any:
    """Write the source to a file in the folder, and import it as the module ``name``. It needs a
    file that stays the same: numba keeps machine code only for functions from such a file.
    """
    try:
        path = _written(folder, name, text)
    except OSError:  # the folder cannot be written: compile in one that ends with this run
        path = _written(Path(tempfile.mkdtemp(dir=scratch.folder())), name, text)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NativeUnavailable(because("file-cannot-be-imported", path=path))
    module = importlib.util.module_from_spec(spec)
    # So that a later call with the same text finds the loop there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)  # compiles the loop, or loads its machine code
    except BaseException:
        del sys.modules[name]  # else the next call would find a module without the loop
        raise
    return module


def _written(folder: Path, name: str, text: str) -> Path:
    """The path of the file with this text in the folder. It is written only if it is not there, so
    that it keeps its time of change, which numba compares.

    Several processes may write it at the same time. So each writes a file of its own first, and the
    last step replaces the file as a whole.
    """
    path = folder / f"{name}.py"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return path
    # For this user alone (0o700), because what lies there is run.
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
    return path


@dataclass(frozen=True)
class _Clock:
    """The clock that a compiled loop reads: the address of a C function that writes the time to 16
    bytes.

    ``first``: the text of its arguments before the pointer to these bytes. ``nanoseconds``: makes
    ns of an array whose last axis holds the two words of each reading.
    """

    address: int
    first: str
    nanoseconds: Callable[[NDArray[np.int64]], NDArray[np.int64]]


@functools.cache
def _clock() -> _Clock:
    """The C clock of this platform with the finest resolution, for the times of stages in a
    compiled loop. A reading has room for two words, ``log[..., 0]`` and ``log[..., 1]``.
    """
    if sys.platform == "win32":  # the clock writes one word, a number of periods
        frequency = ctypes.c_int64()
        ctypes.windll.kernel32.QueryPerformanceFrequency(ctypes.byref(frequency))
        address = address_of(ctypes.windll.kernel32, "QueryPerformanceCounter")
        # The second of the two words of a reading is not used.
        return _Clock(address, "", lambda log: log[..., 0] * 1_000_000_000 // frequency.value)

    def of_timespec(log: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ns of readings that are a C ``timespec``: seconds, and ns of the current second."""
        seconds = log[..., 0]
        return seconds * 1_000_000_000 + log[..., 1]

    # On macOS the resolution of CLOCK_MONOTONIC is 1 microsecond.
    which = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)
    address = address_of(ctypes.CDLL(None), "clock_gettime")
    return _Clock(address, f"{which}, ", of_timespec)


def address_of(library: ctypes.CDLL, name: str) -> int:
    """The address of a symbol in a library loaded by ctypes. Raises ``NativeUnavailable``."""
    with contextlib.suppress(AttributeError):
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise NativeUnavailable(because("library-exports-no-symbol", symbol=name))
