"""The parts of README.md that come from recorded runs: first answers, the picture of a typical run,
findings.

Each function returns the lines of one ``<!-- name -->`` block, which ``write_docs.py`` fills in.
"""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console

from overhead.blocks.parts import Heading, Part, Table, Text
from overhead.blocks.terminal import show
from overhead.decode.reading import MeasuredVariant, decoder_results
from overhead.explaining.saved import read_explanation
from overhead.explaining.show import explanation_blocks
from overhead.loading.files import read_fingerprint
from overhead.reading.dispatch_costs import DispatchCosts
from overhead.reading.findings import findings_of
from overhead.reading.findings.batching import ReplayPays
from overhead.reading.findings.waiting import SynchronisingCosts
from overhead.reading.headline import batches, most_overstated, python_shares
from overhead.reading.typical_run import most_typical, place_of
from overhead.reading.view import View
from overhead.report.core.page_list import pages
from overhead.results import Record, Value, formed
from overhead.timing.saved import read_timing
from overhead.timing.show import timing_blocks
from overhead.words.format import (
    MICRO,
    count,
    ends_text,
    factor_spread,
    listed,
    micro_spread,
    number,
    percent_spread,
    positive_spread,
    spread,
    within,
)
from overhead.words.names import CALLER_WORDS
from scripts import explain_picture

ROOT = Path(__file__).resolve().parents[1]
_DATA = ROOT / "reports" / "data"
_EXAMPLES = Path("docs/examples/readme")
RECORDED_TIME = _EXAMPLES / "time.json"
"""The answer of ``overhead time --json`` that README.md shows."""
_COLUMNS = 100
"""As many characters as a page of a repository shows without a scroll bar."""
_SENTENCES = 3
"""README shows so many sentences of the verdict: what bounds the step, how long the GPU is idle,
its launches.
"""
_GPU = "H100"
"""Of the kinds of machine that were measured, the one with the most runs."""
_TOKEN_RUN = "nvidia-h100-decode-0.5b"


@functools.cache
def _views() -> dict[str, View]:
    """The committed runs on the GPU of README.md, by the name of their file."""
    pages()  # with the rows and rules that slices add
    views = {}
    for path in sorted(_DATA.glob("*.json")):
        view = View(read_fingerprint(path), path)
        if _GPU in view.fingerprint.machine.gpus[0].name:
            views[path.stem] = view
    return views


def views() -> list[View]:
    """The runs that the figures of README.md may be of."""
    return [*_views().values()]


def typical_costs() -> DispatchCosts:
    """The costs of the run that README.md shows: the one nearest to the median of its kind of
    machine.
    """
    costs = most_typical(views())
    assert costs is not None
    return costs


def first_answer() -> str:
    """The recorded call, and what ``overhead time`` printed of it: the table, and how the call's
    time divides.
    """
    timing = read_timing(ROOT / RECORDED_TIME)
    shown = []
    for block in timing_blocks(timing):
        if isinstance(block, Heading):
            break
        shown.append(_shortened(block))
    command = f'$ overhead time "{timing.calls[0].call}" -s "{timing.setup}"'
    return _as_code([command, *printed(shown), "…"])


def _shortened(block: Part) -> Part:
    """A table without the columns that are hidden first, and of texts the first paragraph."""
    if isinstance(block, Text):
        return Text(block.paragraphs[:1])
    if isinstance(block, Table):
        return _without_optional(block)
    return block


def _without_optional(table: Table) -> Table:
    """The table without the columns that a narrow terminal hides first: no line then tells that
    they are hidden.

    The meanings of the columns are left out too: README explains its words once, under "How to read
    it".
    """
    hidden: set[int] = set()
    for columns in table.optional:
        if isinstance(columns, tuple):
            hidden.update(columns)
        else:
            hidden.add(columns)
    kept = [column for column in range(len(table.columns)) if column not in hidden]
    names = [table.columns[column] for column in kept]
    rows = []
    for row in table.rows:
        rows.append([row[column] for column in kept])
    numeric = [place for place, column in enumerate(kept) if column in table.numeric]
    return Table(table.caption, names, rows, numeric=numeric)


