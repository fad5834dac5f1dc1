"""The files of nodes. Of each run only the judged figures and the settings are kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overhead.errors import BadFile
from overhead.loading.figures import with_sound_figures
from overhead.loading.files import read_as_written, read_journal
from overhead.reading.missing_values import missing_case, missing_figure
from overhead.reading.next_run import class_of
from overhead.results import (
    METHOD_VERSION,
    VALUED,
    Contention,
    Fingerprint,
    HeaderEntry,
    Machine,
    Record,
    Value,
    Why,
    because,
    same_figures,
)
from overhead.results.records import case_key
from overhead.results.value import is_plausible

NodeSide = Literal["host", "device", "together"]
"""``host``, ``device``: what bounds the figure. ``together``: how much slower all devices of the
node are at once.
"""
_USABLE = ("ok", "noisy")
"""The statuses of figures that are judged."""
_JUDGED = ("complete", "issue", "host")
"""The figures of a case that are judged: cost, enqueue time, CPU time."""
_CLOCKS_DIFFER = timedelta(days=1)
"""A date that is further in the future is no difference between two clocks."""
_SHARED_BY_COPIES = 0.5
"""A run is a copy if another run has more than this share of its figures to the last digit. Some
may be edited out.
"""
_START_BYTES = 4096
"""So much of a damaged file is searched for the date of its run, which stands near the start."""
_CREATED = re.compile(rb'"created"\s*:\s*"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z)"')


class JudgedFigure(NamedTuple):
    """What is the same figure in the runs of all nodes; one that another side bounds is another
    figure.
    """

    stack: str
    side: NodeSide
    case: str


@dataclass(frozen=True)
class NodePart:
    """What of a node is judged as one, or is not.

    ``side``: in a test of a whole side, or of one stack on it. Without a side: all figures of a
    stack, whatever bounds them. Neither: the figures of all devices together, whatever their stack.
    """

    stack: str = ""
    side: NodeSide | None = None

    @property
    def is_whole_side(self) -> bool:
        """Whether this is the test of a whole side."""
        return self.side is not None and not self.stack


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of a node. ``settings``: the state of the machine; ``figures``: indices into
    ``NodeFiles.keys``; ``logs``: ln of these figures (ns, or ratios).

    By stack why figures are missing: ``refused`` where cases were measured, ``absent`` where the
    stack was not there. ``failed``: by stack and case why the work was not done.
    """

    node: str
    path: str
    created: str
    machine: Machine
    versions: Mapping[str, str]
    settings: Mapping[str, object]
    figures: NDArray[np.int32]
    logs: NDArray[np.float64]
    refused: Mapping[str, Why]
    absent: Mapping[str, Why]
    failed: Mapping[tuple[str, str], Why]


@dataclass(frozen=True)
class UnreadFile:
    """A file that may hold a run of its node and does not count. ``created``: when the run began,
    '' if not known.
    """

    path: str
    reason: Why
    created: str = ""


