"""A fingerprint in the terminal: key figures, base cases, the host's time by layer, what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from overhead.errors import cause_of
from overhead.reading.browser_tax import Tax, first_of_each, tax_sentence, taxes
from overhead.reading.dispatch_costs import met_range
from overhead.reading.findings import findings_of
from overhead.reading.format import MICRO, between, count, factor_spread, listed, micro_spread
from overhead.reading.host_shares import HostShares, ladders, share_of_host
from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.missing_values import by_mend, why
from overhead.reading.next_run import next_run_sentence
from overhead.reading.summary import (
    compared_sentence,
    left_out,
    missing_stacks,
    overstatement_sentence,
    software_sentence,
)
from overhead.reading.view import CALLER_WORDS, CALLERS, TargetView, View, by_patterns, without_device
from overhead.results import Fingerprint, Record
from overhead.terminal.console import Column, print_table, say, terminal

_MET = Column(f"met, {MICRO}", number=True, optional=1)
_TIMES = (
    Column(f"complete, {MICRO}", number=True),
    _MET,
    Column(f"host, {MICRO}", number=True, optional=2),
    Column(f"fixed, {MICRO}", number=True, optional=3),
    Column(f"naive, {MICRO}", number=True, optional=4),
)
"""The columns of times; ``docs/method.md`` defines each figure."""
_MOST_NAMED = 3
"""The most cases that a sentence names; it counts the others."""
_FIGURES = ("complete", "met", "host", "fixed", "naive")


def show(fingerprint: Fingerprint, console: Console | None = None, every: bool = False) -> None:
    """Print the key figures and the base cases; with ``every`` all other cases too."""
    console = console or terminal()
    view = View(fingerprint)
    machine = fingerprint.machine
    gpus = [g.name + (" (software)" if g.software else "") for g in machine.gpus]
    say(console, f"{', '.join(gpus) or 'no GPU'}; {machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB")
    say(console, f"measured {fingerprint.created}, profile {fingerprint.profile}, machine {machine.id}")
    _key_figures(fingerprint, console)
    _findings(view, console)
    for sentence in (*_overstated(view), software_sentence(view), missing_stacks(view)):
        if sentence:
            say(console, sentence)
    console.print()
    _base_cases(view, [(target, base_cases(target)) for target in view.targets], console)
    others = {target.key: _others(target) for target in view.targets}
    if every:
        for target in view.targets:
            if others[target.key]:
                console.print()
                _all_cases(target, others[target.key], console)
    else:
        _more_cases(view, console)
    _ladders(view, console)
    _browsers(view, console)
    console.print()
    _missing(view, console)


def show_end(fingerprint: Fingerprint, console: Console | None = None) -> None:
    """Print the end of a run: each target's base case, what to do, and which of the chosen stacks are missing."""
    console = console or terminal()
    view = View(fingerprint)
    shown = [(target, [target.base] if target.stepped else base_cases(target)) for target in view.targets]
    _base_cases(view, shown, console)
    if left := len(fingerprint.records) - sum(len(records) for _, records in shown):
        say(console, f"{count(left, 'more case')}: overhead show", "dim")
    _findings(view, console)
    _missing(view, console)


def _key_figures(fingerprint: Fingerprint, console: Console) -> None:
    figures = key_figures(fingerprint)
    if not any(k.measured for k in figures):
        return
    of, device = without_device([k.of for k in figures])
    again = any(k.next_run for k in figures)
    columns = [
        Column(""),
        Column("this run", number=True),
        *([Column(f"next run, {MICRO}", number=True, optional=1)] if again else []),
        Column(""),
    ]
    rows: list[list[str | Text]] = []
    for k, target in zip(figures, of, strict=True):
        if k.measured is None:
            continue
        note = [part for part in ("" if device else target, k.bound, k.reason.partition(":")[0]) if part]
        rows.append([k.label, Text(k.with_interval, "bold"), *([k.next_run] if again else []), "; ".join(note)])
    print_table(console, "Key figures" + (f", {device}" if device else ""), columns, rows)
    say(console, next_run_sentence(fingerprint.machine))
    _missing_figures([k for k in figures if k.measured is None], console)


