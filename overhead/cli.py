"""The command line: parse the arguments, run a command, and turn its end into an exit code."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import NoReturn

from overhead import scratch
from overhead.arguments import make_parser
from overhead.command_parser import WrongArguments
from overhead.commands import DONE, INTERRUPTED, complain
from overhead.errors import UsageError, is_mistake_in_import, missing_extra, one_line
from overhead.scratch import ending_on_signals
from overhead.terminal import Streams

_USAGE = 2
_OWN_ERROR = 70
"""Exit codes: of wrong use or bad input, and of a mistake in overhead."""
_LOAD_NUMPY = (
    "import overhead.arguments, overhead.blocks.terminal, overhead.loading, overhead.reading.view,"
    " numpy"
)
"""NumPy, and the modules of this package that most commands load."""


def main(argv: list[str] | None = None) -> int:
    """Run the command and return the exit code.

    0 done; 1 a gate failed, a required stack is missing, or nothing was measured; 2 wrong use or
    bad input; 3 a gate could not test enough; 70 an error of overhead itself; 74 standard output
    cannot be written; 130 interrupted; 141 the reader of the output is gone.

    A gate is a command whose exit code is its result, such as ``compare --fail-over 5``: 1 if a
    case is slower. So its result has precedence over an error of the output. ``Streams`` guards
    standard output and standard error, and knows of their errors.
    """
    # Made here, so that it can be asked below which options the command had.
    arguments = argparse.Namespace()
    with Streams() as streams:
        code = _command(argv, arguments)
    return code if _is_gate(arguments) else streams.exit_code(code)


def program() -> NoReturn:
    """Run the command and end the process; the program ``overhead`` calls this.

    Threads and exit handlers of stacks in other packages are not waited for, because they may never
    end. So the exit handler that removes temporary files does not run, and is called here.
    """
    code = main()
    scratch.remove()
    os._exit(code)


def _message(error: UsageError) -> str:
    """The message of an error of wrong use, which may be a reason: a code with values, which
    ``sentence`` puts into words.
    """
    why = error.why
    if isinstance(why, str):
        return why
    # Only here, because ``overhead.words`` loads many modules.
    from overhead.words.reasons import sentence

    return sentence(why)


def _command(argv: list[str] | None, arguments: argparse.Namespace) -> int:
    """Parse the command line into ``arguments``, which the caller keeps, and run the command. An
    error that it raises becomes one line and an exit code. Returns the exit code.
    """
    try:
        make_parser().parse_args(argv, arguments)
    except SystemExit as end:  # --help or --version
        return end.code if isinstance(end.code, int) else DONE
    except WrongArguments as error:
        print(error.usage, end="", file=sys.stderr)
        complain(str(error))
        return _USAGE

    try:
        with ending_on_signals():
            _check_memory_limit()
            return int(arguments.call(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except UsageError as error:
        complain(_message(error))
        return _USAGE
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else one_line(error))
        return _USAGE
    except MemoryError:
        complain(
            "out of memory; free some or raise the limit; a run's journal holds what it measured"
        )
        return _USAGE
    except ImportError as error:
        # A wrong import inside this package is our mistake: the user cannot mend it.
        if is_mistake_in_import(error):
            return _own_error()
        # A package that is missing or broken, or that finds too little memory. ``missing_extra``
        # names the optional set of packages that would install it; None if there is no such set.
        missing = missing_extra(error)
        complain(one_line(error) if missing is None else str(missing))
        return _USAGE
    except Exception:  # Python would exit with 1, the code of a gate that failed
        return _own_error()


def _own_error() -> int:
    """Print the traceback of the error that is being handled, as a mistake of overhead."""
    import traceback

    traceback.print_exc()
    complain("this is an error of overhead itself; please report it with the lines above")
    return _OWN_ERROR


def _check_memory_limit() -> None:
    """Raise ``MemoryError`` if NumPy does not load under a limit of the address space (``ulimit
    -v``).

    Its OpenBLAS then ends the process with exit code 1, which would say that a gate failed.
    """
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    # A child has the same limit, and imports NumPy and what most commands load (``_LOAD_NUMPY``).
    # If NumPy ends it, this process can still say why.
    child = subprocess.run([sys.executable, "-c", _LOAD_NUMPY], capture_output=True, check=False)
    if child.returncode:
        raise MemoryError


def _is_gate(arguments: argparse.Namespace) -> bool:
    """Whether the command is a gate, that is, whether its exit code is the result that was asked
    for: by ``--fail``, ``--require`` or ``--fail-over``.

    The arguments of a command that has no such option lack its name.
    """
    has_limit = getattr(arguments, "fail_over", None) is not None
    fails = bool(getattr(arguments, "fail", False))
    requires = bool(getattr(arguments, "require", ()))
    return has_limit or fails or requires
