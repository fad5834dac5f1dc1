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
import itertools
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
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
    failed = [0]
    return _loop(loops.compile_python(_python_script(program, failed)), lambda: failed[0])


def compile_native(program: NativeProgram) -> NativeLoop:
    """The program as a compiled loop: ``loop(n)`` issues n units without the GIL. Raises
    ``NativeUnavailable``.
    """
    rendered = _Native(program)
    lines = loops.lines_without_clock(rendered.script)
    table = np.array(rendered.table, np.int64)
    return _loop(functools.partial(_compiled(rendered, lines), table), lambda: int(table[0]))


def compile_stages(program: NativeProgram, caller: str) -> Stages:
    """A function ``stages(n)`` that runs the same loop with clock readings, and returns the
    durations by stage, ns.

    ``caller``: ``native`` for a compiled loop, else a Python loop. Each duration includes one clock
    reading. The stage ``clock`` contains nothing else. The cost of a stage per unit is
    ``(sum(durations) - len(durations) * clock) / n``. Adjacent calls of one stage are timed
    together.
    """
    if caller != "native":
        return loops.compile_python_stages(_python_script(program, [0]))
    rendered, (clock, first, nanoseconds) = _Native(program), _clock()
    lines = loops.lines_with_clock(
        rendered.script,
        read=lambda section, i: f"call(t[1], ({first}p{section} + {16 * i},))",
        keep=lambda section, count: f"p{section} += {16 * count}",
    )
    places = range(len(rendered.script.sections))
    loop = _compiled(rendered, [*(f"p{i} = t[{2 + i}]" for i in places), *lines])
    widths = [len(loops.stage_names(section)) + 1 for section in rendered.script.sections]
    table = np.array(rendered.table, np.int64)
    table[1] = clock

    def stages(n: int) -> dict[str, NDArray[np.int64]]:
        groups = -(-n // program.per) if program.per else 1
        times = [n] if program.per == 1 else [groups, n, groups]
        # Filled before the loop, because the first write to a memory page would cause a page fault
        # inside a stage.
        logs = [
            np.ones((count, width, 2), np.int64) for count, width in zip(times, widths, strict=True)
        ]
        table[2 : 2 + len(logs)] = [log.ctypes.data for log in logs]
        loop(table, n)
        return loops.stage_durations(rendered.script, [nanoseconds(log) for log in logs])

    return stages


def _loop(issue: Issue, failure: Callable[[], int]) -> NativeLoop:
    issue.failure = failure  # type: ignore[attr-defined]
    return issue  # type: ignore[return-value]


def _sections(
    program: NativeProgram, render: Callable[[NativeCall | Store], Statement]
) -> dict[str, Any]:
    parts = {
        name: tuple(render(call) for call in getattr(program, name))
        for name in ("head", "body", "tail")
    }
    return {**parts, "per": program.per}


def _turn(length: int) -> str:
    return f"u & {length - 1}" if length & (length - 1) == 0 else f"u % {length}"


def _python_script(program: NativeProgram, failed: list[int]) -> Script:
    """The loop that calls the Python callables. ``failed[0]`` collects the results of checked
    calls.
    """
    names: dict[str, Any] = {}
    count = itertools.count()

    def bind(value: Any) -> str:
        name = f"c{next(count)}"
        names[name] = value
        return name

    def word(value: Any) -> str:
        if isinstance(value, Slot):
            return f"s{value.index}"
        return (
            f"{bind(value.values)}[{_turn(len(value.values))}]"
            if isinstance(value, Cycle)
            else bind(value)
        )

    def render(call: NativeCall | Store) -> Statement:
        args = (call.value,) if isinstance(call, Store) else call.ffi_args or call.args
        code = f"{bind(call.function)}({', '.join(map(word, args))})"
        kept = f"s{call.result.index}" if isinstance(call, NativeCall) and call.result else ""
        if isinstance(call, NativeCall) and call.checked:
            code = f"if {kept or 'result'} := {code}: {bind(note)}({kept or 'result'})"
        elif kept:
            code = f"{kept} = {code}"
        return Statement(code, call.stage or call.name)

    def note(result: Any) -> None:
        failed[0] |= int(result) & _LOW_HALF

    return Script(**_sections(program, render), names=names)


class _Native:
    """The loop that calls addresses: its source lines, and a table of all numbers that it uses.

    Words 0 to 7 of the table are reserved: word 0 holds the failures, word 1 the clock, words 2 to
    7 the logs.
    """

    def __init__(self, program: NativeProgram) -> None:
        self.table = [0] * 8
        self.script = Script(**_sections(program, self._render))
        calls = program.head + program.body + program.tail
        self.slots = sorted(
            {c.result.index for c in calls if isinstance(c, NativeCall) and c.result}
        )

    def _place(self, *values: int) -> int:
        self.table += [value - (1 << 64) if value >= 1 << 63 else value for value in values]
        return len(self.table) - len(values)

    def _word(self, value: Word) -> str:
        if isinstance(value, Slot):
            return f"s{value.index}"
        if isinstance(value, Cycle):
            return f"t[{self._place(*value.values)} + ({_turn(len(value.values))})]"
        return f"t[{self._place(value)}]"

    def _render(self, call: NativeCall | Store) -> Statement:
        if isinstance(call, Store):
            code = f"store({self._word(call.pointer)}, {self._word(call.value)})"
            return Statement(code, call.stage or call.name)
        if not call.address:
            raise NativeUnavailable(because("library-exports-no-symbol", symbol=call.name))
        function, words = self._word(call.address), [self._word(word) for word in call.args]
        code = f"call({function}, ({''.join(f'{word}, ' for word in words)}))"
        if call.result:
            code = f"s{call.result.index} = {code}"
        if call.checked:
            code = f"{code}; failed |= s{call.result.index}" if call.result else f"failed |= {code}"
            code = f"{code} & {_LOW_HALF}"
        return Statement(code, call.stage or call.name)

    def source(self, lines: Sequence[str]) -> str:
        """The source of a module that defines ``loop(table, n)``."""
        body = ["failed = t[0]", *(f"s{i} = 0" for i in self.slots), *lines, "t[0] = failed"]
        return "\n".join(
            [
                "import numba",
                "from overhead.probes.common.numba_intrinsics import call, store",
                "",
                "@numba.njit('void(int64[::1], int64)', nogil=True, cache=True)",
                "def loop(t, n):",
                *("    " + line for line in body),
                "",
            ]
        )


def _compiled(rendered: _Native, lines: Sequence[str]) -> Callable[..., None]:
    if platform.machine().lower() not in ABIS or sys.maxsize < 1 << 32:
        raise NativeUnavailable(because("calling-convention-unknown", processor=platform.machine()))
    try:
        import numba  # noqa: F401
        from numba.misc.appdirs import user_cache_dir
    except (
        Exception
    ) as error:  # numba raises ImportError or SystemError if numpy is newer than it supports
        raise NativeUnavailable(
            because("numba-does-not-load", text=first_line_of(error)), _INSTALL_NUMBA
        ) from error
    module = Path(loops.__file__).with_name("numba_intrinsics.py").read_bytes()
    text = rendered.source(lines)
    name = "loop_" + hashlib.sha256(module + text.encode()).hexdigest()[:24]
    folder = Path(
        os.environ.get("NUMBA_CACHE_DIR")
        or Path(user_cache_dir("overhead", appauthor=False)) / "native"
    )
    try:
        function: Callable[..., None] = (sys.modules.get(name) or _load(name, text, folder)).loop
    except NativeUnavailable:
        raise
    except Exception as error:  # numba compiles while the file is imported
        raise NativeUnavailable(
            because("numba-cannot-compile", text=first_line_of(error)), _INSTALL_NUMBA
        ) from error
    return function


def _load(name: str, text: str, folder: Path) -> Any:
    """Import the source from a file in the folder. numba caches machine code only for a file that
    does not change.
    """
    try:
        path = _written(folder, name, text)
    except OSError:
        path = _written(Path(tempfile.mkdtemp(dir=scratch.folder())), name, text)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NativeUnavailable(because("file-cannot-be-imported", path=path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    return path


@functools.cache
def _clock() -> tuple[int, str, Callable[[NDArray[np.int64]], NDArray[np.int64]]]:
    """The address of a clock function, its first arguments as text, and a function from its 16
    bytes to ns.
    """
    if sys.platform == "win32":
        frequency = ctypes.c_int64()
        ctypes.windll.kernel32.QueryPerformanceFrequency(ctypes.byref(frequency))
        address = address_of(ctypes.windll.kernel32, "QueryPerformanceCounter")
        return address, "", lambda log: log[..., 0] * 1_000_000_000 // frequency.value
    # On macOS the resolution of CLOCK_MONOTONIC is 1 microsecond.
    which = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)
    address = address_of(ctypes.CDLL(None), "clock_gettime")
    return address, f"{which}, ", lambda log: log[..., 0] * 1_000_000_000 + log[..., 1]


def address_of(library: ctypes.CDLL, name: str) -> int:
    """The address of a symbol in a library loaded by ctypes. Raises ``NativeUnavailable``."""
    with contextlib.suppress(AttributeError):
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise NativeUnavailable(because("library-exports-no-symbol", symbol=name))
