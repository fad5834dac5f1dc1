"""Write the JSON Schema, tables and headline figures of the documents, from the code and the
committed fingerprints.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import io
import itertools
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
_DATA = ROOT / "reports" / "data"
_EXPLAINED = ROOT / "reports" / "explained.json"
_PROGRAMS = ROOT / "scripts" / "explain_programs.py"
sys.path.insert(0, str(ROOT))

from overhead import results  # noqa: E402
from overhead.blocks.parts import Drawing  # noqa: E402
from overhead.blocks.terminal import show as show_blocks  # noqa: E402
from overhead.claims.judging import judge_runs  # noqa: E402
from overhead.claims.measured import ClaimValue  # noqa: E402
from overhead.claims.registry import ClaimTest  # noqa: E402
from overhead.comparing import compare  # noqa: E402
from overhead.comparing.show import comparison_blocks  # noqa: E402
from overhead.decode.lowering.fusions import FUSIONS  # noqa: E402
from overhead.decode.reading import MeasuredVariant, decoder_results  # noqa: E402
from overhead.explaining.saved import read_explanation  # noqa: E402
from overhead.extras import install_command  # noqa: E402
from overhead.loading.files import read_fingerprint  # noqa: E402
from overhead.probes import registry  # noqa: E402
from overhead.reading.next_run import committed_table  # noqa: E402
from overhead.reading.precision import by_interval  # noqa: E402
from overhead.reading.tables import COLUMNS  # noqa: E402
from overhead.reading.view import View  # noqa: E402
from overhead.report.across.graph_or_fused import graph_or_fused  # noqa: E402
from overhead.report.core import draw  # noqa: E402
from overhead.report.core.headline_figure import headline_figure  # noqa: E402
from overhead.report.core.machines import Machines  # noqa: E402
from overhead.report.core.page_facts import numbers_of_lines  # noqa: E402
from overhead.timing.saved import read_timing  # noqa: E402
from overhead.traces.published import published_traces  # noqa: E402
from overhead.words import claims as claim_words  # noqa: E402
from overhead.words.decode import variant_name  # noqa: E402
from overhead.words.format import MICRO, factor_spread, positive_spread  # noqa: E402
from overhead.words.glossary import FIGURE_TERMS, GLOSSARY  # noqa: E402
from overhead.words.printed import noting  # noqa: E402
from overhead.words.reasons import sentence  # noqa: E402
from overhead.words.traces import rows_of_makers  # noqa: E402
from scripts import explain_picture, readme  # noqa: E402
from scripts.plugin_reference import plugin_interface  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from overhead.results import Why


def schema() -> str:
    """The JSON Schema of a fingerprint."""
    return json.dumps(_without_indentation(results.schema()), indent=1) + "\n"


def _without_indentation(value: Any) -> Any:
    """The same with docstrings as Python 3.13 and newer have them, so that each Python writes the
    same schema.
    """
    if isinstance(value, str):
        return inspect.cleandoc(value)
    if isinstance(value, list):
        return [_without_indentation(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_indentation(item) for key, item in value.items()}
    return value


def stacks() -> str:
    """A table of the stacks by what they need, without those of installed plugins."""
    by_need: dict[str, list[str]] = {}
    for probe in registry().values():
        is_ours = type(probe).__module__.startswith("overhead.")
        if is_ours:
            need = _in_a_clone(probe.mend) or "nothing more"
            by_need.setdefault(need, []).append(f"`{probe.name}`")
    rows = [[", ".join(names), need] for need, names in by_need.items()]
    return _table(["stacks", "need"], rows)


def _in_a_clone(mend: Why) -> str:
    """What adds a stack, with the short command that works in a clone in place of that with the
    packages' names.
    """
    text = sentence(mend)
    if isinstance(mend, str):
        return text
    for name in ("extras", "older"):
        if name in mend.values:
            extras = str(mend.values[name])
            long_command = install_command(*extras.split(","))
            text = text.replace(long_command, f'pip install ".[{extras}]"')
    return text


def references() -> str:
    """The table of the committed fingerprints, with the number of records that are ``ok``."""
    rows = []
    for name, run in _references():
        statuses: list[str] = [record.status for record in run.records]
        statuses += [contention.status for contention in run.contention]
        workloads = dict.fromkeys(record.workload for record in run.records)
        workloads.update(dict.fromkeys(contention.way for contention in run.contention))
        to_the_minute = run.created[:16]
        ok = f"{statuses.count('ok')}/{len(statuses)}"
        rows.append([f"`{name}`", to_the_minute, run.profile, ", ".join(workloads), ok])
    head = ["file", "measured (UTC)", "profile", "workloads, or ways of many at once", "`ok`"]
    return _table(head, rows)


def next_runs() -> str:
    """The committed table of next-run ranges: spread and coverage by class and kind of machine, the
    worst pair.
    """
    table = committed_table()
    head = [
        "class",
        "kind of machine",
        "s",
        "boards",
        "inside",
        "half-width",
        "smallest half-width for 90 %",
    ]
    rows = []
    for group, coverage in table.coverage.items():
        figure_class, _, kind = group.partition(", ")
        spread = table.spreads.get(group)
        spread_cells = ["no range", ""]
        if spread is not None:
            spread_cells = [_percent(spread.s), str(spread.boards)]
        shares = (coverage.inside, coverage.half_width, coverage.oracle)
        rows.append([figure_class, kind, *spread_cells, *map(_percent, shares)])

    of_stacks = [f"{_percent(share)} through `{name}`" for name, share in table.by_stack.items()]
    by_stack = f"Of the CPU-bound costs alone, inside are {' and '.join(of_stacks)}."
    by_pair = (
        f"Of {table.run_pairs} pairs of runs, {100 * table.run_pairs_over_90:.0f} % have at least"
        f" 90 % of their figures inside; the worst has {100 * table.worst_pair:.0f} %."
    )
    return "\n\n".join([_table(head, rows), f"{by_stack}\n{by_pair}"])


def fleet_power() -> str:
    """The errors and the power of ``overhead fleet`` on made nodes: the worse of both kinds of
    second run.
    """
    power = json.loads((ROOT / "tests" / "data" / "fleet_power.json").read_text("utf-8"))
    planted = ("host", "device", "stack", "stack, host side")
    rows = []
    for kind, by_second_run in power.items():
        for nodes, same in by_second_run["same"].items():
            other = by_second_run["other"][nodes]
            called_slow = max(same["false"], other["false"])
            not_judged = max(same["untold"]["sides"], other["untold"]["sides"])
            row = [kind, nodes, f"{called_slow:g}", f"{not_judged:g}"]
            for what in planted:
                share = min(same[what]["all"], other[what]["all"])
                row.append(f"{int(100 * share)} %")
            stated = min(same["stated"], other["stated"])
            row.append(f"{int(100 * stated)} %")
            rows.append(row)
    head = [
        "runs of",
        "nodes",
        "healthy nodes called slow, of 1,000",
        "healthy fleets not judged, of 1,000",
    ]
    head += [
        "host 1.35× slow",
        "device 1.10× slow",
        "one stack 1.24× slow",
        "host side of one stack 1.24× slow",
    ]
    return _table([*head, "stated smallest slowdown"], rows)


def _percent(share: float) -> str:
    """The share in per cent, with a digit after the point."""
    return f"{100 * share:.1f} %"


@functools.cache
def _references() -> list[tuple[str, results.Fingerprint]]:
    """File name and fingerprint of each committed run."""
    return [(path.name, read_fingerprint(path)) for path in sorted(_DATA.glob("*.json"))]


def figures() -> Iterator[tuple[str, Figure]]:
    """Of the run that README.md shows, the headline figure and graph or fused, by their names in
    ``docs``.
    """
    costs = readme.typical_costs()
    # Another run may have a way to run a workload that is cheaper than all ways in this one.
    comparable = [view for view in readme.views() if _may_stand_beside(view, costs.view)]
    others = [view for view in comparable if view is not costs.view]
    with draw.style():
        yield Path(readme.picture_path(costs)).name, headline_figure(costs)
        for part in graph_or_fused(Machines([costs.view], [costs.view, *others], others)):
            if isinstance(part, Drawing):
                yield "graph-or-fused.png", part.draw()


def _may_stand_beside(view: View, shown: View) -> bool:
    """Whether a run is of the same machine, and forms figures in the same way."""
    run = view.fingerprint
    shown_run = shown.fingerprint
    if run.machine.id != shown_run.machine.id:
        return False
    return results.same_figures(run.method_version, shown_run.method_version)


def drawn_text(figure: Figure) -> str:
    """Title, labels, values and notes of the figure. A committed picture carries them, so that a
    test can compare.
    """
    texts = list(figure.texts)
    for legend in figure.legends:
        texts += [legend.get_title(), *legend.get_texts()]
    for axes in figure.axes:
        texts += [*axes.get_yticklabels(), *axes.texts]
    return "\n".join(text.get_text() for text in texts)


def _write_picture(path: Path, figure: Figure) -> None:
    """Save a figure as a small PNG that carries its text, by which a test finds a stale picture."""
    from PIL import Image, PngImagePlugin

    figure.savefig(path)
    about = PngImagePlugin.PngInfo()
    about.add_itxt("Description", drawn_text(figure))
    with Image.open(path) as picture:  # 64 colours take a fourth of the bytes
        few = picture.convert("RGB").quantize(64)
    few.save(path, optimize=True, pnginfo=about)


def _linked(created: str, profile: str) -> str:
    """A link from a page in ``docs`` to the committed run of that time and profile, with its
    name.
    """
    for name, run in _references():
        if run.profile == profile and run.created.startswith(created):
            return f"[`{name.removesuffix('.json')}`](../reports/data/{name})"
    raise LookupError(f"no committed run of {created}, profile {profile}")


_SHOWN_CLAIMS = ("fuse-159x", "vulkan-24-36us", "firefox-1.04ms", "reduce-overhead-2.78x")
"""The claims whose values are shown: those whose verdict says most."""


def verdicts() -> str:
    """The verdicts on some published claims, from the committed fingerprints: a row a source and a
    row a run.
    """
    runs = [run for _, run in _references()]
    judged_by_id = {judged.claim.id: judged for judged in judge_runs(runs)}
    rows = []
    for claim_id in _SHOWN_CLAIMS:
        judged = judged_by_id[claim_id]
        claim = judged.claim
        assert claim.test is not None
        verdict = f"{claim.said} **{judged.verdict.capitalize()}.**"
        source = f"{claim.hardware} ([{judged.source.short}]({judged.source.where[0]}))"
        rows.append([verdict, source, claim_words.published_figure(claim), ""])

        like_for_like = _values_by_run(claim.test, [value for value, _ in judged.measured])
        as_published: dict[str, str] = {}
        if claim.flawed:
            as_published = _values_by_run(claim.flawed, judged.flawed)
        for run in {**like_for_like, **as_published}:
            rows.append(["", run, as_published.get(run, ""), like_for_like.get(run, "")])
    head = ["claim, verdict", "hardware, source or run", "published method", "like for like"]
    return _table(head, rows)


def _values_by_run(test: ClaimTest, found: Sequence[ClaimValue]) -> dict[str, str]:
    """The values of each run with their intervals, and their stacks where there are two.

    A value with a wide interval is called noisy; what the file calls noisy may be another figure
    behind the value.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for claimed in found:
        if claimed.measured is None:
            continue
        stack = claimed.cases[-1].target.stack
        value = claim_words.quantity(claimed.measured, test.unit)
        if by_interval(claimed.measured).status != "ok":
            value += " noisy"
        run = _linked(claimed.created, claimed.profile)
        groups.setdefault(run, []).append((stack, value))

    texts = {}
    for run, values in groups.items():
        if len(values) == 1:
            _, texts[run] = values[0]
        else:
            texts[run] = ", ".join(f"{stack} {value}" for stack, value in values)
    return texts


