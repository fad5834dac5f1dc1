"""Write the JSON Schema, tables and headline figures of the documents, from the code and the committed fingerprints."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
_DATA = ROOT / "reports" / "data"
_EXPLAINED = ROOT / "reports" / "explain"
_PROGRAMS = ROOT / "scripts" / "explain_programs.py"
sys.path.insert(0, str(ROOT))

from overhead import results  # noqa: E402
from overhead.blocks.parts import Table  # noqa: E402
from overhead.blocks.terminal import show as show_blocks  # noqa: E402
from overhead.claims.judging import judge, published_text, quantity_text  # noqa: E402
from overhead.claims.measured import ClaimValue  # noqa: E402
from overhead.claims.registry import ClaimTest  # noqa: E402
from overhead.comparing import compare  # noqa: E402
from overhead.comparing.show import comparison_blocks  # noqa: E402
from overhead.decode.reading import decoder_results  # noqa: E402
from overhead.decode.sections import padded_sentences, token_section  # noqa: E402
from overhead.explain.record import Alternative, read_explanation  # noqa: E402
from overhead.loading.files import read_fingerprint  # noqa: E402
from overhead.probes import registry  # noqa: E402
from overhead.probes.base import Probe  # noqa: E402
from overhead.reading.dispatch_costs import dispatch_costs  # noqa: E402
from overhead.reading.findings import findings_of  # noqa: E402
from overhead.reading.format import (  # noqa: E402
    factor as factor_text,
    listed,
    positive_spread,
)
from overhead.reading.key_figures import KeyFigure, key_figures  # noqa: E402
from overhead.reading.next_run import committed_table  # noqa: E402
from overhead.reading.tables import COLUMNS  # noqa: E402
from overhead.reading.view import View  # noqa: E402
from overhead.report.core import draw  # noqa: E402
from overhead.report.core.headline_figure import headline_figure  # noqa: E402
from overhead.report.core.machines import from_paths, machine_name  # noqa: E402
from scripts.plugin_reference import plugin_interface  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def schema() -> str:
    """The JSON Schema of a fingerprint."""
    return json.dumps(_without_indentation(results.schema()), indent=1) + "\n"


def _without_indentation(value: Any) -> Any:
    """The same with docstrings as Python 3.13 and newer have them."""
    if isinstance(value, str):
        return inspect.cleandoc(value)
    if isinstance(value, list):
        return [_without_indentation(one) for one in value]
    return {key: _without_indentation(one) for key, one in value.items()} if isinstance(value, dict) else value


def _own_stacks() -> list[Probe]:
    """The stacks of this repository."""
    return [probe for probe in registry().values() if type(probe).__module__.startswith("overhead.")]


def stack_names() -> str:
    """The titles of the stacks in a sentence."""
    return f"{listed([probe.title for probe in _own_stacks()])}."


def stacks() -> str:
    """The table of the stacks."""
    rows = [[f"`{probe.name}`", probe.title, probe.mend or "nothing more"] for probe in _own_stacks()]
    return _table(["stack", "what is timed", "needs"], rows)


def figures() -> str:
    """The key figures that every committed reference machine has, one column per machine."""
    machines = {machine_name(view.fingerprint.machine): key_figures(view) for view in from_paths([_DATA]).views}
    names = sorted(machines)
    each = zip(*(machines[name] for name in names), strict=True)
    found = [row for row in each if all(figure.measured for figure in row)]
    return _table(["", *names], [[row[0].label, *map(_marked, row)] for row in found])


def _marked(figure: KeyFigure) -> str:
    """The figure with its interval, and its status or condition where it has one."""
    state = figure.reason.partition(":")[0]
    next_run = f"next run {figure.next_run}" if figure.next_run else ""
    return ", ".join(part for part in (figure.with_interval, state, next_run) if part)


def references() -> str:
    """The table of the committed fingerprints, with the number of records by status."""
    rows = []
    for name, run in _references():
        gpus = ", ".join(gpu.name for gpu in run.machine.gpus if not gpu.software)
        counts = Counter(record.status for record in run.records)
        told = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        works = ", ".join(dict.fromkeys(f"`{record.workload}`" for record in run.records))
        rows.append([f"`{name}`", gpus, run.created, run.profile, works, told])
    return _table(["file", "GPU", "measured", "profile", "of", "records"], rows)


def next_runs() -> str:
    """The committed table of next-run ranges: spread and coverage by class, then coverage by kind and by pair."""
    found = committed_table()
    head = ["class", "s", "figures", "boards", "predictions", "inside", "half-width", "oracle's half-width"]
    rows = [
        [
            name,
            _percent(own.s),
            str(own.figures),
            str(own.boards),
            f"{covered.pairs:,}",
            *map(_percent, (covered.inside, covered.half_width, covered.oracle)),
        ]
        for name, own in found.classes.items()
        if (covered := found.coverage.get(name))
    ]
    kinds = [[*key.split(", ", 1), _percent(share)] for key, share in found.by_kind.items()]
    made = (
        f"Made from {found.runs} runs on {found.boards} boards. Of {found.run_pairs} ordered pairs of runs, "
        f"{100 * found.run_pairs_over_90:.0f} % have\n"
        f"at least 90 % of their figures inside; the worst pair has {100 * found.worst_pair:.0f} %."
    )
    return "\n\n".join([_table(head, rows), _table(["class", "machine", "inside"], kinds), made])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


@functools.cache
def _references() -> list[tuple[str, results.Fingerprint]]:
    """File name and fingerprint of each committed run."""
    return [(path.name, read_fingerprint(path)) for path in sorted(_DATA.glob("*.json"))]


def headline_figures() -> Iterator[tuple[str, Figure]]:
    """Of each committed machine the name of its picture in ``docs``, and its headline figure."""
    by_machine: dict[str, list[Path]] = {}
    for name, run in _references():
        by_machine.setdefault(run.machine.id, []).append(_DATA / name)
    for paths in by_machine.values():
        costs = dispatch_costs(from_paths(paths).own)
        if costs is not None:
            name = re.sub(r"[^a-z0-9]+", "-", costs.device.lower()).strip("-")
            with draw.style():
                yield f"headline-{name}.png", headline_figure(costs)


def drawn_text(figure: Figure) -> str:
    """Title, labels, values and notes of the figure. A committed picture carries them, so that a test can compare."""
    parts = [figure.texts, *([legend.get_title(), *legend.get_texts()] for legend in figure.legends)]
    parts += [[*ax.get_yticklabels(), *ax.texts] for ax in figure.axes]
    return "\n".join(text.get_text() for texts in parts for text in texts)


def _write_picture(path: Path, figure: Figure) -> None:
    from PIL import Image, PngImagePlugin

    figure.savefig(path)
    about = PngImagePlugin.PngInfo()
    about.add_itxt("Description", drawn_text(figure))
    with Image.open(path) as picture:  # 64 colours take a fourth of the bytes
        few = picture.convert("RGB").quantize(64)
    few.save(path, optimize=True, pnginfo=about)


def findings() -> str:
    """The first findings of the run of the README's machine, one a line."""
    found = findings_of(View(_machine_of_the_readme()))[:3]
    return "\n".join(f"- {one.title}" for one in found)


