"""The marker ``needs``: ``@pytest.mark.needs("wgpu", "lavapipe")`` skips a test where a part does
not work.

``OVERHEAD_REQUIRED`` (comma-separated part names) turns such skips into failures, so that CI cannot
pass by skipping. ``all`` stands for every part, and ``-name`` takes one away again.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from overhead.locks import file_lock
from overhead.results import Reason
from tests import trials
from tests.fakes.no_network import UNSHARE

os.environ.setdefault("MPLBACKEND", "Agg")
if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # of nohup; programs under test would inherit it


def _program(*names: str) -> str:
    return "" if any(map(shutil.which, names)) else f"no program {' or '.join(names)} on PATH"


def _namespaces() -> str:
    try:
        command = [*UNSHARE, "mount", "--bind", "/etc/resolv.conf", "/etc/resolv.conf"]
        return subprocess.run(command, capture_output=True, text=True).stderr.strip()
    except OSError as error:
        return str(error)


PARTS: dict[str, Callable[[], str]] = {
    **{name: functools.partial(trials.why_not, name) for name in (
        *trials.TRIALS, *trials.IMPORTED,
    )},
    "bash": lambda: _program("bash"),
    "make": lambda: _program("make"),
    "namespaces": _namespaces,
}  # fmt: skip
"""For each part a check that returns the reason why it does not work here, empty where it does."""


_RUN_OF_WORKER: str | None = None
"""The id of the run of which this process is a worker. A variable has it too, but tests start
pytest by themselves.
"""


@functools.cache
def missing(part: str) -> str:
    """Why a part does not work here; empty if it does. The workers of a run try each part once
    between them.
    """
    if _RUN_OF_WORKER is None:
        return PARTS[part]()
    folder = _shared_answers(_RUN_OF_WORKER)
    folder.mkdir(exist_ok=True)
    answer = folder / part
    with file_lock(folder / f"{part}.lock"):
        if not answer.exists():
            answer.write_text(PARTS[part](), "utf-8")
        return answer.read_text("utf-8")


def _shared_answers(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"overhead-parts-{run}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The process that started the workers removes what they shared."""
    run = getattr(session.config.pluginmanager.get_plugin("dsession"), "nodemanager", None)
    if run is not None:
        shutil.rmtree(_shared_answers(run.testrunuid), ignore_errors=True)


def required_parts(text: str) -> frozenset[str]:
    """The parts that the value of ``OVERHEAD_REQUIRED`` names; also those that are none, so that a
    typo is found.
    """
    names = set(filter(None, text.replace(" ", "").split(",")))
    left_out = {name.removeprefix("-") for name in names if name.startswith("-")}
    unknown = left_out - set(PARTS)
    named = {name for name in names if name != "all" and not name.startswith("-")}
    every = set(PARTS) if "all" in names else set()
    return frozenset((named | every) - left_out | unknown)


REQUIRED = required_parts(os.environ.get("OVERHEAD_REQUIRED", ""))
_our_skip = pytest.StashKey[bool]()


def _parts(item: pytest.Item) -> list[str]:
    return [part for mark in item.iter_markers("needs") for part in mark.args]


def pytest_configure(config: pytest.Config) -> None:
    global _RUN_OF_WORKER
    _RUN_OF_WORKER = getattr(config, "workerinput", {}).get("testrunuid")
    if unknown := REQUIRED - set(PARTS):
        raise pytest.UsageError(
            f"OVERHEAD_REQUIRED names no part of tests/conftest.py: {', '.join(sorted(unknown))}"
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if unknown := [part for part in _parts(item) if part not in PARTS]:
            raise pytest.UsageError(
                f"{item.nodeid}: needs names no part of tests/conftest.py: {', '.join(unknown)}"
            )


def pytest_runtest_setup(item: pytest.Item) -> None:
    lacking = {part: reason for part in _parts(item) if (reason := missing(part))}
    if required := REQUIRED & set(lacking):
        pytest.fail(
            "; ".join(f"{part} is required here: {lacking[part]}" for part in sorted(required)),
            pytrace=False,
        )
    if lacking:
        item.stash[_our_skip] = True
        pytest.skip("; ".join(f"needs {part}: {reason}" for part, reason in lacking.items()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself although all its parts are required and present."""
    report = yield
    parts = set(_parts(item))
    skipped_itself = (
        report.skipped and not hasattr(report, "wasxfail") and _our_skip not in item.stash
    )
    if skipped_itself and parts and parts <= REQUIRED:
        report.outcome = "failed"
        report.longrepr = f"skipped itself although its parts are required: {report.longrepr}"
    return report


@pytest.fixture(autouse=True, scope="session")
def no_reason_in_a_text() -> None:
    """Let a reason in an f-string fail: a reader would see its code. ``words.reasons.sentence``
    makes its text.
    """

    def refuse(reason: object, spec: str) -> str:
        raise AssertionError(f"a code would stand in a text: {reason!s}")

    Reason.__format__ = refuse  # type: ignore[method-assign]


@pytest.fixture(autouse=True, scope="module")
def old_objects_frozen() -> None:
    """Hide the objects of earlier modules from the garbage collector.

    The code under test collects often, as a measurement must. With the millions of objects of
    torch and JAX in the process, one collection takes 20 to 200 ms, and half of the time of all
    tests went there.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def still_frozen() -> None:
    """Hide them again where a test has undone it."""
    if not gc.get_freeze_count():
        gc.freeze()