_BASE = Path("docs/examples/compare/numpy-1.26.json")
_NEW = Path("docs/examples/compare/numpy-2.4.json")
"""The committed pair of runs that differ in the version of NumPy."""


def compared() -> str:
    """The output of ``overhead compare`` for the committed pair of runs."""
    comparison = compare(ROOT / _BASE, ROOT / _NEW)
    out = io.StringIO()
    show_blocks(comparison_blocks(comparison), Console(file=out, width=200, color_system=None))
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()
    return f"```text\n$ overhead compare {_BASE.as_posix()} {_NEW.as_posix()}\n{text}\n```"


_SAVED = ROOT / "docs" / "examples" / "readme"
_EXPLAINED_STEP = ROOT / "tests" / "data" / "explained" / "lstm.json"
_MOST_PRINTED = 16
"""Lines of an output that a reader of the Python API is shown."""


def python_explain() -> str:
    """What ``print`` shows of a step that was explained on a GPU."""
    return _printed(read_explanation(_EXPLAINED_STEP))


def python_time() -> str:
    """What ``print`` shows of a call that was timed."""
    return _printed(read_timing(_SAVED / "time.json"))


def python_load() -> str:
    """What ``print`` shows of the example fingerprint."""
    return _printed(read_fingerprint(ROOT / "docs" / "example-fingerprint.json"))


