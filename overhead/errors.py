"""Every exception that passes from one package to another."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overhead.results.reason import Why

_MOST_TEXT = 2000


_in_words: Callable[[Any], str] = str


def say_reasons_by(in_words: Callable[[Any], str]) -> None:
    """Let errors that hold a reason say it in words. ``overhead.words``, which may not be imported
    here, calls this.
    """
    global _in_words
    _in_words = in_words


def in_words(reason: Why) -> str:
    """The sentence of a reason, once ``overhead.words`` is imported; until then its code with the
    values.
    """
    return _in_words(reason)


class SaidInOneLine:
    """An exception that needs no traceback: its message says what to do. IPython shows the message
    alone.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(SaidInOneLine, ValueError):
    """Wrong use or bad input. The message is one line that says what and where; the command line
    exits with 2.

    It may be given a reason of ``overhead.results`` in place of the message.
    """

    @property
    def why(self) -> Why:
        """The reason, or the message."""
        return self.args[0] if self.args else ""

    def __str__(self) -> str:
        return self.why if isinstance(self.why, str) else in_words(self.why)


class UnknownName(UsageError):
    """A name that does not exist. ``near``: the known one that was probably meant; '' where none is
    like it.
    """

    def __init__(self, message: str, near: str = "") -> None:
        super().__init__(message)
        self.near = near


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that does not exist: ``unknown stack 'tourch', did you mean 'torch'?
    known: ...``.
    """
    names = sorted(known)
    # Without a near name: ``unknown stack 'x'; known: ...``.
    near = nearest(name, names)  # the name that was probably meant; '' for none
    hint = f", did you mean {near!r}?" if near else ";"
    listed = ", ".join(names)
    return UnknownName(f"unknown {kind} {name!r}{hint} known: {listed}", near)


def nearest(name: str, known: Iterable[str]) -> str:
    """The one of the known names that is most like this one; '' where none is."""
    import difflib

    by_small_letters = {known_name.lower(): known_name for known_name in known}
    near = difflib.get_close_matches(name.lower(), by_small_letters, n=1, cutoff=_LEAST_ALIKE)
    return by_small_letters[near[0]] if near else ""


_LEAST_ALIKE = 0.5
"""Of ``difflib``, from 0 to 1: a name with two wrong letters of four is still found. Chosen, not
measured; with less, a name is suggested that the person did not mean.
"""


class BadFile(UsageError):
    """A file of another kind, cut short or beyond the bounds; the message is one line that names
    it.

    Where ``file`` is given, ``fault`` is only what is wrong with it, and the message is ``file:
    fault``.
    """

    def __init__(self, fault: Why = "", file: str | os.PathLike[str] = "") -> None:
        super().__init__(fault)
        self.fault = fault
        self.file = os.fspath(file)

    @property
    def why(self) -> Why:
        """What is wrong, with the file."""
        if not self.file:
            return self.fault
        if isinstance(self.fault, str):
            return f"{self.file}: {self.fault}"
        from overhead.results.reason import about  # it imports this module

        return about(self.file, self.fault)


class BadPlugin(UsageError):
    """A plugin that cannot be used; one line."""


class BadValue(UsageError):
    """A stack handed over a value that is not allowed; one line that names the field, the value and
    what is allowed.
    """


class CannotWrite(UsageError):
    """A file cannot be written; one line that names it and says what was saved."""


@contextlib.contextmanager
def raising_cannot_write(path: object, more: str = "") -> Iterator[None]:
    """A ``with`` block that writes the file ``path``: its ``OSError`` becomes ``CannotWrite``, one
    line with the path and the cause. ``more``: put at the end of the line, such as what was saved.
    """
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror or error}{more}") from None


class MissingExtra(UsageError, ImportError):
    """A package of an extra is not installed; one line with the command that installs the extra."""


def shell_command(words: Sequence[str]) -> str:
    """The words as one line for the shell of this system. cmd.exe takes single quotes as part of a
    name.
    """
    if sys.platform == "win32":
        import subprocess

        return subprocess.list2cmdline(words)
    import shlex

    return shlex.join(words)


def require_extra(extra: str, *packages: str) -> None:
    """Import these packages, which ``extra`` (an optional set of packages) installs. Raises
    ``MissingExtra`` with the command to install it if one is missing or does not import.
    """
    from overhead.extras import install_command

    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise _not_installed(name, extra)
        try:
            importlib.import_module(name)
        except Exception as error:
            # A package that was built for another version may raise anything.
            raise MissingExtra(
                f"{name} does not import: {first_line_of(error)}; {install_command(extra)}"
                " --upgrade"
            ) from error


def _not_installed(package: str, extra: str) -> MissingExtra:
    from overhead.extras import install_command

    return MissingExtra(f"{package} is not installed: {install_command(extra)}")


def missing_extra(error: ImportError) -> MissingExtra | None:
    """The error to show in place of an import error: it names the extra (an optional set of
    packages) that installs the missing package. None if no extra does, or if nothing is missing.
    """
    from overhead.extras import extra_with

    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    # The package is what precedes the first point of the name of the module.
    package = error.name.partition(".")[0]
    extra = extra_with(package)
    return _not_installed(package, extra) if extra else None


class WithReason(Exception):
    """An error that says why: by a code with its values, or by a text of one line, which is shown
    as it is.

    ``str`` of the error is for tracebacks; ``overhead.words.reasons`` makes the sentence of
    ``reason``.
    """

    @property
    def reason(self) -> Why:
        """Why; '' if the error was raised without a reason."""
        given = self.args[0] if len(self.args) == 1 else Exception.__str__(self)
        return _why(given)


class Unavailable(WithReason):
    """The stack cannot be measured here. ``mend`` is the command or step that would change that."""

    def __init__(self, reason: Why, mend: Why = "") -> None:
        super().__init__(reason)
        self.mend = _why(mend)


class Unsupported(WithReason):
    """This device or library cannot run this one case."""


class Unverified(WithReason):
    """Values that were read back are wrong, or an error scope caught something: the work did not
    happen as asked.
    """


def _why(given: object) -> Why:
    """A reason with a code as it is; anything else that a stack gave as a text of one line."""
    if hasattr(given, "code") and hasattr(given, "values"):
        return given  # type: ignore[return-value]
    return " ".join(file_text(given).split())


def check_text(*texts: str) -> None:
    """Raise ``UsageError`` if one of these is no text, or not valid in the encoding of the
    locale.
    """
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(f"{text!r:.100}: not a text")
        # Python turns bytes of the command line that are not valid into characters that cannot be
        # encoded. ``file_text`` puts "?" in their place, so that a file can hold the text: then it
        # differs. Its second argument, the most characters, keeps it from being cut here.
        is_valid = text.isascii() or text == file_text(text, len(text))
        if not is_valid:
            raise UsageError(
                f"{file_text(text)[:200]}: not valid text; write it in UTF-8, in a locale such as"
                " C.UTF-8"
            )


def file_text(value: object, most: int = _MOST_TEXT) -> str:
    """The value as text that a file can hold: in UTF-8, of at most ``most`` characters."""
    try:
        text = str(value)
    except Exception:  # the class of another package may raise anything
        text = f"a {type(value).__name__} without a text"
    return text[:most].encode(errors="replace").decode()


def message_of(error: BaseException) -> str:
    """The message of an exception in one line, as ``file_text``."""
    return " ".join(file_text(error).split())


def one_line(error: BaseException) -> str:
    """Type and message of an exception in one line of at most 500 characters."""
    return f"{type(error).__name__}: {message_of(error)}".rstrip(": ")[:500]


def without_details(text: str) -> str:
    """A text from outside without numbers and quoted names, but with its line of code."""
    return _DETAILS.sub("#", text)


_DETAILS = re.compile(
    r"""
    '[^']*' | "[^"]*"                # a quoted name
    | (?<!\.py:)(?<![\d.])\d[\d.]*  # a number, unless it is the line behind the name of a file
    """,
    re.VERBOSE,
)


@dataclasses.dataclass(frozen=True)
class CodeLine:
    """A line of code, and the function that it is in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