@dataclass
class NodeFiles:
    """The runs of each node of a cluster, the newest first, and the figures that they have; filled
    by ``read_nodes``, which adds what it finds in the folder of the cluster.

    ``now``: no run may be from a later time. ``keys``: the index of each figure in the runs.
    ``unread``: by node the files that may hold a run and do not count. ``skipped``: the reason by
    file.
    """

    now: datetime
    runs: dict[str, list[NodeRun]] = field(default_factory=dict)
    keys: dict[JudgedFigure, int] = field(default_factory=dict)
    unread: dict[str, list[UnreadFile]] = field(default_factory=dict)
    skipped: dict[str, Why] = field(default_factory=dict)

    def add_entry(self, path: Path) -> None:
        """Read one entry of the folder of the cluster: the folder of a node with its files, the
        file of a node, or something else, which is ignored. A folder without files, or a link to
        nothing, is a node without a run: it must not go unnoticed.
        """
        if path.is_dir():
            self.runs.setdefault(path.name, [])
            for file in sorted(path.glob("*.json")):
                self.add(path.name, file)
            # Journals without a fingerprint: runs that did not end. A run writes its samples into
            # the journal as it measures, and the fingerprint, with all figures, at its end.
            for journal in _lone_journals(path):
                self.add_journal(path.name, journal)
        elif path.suffix == ".json":
            self.add(path.stem, path)
        elif not path.exists():  # a link to nothing
            self.runs.setdefault(path.name, [])

    def add(self, node: str, path: Path) -> None:
        """Read the fingerprint of a run of a node, the file with all of its figures, and keep those
        that are judged. One that cannot be used (damaged, of another method, with an impossible
        date or figure) is noted in ``unread`` with the reason.
        """
        runs = self.runs.setdefault(node, [])
        try:
            written = read_as_written(path)
            # A copy in which impossible values are dropped.
            run = with_sound_figures(path, written)
        except BadFile as error:
            self.not_counted(node, path, error.fault, _created_in(path))
            return
        # Figures of some versions of the method mean something else than those of this one.
        if not same_figures(run.method_version, METHOD_VERSION):
            reason = because("other-method-version", version=run.method_version)
            self.not_counted(node, path, reason, run.created)
            return
        if not _has_been(run.created, self.now):
            self.not_counted(node, path, because("date-impossible", created=run.created), "")
            return
        # Sound figures have lost the impossible values, so the file as it was written tells them.
        impossible = _impossible_figure(written)
        if impossible:
            self.not_counted(node, path, impossible, run.created)
            return
        runs.append(self._kept(node, path, run))

    def add_journal(self, node: str, path: Path) -> None:
        """Note a journal without a fingerprint: its run did not end, so it does not count, but may
        be newer than those that do. Its date is read from its first line.
        """
        self.runs.setdefault(node, [])
        try:
            header = next(read_journal(path))
            created = header.created if isinstance(header, HeaderEntry) else ""
        except (BadFile, StopIteration):
            created = ""
        self.not_counted(node, path, because("only-a-journal"), created)

    def not_counted(self, node: str, path: Path | str, reason: Why, created: str) -> None:
        """Note a file that may hold a run of this node and does not count."""
        self.unread.setdefault(node, []).append(UnreadFile(str(path), reason, created))
        self.skipped[str(path)] = reason

    def _kept(self, node: str, path: Path, run: Fingerprint) -> NodeRun:
        """What is kept of a run for judging its node: the judged figures as logarithms, the
        settings, and why figures are missing. Of several devices with one figure the slowest
        counts, since it sets the pace of the node.
        """
        slowest: dict[JudgedFigure, float] = {}
        for key, value in figures_of(run):
            slowest[key] = max(value.value, slowest.get(key, 0.0))
        # A figure that no run had so far gets the next index.
        indices = [self.keys.setdefault(key, len(self.keys)) for key in slowest]
        logs = np.log(list(slowest.values()))
        return NodeRun(
            node=node,
            path=str(path),
            created=run.created,
            machine=run.machine,
            versions=run.versions,
            # ``volatile``: the state of the machine, which may change from run to run.
            settings=run.volatile,
            figures=np.array(indices, np.int32),
            logs=logs,
            refused=_refused_figures(run),
            absent=_absent_stacks(run),
            failed=_failed_cases(run),
        )


def read_nodes(folder: Path, now: datetime | None = None) -> NodeFiles:
    """The runs of all nodes of a cluster: ``folder/NODE/*.json``, and ``folder/NODE.json``. Raises
    ``BadFile`` if there is none.

    Every folder in ``folder`` is a node, also one without a file: its run was killed, or sent
    nothing. A name that begins with a dot is none. ``now``: a run is not from a later time. Copies
    of a run are left out.
    """
    if not folder.is_dir():
        raise BadFile("not a folder", folder)
    found = NodeFiles(now or datetime.now(UTC))
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("."):
            found.add_entry(path)
    for path in _lone_journals(folder):
        found.add_journal(path.stem, path)
    if not any(found.runs.values()):
        raise BadFile(
            "no fingerprint of a node here that can be read; name nodes as files or folders", folder
        )
    leave_out_copies(found)
    return found


def _lone_journals(folder: Path) -> list[Path]:
    """The journals in a folder whose run wrote no fingerprint."""
    journals = sorted(folder.glob("*.jsonl"))
    return [path for path in journals if not path.with_suffix(".json").exists()]