def python_compare() -> str:
    """What ``print`` shows of the committed pair of runs."""
    return _printed(compare(ROOT / _BASE, ROOT / _NEW))


def _printed(result: object) -> str:
    """What ``print`` shows of a result in a notebook; the first lines of a long one."""
    with mock.patch.dict(os.environ, COLUMNS="100"):
        lines = str(result).splitlines()
    if len(lines) > _MOST_PRINTED:
        lines = [*lines[:_MOST_PRINTED], "\N{HORIZONTAL ELLIPSIS}"]
    return "\n".join(["```text", *lines, "```"])


def decoding_run() -> str:
    """Of the committed run of a decoder: the kernels, unfused and fused, and the batches."""
    view = View(read_fingerprint(_DATA / "nvidia-h200-decode-0.5b.json"))
    (decoder,) = decoder_results(view)
    return "\n\n".join([_kernels_table(decoder.variants), _batches_table(decoder.sweeps)])


def _kernels_table(variants: Iterable[MeasuredVariant]) -> str:
    """The time of a step's kernels in CUDA C and in WGSL, of the program with all fusions and with
    none.
    """
    unfused = []
    fused = []
    for variant in variants:
        fusions = variant.record.params.get("fusions")
        if fusions == 0:
            unfused.append(variant)
        if fusions == len(FUSIONS):
            fused.append(variant)
    head = ["program", "CUDA C, ms", "WGSL, ms", "WGSL over CUDA C"]
    return _table(head, [_kernels_row("unfused", unfused), _kernels_row("fused", fused)])


