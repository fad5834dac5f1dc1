"""The Python interpreter that runs the workers (this one, or another with its own packages), and
their variables.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overhead import machine, scratch
from overhead.errors import UsageError
from overhead.fields import is_utf8
from overhead.probes import registry
from overhead.results import EnvironmentVariables

_ANSWER_S = 60.0
_CHOOSE_PACKAGES = {"PYTHONPATH", "PYTHONHOME"}
"""With these, the workers would have other packages than the versions in the file say."""
_QUESTION_CODE = """
import importlib.metadata as metadata, json, platform, sys
missing = {}
for name in json.loads(sys.argv[2]) if sys.version_info >= (3, 11) else []:
    try:
        __import__(name)
    except ImportError as error:
        missing[name] = str(error)
packages = {}
for name in json.loads(sys.argv[1]):
    try:
        packages[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({
    "python": platform.python_implementation() + " " + platform.python_version(),
    "packages": packages,
    "missing": missing,
    "new": sys.version_info >= (3, 11),
}))
"""
_NEEDED = ("msgspec", "numpy")
"""What each worker imports; it finds ``overhead`` itself."""


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """How to start a worker. ``python_command``: the interpreter and its options.

    ``python`` and ``packages``: versions of another interpreter; empty for this one.
    ``environment``: all variables that the workers get in addition to those of this process.
    ``variables``: those that the user set for this run.
    """

    python_command: Sequence[str] = (sys.executable,)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    python: str = ""
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def versions(self, distributions: Iterable[str]) -> dict[str, str]:
        """The versions of the interpreter, of system software, and of the installed
        ``distributions``, by name.
        """
        if not self.python:
            return machine.versions(distributions)
        own = {name: self.packages[name][:200] for name in distributions if name in self.packages}
        return {**machine.versions(), "python": self.python, **own}


HERE = Interpreter()


def find_interpreters(paths: Sequence[str], stacks: Sequence[str] = ()) -> list[Interpreter]:
    """The interpreters with these names or paths; the running one if the list is empty.

    ``stacks``: those whose workers they will run.

    Raises ``UsageError`` with one line: what an interpreter lacks, and how to install it.
    """
    if not paths:
        return [HERE]
    # A folder with this package, without the packages that are installed next to it.
    folder, package = (
        Path(tempfile.mkdtemp(dir=scratch.folder())),
        Path(__file__).resolve().parents[1],
    )
    try:
        (folder / package.name).symlink_to(package, target_is_directory=True)
    except OSError:  # on Windows most users may not create links
        shutil.copytree(package, folder / package.name)
    needed = list(
        dict.fromkeys(
            [*_NEEDED, *(name for stack in stacks for name in registry()[stack].worker_packages)]
        )
    )
    return [_other(path, str(folder), needed) for path in paths]


def _other(path: str, folder: str, needed: Sequence[str]) -> Interpreter:
    program = shutil.which(path)
    if program is None:
        raise UsageError(f"--python {path}: no such program")
    found = _ask(path, program, needed)
    inherited = os.environ.get("PYTHONPATH")
    return Interpreter(
        python_command=(program, "-P"),
        environment={"PYTHONPATH": folder + (os.pathsep + inherited if inherited else "")},
        python=found["python"],
        packages=found["packages"],
    )


def _ask(path: str, program: str, needed: Sequence[str]) -> dict[str, Any]:
    """The versions of an interpreter and of its packages. Raises ``UsageError``, one line with the
    command to type.
    """
    distributions = sorted({name for probe in registry().values() for name in probe.distributions})
    command = [program, "-c", _QUESTION_CODE, json.dumps(distributions), json.dumps(needed)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ANSWER_S
        )
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"--python {path}: {getattr(error, 'strerror', None) or 'gave no answer'}"
        ) from None
    except (IndexError, ValueError):
        raise _not_python(path, done) from None
    if not answer["new"]:
        raise UsageError(f"--python {path}: is {answer['python']}; Python 3.11 or newer is needed")
    missing: dict[str, str] = answer["missing"]
    absent = [name for name, why in missing.items() if why == f"No module named {name!r}"]
    if absent:
        install = shlex.join([path, "-m", "pip", "install", *absent])
        raise UsageError(
            f"--python {path}: {', '.join(absent)} not installed there, which workers need:"
            f" {install}"
        )
    for name, why in missing.items():
        raise UsageError(f"--python {path}: {name} does not import: {' '.join(why.split())[:200]}")
    return answer


def _not_python(path: str, done: subprocess.CompletedProcess[str]) -> UsageError:
    """Why a program that was asked in Python gave no answer. A shell prints the question as its
    error.
    """
    last_line = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    asked = [
        line.strip() for line in [*_QUESTION_CODE.splitlines(), *done.args[3:]] if line.strip()
    ]
    if any(line in last_line for line in asked):
        return UsageError(
            f"--python {path}: is no Python interpreter (exit code {done.returncode})"
        )
    return UsageError(f"--python {path}: this Python does not work: {last_line[:200]}")


def with_variables(
    given: Sequence[Interpreter], both: Sequence[str], new: Sequence[str]
) -> list[Interpreter]:
    """The interpreters with the variables ``both`` (``NAME=VALUE``), and the last one with ``new``
    too.

    With ``new``, a single interpreter becomes two, which are compared. Raises ``UsageError``.
    """
    common, own = _parsed("--env", both), _parsed("--env-new", new)
    *others, last = [given[0], given[0]] if own and len(given) == 1 else given
    found = []
    for one, variables in [*((other, common) for other in others), (last, common | own)]:
        environment = {**one.environment, **variables}
        found.append(dataclasses.replace(one, environment=environment, variables=variables))
    try:
        msgspec.convert([variables_for_file(one) for one in found], list[EnvironmentVariables])
    except msgspec.ValidationError as error:
        raise UsageError(f"--env: too many or too long variables: {error}") from None
    return found


def variables_for_file(interpreter: Interpreter) -> dict[str, str]:
    """The variables of a run as its file has them: without secrets, host, user and absolute
    paths.
    """
    return {
        name: machine.redact(machine.hide_secrets(name, value))
        for name, value in interpreter.variables.items()
    }


def _parsed(option: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals or not is_utf8(text):
            raise UsageError(f"{option} {name}{equals}: not of the form NAME=VALUE, in UTF-8")
        if any(unicodedata.category(character) == "Cc" for character in text):
            raise UsageError(
                f"{option} {name!r}: its name or value has a control character, such as a line feed"
            )
        if name in _CHOOSE_PACKAGES:
            raise UsageError(
                f"{option} {name}: this variable changes the packages; use --python for that"
            )
        found[name] = value
    return found