def stack_code_of(error: BaseException) -> str:
    """The line of a stack's own code from which the error came: ``my_stack.py:57, in issue``; '' if
    there is none.
    """
    return str(stack_line_of(error) or "")


def stack_line_of(error: BaseException) -> CodeLine | None:
    """The last line of a stack's own code that was running when the error was raised; None if there
    is none. Lines of libraries that the stack calls, and of this suite, are left out: it is the
    line that the author of the stack can change.
    """
    # ``outside``: the modules of the frames that are not of the suite, in the order of the calls.
    # The suite here is its machinery; stacks that it brings count as stacks (``_is_suite``).
    frames = _frames_of(error)
    outside = [_module_of(frame) for frame, _ in frames if not _is_suite(_module_of(frame))]
    if not outside:
        return None
    # The suite calls the stack first, and what the stack calls comes later. So the first module
    # that is not of the suite is the stack's.
    package = outside[0].partition(".")[0]
    of_stack = [
        CodeLine(os.path.basename(frame.f_code.co_filename), line, frame.f_code.co_name)
        for frame, line in frames
        if _is_in(_module_of(frame), package) and not _is_suite(_module_of(frame))
    ]
    return of_stack[-1]


def first_line_of(error: BaseException) -> str:
    """The essence of an error of a library, in one line of at most 200 characters: the first line
    of its message, without the log that follows.

    A compiler's message begins with what failed. The cause is the first line further down that
    names an error, and is added.
    """
    kind = type(error).__name__
    lines = [line.strip() for line in file_text(error).splitlines() if line.strip()]
    if not lines:
        return kind
    # PyOpenCL says the same three times, with " - " between: each part is kept once.
    message = " - ".join(dict.fromkeys(lines[0].split(" - ")))
    if not _NAMES_AN_ERROR.search(message):
        cause = next((line for line in lines[1:] if _NAMES_AN_ERROR.search(line)), "")
        # A first line such as "compilation failed:" ends in a colon, and another one follows here.
        if cause:
            message = f"{message.rstrip(':')}: {cause}"
    # The class of the error is named too, unless it is a usual one.
    if kind not in _PLAIN_ERRORS:
        message = f"{kind}: {message}"
    return " ".join(message.split())[:_LONGEST_FIRST_LINE]