def explained_step() -> str:
    """The verdict of ``overhead explain`` on a recorded training step."""
    explanation = read_explanation(explain_picture.RECORDED)
    texts = []
    for block in explanation_blocks(explanation):
        if not isinstance(block, Text):
            break
        texts.append(block)
    verdict = texts[-1]  # the texts before the verdict say what was explained
    shown = Text(verdict.paragraphs[:_SENTENCES])
    command = f"$ {explain_picture.command(explanation)}"
    return _as_code([command, "…", *printed([shown]), "…"])


def _as_code(lines: Iterable[str]) -> str:
    """The lines as an indented block."""
    code = "\n".join(f"    {line}".rstrip() for line in lines)
    return f"\n{code}\n"


def printed(blocks: Iterable[Part]) -> list[str]:
    """The lines that a terminal of 80 columns shows, without colours."""
    out = io.StringIO()
    show(blocks, Console(file=out, width=_COLUMNS, color_system=None, force_terminal=True))
    return [line.rstrip() for line in out.getvalue().strip("\n").splitlines()]


def picture() -> str:
    """The picture of the typical run, its name, and where it lies among the others."""
    costs = typical_costs()
    (name,) = [name for name, view in _views().items() if view is costs.view]
    about = f"The run [`{name}`](reports/data/{name}.json) is typical: {_others(costs)}."
    return (
        "![What one launch costs through each stack on an NVIDIA"
        f" {_GPU}]({picture_path(costs)})\n\n{about}"
    )


def _others(costs: DispatchCosts) -> str:
    """How much the same costs are on other boards."""
    place = place_of(costs)
    assert place is not None
    boards = count(place.boards, "other board", formed("boards", *place.counted))
    times = number(within(place.times, 0.01))
    return f"on {boards} of this model, launches cost {times} times as much (median)"


def picture_path(costs: DispatchCosts) -> str:
    """Where the picture of these costs is in the repository."""
    device = re.sub(r"[^a-z0-9]+", "-", costs.device.lower()).strip("-")
    return f"docs/headline-{device}.png"


def findings() -> str:
    """What the typical run says to each kind of reader, with intervals."""
    costs = typical_costs()
    readers = {
        "PyTorch and inference engines": [*_graph(costs.view), *_item(costs.view), *_token()],
        "WebGPU": [*_one_pass(costs), *_python(costs)],
        "If you publish benchmarks": [*_single_shot(costs)],
    }
    lines = []
    for reader, sentences in readers.items():
        lines.append(f"**{reader}**\n")
        lines += [f"- {sentence}" for sentence in sentences]
        lines.append("")
    return "\n".join(lines).rstrip()


def _facts(view: View, kind: type) -> Iterator[object]:
    """The facts of the run's findings of one kind."""
    for finding in findings_of(view):
        if isinstance(finding.facts, kind):
            yield finding.facts


def _cost(record: Record) -> str:
    """The cost in us with its interval."""
    return micro_spread(record.figure("complete"))


def _graph(view: View) -> Iterator[str]:
    """How much less a launch costs as a node of a CUDA graph, and when a graph pays off."""
    for facts in _facts(view, ReplayPays):
        assert isinstance(facts, ReplayPays)
        change = facts.changes[0]
        call = change.before.window["operation"]
        before = _cost(change.before)
        after = _cost(change.after)
        yield (
            f"Try a CUDA graph first. `{call}` from Python costs {before} {MICRO} as a launch, and"
            f" {after} {MICRO} as a node of a graph.{_pays_after(facts)}"
        )


def _pays_after(facts: ReplayPays) -> str:
    """After how many replays a graph has paid for its making."""
    replays = facts.pays_after
    if replays is None:
        return ""
    whole_replays = max(1, math.ceil(replays.value))
    after = count(whole_replays, "replay", formed("ceil", replays.origin))
    return f" Capture and instantiation of a graph of {facts.nodes} nodes pay off after {after}."


