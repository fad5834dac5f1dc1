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
_MOST_VERSION = 200
"""Characters of a version: the file has no longer names."""
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
    """How to start a worker. ``python_command``: the interpreter and its options. ``python`` and
    ``packages``: versions of another interpreter; empty for this one. ``environment``: all
    variables that the workers get in addition to those of this process. ``variables``: those that
    the user set for this run.
    """

    python_command: Sequence[str] = (sys.executable,)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    python: str = ""
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def versions(self, distributions: Iterable[str]) -> dict[str, str]:
        """The versions of the interpreter, of system software, and of those of these packages
        (``distributions``) that it has, by name, for the file of the run.
        """
        # Without a version of its own it is the interpreter that runs this.
        if not self.python:
            return machine.versions(distributions)
        versions = {**machine.versions(), "python": self.python}
        for name in distributions:
            if name in self.packages:
                versions[name] = self.packages[name][:_MOST_VERSION]
        return versions


HERE = Interpreter()


def find_interpreters(paths: Sequence[str], stacks: Sequence[str] = ()) -> list[Interpreter]:
    """The interpreters with these names or paths (``--python``), asked whether they can run
    workers; the running one if the list is empty.

    ``stacks``: those whose workers they will run, which may need packages.

    Raises ``UsageError`` with one line: what an interpreter lacks, and how to install it.
    """
    if not paths:
        return [HERE]
    folder = _folder_with_package()
    # A dict, so that each module is asked for once.
    needed = dict.fromkeys(_NEEDED)
    for stack in stacks:
        needed |= dict.fromkeys(registry()[stack].worker_packages)
    return [_other(path, str(folder), list(needed)) for path in paths]


