"""Sentences above and below the headline figure: each has one caller, and the figures of the rows
that are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, doubt_of
from overhead.reading.headline import (
    VISIBLY_APART,
    FurtherStacks,
    asked_for,
    batches,
    cheapest,
    has_unpinned_apart,
    limited,
    not_told_apart,
    python_shares,
    unpinned_apart,
    unpinned_pays_less,
    unpinned_pays_more,
    webgpu_rows,
)
from overhead.reading.next_run import half_width, kind_of, spread_of
from overhead.reading.view import graph_maker
from overhead.results import Machine, Record, Value, formed
from overhead.words.dispatch_costs import KIND_WORDS, why_unresolved
from overhead.words.format import (
    MICRO,
    cost_text,
    costs_text,
    ends_text,
    listed,
    micro,
    number,
    percent_spread,
    run_time,
    within,
)
from overhead.words.names import CALLER_WORDS
from overhead.words.next_run import next_run_sentence
from overhead.words.printed import of_the_method
from overhead.words.typical_run import place_sentence

_LIMITS: dict[Literal["device", "balanced"], str] = {
    "device": "the device limits",
    "balanced": "it is not clear whether the CPU or the device limits",
}
_NO_MET = (
    "This run did not measure the unpinned cost: what a program pays if the operating system"
    " chooses its CPU core."
)
_PAYS_MORE = "A program that is not pinned to a CPU core pays more through some stacks"
_TICKS = ": ticks show this unpinned cost"


def lead_sentences(costs: DispatchCosts) -> list[str]:
    """Up to five sentences on what a launch costs through each stack, for a reader who does not see
    the headline figure. Those whose figures are missing are left out.
    """
    sentences = [
        _from_python(costs),
        _alike(costs),
        _from_compiled_code(costs),
        _batches(costs),
        _python(costs),
    ]
    return [sentence for sentence in sentences if sentence]


def answer_sentences(costs: DispatchCosts, *, is_chosen: bool) -> list[str]:
    """Up to two sentences above the headline figure: what a launch costs, and how typical this run
    is. The figure shows the rest. ``is_chosen``: see ``place_sentence``.
    """
    first = _from_python(costs) or _from_compiled_code(costs) or _from_other_callers(costs)
    sentences = [first, place_sentence(costs, is_chosen=is_chosen)]
    return [sentence for sentence in sentences if sentence]


def _from_python(costs: DispatchCosts) -> str:
    """What a launch from Python costs through the cheapest stack, the cheapest that works on
    arrays, and each of WebGPU.
    """
    first = cheapest(costs)
    if first is None:
        return ""
    unit = "launch" if costs.hardware else "call"
    texts = [f"{_cost_from_python(first)} through {first.name}"]
    for row in asked_for(costs):
        if row is not first:
            texts.append(f"{_cost_from_python(row)} through {row.name}")
    from_python = [row for row in costs.rows if "python" in row.marks]
    if len(from_python) > 1:
        texts[0] += " (the cheapest)"
    return f"One {unit} from Python costs {listed(texts)}."


def _cost_from_python(row: DispatchRow) -> str:
    """``4.33 µs``, or ``25.1 µs (noisy)``."""
    return f"{costs_text(row.marks['python'])} {MICRO}{_doubt_word(row.records['python'])}"


def _doubt_word(record: Record) -> str:
    """`` (noisy)``: the doubt without the interval, beside the figure that draws it. '' where the
    cost is resolved, or its text has two costs.
    """
    figure = record.figure("complete")
    doubt = doubt_of(record)
    if figure is None or doubt not in ("status", "not-above-zero"):
        return ""
    return f" ({figure.status})" if doubt == "status" else " (not above zero)"


def _from_other_callers(costs: DispatchCosts) -> str:
    """What the cheapest launch costs in a run without calls from Python."""
    row = costs.rows[0]
    if row.first not in row.marks:
        return ""
    unit = "launch" if costs.hardware else "call"
    cost = f"{costs_text(row.marks[row.first])} {MICRO}{_doubt_word(row.records[row.first])}"
    called = CALLER_WORDS[row.records[row.first].caller]
    return f"The cheapest {unit} costs {cost} through {row.name}, {called}."


def _alike(costs: DispatchCosts) -> str:
    """A sentence on the stacks that may be as cheap as the cheapest, because their intervals
    overlap; '' where there are none.
    """
    first = cheapest(costs)
    if first is None:
        return ""
    alike = []
    for other in not_told_apart(costs, first):
        alike.append(f"{other.name} ({costs_text(other.marks['python'])})")
    if not alike:
        return ""
    verb = "costs" if len(alike) == 1 else "cost"
    return f"Within the intervals, {listed(alike)} {verb} as little."


def _from_compiled_code(costs: DispatchCosts) -> str:
    """A sentence on what a dispatch of WebGPU costs from compiled code through each of its stacks;
    '' where none was measured.
    """
    texts = []
    for row in webgpu_rows(costs, "compiled"):
        cost = f"{costs_text(row.marks['compiled'])} {MICRO}"
        texts.append(f"{cost} through {row.name}{_doubt(row.records['compiled'])}")
    if not texts:
        return ""
    return f"From compiled code, a dispatch of WebGPU costs {listed(texts)}."


def _doubt(record: Record) -> str:
    """`` (noisy, 23.8 to 29.5)``; '' where the cost is resolved or has two speeds, which the text
    names.
    """
    if record.figure("complete") is None or doubt_of(record) in (None, "two-speeds"):
        return ""
    return f" ({why_unresolved(record)})"


def _batches(costs: DispatchCosts) -> str:
    """A sentence on what a dispatch costs that is one of many in a batch (a CUDA graph, or one pass
    of WebGPU), compared with one alone by the same caller; '' without a batch.
    """
    found = batches(costs)
    if not found:
        return ""
    texts = []
    # ``record``: the case of the batch. ``alone``: the single dispatch by the same caller.
    # ``less``: the cost alone over that in the batch; None where the batch may save nothing.
    # ``marks``: by kind of caller the costs as they are drawn; "batched": those in a batch.
    for batch in found:
        # A noisy cost in the batch is followed by its interval, the single one by "noisy" alone.
        noisy = " (noisy)" if _doubt(batch.alone) else ""
        cost = f"{costs_text(batch.row.marks['batched'])} {MICRO}{_doubt(batch.record)}"
        less = f" ({_times_less(batch.less)} times less)" if batch.less is not None else ""
        alone = f"{cost_text(batch.alone)} {MICRO} alone{noisy}"
        texts.append(f"{cost} instead of {alone} through {batch.row.name}{less}")
    first = found[0]
    called = CALLER_WORDS[first.alone.caller]
    return f"{_how_batched(costs, first.record)}, a dispatch {called} costs {'; '.join(texts)}."


def _how_batched(costs: DispatchCosts, batch: Record) -> str:
    """What makes many dispatches one: a CUDA graph, or one pass."""
    facts = costs.view.facts(batch.stack)
    if facts.graphs:
        return f"In a CUDA graph made by {graph_maker(batch, facts)}"
    return "In one pass" if "one-pass" in facts.roles else "In a batch"


def _times_less(less: Value) -> str:
    """``6.9``; the interval alone where a figure behind it is noisy."""
    return number(within(less, 0.05)) if less.status == "ok" else ends_text(less)


def _python(costs: DispatchCosts) -> str:
    """A sentence on how much of the CPU time of a call Python itself takes, through each stack
    where that is known; else ''. ``split_name``: the operation whose time was divided, which may be
    another than the row's.
    """
    texts = []
    # ``share``: from 0 to 1, shown in per cent with its interval. ``row``: the stack in the
    # headline figure.
    for found in python_shares(costs):
        texts.append(f"{percent_spread(found.share)} through {found.row.split_name}")
    if not texts:
        return ""
    return f"Of the CPU time of a call from Python, Python itself takes {listed(texts)}."


def limit_sentences(costs: DispatchCosts) -> list[str]:
    """Up to two sentences on calls from compiled code: on the stacks whose launches wait for the
    device, and on those where it is not clear whether the CPU or the device is the limit.
    """
    sentences = []
    # ``limit``: "device" or "balanced"; ``limits``: the same in words.
    for limit, limits in _LIMITS.items():
        names = []
        times = []
        for row in limited(costs, limit):
            # ``records``: the measured cases by kind of caller. ``marks``: their costs as they are
            # drawn, one or both of two speeds.
            record = row.records["compiled"]
            # ``host``: how long the CPU works for a launch.
            host = record.figure("host")
            busy = micro(host) if host is not None else ""
            cost = f"{costs_text(row.marks['compiled'])} {MICRO}{_doubt_word(record)}"
            names.append(row.name)
            times.append(f"{busy} of {cost}")
        if names:
            sentences.append(
                f"From compiled code, {limits} {listed(names)}: of each launch, the CPU works"
                f" {listed(times)}."
            )
    return sentences


def trust_sentences(costs: DispatchCosts) -> list[str]:
    """Sentences below the headline figure on how far to trust it: which stacks may be as cheap as
    the cheapest, how much another run may differ, and what a program pays that is not pinned to a
    CPU core.

    Without a GPU (``hardware``) other runs are not known.
    """
    sentences = [_alike(costs)]
    if costs.hardware:
        sentences += [_another_run(costs.view.fingerprint.machine), _unpinned(costs)]
    else:
        sentences += [_unpinned_less(costs)]
    return [sentence for sentence in sentences if sentence]


def _another_run(machine: Machine) -> str:
    """A sentence on how far the costs of another run on such a machine may lie from the costs here,
    or that this is not known.
    """
    # How CPU-bound costs ("host") spread over many runs on this kind of machine.
    spread = spread_of("host", machine)
    if spread is None:
        return next_run_sentence(machine)
    runs = of_the_method("9 of 10 runs")  # numbers that no run gives
    # The half-width is one of logarithms of costs, so its exponential is a factor, up and down.
    times = math.exp(half_width(spread))
    origin = formed("run-to-run range", 1, words=f"host, {kind_of(machine)}")
    range_here = ends_text(Value(1.0, 1 / times, times, origin=origin))
    return (
        f"On another such machine, {runs} find a CPU-bound cost of {range_here} times the one here."
        " On other hardware, measure again."
    )


def _unpinned(costs: DispatchCosts) -> str:
    """What programs that are not pinned to a processor paid, beside the undisturbed cost."""
    if not costs.has_unpinned:
        return _NO_MET
    first = ""
    if unpinned_pays_more(costs):
        ticks = _TICKS if has_unpinned_apart(costs) else ""
        first = f"{_PAYS_MORE}{ticks}."
    return " ".join(filter(None, [first, _unpinned_less(costs)]))


def _unpinned_less(costs: DispatchCosts) -> str:
    """A sentence on the stacks where all processes that were not pinned to a CPU core paid less
    than the cost on a core that nothing disturbs; '' where there are none.
    """
    # ``kind``: who calls (Python, compiled code, a browser), or "batched" for one dispatch of many
    # in a batch.
    with_tick: dict[str, list[str]] = {}
    without_tick: dict[str, list[str]] = {}
    for row, kind in unpinned_pays_less(costs):
        called = KIND_WORDS[kind] if kind == "batched" else CALLER_WORDS[row.records[kind].caller]
        has_tick = unpinned_apart(row.records[kind]) is not None
        by_caller = with_tick if has_tick else without_tick
        by_caller.setdefault(called, []).append(row.name)
    texts = []
    if with_tick:
        texts.append(_by_caller(with_tick))
    if without_tick:
        # As close as that, the figure has no tick.
        close = of_the_method(f"than {100 * (VISIBLY_APART - 1):.0f} %")
        no_tick = ", so without a tick" if has_unpinned_apart(costs) else ""
        texts.append(f"{_by_caller(without_tick)} (by less {close}{no_tick})")
    return f"Unpinned costs less through {'; '.join(texts)}." if texts else ""


def _by_caller(stacks: Mapping[str, list[str]]) -> str:
    """``raw Vulkan and wgpu-native from compiled code``. ``stacks``: their names by caller."""
    return "; ".join(f"{listed(names)} {called}" for called, names in stacks.items())


def further_stacks_sentences(found: Sequence[FurtherStacks]) -> list[str]:
    """For each other run of the machine that has stacks which this run lacks, a sentence with their
    costs.
    """
    sentences = []
    for further in found:
        created = run_time(further.run.fingerprint.created)
        texts = []
        for row in further.rows:
            texts.append(
                f"{row.name} {costs_text(row.marks['python'])}{_doubt_word(row.records['python'])}"
            )
        sentences.append(
            f"Only in another run ({created}{_board(further)}), from Python, {MICRO}:"
            f" {'; '.join(texts)}."
        )
    return sentences


def _board(further: FurtherStacks) -> str:
    """``, on a fast board``: how the board of the run differs; '' for the same board."""
    if further.is_same_board:
        return ""
    if further.place is not None and further.place.is_fast:
        return ", on a fast board"
    if further.place is not None and further.place.is_slow:
        return ", on a slow board"
    return ", on another board"
