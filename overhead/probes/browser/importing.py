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
from typing import Annotated, Any, Literal

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
    """Read a download, and return the journal lines for it, the header first. Raises
    ``BadFile``.
    """
    raw = read_whole(path, MAX_BYTES)
    try:
        found = msgspec.json.decode(raw, type=Download)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadFile(
            f"not a browser's download: {' '.join(str(error).split())[:300]}", path
        ) from None
    if found.page.adapter is None:
        raise BadFile("the browser found no WebGPU adapter", path)
    if found.page.kernels != kernel_hashes():
        raise BadFile("measured with the kernels of another version of overhead", path)
    stack = identity.engine(found.page)
    target = identity.target(stack, found.page)
    flags = [
        *identity.record_flags(found.page),
        "replicates-in-one-browser",
        *(["hidden-page"] if found.hidden else []),
    ]
    header = HeaderEntry(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=found.created,
        profile="quick",
        machine=_machine(found.page, target),
        versions=target.versions,
    )
    cases = {
        _case(entry.case).key: _case(entry.case)
        for entries in found.replicates
        for entry in entries
    }
    lines: list[JournalEntry] = [header]
    lines += [
        results.PlannedEntry(
            worker=target.key, target=target, case=case, processes=PLAN["replicates"]
        )
        for case in cases.values()
    ]
    for process, entries in enumerate(found.replicates):
        for entry in entries:
            lines += _lines(target, process, found.page, entry, flags)
        lines.append(
            results.EndedEntry(worker=target.key, process=process, rule=because("plan-of-page"))
        )
    return lines


def _lines(
    target: Target, process: int, page: messages.Page, entry: _CaseEntry, flags: list[str]
) -> Iterator[JournalEntry]:
    case = _case(entry.case)
    own: dict[str, Any] = {
        "target": target.key,
        "case": case.key,
        "worker": target.key,
        "process": process,
    }
    if failure := _failure(entry, case):
        yield results.FailedEntry(**own, status=failure[0], reason=failure[1])
        return
    kernel = "fused.wgsl" if case.pattern == "fused" else "step.wgsl"
    yield results.OpenedEntry(
        **own,
        overlap="pipelined" if case.pattern in ("per-submit", "per-k") else "serial",
        synchronous=case.pattern in WAITING_PATTERNS,
        window=step_window(case, page),
        kernels={kernel: kernel_hashes()[kernel]},
        flags=flags,
    )
    for name, n in (("empty_wait", 0), ("naive", 1)):
        values = [float(row[2]) for row in entry.trial if row[0] == n]
        yield results.OneOffEntry(**own, name=name, values=values, at=[n] * len(values))
        if n == 0 and values and min(values) > PLAN["polling_ms"] * 1e6:
            yield results.OneOffEntry(
                **own, name="wait_quantum", values=[statistics.median(values)], at=[0]
            )
    for number, rows in enumerate(entry.rounds):
        yield results.RoundEntry(**own, round=number, samples=rows)


def _failure(entry: _CaseEntry, case: Case) -> tuple[results.Status, Why] | None:
    """The status and the reason of a case without figures."""
    try:
        case_spec(case)
        if not entry.kind:
            _check_values(entry)
            return None
    except Unsupported as error:
        return "unavailable", error.reason
    except Unverified as error:
        return "unverified", error.reason
    return ("unavailable" if entry.kind == "unsupported" else entry.kind), entry.error


def _check_values(entry: _CaseEntry) -> None:
    """Raise ``Unverified`` unless the values show that every unit of every window and warm-up
    ran.
    """
    rows = [*entry.trial, *(row for rows in entry.rounds for row in rows)]
    issued = sum(row[0] + 1 for row in rows)
    if len(entry.values) != (RING if entry.case.dependency == "independent" else 1):
        raise Unverified(because("buffers-read-back", buffers=len(entry.values)))
    executed = sum(lcg.distance(lcg.seeds(), np.array(words, np.uint32)) for words in entry.values)
    if executed != issued % lcg.PERIOD:
        raise Unverified(because("units-differ", issued=issued, executed=executed))


def _case(spec: messages.CaseSpec) -> Case:
    defaults = messages.CaseSpec(pattern=spec.pattern)
    params = {
        k: getattr(spec, k)
        for k in ("k", "bindgroup", "wait")
        if getattr(spec, k) != getattr(defaults, k)
    }
    unit = "step" if spec.pattern == "fused" else "dispatch"
    return Case(
        pattern=spec.pattern, caller="browser", dependency=spec.dependency, unit=unit, params=params
    )


def _machine(page: messages.Page, target: Target) -> Machine:
    """The machine as far as a page can see it. Its id hashes only that, so a native run has another
    id.
    """
    cpu = f"not told to a browser ({page.platform or 'unknown platform'})"
    gpus = [] if target.software else [Gpu(name=target.adapter)]
    seed = json.dumps(["browser", cpu, page.cores, page.memory_gib, [gpu.name for gpu in gpus]])
    return Machine(
        id=hashlib.sha256(seed.encode()).hexdigest()[:12],
        cpu=cpu[:200],
        cores=page.cores,
        memory_gib=page.memory_gib,
        gpus=gpus,
    )