def _item(view: View) -> Iterator[str]:
    """What reading a value on the host adds to a loop."""
    for facts in _facts(view, SynchronisingCosts):
        assert isinstance(facts, SynchronisingCosts)
        yield (
            f"Avoid `.{facts.act}()` in a loop: each adds at least {spread(facts.adds / 1e3)}"
            f" {MICRO}, and the time of the queued work that it waits for."
        )


def _token() -> Iterator[str]:
    """The time of a token in PyTorch and as its CUDA graph, and as graphs of the lowered program,
    unfused and fused.
    """
    decoder = decoder_results(_views()[_TOKEN_RUN])[0]
    eager = next(variant for variant in decoder.variants if variant.record.stack == "torch")
    of_graphs = [variant for variant in decoder.variants if variant.record.stack == "cuda-graph"]
    graphs = [variant for variant in of_graphs if variant.complete]
    captured = next(variant for variant in graphs if variant.record.params.get("maker") == "torch")
    lowered = [variant for variant in graphs if variant.is_lowered]
    unfused = next(variant for variant in lowered if variant.record.params.get("fusions") == 0)
    fused = min(lowered, key=_time_of_token)
    run = f"[another run](reports/data/{_TOKEN_RUN}.json)"
    yield (
        f"A token of `{decoder.name}` takes {_milliseconds(eager)} ms in eager PyTorch, and"
        f" {_milliseconds(captured)} ms as a CUDA graph of the same kernels. A graph of this"
        f" project's kernels takes {_milliseconds(unfused)} ms, and {_milliseconds(fused)} ms after"
        f" kernel fusion ({run}: `float32`, batch 1)."
    )


def _time_of_token(variant: MeasuredVariant) -> float:
    """The time of a token in ns; infinite where none was measured."""
    return variant.complete.value if variant.complete is not None else math.inf


def _milliseconds(variant: MeasuredVariant) -> str:
    """The time of a token in ms with its interval; the status of a variant without a time."""
    if variant.complete is None:
        return variant.record.status
    return positive_spread(variant.complete / 1e6)


def _one_pass(costs: DispatchCosts) -> Iterator[str]:
    """How much less a dispatch costs in one pass, by one caller."""
    of_webgpu = [batch for batch in batches(costs) if "webgpu" in batch.row.facts.roles]
    factors = []
    callers = []
    for batch in of_webgpu:
        if batch.less is not None:
            factors.append(f"{_times(batch.less)} times as much through {batch.row.name}")
            callers.append(CALLER_WORDS[batch.alone.caller])
    if factors:
        yield (
            "Use one pass for many dispatches. A `queue.submit` for each dispatch costs"
            f" {listed(factors)}, {callers[0]}."
        )


def _times(times: Value) -> str:
    """``9.6 (9.2 to 10.0)``; the interval alone where a figure behind it is noisy."""
    return positive_spread(times) if times.status == "ok" else ends_text(times)


def _python(costs: DispatchCosts) -> Iterator[str]:
    """Which share of a dispatch Python takes, by stack."""
    shares = []
    for python in python_shares(costs):
        shares.append(f"{percent_spread(python.share)} through {python.row.split_name}")
    if shares:
        yield f"Of the CPU time of a dispatch, Python takes {listed(shares)}."


def _single_shot(costs: DispatchCosts) -> Iterator[str]:
    """By how much the latency of one launch overstates the cost of one more, at the most."""
    overstated = most_overstated(costs)
    if overstated is None:
        return
    row = overstated.row
    called = CALLER_WORDS[row.records[row.first].caller]
    yield (
        "In this run, the single-shot latency (one launch and its wait) is up to"
        f" {factor_spread(overstated.times)} the cost of one more launch ({row.name}, {called})."
    )
