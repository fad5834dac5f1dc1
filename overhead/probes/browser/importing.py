"""Convert the file that a person downloaded from the page to a journal: check its values, keep
every sample.

A page that a person opened cannot start processes. So each replicate is a new device in the same
page, and each record has a flag for that.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct

from overhead import results
from overhead.bounded_files import read_whole
from overhead.errors import BadFile
from overhead.probes.base import Unsupported, Unverified
from overhead.probes.browser import identity, messages
from overhead.probes.browser.chain import WAITING_PATTERNS, case_spec, step_window
from overhead.probes.browser.page_files import PLAN, kernel_hashes
from overhead.probes.common.step import RING
from overhead.probes.kernels import lcg
from overhead.results import Case, Gpu, HeaderEntry, JournalEntry, Machine, Target, Why, because

MAX_BYTES = 64 << 20


class _CaseEntry(Struct, forbid_unknown_fields=True, frozen=True):
    """One case of one replicate: the samples that chose the ladder, the rounds, and the values at
    the end.
    """

    case: messages.CaseSpec
    trial: messages.Rows
    rounds: Annotated[list[messages.Rows], Meta(max_length=1000)]
    values: messages.Values
    kind: messages.Failure
    error: messages.MessageText


class Download(Struct, forbid_unknown_fields=True, frozen=True):
    """The file that a person downloads from the page. ``replicates``: for each, its cases.
    ``hidden``: the page was.
    """

    format: Literal["overhead-browser"]
    version: Literal[1]
    created: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    hidden: bool
    page: messages.Page
    replicates: Annotated[
        list[Annotated[list[_CaseEntry], Meta(max_length=64)]], Meta(min_length=1, max_length=100)
    ]


def import_file(path: Path) -> list[JournalEntry]:
    """Read a download, and return the entries of the journal that a run with the same samples would
    have written, the header first. Raises ``BadFile``.

    The download has replicates, repeated measurements of all cases. Each becomes one process of the
    run, since a page cannot start processes, and the flag ``replicates-in-one-browser`` tells that
    none was started.
    """
    download = _decoded(path)
    page = download.page
    target = identity.target(identity.engine(page), page)
    flags = [*identity.record_flags(page), "replicates-in-one-browser"]
    if download.hidden:
        flags.append("hidden-page")

    # First what the run is, then its planned cases, then what each process measured.
    header = HeaderEntry(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=download.created,
        profile="quick",
        machine=_machine(page, target),
        versions=target.versions,
    )
    journal: list[JournalEntry] = [header]

    cases: dict[str, Case] = {}  # by key: each case is in every replicate
    for case_entries in download.replicates:
        for entry in case_entries:
            case = _case(entry.case)
            cases[case.key] = case
    for case in cases.values():
        # ``worker``: the name of the worker process that measures a target. Here it stands for the
        # page.
        planned = results.PlannedEntry(
            worker=target.key, target=target, case=case, processes=PLAN["replicates"]
        )
        journal.append(planned)

    for process, case_entries in enumerate(download.replicates):
        for entry in case_entries:
            journal += _journal_entries(target, process, page, entry, flags)
        # Why the process ended: its plan was done.
        ended = results.EndedEntry(worker=target.key, process=process, rule=because("plan-of-page"))
        journal.append(ended)
    return journal


def _decoded(path: Path) -> Download:
    """The download in a file, of a page that had an adapter, and the kernels of this package: other
    ones would be recorded under a wrong hash. Raises ``BadFile``.
    """
    raw = read_whole(path, MAX_BYTES)
    try:
        download = msgspec.json.decode(raw, type=Download)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BadFile(f"not a browser's download: {reason}", path) from None
    if download.page.adapter is None:
        raise BadFile("the browser found no WebGPU adapter", path)
    if download.page.kernels != kernel_hashes():
        raise BadFile("measured with the kernels of another version of overhead", path)
    return download


def _journal_entries(
    target: Target, process: int, page: messages.Page, entry: _CaseEntry, flags: list[str]
) -> Iterator[JournalEntry]:
    """The journal entries of one case in one replicate, as a worker process would have written
    them: why it has no figures; or how it was measured, single times (``OneOffEntry``), and the
    samples of each round. ``at``: for each single time, the n of its sample.
    """
    case = _case(entry.case)
    place: dict[str, Any] = {  # what every entry of the case begins with
        "target": target.key,
        "case": case.key,
        "worker": target.key,
        "process": process,
    }
    failure = _failure(entry, case)
    if failure is not None:
        yield results.FailedEntry(**place, status=failure.status, reason=failure.reason)
        return

    kernel = "fused.wgsl" if case.pattern == "fused" else "step.wgsl"
    yield results.OpenedEntry(
        **place,
        # As ``PageChain`` says of its chains: "pipelined", the device works while units are issued,
        # only in these patterns.
        overlap="pipelined" if case.pattern in ("per-submit", "per-k") else "serial",
        synchronous=case.pattern in WAITING_PATTERNS,
        window=step_window(case, page),
        kernels={kernel: kernel_hashes()[kernel]},
        flags=flags,
    )

    # The samples that chose the ladder (the lengths n of the later samples) have times of an empty
    # wait (n = 0) and of single units.
    empty_waits_ns = _total_times(entry.trial, 0)
    singles_ns = _total_times(entry.trial, 1)
    yield results.OneOffEntry(
        **place, name="empty_wait", values=empty_waits_ns, at=[0] * len(empty_waits_ns)
    )
    # If even the shortest empty wait is long, the wait polls, and lasts for whole polls.
    if empty_waits_ns and min(empty_waits_ns) > PLAN["polling_ms"] * 1e6:
        quantum_ns = statistics.median(empty_waits_ns)
        yield results.OneOffEntry(**place, name="wait_quantum", values=[quantum_ns], at=[0])
    # "naive": the time of one unit with its wait, as a benchmark without chains takes it.
    yield results.OneOffEntry(**place, name="naive", values=singles_ns, at=[1] * len(singles_ns))
    for number, rows in enumerate(entry.rounds):
        yield results.RoundEntry(**place, round=number, samples=rows)


def _total_times(rows: messages.Rows, n: int) -> list[float]:
    """The times of the samples of n units with their wait. A row is ``[n, issue_ns, total_ns]``."""
    return [float(row[2]) for row in rows if row[0] == n]


class _CaseFailure(NamedTuple):
    """Why a case has no figures."""

    status: results.Status
    reason: Why


def _failure(entry: _CaseEntry, case: Case) -> _CaseFailure | None:
    """Why the case has no figures: the page cannot have such a case, its values are wrong, or the
    page says itself how it failed (``entry.kind``). None if it has some.
    """
    try:
        # Raises ``Unsupported`` for a case that the page does not have.
        case_spec(case)
        if not entry.kind:
            _check_values(entry)
            return None
    except Unsupported as error:
        return _CaseFailure("unavailable", error.reason)
    except Unverified as error:
        return _CaseFailure("unverified", error.reason)
    if entry.kind == "unsupported":
        return _CaseFailure("unavailable", entry.error)
    return _CaseFailure(entry.kind, entry.error)


def _check_values(entry: _CaseEntry) -> None:
    """Raise ``Unverified`` unless the values at the end show that every unit of every sample and
    warm-up ran.

    Each unit replaces the values of a buffer by the next numbers of a random generator. So their
    distance from the seeds (the first values) is the number of units, up to the period of the
    generator, 2^32. With independent units, several buffers (``RING``) are used in turn.
    """
    # The trial is the samples by which the page chose the lengths of the later ones.
    rows = list(entry.trial)
    for rows_of_round in entry.rounds:
        rows += rows_of_round
    issued = sum(n + 1 for n, _, _ in rows)  # the page warms up with one unit before each sample

    buffers = RING if entry.case.dependency == "independent" else 1
    if len(entry.values) != buffers:
        raise Unverified(because("buffers-read-back", buffers=len(entry.values)))
    executed = 0
    for words in entry.values:
        executed += lcg.distance(lcg.seeds(), np.array(words, np.uint32))
    if executed != issued % lcg.PERIOD:
        raise Unverified(because("units-differ", issued=issued, executed=executed))


def _case(spec: messages.CaseSpec) -> Case:
    """The case of the suite for a case of the page. It has only the parameters that differ from the
    page's defaults, as the cases have that the suite measures in a browser itself.
    """
    defaults = messages.CaseSpec(pattern=spec.pattern)
    params = {}
    # Pattern and dependency are fields of a case, and these its parameters.
    for name in ("k", "bindgroup", "wait"):
        value = getattr(spec, name)
        if value != getattr(defaults, name):
            params[name] = value
    unit = "step" if spec.pattern == "fused" else "dispatch"
    return Case(
        pattern=spec.pattern, caller="browser", dependency=spec.dependency, unit=unit, params=params
    )


def _machine(page: messages.Page, target: Target) -> Machine:
    """The machine as far as a page can see it. Its id hashes only that, so a native run has another
    id.
    """
    cpu = f"not told to a browser ({page.platform or 'unknown platform'})"
    # A software adapter is no GPU of the machine.
    gpus = [] if target.software else [Gpu(name=target.adapter)]
    gpu_names = [gpu.name for gpu in gpus]
    known = json.dumps(["browser", cpu, page.cores, page.memory_gib, gpu_names])
    return Machine(
        id=hashlib.sha256(known.encode()).hexdigest()[:12],
        cpu=cpu[:200],
        cores=page.cores,
        memory_gib=page.memory_gib,
        gpus=gpus,
    )