def _findings(view: View, console: Console) -> None:
    """What to do here, those findings first that save most."""
    found = findings_of(view)
    if found:
        console.print()
        say(console, "What to do here", "bold")
    for number, finding in enumerate(found, 1):
        say(console, f"{number}. {finding.title}")
        say(console, f"   {finding.detail}", "dim")


def _missing_figures(figures: Sequence[KeyFigure], console: Console) -> None:
    """Each reason once, with the key figures that it explains."""
    by_reason: dict[str, list[str]] = {}
    for k in figures:
        by_reason.setdefault(k.reason, []).append(k.label)
    if by_reason:
        say(console, "Missing key figures:")
    for reason, labels in by_reason.items():
        say(console, f"  {'; '.join(labels)}: {reason}", "dim")


def _overstated(view: View) -> list[str]:
    best = [t for stack in view.stacks if (t := view.best(stack)) is not None and t.stepped]
    return [overstatement_sentence(best)]


def base_cases(target: TargetView) -> list[Record]:
    """Of each pattern and caller the case with the fewest differences from the target's base case, in table order.

    A target without the step has one for each of its workloads.
    """
    found: dict[tuple[str, str, str], Record] = {}
    for record in target.records:
        if target.stepped and record.workload != target.base.workload:
            continue
        key = (record.workload, record.pattern, record.caller)
        held = found.setdefault(key, record)
        if len(target.varied(record)) < len(target.varied(held)):
            found[key] = record
    return by_patterns(found.values())


def _others(target: TargetView) -> list[Record]:
    base = {record.key for record in base_cases(target)}
    return [record for record in by_patterns(target.records) if record.key not in base]


def _more_cases(view: View, console: Console) -> None:
    """How many cases the table of base cases leaves out."""
    if left := sum(len(_others(target)) for target in view.targets):
        say(console, f"{count(left, 'more case')}: overhead show --all", "dim")


def _base_cases(view: View, shown: Sequence[tuple[TargetView, list[Record]]], console: Console) -> None:
    """One table of these cases of all targets, a section each."""
    labels, device = without_device([target.label for target, _ in shown])
    columns = [Column("stack"), Column("case"), Column("called"), Column("per", optional=5), *_TIMES, Column("status")]
    rows: list[list[str]] = []
    ends = []
    for label, (target, records) in zip(labels, shown, strict=True):
        for n, record in enumerate(records):
            rows.append(["" if n else label, *_row(target, record)])
        ends.append(len(rows) - 1)
    _costs("Base cases" + (f", {device}" if device else ""), columns, rows, console, ends)
    _reasons([(target, record) for target, records in shown for record in records], console)
    if said := compared_sentence(view):
        say(console, said)


def _all_cases(target: TargetView, records: Sequence[Record], console: Console) -> None:
    columns = [Column("case"), Column("called"), Column("per", optional=5), *_TIMES, Column("status")]
    _costs(f"More cases: {target.label}", columns, [_row(target, record) for record in records], console)
    _reasons([(target, record) for record in records], console)


def _row(target: TargetView, record: Record) -> list[str]:
    times = [_met(record) if name == "met" else _number(record, name) for name in _FIGURES]
    return [
        target.pattern_label(record),
        CALLER_WORDS[record.caller],
        record.unit,
        *times,
        "" if record.status == "ok" else record.status,
    ]


def _reasons(cases: Sequence[tuple[TargetView, Record]], console: Console) -> None:
    """Each reason for a missing cost once, with the cases that it explains. Reasons of one cause count as one."""
    causes: dict[str, dict[str, list[str]]] = {}
    for target, record in cases:
        if record.value("complete") is None:
            case = f"{target.label} {target.pattern_label(record)} {CALLER_WORDS[record.caller]}"
            reason = why(record, "complete")
            causes.setdefault(cause_of(reason), {}).setdefault(reason, []).append(case)
    for reasons in causes.values():
        named = [case for cases in reasons.values() for case in cases]
        others = f" and {count(len(named) - _MOST_NAMED, 'more case')}" if len(named) > _MOST_NAMED else ""
        alike = " (the first; the others differ in numbers or names)" if len(reasons) > 1 else ""
        say(console, f"No cost of {'; '.join(named[:_MOST_NAMED])}{others}: {next(iter(reasons))}{alike}", "dim")