def _kernels_row(program: str, variants: Sequence[MeasuredVariant]) -> list[str]:
    """The name of a program, the best time of its kernels in each language, and their ratio."""
    cuda = _least_device_time(variants, "cuda")
    wgsl = _least_device_time(variants, "wgsl")
    times = [positive_spread(cuda / 1e6), positive_spread(wgsl / 1e6)]
    return [program, *times, factor_spread(wgsl / cuda)]


def _batches_table(sweeps: Sequence[Sequence[MeasuredVariant]]) -> str:
    """The time of a step by batch: a row a variant, a column a batch."""
    all_variants = itertools.chain.from_iterable(sweeps)
    batches = sorted({variant.batch for variant in all_variants})
    rows = []
    for sweep in sweeps:
        by_batch = {}
        for variant in sweep:
            if variant.complete:
                by_batch[variant.batch] = positive_spread(variant.complete / 1e6)
        name = f"`{sweep[0].record.stack}`: {variant_name(sweep[0])}"
        rows.append([name, *(by_batch.get(batch, "") for batch in batches)])
    return _table(["a step, ms", *(f"batch {batch}" for batch in batches)], rows)


def _least_device_time(variants: Iterable[MeasuredVariant], language: str) -> results.Value:
    """The shortest device time of the variants whose kernels are in this language."""
    times = []
    for variant in variants:
        if variant.device and variant.record.window.get("language") == language:
            times.append(variant.device)
    return min(times, key=lambda time: time.value)


