"""The entry points of other packages, and the trial of an import in a child process before this process imports it.

The trial finds a package or a plugin that raises, ends the process, crashes or hangs while it is imported. Such a
package is listed as unavailable, and everything else works.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

from overhead.child import LimitExceeded, SupervisedProcess, input_lines
from overhead.results import MissingStack

GROUP = "overhead.probes"
IMPORT_S = 30.0
"""How long the import of a package may take."""
_CHILD = "from overhead import probes; probes.answer_trial()"
_EXIT_S = 5.0
_POLL_S = 0.5
_MEMORY_BYTES = 8 << 30
_TRIALS_AT_ONCE = 8


def installed() -> list[EntryPoint]:
    """The entry points of all installed packages. None of them is imported."""
    return sorted(importlib.metadata.entry_points(group=GROUP), key=text_of)


def text_of(entry: EntryPoint) -> str:
    """The entry point as its package declares it, in one line."""
    return f"{entry.name} = {entry.value}"


def package_of(entry: EntryPoint) -> str:
    """The name of the package that declares the entry point."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def missing(entry: EntryPoint, reason: str) -> MissingStack:
    """The record of a package that cannot be used."""
    name = re.sub(r"[^a-z0-9]+", "-", entry.name.lower()).strip("-0123456789")[:32] or "package"
    return MissingStack(stack=name, reason=f"package {package_of(entry)}: {reason}"[:1000])


def tried(entries: Sequence[EntryPoint]) -> dict[str, str]:
    """For each entry point, by its text, why it cannot be imported; '' if it can. Takes at most about ``IMPORT_S``."""
    with ThreadPoolExecutor(_TRIALS_AT_ONCE) as pool:
        reasons = pool.map(lambda entry: trial(entry.name, entry.value), entries)
        return dict(zip(map(text_of, entries), reasons, strict=True))


def trial(*arguments: str) -> str:
    """Why a child process could not import what the arguments name; '' if it could. See ``probes.answer_trial``."""
    command = [sys.executable, "-c", _CHILD, *arguments]
    child = SupervisedProcess(command, {}, memory_bytes=_MEMORY_BYTES, poll_s=_POLL_S)
    try:
        answer = child.receive(IMPORT_S)
        if answer:
            return str(json.loads(answer)["reason"])
        code = child.exit_code(_EXIT_S)
        return f"ended the process with exit code {code} while it was imported{child.last_words()}"
    except LimitExceeded as exceeded:
        unit = f"{IMPORT_S:.0f} s" if exceeded.limit == "time" else f"{_MEMORY_BYTES >> 30} GiB of memory"
        return f"took more than {unit} while it was imported"
    except (ValueError, KeyError, TypeError):
        return "answered with rubbish while it was imported"
    finally:
        child.end()


def answer_trial(load: Callable[[Sequence[str]], str]) -> None:
    """Call ``load`` with the arguments of the trial, and tell the parent the reason that it returns, in the child."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    input_lines()
    reason = load(sys.argv[1:])
    with contextlib.suppress(OSError):
        print(json.dumps({"reason": reason}), file=out, flush=True)
    os._exit(0)  # threads of the package must not keep the process alive