_LONGEST_FIRST_LINE = 200
_NAMES_AN_ERROR = re.compile(
    r"\b(cannot|error|invalid|no such|undefined|unknown|unsupported)\b", re.IGNORECASE
)
_PLAIN_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "OSError", "RuntimeError"})
"""Errors whose names add nothing to their messages; libraries have classes of their own with these
names.
"""


def came_from_import(error: BaseException, stack: str) -> bool:
    """Whether a library failed while it was imported or loaded, called by the stack in the module
    ``stack``.

    True for a package that is not installed, a shared library that is missing, and any error while
    a package of others is imported, such as one that was built for another version. False for
    mistakes in the stack's own imports.
    """
    own = stack.partition(".")[0]
    if isinstance(error, ImportError):
        name = str(error.name)
        is_of_others = not _is_in(name, own) and not _is_in(name, "overhead")
        # ``is_of_others``: neither the stack's own package nor this suite is what is missing.
        is_missing = isinstance(error, ModuleNotFoundError) and is_of_others
        # ``_is_shared_library``: it was a compiled module that could not be loaded.
        if is_missing or _is_shared_library(error):
            return True

    # Otherwise frames tell it: code of a package that is neither the stack's nor the suite's.
    of_others = []
    for frame, _ in _frames_of(error):
        module = _module_of(frame)
        if not _is_in(module, own) and not _is_in(module, "overhead"):
            of_others.append(frame)
    if not of_others:
        return False
    # ``ctypes`` raises it for a shared library that does not load.
    is_loading = isinstance(error, OSError) and _module_of(of_others[-1]) == "ctypes"
    # An import runs the code of a module, in a frame with this name.
    is_importing = any(frame.f_code.co_name == "<module>" for frame in of_others)
    return is_loading or is_importing


