"""What a step would take if it were changed, predicted by its replay: with its launches in CUDA
graphs, without its waits, with half the host's work. Pure.

Such a time is what the change could reach at best. Only a measurement tells what it does reach.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
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
_ROUNDS = 1
"""Each step is replayed once before the one that counts, so that it begins on a busy device. More
rounds of a step that repeats give the same time, and a large trace takes longer.
"""
_MOST_ACTIONS, _FEWEST_STEPS = 40_000, 5
"""Steps with so many actions are changed and replayed, but this number of steps at least. Chosen,
not measured; all of a million events take seconds.
"""
_FEWEST_LAUNCHES = 2
"""A graph of a single launch saves nothing: it is launched too."""


@dataclass(frozen=True)
class PredictedStep:
    """What a step would take with a change, ns, and ``times`` as fast as it is now."""

    change: ReplayChange
    step_ns: float
    times: float

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
    # What a change gains in some of the steps, it is taken to gain in all.
    all_ns = now_ns
    if len(model.steps) < len(whole.steps):
        all_ns = step_parts(trace, host).step
    found = []
    for change, changed in _CHANGES.items():
        step_ns = _typical_ns(model, changed, middle)
        # A step of no time would be infinitely fast, which no file can hold.
        if step_ns > 0:
            found.append(PredictedStep(change, all_ns * step_ns / now_ns, now_ns / step_ns))
    return found


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


def _with_graphs(actions: Sequence[QueueAction]) -> list[QueueAction]:
    """The launches between two waits, or between two long stretches of other work of the host, are
    one graph. All work of the host between these launches goes, which is the most that a graph can
    save: it replays launches, and no code of the program.
    """
    changed: list[QueueAction] = []
    graph: list[QueueAction] = []  # the launches since the last wait
    for action in actions:
        launches = bool(action.jobs) and not action.waits_for
        is_long = action.work_ns > _LONGEST_LAUNCH_NS
        if launches and not is_long:
            graph.append(action)
            continue
        is_after_a_graph = len(graph) >= _FEWEST_LAUNCHES
        changed += _as_one_graph(graph)
        graph = []
        if launches:
            graph.append(action)
        elif is_after_a_graph and not is_long:
            # What leads to a wait, or to the end of the step, may be in the graph too.
            changed.append(structs.replace(action, work_ns=0.0))
        else:
            changed.append(action)
    return changed + _as_one_graph(graph)


def _as_one_graph(launches: Sequence[QueueAction]) -> list[QueueAction]:
    """These launches as one graph, which is launched by one call; as they are if they are too
    few.
    """
    if len(launches) < _FEWEST_LAUNCHES:
        return [*launches]
    # One call stays. What a call takes is in the work of the action after it.
    call_ns = statistics.median(action.issue_ns for action in launches)
    first = launches[0]
    if first.work_ns <= _LONGEST_LAUNCH_NS:
        first = structs.replace(first, work_ns=0.0)
    graph = [first]
    for before, action in itertools.pairwise(launches):
        work_ns = call_ns if before is launches[0] else 0.0
        # A program that launches a graph already goes on to do so.
        if before.is_graph:
            work_ns = before.issue_ns
        graph.append(structs.replace(action, work_ns=work_ns, latency_ns=0.0))
    return graph


_CHANGES: dict[ReplayChange, _Changed] = {
    "graphs": _with_graphs,
    "half-host": _with_half_the_host,
    "no-waits": _without_waits,
}
