"""The machines of the report: one run of each, and every run of the machine shown in full."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from overhead.errors import UsageError
from overhead.loading.example_run import example_path
from overhead.loading.files import read_fingerprint
from overhead.loading.folders import Loaded, Skipped, load_paths
from overhead.loading.reduce import load
from overhead.reading.next_run import kind_of
from overhead.reading.plain_text import plain
from overhead.reading.typical_run import is_published, most_typical
from overhead.reading.view import View, boards_of, measured_steps, run_to_show
from overhead.results import Fingerprint, StackFacts, same_figures
from overhead.words.format import listed
from overhead.words.report.machines import machine_name

DOWNLOADS_FOLDER = "downloads"
"""The folder of a report with its runs as JSON and its tables as CSV."""
EXAMPLE_FOLDER = "example"
EXAMPLE_PAGE = f"{EXAMPLE_FOLDER}/index.html"
"""The first page of the example, beside that of a machine without a GPU."""
_USUAL_REFERENCE = "H100"


@dataclasses.dataclass(frozen=True)
class Machines:
    """``views``: one for each machine, of the run that its page shows: first the one shown in full,
    then the newest. ``is_chosen``: the first is the most typical one of published runs.

    ``runs``: all runs of all machines. ``others``: further runs of the first machine, the newest
    first, that form figures in the same way and set the same variables. ``skipped``: files that
    could not be read. ``reference``: the run that the first machine is set beside; None without
    one.

    ``example``: the run whose pages are written into a folder beside those of a machine without a
    GPU; None for no such pages. ``is_example``: these are its pages.
    """

    views: Sequence[View]
    runs: Sequence[View]
    others: Sequence[View] = ()
    skipped: Sequence[Skipped] = ()
    reference: View | None = None
    example: View | None = None
    is_example: bool = False
    is_chosen: bool = False

    @property
    def stacks(self) -> dict[str, StackFacts]:
        """The facts of stacks that the files carry; where they differ, those of the newest run."""
        found: dict[str, StackFacts] = {}
        for run in sorted(self.runs, key=_created):
            found |= run.fingerprint.stacks
        return found

    @property
    def own(self) -> View:
        """The view of the machine that is shown in full."""
        return self.views[0]


def data_path(run: Fingerprint) -> str:
    """Where the report has the file of a run."""
    return f"{DOWNLOADS_FOLDER}/{run.machine.id}.json"


def from_paths(paths: Sequence[Path], reference: str = "") -> Machines:
    """The machines of the runs in these files and folders. Raises ``BadFile``, and ``UsageError``
    for the reference.

    The machine of the newest run in the first path that has one is shown in full, by a run on a
    board of this path. There, a run without single launches, of larger workloads alone, counts only
    if there is no other run.
    ``reference``: the path of a run, or a part of the id or name of a machine among these; by
    default another kind of machine with a GPU, an H100 first.
    """
    return _machines(*load_paths(paths), reference)


def from_fingerprints(
    fingerprints: Iterable[Fingerprint], skipped: Sequence[Skipped] = ()
) -> Machines:
    """The machines of these runs in memory, for the Python API; the machine of the newest run is
    shown in full. Raises ``UsageError`` without runs.
    """
    # They come from no file, so their path is empty.
    runs = [Loaded(Path(), run) for run in fingerprints]
    if not runs:
        raise UsageError("no run to draw")
    return _machines(runs, skipped)


def with_example(machines: Machines) -> Machines:
    """The same machines with the example, if the machine that is shown in full has no GPU."""
    if machines.own.has_gpu:
        return machines
    return dataclasses.replace(machines, example=View(read_fingerprint(example_path())))


def example_alone(example: View) -> Machines:
    """The machines of the pages of the example."""
    return Machines([example], [example], is_example=True)


def _machines(
    loaded: Sequence[Loaded], skipped: Sequence[Skipped], reference: str = ""
) -> Machines:
    """The machines of these runs. One is shown in full, that of the newest run in the first path
    with runs; ``reference`` names the run that it is set beside, as ``from_paths`` says.
    """
    runs = [View(source.fingerprint, source.path) for source in loaded]
    # The argument is the number of the path, among those given, that a run comes from.
    first_path = min(source.argument for source in loaded)
    in_first_path = [
        run for run, source in zip(runs, loaded, strict=True) if source.argument == first_path
    ]
    # By rank: runs of single launches before runs of larger workloads alone, then the newest.
    shown_in_full = max(in_first_path, key=_rank)

    # By machine id, its runs. The machine that is shown in full comes first, then the one with the
    # newest run.
    by_machine: dict[str, list[View]] = {_machine_id(shown_in_full): []}
    for run in sorted(runs, key=_rank, reverse=True):
        by_machine.setdefault(_machine_id(run), []).append(run)
    # Of each machine one run. Of the machine shown in full it may be another run than the one that
    # chose the machine, but not one on a board that only later paths have: that is somebody else's.
    own_id = _machine_id(shown_in_full)
    own_runs = [run for run in in_first_path if _machine_id(run) == own_id]
    own_boards = [_boards(run) for run in own_runs]
    on_own_boards = [run for run in by_machine[own_id] if _boards(run) in own_boards]
    typical = _typical(own_runs)
    views = [typical or _newest(on_own_boards)]
    for machine_id, runs_of_machine in by_machine.items():
        if machine_id != own_id:
            views.append(_typical(runs_of_machine) or _newest(runs_of_machine))
    own = views[0]

    # Other runs of the machine that is shown, the newest first.
    others = []
    for run in sorted(by_machine[own_id], key=_created, reverse=True):
        # Comparable: its figures are formed in the same way, with the same variables set.
        if run is not own and may_stand_beside(run.fingerprint, own.fingerprint):
            others.append(run)

    reference_run = _named(views[1:], reference) if reference else _usual_reference(views)
    # A file that the user names was loaded a second time, so the contents are compared.
    if reference and reference_run is not None and reference_run.fingerprint == own.fingerprint:
        raise UsageError(f"--reference {plain(reference)}: this is the run that the page shows")
    is_chosen = typical is not None
    return Machines(views, runs, others, skipped, reference_run, is_chosen=is_chosen)


def _machine_id(run: View) -> str:
    return run.fingerprint.machine.id


def _boards(run: View) -> list[str]:
    """The ids of the GPUs that the run was measured on; [] where it names none."""
    return boards_of(run.fingerprint.records)


def may_stand_beside(run: Fingerprint, other: Fingerprint) -> bool:
    """Whether two runs of one machine form figures in the same way and set the same variables."""
    if run.environment != other.environment:
        return False
    return same_figures(run.method_version, other.method_version)


def _usual_reference(views: Sequence[View]) -> View | None:
    """The run that a page compares its machine with where the user names none: of the other kinds
    of machine with a GPU an H100, else the newest. ``views``: the machine of the page first, then
    the newest.

    None for a machine without a GPU, which has hardly a figure in common with one that has a GPU.
    """
    # ``kind_of``: the names of its GPUs and its processor; '' without a GPU.
    own_kind = kind_of(views[0].fingerprint.machine)
    if not own_kind:
        return None
    newest = None
    for view in views[1:]:
        kind = kind_of(view.fingerprint.machine)  # "" without a GPU
        if kind in ("", own_kind):
            continue
        if _USUAL_REFERENCE in kind:
            return view
        if newest is None:
            newest = view
    return newest


def _named(views: Sequence[View], reference: str) -> View:
    """The run that the option ``--reference`` names: that in the file, or that of the one machine
    whose id or name has these letters. Raises ``BadFile`` and ``UsageError``.
    """
    if os.path.isfile(reference):
        return View(load(reference))
    # Words in which the given letters are looked for.
    names = {}
    for view in views:
        machine = view.fingerprint.machine
        names[view] = f"{machine.id} {machine_name(machine)}"
    wanted = reference.lower()
    # Letters count in either case, and a part of the id or name is enough.
    found = [view for view, name in names.items() if wanted in name.lower()]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} machines have" if found else "no file, and no other machine has"
    known = listed([*names.values()]) or "none"
    raise UsageError(
        f"--reference {plain(reference)}: {many} this id or name; the others here: {known}"
    )


def _typical(runs: Sequence[View]) -> View | None:
    """The most typical of published runs of one kind of machine, which its page shows in place of
    the newest: they are of many boards, and the newest is as fast or slow as its board happens to
    be. None for a single run, and where the newest is a user's own.
    """
    if len(runs) < 2 or not is_published(_newest(runs)):
        return None
    costs = most_typical(runs)
    return costs.view if costs is not None else None


def _newest(runs: Sequence[View]) -> View:
    """The newest complete run of a machine."""
    newest_first = sorted(runs, key=_created, reverse=True)
    steps = [measured_steps(run.fingerprint) for run in newest_first]
    return newest_first[run_to_show(steps)]


def _created(run: View) -> str:
    return run.fingerprint.created


def _rank(run: View) -> tuple[bool, str]:
    """Sort key: runs with plain cases above runs of workloads alone, then by date."""
    has_plain_cases = any(target.has_step for target in run.without_floor)
    return has_plain_cases, run.fingerprint.created
