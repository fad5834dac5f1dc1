"""The parts of README.md that come from recorded runs: first answers, the picture of a typical run,
findings.

Each function returns the lines of one ``<!-- name -->`` block, which ``write_docs.py`` fills in.
"""

from __future__ import annotations

import collections
import functools
import io
import re
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from overhead.blocks.markdown import escaped
from overhead.blocks.parts import Heading, Part, Table, Text
from overhead.blocks.terminal import show
from overhead.explaining.saved import read_explanation
from overhead.explaining.show import explanation_blocks
from overhead.loading.files import read_fingerprint
from overhead.reading.dispatch_costs import DispatchCosts
from overhead.reading.findings import Finding, RunsAtHand, findings_of
from overhead.reading.typical_run import most_typical, place_of
from overhead.reading.view import View
from overhead.report.core.machines import may_stand_beside
from overhead.report.core.page_list import pages
from overhead.report.sections.to_do import MOST_ANSWERS
from overhead.results import formed
from overhead.timing.saved import read_timing
from overhead.timing.show import timing_blocks
from overhead.words.findings import READERS, finding_words
from overhead.words.format import count, number, within
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
    """What the typical run says to each kind of reader, in the words of the report's first page,
    which has details too.
    """
    shown = typical_costs().view
    # Other runs of the machine, the newest first, have what this one did not measure.
    others = []
    for view in sorted(views(), key=_created, reverse=True):
        is_of_machine = view.fingerprint.machine.id == shown.fingerprint.machine.id
        is_other = view is not shown and is_of_machine
        if is_other and may_stand_beside(view.fingerprint, shown.fingerprint):
            others.append(view)

    lines: list[str] = []
    told: collections.Counter[str] = collections.Counter()
    for finding in findings_of(RunsAtHand(shown, others)):
        reader = finding.reader
        assert reader
        # README has a section of its own about published figures.
        if finding.page == "claims" or told[reader] == MOST_ANSWERS:
            continue
        if not told[reader]:
            lines += ["", f"**{READERS[reader]}**", ""]
        told[reader] += 1
        title = escaped(finding_words(finding).title)
        lines.append(f"- {title}{_of_another_run(finding)}")
    return "\n".join(lines).strip()


def _of_another_run(finding: Finding) -> str:
    """The run that has the finding, where it is not the typical one."""
    for name, view in _views().items():
        if finding.run and view.fingerprint.created == finding.run:
            return f" ([Another run](reports/data/{name}.json).)"
    return ""


def _created(view: View) -> str:
    return view.fingerprint.created