def leave_out_copies(found: NodeFiles) -> None:
    """Leave out every run that is a copy of an older one, whatever its name, its node and its date.

    No two runs have the same figures to the last digit. A copy in another node's folder does not
    count as a run of that node, and is no older run of it either. A copy counted twice would make
    one slow run look like two.
    """
    # From the oldest run on, so that the first of equal runs counts as the original.
    oldest_first: list[NodeRun] = []
    for runs in found.runs.values():
        oldest_first += runs
    # By date; of two with one date by path.
    oldest_first.sort(key=_by_age)

    # By figure, to the last digit, the place of the oldest run that has it.
    first_with: dict[tuple[int, float], int] = {}
    copies: set[str] = set()
    for place, run in enumerate(oldest_first):
        figures = list(zip(run.figures.tolist(), run.logs.tolist(), strict=True))
        # By the place of an older run, how many figures this run shares with it.
        shared_with: Counter[int] = Counter()
        for figure in figures:
            if figure in first_with:
                shared_with[first_with[figure]] += 1
            # Runs come from the oldest on, so the first one with the figure stays.
            first_with.setdefault(figure, place)
        # The older run that shares most figures, if any does.
        for original, shared in shared_with.most_common(1):
            # More than half: some figures of a copy may be edited out.
            if shared > _SHARED_BY_COPIES * len(figures):
                copies.add(run.path)
                _note_copy(found, run, oldest_first[original])
    for node, runs in found.runs.items():
        kept = [run for run in runs if run.path not in copies]
        found.runs[node] = sorted(kept, key=_by_age, reverse=True)


def _note_copy(found: NodeFiles, run: NodeRun, original: NodeRun) -> None:
    """Note a run that is a copy of an older one. In the folder of the same node it hides nothing;
    in another one it may stand in the place of a run of that node, which is then unread.
    """
    reason = because("copy-of-a-run", file=original.path)
    if original.node == run.node:
        found.skipped[run.path] = reason
    else:
        found.not_counted(run.node, run.path, reason, run.created)


def _has_been(created: str, now: datetime) -> bool:
    """Whether this is a date, and no later one than now, as far as two clocks agree."""
    try:
        return datetime.fromisoformat(created) <= now + _CLOCKS_DIFFER
    except ValueError:
        return False


def _by_age(run: NodeRun) -> tuple[str, str]:
    return run.created, run.path


def _created_in(path: Path) -> str:
    """When the run of a damaged file began, from the text at its start; '' if that is not there.
    The date tells whether the file may hold the newest run of its node.
    """
    try:
        with open(path, "rb") as file:
            # The date stands near the start of the file.
            start = file.read(_START_BYTES)
    except OSError:
        return ""
    created = _CREATED.search(start)
    return created.group(1).decode() if created else ""


def _impossible_figure(run: Fingerprint) -> Why:
    """The reason that a file cannot be trusted: a figure in it has a value that no run can give,
    such as 1e30 ns; '' if there is none. ``run``: as it was written, since reading drops such
    values.
    """
    # ``records``: of one case each; ``contention``: of cases that several peers run at once.
    measured: list[Record | Contention] = [*run.records, *run.contention]
    for of in measured:
        for figure in of.figures:
            value = figure.value
            if value is not None and figure.status in VALUED and not is_plausible(value):
                return because(
                    "impossible-figure",
                    figure=figure.name,
                    of=of.key,
                    value=value,
                    unit=figure.unit,
                )
    return ""


def _refused_figures(run: Fingerprint) -> dict[str, Why]:
    """By stack why figures of its cases are not judged although the stack was there: the first
    reason, and for how many cases there is one.
    """
    # By stack the reason of each case that has one.
    by_stack: dict[str, list[Why]] = {}
    for record in run.records:
        if record.status == "unavailable":
            continue
        reason = _why_refused(record)
        if reason:
            by_stack.setdefault(record.stack, []).append(reason)
    refused: dict[str, Why] = {}
    for stack, reasons in by_stack.items():
        refused[stack] = because("cases-without-a-figure", cases=len(reasons), why=reasons[0])
    return refused


