"""The statements to measure, which a file hands to the workers, and functions of the caller as such
text.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import importlib.util
import operator
import os
import pickle
import runpy
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from overhead import scratch
from overhead.errors import Unavailable, UsageError, one_line
from overhead.results import Figure, Why, because
from overhead.timing.call_syntax import assignments
from overhead.timing.division import Division

VARIABLE = "OVERHEAD_CALLS"
_SCRIPT = "__overhead_script__"
"""The name of a script that is run again, in place of ``__main__``."""
CALLED_AS, FOUND_AS = "_overhead_call_", "_overhead_found_"
"""With the number of a call: the name of a function that is timed, and of how it was found (a
``FoundStep``).
"""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""The environment variables that hold the number of library threads."""


class FoundCall(Struct, frozen=True, kw_only=True, tag="found"):
    """What a trial found out about one statement. ``one_ns``: a rough time of one call with its
    wait.

    ``waits``: names of ``KNOWN_WAITS``; empty if ``--wait`` gave a statement. ``libraries``: the
    packages whose objects the statement uses, with their versions. ``first``: its cost by
    ``first_answer``; None if that was not asked for. ``taken``, ``returned``: of a function that is
    named, see ``CallTiming``. ``division``: how its time on the host divides; None if that was not
    asked for.
    """

    one_ns: float
    waits: list[str]
    said: Why
    api: str
    adapter: str
    packages: list[str] = []
    libraries: dict[str, str] = {}
    first: Figure | None = None
    taken: Literal["", "returned", "itself"] = ""
    returned: str = ""
    division: Division | None = None


class VariedCall(NamedTuple):
    """A statement by its position, and what is assigned before it: names and values as texts, empty
    if nothing is varied.
    """

    position: int
    assignment: dict[str, str]


class CallSpec(Struct, frozen=True, kw_only=True):
    """The statements to measure. ``wait``: a name of ``KNOWN_WAITS``, a statement that waits, or
    empty to find out.

    ``before``: Python text that finds functions, and runs before ``setup``. ``path``: entries of
    ``sys.path`` that the workers need. ``vary``: ``NAME=VALUE,VALUE``; one of these assignments
    runs before SETUP. ``threads``: numbers of library threads. ``pythons``: interpreters of the
    workers. ``first``: the trial gives first answers. ``found``: by case, what the trial found out.
    """

    calls: list[str]
    setup: str = ""
    before: str = ""
    wait: str = ""
    path: list[str] = []
    vary: str = ""
    threads: list[str] = []
    pythons: list[str] = []
    first: bool = False
    found: list[FoundCall] = []

    @property
    def given(self) -> list[dict[str, str]]:
        """The assignments of ``vary``, each as name and value; an empty one if nothing is
        varied.
        """
        return assignments(self.vary)

    @property
    def cases(self) -> list[VariedCall]:
        """Each statement with each assignment; those of one statement follow one another."""
        cases = []
        for position in range(len(self.calls)):
            cases += [VariedCall(position, assignment) for assignment in self.given]
        return cases

    def add_path(self) -> None:
        """Add ``path`` to ``sys.path``, so that imports find what the caller's imports find."""
        sys.path += [entry for entry in self.path if entry not in sys.path]


def read_spec() -> CallSpec:
    """The statements that the process with ``handing_over_spec`` hands to this worker, through a
    file. Raises ``Unavailable`` if there are none: somebody measures the stack ``call`` without
    ``overhead time``.
    """
    file = os.environ.get(VARIABLE)
    if not file:
        # With the reason, what would make it available.
        raise Unavailable(because("no-statement-given"), 'overhead time "CALL"')
    return msgspec.json.decode(Path(file).read_bytes(), type=CallSpec)


@contextlib.contextmanager
def handing_over_spec(spec: CallSpec) -> Iterator[None]:
    """A context in which ``read_spec`` returns this ``spec``, in this process and in the workers
    that it starts: they inherit an environment variable, which names a file with it.
    """
    with scratch.subfolder() as folder:
        file = Path(folder) / "calls.json"
        file.write_bytes(msgspec.json.encode(spec))
        os.environ[VARIABLE] = str(file)
        try:
            yield
        finally:
            del os.environ[VARIABLE]


def setup_of(function: Callable[[], object], name: str) -> str:
    """Python text that defines ``name`` as this function in another process, where the function is
    measured. Raises ``UsageError`` if there is none.

    The text imports the function, or unpickles it (needs ``cloudpickle``), or runs the script that
    defines it.
    """
    if not callable(function):
        raise UsageError(f"{function!r:.100}: neither a statement (text) nor a function")
    # A worker that runs the user's script to find the function must not measure it again.
    if os.environ.get(VARIABLE):
        raise _script_runs_again()
    # Nor may a script that is run again, only for a function to be found in it.
    refuse_in_script_run_again()
    module = getattr(function, "__module__", None) or ""
    path = getattr(function, "__qualname__", "")
    can_import = False
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        can_import = import_function(module, path) is function
    # In a worker ``__main__`` is another program, so a function of the script is not found there.
    if module != "__main__" and can_import:
        return _setup(name, "import_function", module, path)
    if importlib.util.find_spec("cloudpickle") is not None:
        import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]

        try:
            pickled = cloudpickle.dumps(function)
            return _setup(name, "unpickle_function", base64.b64encode(pickled).decode())
        except Exception as error:  # an object that it holds may raise anything
            raise UsageError(
                f"{path}: cannot be handed to another process: {one_line(error)}"
            ) from None
    # Only a function at the top of the script has a name that a second run of it gives too.
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if module == "__main__" and file and can_import:
        return _setup(name, "function_of_script", os.path.abspath(file), path)
    raise UsageError(
        f"{path or repr(function)[:100]}: other processes cannot import it; define it at the top of"
        " a module, give a statement as text, or install cloudpickle: pip install cloudpickle"
    )


def import_function(module: str, path: str) -> Any:
    """The function with this qualified name in a module."""
    return operator.attrgetter(path)(importlib.import_module(module))


def unpickle_function(text: str) -> Any:
    """The function in a pickle, base64."""
    return pickle.loads(base64.b64decode(text))


def function_of_script(file: str, path: str) -> Any:
    """The function with this qualified name in a script, which runs without its ``if __name__ ==
    "__main__"``.
    """
    names = runpy.run_path(file, run_name=_SCRIPT)
    return operator.attrgetter(path)(types.SimpleNamespace(**names))


def _script_runs_again() -> UsageError:
    """The error in a worker that reaches the measurement of its own script again."""
    return UsageError(
        "a worker runs this script again to find the function: put the measurement under "
        'if __name__ == "__main__":, or install cloudpickle, which hands over the function alone: '
        "pip install cloudpickle"
    )


def refuse_in_script_run_again() -> None:
    """Raise ``UsageError`` in a script that ``function_of_script`` runs, which holds its module
    there meanwhile.
    """
    if _SCRIPT in sys.modules:
        raise _script_runs_again()


def _setup(name: str, finder: str, *arguments: str) -> str:
    """Python text that defines ``name`` as what a function of this module finds."""
    return (
        f"from {__name__} import {finder} as _overhead_find\n"
        f"{name} = _overhead_find(*{arguments!r})"
    )