def columns() -> str:
    """The names of the columns of ``to_pandas``."""
    names = ", ".join(f"`{name}`" for name in COLUMNS)
    return textwrap.fill(f"{names}.", 120)


def figure_terms() -> str:
    """A table of the figures: what readers meet, and what the file calls it."""
    rows = []
    for term in FIGURE_TERMS:
        column = f"{term.column}, {MICRO}" if term.column else ", ".join(term.forms)
        field = f"`{term.field}`" if term.field else ""
        rows.append([f"**{term.name}**", column, field, term.meaning])
    return _table(["name", "column", "in the file", "meaning"], rows)


def other_terms() -> str:
    """A table of the other terms."""
    rows = []
    for term in GLOSSARY:
        if term not in FIGURE_TERMS:
            also = list(term.forms)
            if term.field:
                also.append(f"`{term.field}`")
            rows.append([f"**{term.name}**", ", ".join(also), term.meaning])
    return _table(["term", "also", "meaning"], rows)


def reasons() -> str:
    """A table of the codes of reasons that the figures of a file and the file itself have."""
    rows = []
    for room in ("measure", "loading"):
        module = importlib.import_module(f"overhead.words.reasons.{room}")
        templates: dict[str, str] = module.TEMPLATES
        for code, template in templates.items():
            rows.append([f"`{code}`", template.replace("{us}", "us")])
    return _table(["code", "its sentence, with its values"], rows)


def explained() -> str:
    """A table of what ``overhead explain`` says of the programs of ``explain_programs.py``."""
    runs = json.loads(_EXPLAINED.read_text("utf-8"))
    rows = []
    for name, bound in _bounds_of_programs().items():
        undisturbed = _explained_cells(runs[f"{name}, quiet"])
        busy = _explained_cells(runs[f"{name}, busy"])
        rows.append([f"`{name}`", bound, *undisturbed, *busy])
    times = ["a step, ms", "seconds"]
    return _table(["program", "bound by", "verdict", *times, "busy host: verdict", *times], rows)


def makers() -> str:
    """A table of the makers of published traces: what they publish, and what the program says."""
    head = ["maker", "files", "what", "`overhead explain --trace` says"]
    return _table(head, rows_of_makers(published_traces().trace))


