"""What a step would take if it were changed, predicted by its replay: with its launches in CUDA
graphs, without its waits, with half the host's work. Pure.

Such a time is what the change could reach at best. Only a measurement tells what it does reach.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from overhead.explaining.host_work import HostTimes
from overhead.explaining.replay import (
    QueueAction,
    QueueModel,
    middle_of,
    queue_model,
    replayed_step_ns,
    step_parts,
)
from overhead.traces.trace import Trace

ReplayChange = Literal["graphs", "half-host", "no-waits"]
LEAST_SAVED = 0.02
"""A change that saves less than this share of a step is not named. The issue asks for it: 2 % is
also how far two counts of one trace may differ.
"""
_LONGEST_LAUNCH_NS = 1e6
"""Work of the host before a launch, if it is longer, is something else than launching, and stays
where the launches become a graph. In public traces an operation of PyTorch takes 20 to 600 µs for
each launch under its profiler, and module loading, data loading or Python of a program from 2 ms
on.
"""
_LONGEST_UNNAMED_NS = 1e5
"""The same limit for a program without recorded operations, such as one in C++, where anything may
run between two calls. Chosen, not measured: a launch by such a program takes some µs.
"""
_ROUNDS = 1
"""Each step is replayed once before the one that counts, so that it begins on a busy device. More
rounds of a step that repeats give the same time, and a large trace takes longer.
"""
_MOST_ACTIONS, _FEWEST_STEPS = 40_000, 5
"""A large trace is predicted from some of its steps: as many as have this number of actions
together, but at least this number of steps. Chosen, not measured; all steps of a million events
take seconds.
"""
_FEWEST_LAUNCHES = 2
"""A graph of a single launch saves nothing: it is launched too."""
_CAPITAL = re.compile(r"(?=[A-Z])")
_RUNTIMES = {"hip": "HIP", "ur": "SYCL"}
"""By what the names of its calls begin with."""


@dataclass(frozen=True)
class PredictedStep:
    """A predicted step. ``step_ns``: how long it would take with the change ``change``. ``times``:
    how many times as fast that is as now. ``runtime``: whose graphs the program would use.
    """

    change: ReplayChange
    step_ns: float
    times: float
    runtime: str = "CUDA"

    @property
    def saves(self) -> float:
        """The share of the step that the change saves."""
        return 1 - 1 / self.times if self.times > 0 else 0.0


def predictions(trace: Trace, host: HostTimes) -> list[PredictedStep]:
    """What each change would make of a typical step of the trace, also where it is nothing: the
    median or the mean of its steps, each of which is replayed alone.
    """
    whole = queue_model(trace, host)
    model = dataclasses.replace(whole, steps=_some(whole.steps))
    middle = middle_of(trace)
    now_ns = _typical_ns(model, _as_it_is, middle)
    if now_ns <= 0:
        return []
    runtime = _runtime_of(trace)
    # What a change gains in some of the steps, it is taken to gain in all.
    all_ns = now_ns
    if len(model.steps) < len(whole.steps):
        all_ns = step_parts(trace, host).step
    found = []
    has_operations = any(step.operations for step in trace.steps)
    longest_ns = _LONGEST_LAUNCH_NS if has_operations else _LONGEST_UNNAMED_NS
    with_graphs = functools.partial(_with_graphs, longest_ns=longest_ns)
    changes: dict[ReplayChange, _Changed] = {"graphs": with_graphs, **_CHANGES}
    for change, changed in changes.items():
        step_ns = _typical_ns(model, changed, middle)
        # A step of no time would be infinitely fast, which no file can hold.
        if step_ns > 0:
            predicted_ns = all_ns * step_ns / now_ns
            found.append(PredictedStep(change, predicted_ns, now_ns / step_ns, runtime))
    return found


def _runtime_of(trace: Trace) -> str:
    """The runtime that launches, as its users call it."""
    for step in trace.steps:
        for call in step.calls:
            if call.kind == "launch":
                return _RUNTIMES.get(_CAPITAL.split(call.name)[0], "CUDA")
    return "CUDA"


def worth_naming(found: Sequence[PredictedStep]) -> list[PredictedStep]:
    """The predictions that save 2 % of the step or more (``LEAST_SAVED``), the largest first."""
    large = [each for each in found if each.saves >= LEAST_SAVED]
    return sorted(large, key=lambda each: -each.times)


def _some(steps: Sequence[Sequence[QueueAction]]) -> Sequence[Sequence[QueueAction]]:
    """Some of the steps of a large trace, spread over it; all of a small one."""
    actions = sum(len(step) for step in steps)
    number = max(_FEWEST_STEPS, math.ceil(len(steps) * _MOST_ACTIONS / max(1, actions)))
    every = math.ceil(len(steps) / number)
    return steps[:: max(1, every)]


_Changed = Callable[[Sequence[QueueAction]], list[QueueAction]]
"""A step's actions once a change is made."""