def _is_shared_library(error: ImportError) -> bool:
    """Whether what could not be imported is a compiled module, such as one that finds too little
    memory, or lacks a library of the system.
    """
    return str(error.path or "").endswith((".so", ".pyd", ".dylib"))


def is_mistake_in_import(error: ImportError) -> bool:
    """Whether an import that this suite wrote is wrong: it names a module or a symbol of ours that
    does not exist, or that an installed library does not have any more.

    False for what the person can mend: a package that is not installed, a library that fails in its
    own imports (its installation is broken), and a compiled module that does not load.
    """
    name = error.name or ""
    if _is_in(name, "overhead"):
        return True
    frames = _frames_of(error)
    if not name or not frames or _is_shared_library(error):
        return False
    # The frame that raised the error has the import.
    importer, _ = frames[-1]
    if not _is_in(_module_of(importer), "overhead"):  # a library failed in its own imports
        return False
    # A missing module is our mistake only if its package is there: then we named it wrongly.
    if isinstance(error, ModuleNotFoundError):
        return _is_installed(name.partition(".")[0])
    return True  # the module is there, and lacks a symbol


def _is_installed(package: str) -> bool:
    """Whether a package of this name is installed. A folder that several packages share, such as
    ``cuda``, does not count: a part of it may be missing although another one is there.
    """
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


def is_mistake_of_suite(error: BaseException) -> bool:
    """Whether code of this suite is wrong: it raised a ``TypeError`` or the like itself, and no
    library did.

    A name that a module of a library lacks is no mistake here: the library has another version.
    """
    frames = _frames_of(error)
    if not isinstance(error, _MISTAKES) or not frames:
        return False
    # A module lacks a name: whether we are to blame depends on whose module it is.
    # ``obj``: what was asked for the name.
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return error.obj.__name__.startswith("overhead.")
    # The innermost frame raised it.
    raised_in, _ = frames[-1]
    return _is_in(_module_of(raised_in), "overhead")


_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    SyntaxError,
    TypeError,
)


def _frames_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of an error's traceback with their lines, the one that raised it last."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames


def _is_in(module: str, package: str) -> bool:
    """Whether the module of this name is the package, or inside it."""
    return f"{module}.".startswith(f"{package}.")


def _module_of(frame: FrameType) -> str:
    """The name of a frame's module. One that runs as ``__main__`` has its name in its spec."""
    scope = frame.f_globals
    return str(getattr(scope.get("__spec__"), "name", None) or scope.get("__name__", ""))


_INTERFACE = frozenset(
    {
        "overhead.probes",
        "overhead.probes.arms",
        "overhead.probes.base",
        "overhead.probes.in_order",
        "overhead.probes.workload_chain",
    }
)
"""The modules that stacks are written with."""
_STACKS = re.compile(r"overhead\.(probes|\w+\.(arms|stacks))\.")
"""The modules of the suite in which stacks, and cases that slices add to them, are defined."""


def _is_suite(module: str) -> bool:
    """Whether a module is machinery of the suite, and not the code of a stack: neither of one in
    another package, nor of one that the suite brings. Python's import of a plugin counts too.
    """
    # ``_INTERFACE``: the modules that stacks are written with. ``_STACKS``: matches the modules in
    # which the suite defines stacks of its own. Kernels and common parts, though they lie beside
    # these, are machinery.
    package = module.partition(".")[0]
    if "importlib" in package or module in _INTERFACE:
        return True
    if module.startswith(("overhead.probes.kernels", "overhead.probes.common")):
        return True
    return package == "overhead" and not _STACKS.match(module)