def _costs(
    title: str, columns: list[Column], rows: list[list[str]], console: Console, sections: Sequence[int] = ()
) -> None:
    """Print the table without the columns that are empty in every row, and name those that did not fit."""
    kept = [i for i, column in enumerate(columns) if not column.optional or any(row[i] for row in rows)]
    hidden = print_table(console, title, [columns[i] for i in kept], [[row[i] for i in kept] for row in rows], sections)
    if hidden:
        say(console, f"Too narrow for {listed(hidden)}; a wider terminal, a file or --json has them.", "dim")


def _ladders(view: View, console: Console) -> None:
    """A table of the host's time with a section for each case and a line for each layer, and its sentences."""
    found = [each for each in ladders(view) if each.split]
    if not found:
        return
    labels, device = without_device([each.target.label for each in found])
    columns = [
        Column("stack"),
        Column("case"),
        Column("layer"),
        Column("share", number=True),
        Column(MICRO, number=True),
        Column(""),
    ]
    rows: list[list[str]] = []
    ends = []
    for label, each in zip(labels, found, strict=True):
        rows += _layers(label, each)
        ends.append(len(rows) - 1)
    console.print()
    print_table(console, "Who takes the host's time" + (f", {device}" if device else ""), columns, rows, ends)


def _layers(label: str, each: HostShares) -> list[list[str]]:
    rows = [[label, each.case, "all of the host's time", "", micro_spread(each.host) if each.host else "missing", ""]]
    rows += [["", "", s.title, share_of_host(each, s), micro_spread(s.figure), s.doubt] for s in each.shares]
    if each.minimal is not None:
        rows.append(["", "", "a minimal Vulkan program", "", micro_spread(each.minimal), "for comparison, no layer"])
    return rows


def _browsers(view: View, console: Console) -> None:
    """What each browser adds to its library: a table a browser, and a sentence for its base case."""
    taxed = taxes(view)
    for label in dict.fromkeys(t.target.label for t in taxed):
        console.print()
        _taxes([t for t in taxed if t.target.label == label], console)
    for tax in first_of_each(taxed):
        say(console, tax_sentence(tax))


def _taxes(found: list[Tax], console: Console) -> None:
    """A table of one browser: a section for each case, with a line for it and one for each caller of its library."""
    names = ("complete", "fixed", "naive")
    columns = [
        Column("case"),
        Column("through"),
        *(Column(f"{n}, {MICRO}", number=True) for n in names),
        Column("browser / library", number=True),
        Column("remark", optional=1),
    ]
    rows: list[list[str]] = []
    ends = []
    for tax in found:
        case = [tax.target.pattern_label(tax.record), "the browser"]
        rows.append([*case, *(_number(tax.record, n) for n in names), "", _remark(tax.record)])
        for caller in sorted({*tax.against, *tax.refused}, key=CALLERS.index):
            record, times = tax.against.get(caller), tax.times(caller)
            numbers = [_number(record, n) if record is not None else "" for n in names]
            ratio = "" if times is None else factor_spread(times)
            through = f"{tax.library}, {CALLER_WORDS[caller]}"
            rows.append(["", through, *numbers, ratio, tax.refused.get(caller, "")])
        ends.append(len(rows) - 1)
    print_table(console, f"What the browser adds: {found[0].target.label}", columns, rows, ends)


def _missing(view: View, console: Console) -> None:
    run = view.fingerprint
    for mend, stacks in by_mend(run.unavailable).items():
        for u in stacks:
            say(console, f"{u.stack} is not available: {u.reason.removesuffix('.')}.")
        if mend:
            say(console, f"  to add {listed(list(dict.fromkeys(u.stack for u in stacks)))}: {mend}")
    for flag in run.flags:
        say(console, f"Note: {flag}")
    if said := left_out(len(run.left_out)):
        say(console, said)


def _number(record: Record, name: str) -> str:
    figure = record.figure(name)
    return micro_spread(figure) if figure is not None and figure.measured else ""


def _met(record: Record) -> str:
    """The range of the met cost over the processes: ``29 to 70 (5 processes)``; empty where it has no value."""
    figure, found = record.figure("met"), met_range(record)
    if figure is None or found is None:
        return ""
    processes = f"{figure.processes} process" + "es" * (figure.processes != 1)
    return f"{between(*found)} ({processes})"


def _remark(record: Record) -> str:
    if record.value("complete") is None:
        return why(record, "complete")
    return record.status if record.status != "ok" else ""
