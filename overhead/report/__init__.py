"""The pages: files without scripts or network, made of registered sections, from fingerprint files alone."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.errors import UsageError, require_extra
from overhead.loading.folders import Skipped, files, report_skipped
from overhead.measure.sampling.processors import every
from overhead.report.core.across_registry import register_across
from overhead.report.core.registry import register
from overhead.results import Fingerprint

if TYPE_CHECKING:
    from overhead.report.core.machines import Machines

__all__ = ["build", "register", "register_across", "render"]
_POOL_FROM_FILES = 64
"""With fewer files a pool of processes costs more than it saves."""
_POOL_PROCESSES = 8
"""Most processes in the pool."""


def build(paths: Sequence[Path], out: Path) -> Path:
    """Draw the pages from fingerprints, journals and folders of them; returns the first page's path.

    It opens with the newest run of the first path that holds one. A bad file named alone raises ``BadFile``; among
    several, or in a folder, it is skipped and listed on stderr and in the page. An output folder that cannot be written
    raises ``UsageError``.
    """
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    from overhead.report.core.machines import from_paths

    with _mapping(paths) as mapping:
        machines = from_paths(paths, mapping)
        report_skipped(machines.skipped)
        return _write(machines, out, mapping)


def render(fingerprints: Iterable[Fingerprint], out: Path, skipped: Sequence[Skipped] = ()) -> Path:
    """Draw the pages from runs in memory; returns the first page's path. The newest machine is shown in full."""
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    from overhead.report.core.machines import from_fingerprints

    return _write(from_fingerprints(fingerprints, skipped), out)


@contextlib.contextmanager
def _mapping(paths: Sequence[Path]) -> Iterator[Callable[..., Iterable[Any]]]:
    """``map``, or a process pool's for many files. Linux only: forked processes keep the caller's own sections."""
    processors = len(every())
    if processors < 2 or len(files(paths)) < _POOL_FROM_FILES:
        yield map
        return
    workers, context = min(processors, _POOL_PROCESSES), multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, _leave_signals_to_the_caller) as pool:
        _block_signals(True)  # until a new process has set its handlers
        try:
            pool.submit(int)  # starts all processes
        finally:
            _block_signals(False)
        try:
            yield functools.partial(pool.map, chunksize=8)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _leave_signals_to_the_caller() -> None:
    """Ctrl-C reaches every process of a terminal; the caller then ends the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _block_signals(False)


def _block_signals(block: bool) -> None:
    if sys.platform != "win32":
        how = signal.SIG_BLOCK if block else signal.SIG_UNBLOCK
        signal.pthread_sigmask(how, (signal.SIGINT, signal.SIGTERM))


def _write(machines: Machines, out: Path, mapping: Callable[..., Iterable[Any]] = map) -> Path:
    from overhead.report.core.pages import write

    try:
        return write(machines, out, mapping)
    except OSError as error:
        raise UsageError(f"{out}: cannot write the page: {error.strerror or error}") from error