def _typical_ns(
    model: QueueModel, changed: _Changed, middle: Callable[[Sequence[float]], float]
) -> float:
    """The median or the mean (``middle``) of the replayed steps, each changed so."""
    times = []
    for actions in model.steps:
        alone = dataclasses.replace(model, steps=[changed(actions)])
        times.append(replayed_step_ns(alone, _ROUNDS))
    return middle(times) if times else 0.0


def _as_it_is(actions: Sequence[QueueAction]) -> list[QueueAction]:
    return [*actions]


def _without_waits(actions: Sequence[QueueAction]) -> list[QueueAction]:
    """No action waits for the device; the program may need the values for which it waits, so this
    is the most that can be saved.
    """
    return [structs.replace(action, waits_for=()) for action in actions]


def _with_half_the_host(actions: Sequence[QueueAction]) -> list[QueueAction]:
    return [structs.replace(action, work_ns=action.work_ns / 2) for action in actions]


def _with_graphs(actions: Sequence[QueueAction], longest_ns: float) -> list[QueueAction]:
    """The launches between two waits, reads, copies of pageable memory, launches of graphs or long
    stretches of other work of the host are one graph, if they are of one device.

    All work of the host between these launches goes, which is the most that a graph can save: it
    replays launches, and no code of the program. What leads from a wait to the first launch stays,
    but for a launch like the others. ``longest_ns``: work before a launch that is longer is
    something else than launching.
    """
    changed: list[QueueAction] = []
    graph: list[QueueAction] = []  # the launches and uploads since the last one ended
    for action in actions:
        stays_out = not action.jobs or bool(action.waits_for) or action.in_graph == "no"
        if stays_out:
            changed += _as_one_graph(graph)
            changed.append(_after_a_graph(action, graph))
            graph = []
            continue
        of_another = bool(graph) and _devices(action) != _devices(graph[-1])
        if of_another or action.work_ns > longest_ns:
            changed += _as_one_graph(graph)
            graph = []
        graph.append(action)
    return changed + _as_one_graph(graph)


def _devices(action: QueueAction) -> set[str]:
    """The devices that work for an action."""
    return {stream.partition(":")[0] for stream, _ in action.jobs}


def _is_graph(actions: Sequence[QueueAction]) -> bool:
    """Whether a graph of these actions would save launches."""
    launches = [action for action in actions if action.in_graph == "launch"]
    return len(launches) >= _FEWEST_LAUNCHES


def _after_a_graph(action: QueueAction, graph: Sequence[QueueAction]) -> QueueAction:
    """The action that follows these launches. The work of this action holds the call of the last
    launch. If the launches become a graph, that call is gone.
    """
    if not _is_graph(graph):
        return action
    return structs.replace(action, work_ns=max(0.0, action.work_ns - graph[-1].issue_ns))


def _as_one_graph(launches: Sequence[QueueAction]) -> list[QueueAction]:
    """These launches as one graph, which is launched by one call; as they are if they are too
    few.
    """
    if not _is_graph(launches):
        return [*launches]
    # One call stays, that of the graph. The time of a call is in the work of the action after it.
    call_ns = statistics.median(action.issue_ns for action in launches)
    each_ns = statistics.median(action.work_ns for action in launches[1:])
    first = launches[0]
    graph = [structs.replace(first, work_ns=max(0.0, first.work_ns - each_ns))]
    for action in launches[1:]:
        work_ns = call_ns if len(graph) == 1 else 0.0
        graph.append(structs.replace(action, work_ns=work_ns, latency_ns=0.0))
    return graph


_CHANGES: dict[ReplayChange, _Changed] = {
    "half-host": _with_half_the_host,
    "no-waits": _without_waits,
}