def _machine_of_the_readme() -> results.Fingerprint:
    """The run of the H100 that its page shows."""
    paths = [_DATA / name for name, run in _references() if "H100" in run.machine.gpus[0].name]
    return from_paths(paths).own.fingerprint


_SHOWN_CLAIMS = ("fuse-159x", "vulkan-24-36us", "firefox-1.04ms", "reduce-overhead-2.78x")
"""The claims that the README shows: those whose verdict says most."""


def verdicts() -> str:
    """The verdicts on some published claims, from the committed fingerprints."""
    judged = {one.claim.id: one for one in judge([_DATA])}
    head = ["claim", "published", "measured here", "measured here with the published method", "number", "attribution"]
    rows = []
    for one in (judged[name] for name in _SHOWN_CLAIMS):
        test, flawed = one.claim.test, one.claim.flawed
        assert test is not None
        rows.append(
            [
                one.claim.said,
                f"{published_text(one.claim)}, {one.claim.hardware} ({one.source.where}, {one.source.year})",
                _values_by_machine(test, [value for value, _ in one.measured]),
                _values_by_machine(flawed, one.flawed) if flawed else "",
                one.verdict_text,
                f"{one.attribution} ({one.claim.attribution.said})" if one.claim.attribution else "",
            ]
        )
    return _table(head, rows)