def _folder_with_package() -> Path:
    """A new folder with this package (``overhead``) alone, for the search path of another
    interpreter. The folder where it is installed has other packages too, which that must not find:
    it has its own.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch.folder()))
    # The folder of this package, which holds the one of this module.
    package = Path(__file__).resolve().parents[1]
    try:
        (folder / package.name).symlink_to(package, target_is_directory=True)
    except OSError:  # on Windows most users may not create links
        shutil.copytree(package, folder / package.name)
    return folder


def _other(path: str, folder: str, needed: Sequence[str]) -> Interpreter:
    """Another interpreter, by its name or path, with how to start workers with it. ``folder``:
    where it finds this package. ``needed``: modules that workers import; raises ``UsageError`` if
    it lacks one.
    """
    program = shutil.which(path)
    if program is None:
        raise UsageError(f"--python {path}: no such program")
    answer = _ask(path, program, needed)
    search_path = [folder]
    inherited = os.environ.get("PYTHONPATH")
    if inherited:
        search_path.append(inherited)
    # -P: modules in the folder where the user is must not be imported in place of its packages.
    return Interpreter(
        python_command=(program, "-P"),
        environment={"PYTHONPATH": os.pathsep.join(search_path)},
        python=answer["python"],
        packages=answer["packages"],
    )


def _ask(path: str, program: str, needed: Sequence[str]) -> dict[str, Any]:
    """Ask an interpreter for its version, for those of the packages that any stack measures, and
    whether it can import the modules that workers need. Returns its answer.

    Raises ``UsageError``, one line, if it cannot run workers, with the command that installs what
    is missing. ``path``: its name as the user gave it, for the error.
    """
    distributions: set[str] = set()
    for probe in registry().values():
        distributions.update(probe.distributions)
    # The question is a program for that interpreter, which prints its answer as JSON.
    command = [program, "-c", _QUESTION_CODE, json.dumps(sorted(distributions)), json.dumps(needed)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ANSWER_S
        )
        # The last line, because a module may print something when it is imported.
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired) as error:
        cause = getattr(error, "strerror", None) or "gave no answer"
        raise UsageError(f"--python {path}: {cause}") from None
    except (IndexError, ValueError):
        raise _not_python(path, done) from None
    if not answer["new"]:
        raise UsageError(f"--python {path}: is {answer['python']}; Python 3.11 or newer is needed")
    # By module the error of importing it. Not installed is one of them, which a command mends.
    missing: dict[str, str] = answer["missing"]
    absent = [name for name, why in missing.items() if why == f"No module named {name!r}"]
    if absent:
        install = shlex.join([path, "-m", "pip", "install", *absent])
        raise UsageError(
            f"--python {path}: {', '.join(absent)} not installed there, which workers need:"
            f" {install}"
        )
    for name, why in missing.items():
        cause = " ".join(why.split())[:200]
        raise UsageError(f"--python {path}: {name} does not import: {cause}")
    return answer


def _not_python(path: str, done: subprocess.CompletedProcess[str]) -> UsageError:
    """The error for a program that was asked something in Python and gave no answer: it is no
    Python interpreter, or one that does not work.

    A shell or another program prints the question, or an argument of it, as its error: then it did
    not understand Python.
    """
    exit_code = f"exit code {done.returncode}"
    error_texts = done.stderr.strip().splitlines() or [exit_code]
    last_text = error_texts[-1]
    # ``args[3:]``: the arguments of the question, after the program, ``-c`` and the code.
    for asked in [*_QUESTION_CODE.splitlines(), *done.args[3:]]:
        if asked.strip() and asked.strip() in last_text:
            return UsageError(f"--python {path}: is no Python interpreter ({exit_code})")
    return UsageError(f"--python {path}: this Python does not work: {last_text[:200]}")


def with_variables(
    given: Sequence[Interpreter], both: Sequence[str], new: Sequence[str]
) -> list[Interpreter]:
    """The interpreters of a run (one, or two to compare) with the environment variables that the
    user sets for its workers: ``both`` (``NAME=VALUE``) for all of them, ``new`` for the last one.

    With ``new``, a single interpreter becomes two, with and without these variables, which are
    compared. Raises ``UsageError``.
    """
    # ``--env`` counts for all, ``--env-new`` for the last interpreter, which is the new side.
    common, of_last = _parsed("--env", both), _parsed("--env-new", new)
    compares_variables = bool(of_last) and len(given) == 1
    interpreters = [given[0], given[0]] if compares_variables else list(given)
    changed = [_with(interpreter, common) for interpreter in interpreters[:-1]]
    changed.append(_with(interpreters[-1], common | of_last))
    # The file of the run limits their number and length: refused now, not after the measurement.
    in_file = [variables_for_file(interpreter) for interpreter in changed]
    try:
        msgspec.convert(in_file, list[EnvironmentVariables])
    except msgspec.ValidationError as error:
        raise UsageError(f"--env: too many or too long variables: {error}") from None
    return changed


def _with(interpreter: Interpreter, variables: Mapping[str, str]) -> Interpreter:
    """The interpreter with these variables of the user."""
    environment = {**interpreter.environment, **variables}
    return dataclasses.replace(interpreter, environment=environment, variables=variables)


def variables_for_file(interpreter: Interpreter) -> dict[str, str]:
    """The variables of a run as its file has them: without secrets, host, user and absolute
    paths.
    """
    in_file = {}
    for name, value in interpreter.variables.items():
        in_file[name] = machine.redact(machine.hide_secrets(name, value))
    return in_file


def _parsed(option: str, given: Sequence[str]) -> dict[str, str]:
    """The variables ``NAME=VALUE`` by name. Raises ``UsageError``, which names the option."""
    variables = {}
    for text in given:
        # ``equals`` is empty if there is no "=".
        name, equals, value = text.partition("=")
        if not name or not equals or not is_utf8(text):
            raise UsageError(f"{option} {name}{equals}: not of the form NAME=VALUE, in UTF-8")
        # ``Cc``: Unicode's class of control characters.
        if any(unicodedata.category(character) == "Cc" for character in text):
            raise UsageError(
                f"{option} {name!r}: its name or value has a control character, such as a line feed"
            )
        if name in _CHOOSE_PACKAGES:
            raise UsageError(
                f"{option} {name}: this variable changes the packages; use --python for that"
            )
        variables[name] = value
    return variables
