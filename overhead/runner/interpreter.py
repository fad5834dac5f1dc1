"""The Python that workers run under: this one, or another with its own packages and this very ``overhead``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from overhead import machine
from overhead.errors import UsageError
from overhead.probes import registry

WORKER = ("-m", "overhead.runner.worker")
LEAST = (3, 11)
NEEDS = ("msgspec", "numpy", "psutil", "scipy")
"""What a worker imports beside its stack."""
ANSWER_S = 60.0
_QUESTION = """
import importlib.metadata as metadata, importlib.util as util, json, platform, sys
needs, names, packages = json.loads(sys.argv[1]), json.loads(sys.argv[2]), {}
for name in names:
    try:
        packages[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({
    "version": sys.version_info[:2],
    "python": platform.python_implementation() + " " + platform.python_version(),
    "lacks": [name for name in needs if util.find_spec(name) is None],
    "packages": packages,
}))
"""


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """How a worker is started. ``python`` and ``packages``: what another interpreter has; empty for this one."""

    command: Sequence[str] = (sys.executable, *WORKER)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    python: str = ""
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def versions(self, distributions: Iterable[str]) -> dict[str, str]:
        """Versions of the interpreter, the machine's software and those of the distributions that are installed."""
        if not self.python:
            return machine.versions(distributions)
        own = {name: self.packages[name][:200] for name in distributions if name in self.packages}
        return {**machine.versions(), "python": self.python, **own}


HERE = Interpreter()


@contextlib.contextmanager
def interpreters(paths: Sequence[str]) -> Iterator[list[Interpreter]]:
    """The interpreters of these names or paths, this one where there are none.

    Raises ``UsageError``: one line that says what an interpreter lacks and what mends it.
    """
    if not paths:
        yield [HERE]
        return
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        _expose(Path(folder))
        yield [_other(path, folder) for path in paths]


def _expose(folder: Path) -> None:
    """Put this package, and none of the packages that lie beside it, where another interpreter finds it."""
    package = Path(__file__).resolve().parents[1]
    try:
        (folder / package.name).symlink_to(package, target_is_directory=True)
    except OSError:  # Windows lets few users make links
        shutil.copytree(package, folder / package.name)


def _other(path: str, folder: str) -> Interpreter:
    program = shutil.which(path)
    if program is None:
        raise UsageError(f"--python {path}: no such program")
    found = _ask(path, program)
    if tuple(found["version"]) < LEAST:
        raise UsageError(f"--python {path}: {found['python']}; {LEAST[0]}.{LEAST[1]} or newer is needed")
    if found["lacks"]:
        names = " ".join(found["lacks"])
        raise UsageError(f"--python {path}: lacks {names} (mend: {path} -m pip install {names})")
    inherited = os.environ.get("PYTHONPATH")
    return Interpreter(
        command=(program, "-P", *WORKER),
        environment={"PYTHONPATH": folder + (os.pathsep + inherited if inherited else "")},
        python=found["python"],
        packages=found["packages"],
    )


def _ask(path: str, program: str) -> dict[str, Any]:
    distributions = sorted({name for probe in registry().values() for name in probe.distributions})
    command = [program, "-c", _QUESTION, json.dumps(NEEDS), json.dumps(distributions)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_S)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"--python {path}: {getattr(error, 'strerror', None) or 'gave no answer'}") from None
    except (IndexError, ValueError):
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(f"--python {path}: not a Python that works: {said[:200]}") from None
    return answer