def _values_by_machine(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The values of each machine with their intervals and stacks; empty without a value."""
    groups: dict[str, list[str]] = {}
    for one in found:
        if one.measured is not None:
            stacks = re.sub(r" \([^()]*\)", "", one.label.replace(f" on {one.machine} ", " "))
            groups.setdefault(one.machine, []).append(f"{stacks} {quantity_text(one.measured, test.unit)}")
    return "; ".join(f"{machine}: {', '.join(values)}" for machine, values in groups.items())


_PAIR = Path("docs/examples/compare")


def compared() -> str:
    """The output of ``overhead compare`` for the committed pair of runs, in both directions."""
    old, new = _PAIR / "numpy-1.26.json", _PAIR / "numpy-2.4.json"
    return "\n\n".join(_compare_command(base, other) for base, other in ((old, new), (new, old)))


def across() -> str:
    """The output of ``overhead compare --across`` for one of them."""
    return _compare_command(_PAIR / "numpy-2.4.json", across="alloc=in-place,allocating")


def _compare_command(base: Path, new: Path | None = None, across: str | None = None) -> str:
    out = io.StringIO()
    found = compare(ROOT / base, ROOT / new if new else None, across=across)
    show_blocks(comparison_blocks(found), Console(file=out, width=200, color_system=None))
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()
    more = new.as_posix() if new else f"--across {across}"
    return f"```text\n$ overhead compare {base.as_posix()} {more}\n{text}\n```"


def decoding_run(size: str) -> str:
    """Of the committed run of a decoder: each program's kernels, what a dispatch adds, and the batches."""
    view = View(read_fingerprint(_DATA / f"nvidia-h200-decode-{size}.json"))
    (found,) = decoder_results(view)
    kernels = next(part for part in token_section(view) if isinstance(part, Table) and "kernels" in part.caption)
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in kernels.rows]
    lines = (f"- {one}" for one in padded_sentences(found))
    said = [textwrap.fill(one, 138, subsequent_indent="  ", break_on_hyphens=False) for one in lines]
    batches = sorted({arm.batch for sweep in found.sweeps for arm in sweep})
    steps = []
    for sweep in found.sweeps:
        times = {arm.batch: positive_spread(arm.complete / 1e6) for arm in sweep if arm.complete}
        first = sweep[0]
        steps.append([f"`{first.record.stack}`: {first.description}", *(times.get(batch, "") for batch in batches)])
    head = ["a step, ms", *(f"batch {batch}" for batch in batches)]
    return "\n\n".join([_table([*kernels.columns], rows), "\n".join(said), _table(head, steps)])


def columns() -> str:
    """The names of the columns of ``to_pandas``."""
    return textwrap.fill(", ".join(f"`{name}`" for name in COLUMNS) + ".", 120)


def explained() -> str:
    """The committed explanations of real programs, with the verdict and the best alternative expected of each."""
    tree = ast.parse(_PROGRAMS.read_text("utf-8"))
    constants = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    rows = []
    for name, expected in ast.literal_eval(constants["EXPECTED"]).items():
        path = _EXPLAINED / f"{name}.json"
        if not path.exists():
            continue
        found = read_explanation(path)
        ratio = found.replay.ratio
        rows.append(
            [
                f"`{name}`",
                found.verdict.kind + (f", {factor_text(found.verdict.factor)}" if found.verdict.factor else ""),
                "; ".join(filter(None, expected)),
                "" if ratio is None else f"{ratio:.2f}",
                ", ".join(map(_alternative_text, found.alternatives)),
            ]
        )
    return _table(["step", "verdict", "expected", "replay over step", "alternatives"], rows)


def _alternative_text(one: Alternative) -> str:
    """What an alternative gave, in a few words."""
    gain = one.gain
    if gain.value is None:
        return f"{one.name} {one.status}"
    bound = ", a bound" if one.kind == "bound" else ""
    return f"{one.name} {gain.value:.2f}× ({gain.low:.2f} to {gain.high:.2f}{bound})"


_BLOCKS: dict[str, Callable[[], str]] = {
    "stacks": stacks,
    "stack-names": stack_names,
    "figures": figures,
    "references": references,
    "next-run": next_runs,
    "findings": findings,
    "verdicts": verdicts,
    "compared": compared,
    "across": across,
    "plugin-interface": plugin_interface,
    "columns": columns,
    "explained": explained,
    "decoding-0.5b": functools.partial(decoding_run, "0.5b"),
    "decoding-1.5b": functools.partial(decoding_run, "1.5b"),
}
DOCUMENTS = (
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("compare", "decode", "explain", "installing", "method", "plugins", "python-api")
    ),
    _DATA / "README.md",
)
"""The documents with generated blocks."""


def filled(text: str) -> str:
    """The text with each of its ``<!-- name -->`` blocks generated again."""
    for name, block in _BLOCKS.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->\n")
        text = f"{before}{start}{block()}\n{end}{after}" if start else text
    return text


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    (ROOT / "docs" / "fingerprint.schema.json").write_text(schema(), "utf-8")
    for name, figure in headline_figures():
        _write_picture(ROOT / "docs" / name, figure)
    for document in DOCUMENTS:
        document.write_text(filled(document.read_text("utf-8")), "utf-8")
