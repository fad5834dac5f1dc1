"""What a recording holds beside its steps, and what it has lost. Pure.

What is said of a step is true only if the recording is whole. So everything that is left out is
counted, and above a share the recording allows no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from overhead.results import Reason, Why, because, together
from overhead.traces.clocks import Clocks

MOST_LOST = 0.02
"""The largest share of launches or of device time without its other half that still allows a
verdict. Chosen, not measured; a higher share lets a verdict stand on a recording that may lack what
bounds the step.
"""
MOST_BESIDE = 0.1
"""The largest share of a step that may be unclear to the replay: from a tenth on, synchronisations
are named too (``verdict``). Chosen, not measured.
"""
_LEAST_UNEXPLAINED = 0.001
"""Waits that no work explains are named from this share of the steps on. Chosen, not measured."""
_COARSE_NS = 500.0
"""Times that are rounded to more than this cannot tell a kernel of a few µs. Chosen, not
measured.
"""
_MOSTLY = 0.9
"""From this share on, launches without work lie at the end of the recording. Chosen, not
measured.
"""
_ONE_CLOCK = Clocks()
"""Host and device agree."""


@dataclass(frozen=True)
class Recording:
    """What a profiler's recording holds beside its steps, and what it has lost: counts, and times
    in ns. A call and the device work that it issued are two halves; either may be missing.

    Of the whole recording:

    - ``doubled``: events that are there twice. ``backwards``: events that end before they begin.
      ``unreadable``: other events that cannot be read. ``events``: all events, with these.
      ``mended``: events that were read though their text is not valid. ``is_cut``: whether the file
      ends in the middle. ``other_device``: a category of device work that is not read.
      ``not_read``: tables that are not read. ``exported``: whether ``nsys`` made the database for
      this.
    - ``memory_recorded``: whether it has allocations. ``rounded_ns``: the rounding of its times.
      ``stacks``: whether the profiler also recorded each call of a Python function.

    Of its steps:

    - ``steps_ns``: how long they take together.
    - ``launches``; ``launches_without_work``: of these; ``launches_at_end``: of these, how many lie
      behind the last launch with work. ``copies``: calls that copy or fill;
      ``copies_without_work``: of these. ``lost_ns``: the longest time that the work of these calls
      may have taken that is not in the recording.
    - ``work_ns``: of the device in the time of the steps; ``work_without_call``,
      ``work_without_call_ns``: of that, what no recorded call issued. ``migrations``: how many
      other pieces move managed memory, for which there is no call; ``migrations_ns``: how long,
      ``migrations_alone_ns``: while nothing else runs. ``earlier``: work that was issued before the
      recording began. ``shared``: kernels that share the number of a launch with another kernel.
    - ``waits``: calls that wait; ``unexplained_waits``, ``unexplained_ns``: of these, where no
      recorded work ends for which they can have waited.
    - ``nodes``: pieces of work of replayed graphs; ``nodes_missing``: what replays have less than
      others of the same graph.
    - ``may_wait``, ``may_wait_ns``: calls that last while the device works and are not known as
      waits. ``beside_ns``: waits of one thread while another works.
    - ``profiler_ns``: how long the profiler itself held up calls. ``earlier_wait_ns``: a wait for
      work that was issued before the recording; the first step begins after it.

    ``clocks``: that of the host and of the device whose clock is trusted least; of all devices:
    ``clocks_of_devices``.
    """

    launches: int = 0
    launches_without_work: int = 0
    work_ns: float = 0.0
    work_without_call: int = 0
    work_without_call_ns: float = 0.0
    migrations: int = 0
    migrations_ns: float = 0.0
    migrations_alone_ns: float = 0.0
    launches_at_end: int = 0
    earlier: int = 0
    shared: int = 0
    doubled: int = 0
    backwards: int = 0
    unreadable: int = 0
    events: int = 0
    memory_recorded: bool = True
    rounded_ns: float = 0.0
    steps_ns: float = 0.0
    copies: int = 0
    copies_without_work: int = 0
    lost_ns: float = 0.0
    waits: int = 0
    unexplained_waits: int = 0
    unexplained_ns: float = 0.0
    nodes: int = 0
    nodes_missing: int = 0
    may_wait: str = ""
    may_wait_ns: float = 0.0
    beside_ns: float = 0.0
    profiler_ns: float = 0.0
    earlier_wait_ns: float = 0.0
    clocks: Clocks = _ONE_CLOCK
    mended: int = 0
    is_cut: bool = False
    other_device: str = ""
    not_read: str = ""
    exported: bool = False
    stacks: bool = False
    clocks_of_devices: Sequence[Clocks] = ()


def why_no_verdict(recording: Recording) -> Why:
    """Why the recording allows no verdict; '' if it does."""
    return together(*_faults_too_large(recording))


def _faults_too_large(recording: Recording) -> Iterator[Reason]:
    """Each fault of the recording that is too large for a verdict on what bounds the step: above 2
    % (``MOST_LOST``) the recording may lack just what bounds it.
    """
    # How much is missing behind the place where a file is cut, nobody knows.
    if recording.is_cut:
        yield because("file-is-cut")
    yield from _losses_too_large(recording)
    yield from _contradictions_too_large(recording)
    most_events = MOST_LOST * max(recording.events, 1)
    if recording.backwards > most_events:
        yield because(
            "many-events-backwards", backwards=recording.backwards, events=recording.events
        )
    if recording.unreadable > most_events:
        yield because(
            "many-events-unreadable", unreadable=recording.unreadable, events=recording.events
        )
    # Times so coarse cannot tell a kernel of a few µs.
    if recording.rounded_ns > _COARSE_NS:
        yield because("times-rounded", rounded_ns=recording.rounded_ns)


def _losses_too_large(recording: Recording) -> Iterator[Reason]:
    """What the recording has lost, where it is too much for a verdict. A call and its device work
    are two halves with one number: there may be calls without work, and work without a call.
    """
    launches = max(recording.launches, 1)
    if recording.launches_without_work > MOST_LOST * launches:
        values = {
            "lost": recording.launches_without_work,
            "launches": launches,
            "share": recording.launches_without_work / launches,
        }
        # A part that was cut out of a recording ends before the device has done its work.
        if recording.launches_at_end >= _MOSTLY * recording.launches_without_work:
            yield because("recording-ends-before-work", **values)
        else:
            yield because("many-launches-without-work", **values)
    # Few calls, but their work may have taken long.
    elif recording.lost_ns > MOST_LOST * recording.steps_ns:
        yield because(
            "much-work-lost",
            calls=_calls_without_work(recording),
            share=recording.lost_ns / recording.steps_ns,
        )

    if recording.work_without_call_ns > MOST_LOST * recording.work_ns:
        yield because(
            "much-work-without-call",
            pieces=recording.work_without_call,
            share=recording.work_without_call_ns / recording.work_ns,
        )
    # A host that touches managed memory waits until it was moved, and no call tells that.
    if recording.migrations_alone_ns > MOST_BESIDE * recording.steps_ns:
        yield because(
            "migrations-take-steps",
            pieces=recording.migrations,
            share=recording.migrations_alone_ns / recording.steps_ns,
        )

    # Kernels that have one number with another kernel: of which launch they are is not known.
    if recording.shared > MOST_LOST * launches:
        yield because("many-launch-numbers-shared", kernels=recording.shared)


def _calls_without_work(recording: Recording) -> Reason:
    """How many calls have no device work in the recording: launches, copies and fills (counted as
    copies), or both.
    """
    of_launches = because(
        "calls-of-launches",
        lost=recording.launches_without_work,
        launches=max(recording.launches, 1),
    )
    of_copies = because(
        "calls-of-copies", lost=recording.copies_without_work, copies=recording.copies
    )
    if recording.launches_without_work and recording.copies_without_work:
        return because("calls-of-both", launches=of_launches, copies=of_copies)
    return of_launches if recording.launches_without_work else of_copies


def _contradictions_too_large(recording: Recording) -> Iterator[Reason]:
    """What cannot be true together, if nothing is missing and host and device have one clock; only
    where it is too much for a verdict.
    """
    # Nodes are the pieces of work of a CUDA graph, which all its replays have.
    nodes = recording.nodes + recording.nodes_missing
    if recording.nodes_missing > MOST_LOST * nodes:
        yield because("replays-differ", missing=recording.nodes_missing, nodes=nodes)
    if recording.unexplained_ns > MOST_LOST * recording.steps_ns:
        yield because(
            "many-waits-unexplained",
            waits=recording.unexplained_waits,
            share=recording.unexplained_ns / recording.steps_ns,
        )
    # Time in which one thread waited while another worked: the replay counts both in a row.
    if recording.beside_ns > MOST_BESIDE * recording.steps_ns:
        yield because("threads-side-by-side", share=recording.beside_ns / recording.steps_ns)

    clocks = recording.clocks
    launches = max(recording.launches, 1)
    if clocks.wrong_ns:
        yield because("clocks-contradict", wrong_ns=clocks.wrong_ns)
    if clocks.outliers > MOST_LOST * launches:
        yield because("many-times-contradict", pieces=clocks.outliers, launches=launches)


def caveats(recording: Recording) -> list[Reason]:
    """What a reader must know before the verdict: what the profiler or the clocks have changed."""
    reasons: list[Reason] = []
    if recording.earlier_wait_ns > MOST_LOST * recording.steps_ns:
        reasons.append(
            because("wait-for-earlier-work-left-out", waited_ns=recording.earlier_wait_ns)
        )
    if recording.profiler_ns > MOST_LOST * recording.steps_ns:
        share = recording.profiler_ns / recording.steps_ns
        reasons.append(because("profiler-holds-up-calls", share=share))
    if recording.migrations_ns > MOST_BESIDE * recording.steps_ns > 0:
        share = recording.migrations_ns / recording.steps_ns
        reasons.append(because("managed-memory-moves", share=share))
    for clocks in recording.clocks_of_devices:
        reasons += _corrected_clock(clocks)
    return reasons


def _corrected_clock(clocks: Clocks) -> Iterator[Reason]:
    """By how much the device's clock was corrected to agree with the host's; nothing where it was
    not. ``clocks.drift``: how much the difference grows, ns for each ns.
    """
    if not clocks.drift and not clocks.late_ns:
        return
    apart_ns = abs(clocks.late_ns)
    side = "late" if clocks.late_ns > 0 else "early"
    values = {"apart_ns": apart_ns, "side": side}
    if clocks.drift:
        values["drift_us"] = 1e6 * abs(clocks.drift)  # µs for each second
    # The number of the device is empty if there is only one.
    if clocks.device and clocks.drift:
        yield because("clock-of-one-device-drifts", device=clocks.device, **values)
    elif clocks.device:
        yield because("clock-of-one-device-apart", device=clocks.device, **values)
    elif clocks.drift:
        yield because("device-clock-drifts", **values)
    else:
        yield because("device-clock-apart", **values)


def left_out(recording: Recording) -> Iterator[Reason]:
    """What of the recording the figures leave out, or could not explain; nothing where it is so
    much that no verdict is given, since the reason for that says it.
    """
    if why_no_verdict(recording):
        return
    yield from _small_faults(recording)
    if recording.work_without_call:
        share = recording.work_without_call_ns / recording.work_ns if recording.work_ns else 0.0
        yield because("work-without-call-left-out", pieces=recording.work_without_call, share=share)
    if recording.migrations:
        yield because(
            "migrations-beside",
            pieces=recording.migrations,
            share=recording.migrations_ns / recording.steps_ns,
        )
    if recording.shared:
        yield because("launch-numbers-shared", kernels=recording.shared)
    if recording.earlier:
        yield because("earlier-work-left-out", pieces=recording.earlier)
    if recording.doubled:
        yield because("doubled-events-left-out", events=recording.doubled)
    bad_events = recording.backwards + recording.unreadable
    if bad_events:
        yield because("bad-events-left-out", events=bad_events)
    yield from _of_the_file(recording)


def _of_the_file(recording: Recording) -> Iterator[Reason]:
    """What a reader must know of how the file was read."""
    if recording.exported:
        yield because("report-exported-by-nsys")
    if recording.not_read:
        yield because("tables-not-read", tables=recording.not_read)
    if recording.mended:
        yield because("events-mended", events=recording.mended)


def _small_faults(recording: Recording) -> Iterator[Reason]:
    """What is missing or contradicts the rest, in a recording that has too little of it to forbid a
    verdict.
    """
    if recording.launches_without_work:
        yield because(
            "launches-without-work",
            lost=recording.launches_without_work,
            launches=recording.launches,
        )
    if recording.copies_without_work:
        yield because(
            "copies-without-work", lost=recording.copies_without_work, copies=recording.copies
        )
    if recording.nodes_missing:
        yield because("nodes-missing", missing=recording.nodes_missing)
    if recording.unexplained_ns > _LEAST_UNEXPLAINED * recording.steps_ns:
        share = recording.unexplained_ns / recording.steps_ns
        yield because("waits-unexplained", waits=recording.unexplained_waits, share=share)
    if recording.clocks.outliers:
        yield because("times-contradict", pieces=recording.clocks.outliers)