def _bounds_of_programs() -> dict[str, str]:
    """What bounds each program of ``explain_programs.py`` by its construction.

    Read from the source: to import the file needs torch.
    """
    for node in ast.parse(_PROGRAMS.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BOUNDS":
            bounds: dict[str, str] = ast.literal_eval(node.value)
            return bounds
    raise LookupError(f"{_PROGRAMS} has no BOUNDS")


def _explained_cells(answer: dict[str, Any]) -> list[str]:
    """What ``overhead explain`` said of a program: the verdict, the time of a step in ms, and how
    long the command took, s.
    """
    verdict = answer["verdict"]["kind"] if "verdict" in answer else answer["failed"]
    wall_ns = answer.get("step", {}).get("wall", {})
    low_ms = wall_ns.get("low", 0.0) / 1e6
    high_ms = wall_ns.get("high", 0.0) / 1e6
    step_ms = "too uncertain"
    if high_ms > low_ms > 0:
        step_ms = f"{low_ms:.3g} to {high_ms:.3g}"
    return [verdict, step_ms, str(answer["seconds"])]


def arguments() -> str:
    """The cost of a launch from Python by the number of its arguments, of the committed run that
    has most of them.
    """
    costs: dict[str, dict[int, str]] = {}
    run = read_fingerprint(_DATA / "again" / "nvidia-h100-x4-stacks-default.json")
    for record in run.records:
        count = record.params.get("arguments")
        is_from_python = record.pattern == "per-submit" and record.caller == "binding"
        if not isinstance(count, int) or not is_from_python:
            continue
        if record.params.get("wait") != "stream":
            continue
        name = f"`{record.stack}` {record.params.get('entry', '')}".strip()
        cost = record.measured("complete")
        text = positive_spread(cost / 1e3) if cost else record.status
        costs.setdefault(name, {})[count] = text

    counts = sorted(set(itertools.chain.from_iterable(costs.values())))
    rows = []
    for name, by_count in costs.items():
        if len(by_count) > 1:
            rows.append([name, *(by_count.get(count, "") for count in counts)])
    return _table(["\N{MICRO SIGN}s, arguments:", *map(str, counts)], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "stacks": stacks,
    "references": references,
    "next-run": next_runs,
    "fleet-power": fleet_power,
    "first-answer": readme.first_answer,
    "explained-step": readme.explained_step,
    "picture": readme.picture,
    "findings": readme.findings,
    "verdicts": verdicts,
    "compared": compared,
    "plugin-interface": plugin_interface,
    "columns": columns,
    "python-explain": python_explain,
    "python-time": python_time,
    "python-load": python_load,
    "python-compare": python_compare,
    "figure-terms": figure_terms,
    "other-terms": other_terms,
    "reasons": reasons,
    "explained": explained,
    "arguments": arguments,
    "decoding-0.5b": decoding_run,
    "makers": makers,
}
_WITH_BLOCKS = (
    "claims", "compare", "cuda", "decode", "explain", "file-format", "fleet", "glossary",
    "installing", "method", "plugins", "python-api", "traces",
)  # fmt: skip
DOCUMENTS = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in _WITH_BLOCKS),
    _DATA / "README.md",
)
"""The documents with generated blocks."""


def filled(text: str) -> str:
    """The text with each of its ``<!-- name -->`` blocks generated again."""
    for name, block in BLOCKS.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        if not start:
            continue
        _, end, after = rest.partition(f"<!-- end {name} -->\n")
        text = f"{before}{start}{block()}\n{end}{after}"
    return text


def _table(head: list[str], rows: list[list[str]]) -> str:
    """The table in Markdown, in which a bar inside a cell needs a backslash."""
    lines = []
    for cells in [head, ["---"] * len(head), *rows]:
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)


DOCUMENTS_WITH_FACTS = ("README.md", "docs/claims.md")
"""The documents of which ``tests/recompute`` forms each number again."""


def facts_file(document: str) -> Path:
    """Where it stands what each number of a document was formed from."""
    return ROOT / "docs" / f"{Path(document).stem.lower()}.facts.json"


def facts(document: str) -> str:
    """The text of the file with the facts of a document."""
    with noting() as printed:
        text = filled((ROOT / document).read_text("utf-8"))
    runs = [run for _, run in _references()]
    runs += [view.fingerprint for view in readme.views()]
    numbers = numbers_of_lines(text, printed, runs)
    return json.dumps(numbers, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "fingerprint.schema.json").write_text(schema(), "utf-8")
    explain_picture.PICTURE.write_text(explain_picture.picture(), "utf-8")
    for name, figure in figures():
        _write_picture(ROOT / "docs" / name, figure)
    for document in DOCUMENTS:
        document.write_text(filled(document.read_text("utf-8")), "utf-8")
    for with_facts in DOCUMENTS_WITH_FACTS:
        facts_file(with_facts).write_text(facts(with_facts), "utf-8")