def _why_refused(record: Record) -> Why:
    """Why a record has no figure to judge, or one that cannot be judged; '' if all can. A cost
    below the resolution of the clock is no fault of the node: it is too short.
    """
    # Whether the record has any of the figures that are judged.
    has_judged = False
    for figure in record.figures:
        # ``_JUDGED``: cost, enqueue time and CPU time. ``class_of``: "host", or what else bounds
        # the figure; None for one that is not judged.
        if figure.name in _JUDGED and class_of(record, figure.name):
            has_judged = True
            if figure.status not in (*_USABLE, "below-resolution"):
                return missing_figure(figure, record).why
    if has_judged or record.status in VALUED:
        return ""
    return missing_case(record).why


def _failed_cases(run: Fingerprint) -> dict[tuple[str, str], Why]:
    """Which judged figures are missing because the case failed or its values proved wrong, by stack
    and name of the figure, with the reason: another node, on which it works, shows that this one is
    at fault.
    """
    failed: dict[tuple[str, str], Why] = {}
    for record in run.records:
        if record.status in ("failed", "unverified"):
            for figure in _JUDGED:
                # The same text is the ``case`` of a figure that other nodes have.
                failed[record.stack, _case_name(record, figure)] = missing_case(record).why
    return failed


def _case_name(record: Record, figure: str) -> str:
    return f"{record.api} {case_key(record)} {figure}"


def _absent_stacks(run: Fingerprint) -> dict[str, Why]:
    """By stack that was not there in this run the reason, from records that are unavailable and
    from the run's list of unavailable stacks.
    """
    absent: dict[str, Why] = {}
    for record in run.records:
        if record.status == "unavailable":
            absent[record.stack] = missing_case(record).why
    for stack in run.unavailable:
        absent[stack.stack] = stack.reason
    return absent


def figures_of(run: Fingerprint) -> Iterator[tuple[JudgedFigure, Value]]:
    """The figures of a run by which its node is judged, each with what it is: the stack, whether
    host or device bounds it, and the case. Figures of cases that ran on all devices at once count
    as a side of their own.

    A node with several devices has a figure for each of them under one key: the slowest counts.
    """
    for record in run.records:
        for figure in _JUDGED:
            # "host", or what else bounds a cost; None for a figure that is not judged.
            bound_by = class_of(record, figure)
            value = _usable(record, figure)
            if bound_by and value is not None:
                # On software (no real device) the host bounds every cost.
                on_host = bound_by == "host" or record.software
                side: NodeSide = "host" if on_host else "device"
                yield JudgedFigure(record.stack, side, _case_name(record, figure)), value

    # Of each case on all devices the measurement with the most devices counts.
    most_peers: dict[tuple[str, str], Contention] = {}
    for together in run.contention:
        # Peers may also be processes or threads of one device, which tell nothing of all devices.
        if together.way != "devices" or together.status not in _USABLE:
            continue
        case = f"{together.target.api} {together.case.key} {together.placement}"
        # One peer is the case alone, measured beside the others.
        if together.peers == 1:
            yield from _alone(together, case)
            continue
        stack_and_case = (together.target.stack, case)
        # Keep the measurement with the most devices that ran at once (peers).
        known = most_peers.get(stack_and_case)
        if together.peers > (known.peers if known is not None else 1):
            most_peers[stack_and_case] = together
    for (stack, case), together in most_peers.items():
        slowdown = _usable(together, "slowdown")
        if slowdown is not None:
            yield JudgedFigure(stack, "together", case), slowdown


def _alone(alone: Contention, case: str) -> Iterator[tuple[JudgedFigure, Value]]:
    """The figures of a case that was measured alone beside those on all devices: its enqueue time,
    bound by the host, and its cost. If the enqueue time is less than half of the cost, the device
    bounds the cost.
    """
    stack = alone.target.stack
    cost = _usable(alone, "cost")
    enqueue = _usable(alone, "issue")
    if enqueue is None:
        return
    yield JudgedFigure(stack, "host", f"{case} alone issue"), enqueue
    if cost is not None:
        # On software (no real device) the host bounds every cost.
        device_bounds = enqueue.value < cost.value / 2 and not alone.target.software
        side: NodeSide = "device" if device_bounds else "host"
        yield JudgedFigure(stack, side, f"{case} alone cost"), cost


def _usable(of: Record | Contention, figure: str) -> Value | None:
    """The figure, if it can be judged: measured, with a usable status and above zero."""
    value = of.measured(figure)
    if value is None or value.status not in _USABLE or value.value <= 0:
        return None
    return value
