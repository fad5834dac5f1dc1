"""Recompute every number of the report's front page and of README.md from the files of the runs, without the package.

``python tests/recompute/figures.py index.html README.md RUN.json... next_run.json claims.toml`` prints what is wrong.
A number is right within half a unit of its last shown digit. A number that no rule explains is wrong. Times are in µs.
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import math
import re
import statistics
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.recompute.rules import COLUMNS, KEYS, NO_FIGURES, RANGE, RULES, SHORTER, STUDENT, VALUE
from tests.recompute.runs import (
    ACTS,
    NUMBER,
    Record,
    Run,
    Value,
    caller_in,
    class_of,
    figure_of,
    stack_in,
    work_in,
)


class Checker:
    """Collects what is wrong in ``faults``. ``run``: what the text is about, usually ``own``, the run of the page."""

    def __init__(self, paths: Sequence[Path]) -> None:
        files = [path for path in paths if path.suffix == ".json" and path.name != "next_run.json"]
        self.runs = [Run(path) for path in files if path.parent.name != "again"]
        self.again = [Run(path) for path in files if path.parent.name == "again"]
        self.spreads = next(json.loads(path.read_bytes()) for path in paths if path.name == "next_run.json")
        registry = next(path.read_text("utf-8") for path in paths if path.suffix == ".toml")
        self.claims = [set(re.findall(NUMBER, one)) for one in registry.replace(",", "").split("[[claim]]")]
        self.reasons = {f.get("reason", "") for run in self.runs for r in run.records for f in r["figures"]}
        self.reasons |= {one["reason"] for run in self.runs for one in run.data.get("left_out", ())}
        self.own = self.run = self.runs[0]
        self.others: list[Run] = []
        self.chains: dict[str, dict[str, list[Value]]] = {}
        self.graphs: dict[str, list[Value]] = {}
        self.pairs: dict[tuple[str, str], tuple[Value, str]] = {}
        self.counts: dict[str, int] = {}
        self.record: Record = {}
        self.figure = "complete"
        self.faults: list[str] = []

    def check(self, text: str) -> None:
        """Report each number that is not what the rules give, or that no rule gives."""
        left = text
        for pattern, compute in RULES:
            for m in re.finditer(pattern.replace("#", VALUE).replace("~", RANGE), text):
                for at, group in enumerate(i for i in range(1, m.re.groups + 1) if i not in m.re.groupindex.values()):
                    if m[group]:
                        left = left[: m.start(group)] + "_" * len(m[group]) + left[m.end(group) :]
                        self.cell(m[group], text, compute, m, text[: m.end()], at=at)
        for said in sorted(self.literals(text), key=len, reverse=True):
            left = left.replace(said, "_")
        left = re.sub(NO_FIGURES, "_", left)
        self.faults += [f"no rule explains {token} in: {text}" for token in re.findall(NUMBER, left)]

    def cell(self, shown: str, where: str, compute: Callable[..., Any], *about: Any, at: int | None = None) -> None:
        """Report a shown value that is not ``compute(self, *about)``, or its element ``at``."""
        try:
            if not re.search(NUMBER, shown):
                return
            found = compute(self, *about)
            value = found if at is None else found[at]
            if not value.is_shown_by(shown):
                self.faults.append(f"{shown} should be {value} in: {where}")
        except (LookupError, StopIteration, ValueError, AssertionError) as error:
            self.faults.append(f"nothing gives {shown} ({error!r}) in: {where}")

    def literals(self, text: str) -> Iterator[str]:
        """What is no figure but stands in the files: names and times of runs, versions, reasons."""
        yield from self.chains
        yield from (title.partition(": ")[2].partition(", run")[0] for title in self.chains if ": " in title)
        for run in self.runs:
            yield from (run.day, f"{run.day} {run.time} UTC", f"{run.day} at {run.time} UTC", run.machine["cpu"])
            yield from (gpu["name"] for gpu in run.machine["gpus"])
        for run in (run for run in self.others if run.title in text):
            changes = (f"{name} {run.versions.get(name)} → {new}" for name, new in self.own.versions.items())
            yield from (run.title, *changes)
        yield from (f"run of {run.day}" for run in self.runs)
        yield from (one["mend"] for one in self.own.data.get("unavailable", ()) if one.get("mend"))
        said = re.findall(r"(?:no figure|nonlinear): ([^:]{9,}?)…?$", text)
        yield from (one for one in said if any(reason.startswith(one) for reason in self.reasons))

    def case(self, text: str) -> Record:
        return self.run.case(stack_in(text), caller_in(text))

    def factor(self, kind: str) -> float:
        """How far another run may differ, by the committed table."""
        own = self.spreads["spreads"].get(f"{kind}, {self.own.kind}")
        return math.exp(STUDENT[own["degrees"]] * own["s"] * math.sqrt(2)) if own else math.nan

    def place(self) -> list[Value]:
        """Other boards, and of this run's CPU-bound costs those below and above all of theirs, their number; and the
        median of how many times as long the others take."""
        others = [run for run in (*self.runs, *self.again) if run.kind == self.run.kind and len(run.boards) == 1]
        others = [run for run in others if run.boards != self.run.boards]
        below, above, boards, times = 0, 0, set(), []
        for record in self.run.single_dispatches():
            logs: dict[str, list[float]] = {}
            for run in others:
                for like in run.like(record):
                    if class_of(like) == "host" and (value := figure_of(like).value) > 0:
                        logs.setdefault(min(run.boards), []).append(math.log(value))
            theirs = [math.exp(statistics.fmean(own)) for own in logs.values()]
            if len(theirs) >= 3:
                value = figure_of(record).value
                below, above = below + (value < min(theirs)), above + (value > max(theirs))
                times.append(statistics.median(theirs) / value)
                boards |= {*logs}
        return [Value(n) for n in (len(boards), below, above, len(times), statistics.median(times))]

    def next_run(self, record: Record) -> Value:
        waits = self.figure == "naive"
        value = figure_of(record, self.figure).value
        factor = self.factor("host" if waits else class_of(record))
        return Value(value, value / factor, value * factor)

    def canary(self) -> list[Value]:
        least, most = (self.run.data["volatile"][f"canary_us_{end}"] for end in ("least", "most"))
        return [Value(100 * (most / least - 1)), Value(least), Value(most)]

    def way(self, work: str, start: str) -> list[Value]:
        ways = self.chains[work]
        start = "an unfused graph" if start == "a graph" and "an unfused graph, by the driver" in ways else start
        return next(times for label, times in ways.items() if label.startswith(start))

    def beside_graph(self, work: str, label: str, verdict: str) -> Value:
        way, graph = self.way(work, label)[0], self.graphs.get(label, self.way(work, "a graph"))[0]
        return graph.over(way) if "cheaper" in verdict else way.over(graph)

    def cheaper(self, work: str) -> list[Value]:
        """How many times cheaper the fused WGSL kernels are, at least and at most."""
        ways = [self.beside_graph(work, label, "cheaper") for label in self.chains[work] if "WGSL" in label]
        ways = sorted(way for way in ways if not math.isnan(way.value))
        return [ways[0], ways[-1]]

    def cheaper_from(self, work: str, label: str) -> Value:
        """The number of steps from which on a way costs less than the graph."""
        graph, way = self.way(work, "a graph"), self.way(work, label)
        paid = way[2].plus(graph[2], -1).each(lambda end: max(end, 0.0))
        return paid.over(graph[1].plus(way[1], -1)).each(lambda end: max(end, 1.0))

    def cheapest(self, m: re.Match[str]) -> list[Value]:
        """The time of the way that is named, and how many times cheaper than the graph of its run it is."""
        work = work_in(m.string)
        label = next(label for label in self.chains[work] if label.startswith(m["label"]))
        return [self.chains[work][label][0], self.beside_graph(work, label, "cheaper")]

    def step(self, work: str, kind: str) -> Value:
        return min((v[1] for k, v in self.chains[work].items() if kind in k), key=lambda step: step.value)

    def change(self, text: str, said: str) -> list[Value]:
        """The costs before and after what a finding advises."""
        stack, run = stack_in(said), self.run
        before = after = run.case(stack)
        if "CUDA graph" in text or "one pass" in text:
            after = run.batch(stack)
        elif "Wait once" in text:
            before = run.waited(stack, "")
        elif "from compiled code" in text:
            after = run.case(stack, "native")
        else:
            after = run.case(stack, **SHORTER[stack])
        return [figure_of(before), figure_of(after)]

    def replays(self, text: str) -> Value:
        """After how many launches a graph of 100 nodes has saved the time of making it."""
        stack = stack_in(text.split(":")[0])
        node, launch = self.run.batch(stack), self.run.case(stack)

        def line(name: str, fixed: str = "") -> Value:
            return figure_of(node, fixed or f"{name}:fixed").plus(figure_of(node, name), 100)

        making = line("making:capture").plus(line("making:instantiate"))
        if stack == "torch":  # uploads in its first launch, of which a usual replay is no part
            making = making.plus(line("making:first_launch")).plus(line("complete", "fixed"), -1)
        else:
            making = making.plus(line("making:upload"))
        return making.over(Value(0, 0, 0).plus(figure_of(launch).plus(figure_of(node), -1), 100))

    def act(self, text: str, figure: str) -> Value:
        sync = next(name for word, name in ACTS.items() if word in text)
        return self.run.compared("sync-cost", "torch", figure, f"every=1 operand=number sync={sync}")

    def other(self, text: str) -> str:
        return max((run.title for run in self.others), key=text.rfind)

    def pair(self, label: str, other: Run) -> tuple[Value, str]:
        """This run's key figure over the other's, and what bounds both; KeyError for different cases."""
        (value, mine), (that, theirs) = self.own.key(label), other.key(label)
        if any(mine[name] != theirs[name] for name in ("api", "pattern", "params")) or math.isnan(that.value):
            raise LookupError(f"{label} is another case")
        bounds = {"host" if class_of(r) == "host" else "device" for r in (mine, theirs)}
        only = "wait" not in label and "share" not in label and "submit" not in label and len(bounds) == 1
        times = value.over(that)
        steady = times.high - times.low <= 2 * 0.1 * times.value
        return times, bounds.pop() if only and steady else ""

    def left_out(self, reason: str, text: str) -> Value:
        other = next(run for run in self.others if run.title == self.other(text))
        wanted = ("this" in reason, "other" in reason)
        return Value(sum((self.own.has(key), other.has(key)) == wanted for key in KEYS))

    def extremes(self, m: re.Match[str], text: str) -> list[Value]:
        found = [v.value for (run, _), (v, bound) in self.pairs.items() if (run, bound) == (self.other(text), m["l"])]
        return [*map(Value, dict.fromkeys((min(found), max(found)))), Value(len(found))]

    def least(self, work: str, kind: str) -> Value:
        return min((v[0] for k, v in self.chains[work].items() if kind in k), key=lambda time: time.value)

    def table(self, rows: list[list[str]]) -> None:
        """Each cell by the heading of its column and the first cells of its row; the rest by the rules."""
        head = rows[0]
        self.counts.update(dict.fromkeys(head, len(rows) - 1))
        for name in (name for name in head if ", method" in name):
            here = [
                r
                for r in self.runs
                if r.title in name and (r.machine["gpus"][0]["name"] not in name) == (r.machine == self.own.machine)
            ]
            self.others.append(max(here, key=lambda run: len(run.records)))
        for row in rows[1:]:  # a row may be compared with a later one
            with contextlib.suppress(LookupError, StopIteration, ValueError):
                if "way" in head:
                    named = [run for run in self.runs if f"run of {run.day} {run.time} UTC" in row[0]]
                    ways = self.chains.setdefault(row[0], {})
                    self.chains[row[0].partition(":")[0]] = ways
                    here = [run for run in self.runs if run.machine["id"] == self.own.machine["id"]]
                    of_way = [run for run in here if f", run of {run.day}" in row[1]]
                    source = next(run for run in (of_way or named or [self.own]) if run.has_chain(row[0], row[1]))
                    ways[row[1]] = source.chain(row[0], row[1])
                    if of_way:
                        self.graphs[row[1]] = source.chain(row[0], "a graph, by the CUDA driver")
            for other in self.others if "this run" in head else ():
                with contextlib.suppress(LookupError, StopIteration):
                    self.pairs[other.title, row[0]] = self.pair(row[0], other)
        for row in rows:
            with contextlib.suppress(LookupError, StopIteration):
                self.figure = "naive" if "this run" in head and "wait" in row[0] else "complete"
                called = row[1] if "called" in head else row[0]
                self.record = self.own.key(row[0])[1] if "this run" in head else self.case_of(row[0], called)
            for at, (name, cell) in enumerate(zip(head, row, strict=True)):
                found = [(word, of) for word, of in COLUMNS if re.search(word, name)]
                if not found or row is head or not re.match(NUMBER, cell):
                    self.check(cell)
                    continue
                before = sum(re.search(found[0][0], other) is not None for other in head[:at])
                self.cell(cell, f"{' | '.join(row[:2])} | {name}", found[0][1], row, before)

    def case_of(self, label: str, called: str) -> Record:
        if "batched" in called:
            return self.own.batch(stack_in(label))
        raw = {"operation": "raw-kernel"} if "RawKernel" in label else {}
        return self.own.case(stack_in(label), caller_in(called), **raw)

    def picture(self, svg: str) -> None:
        """Texts by the rules; a number beside a label of the vertical axis by that label. Ticks are no figures."""
        text = "{http://www.w3.org/2000/svg}text"
        root = ET.fromstring(svg)
        ticks, labels = ([t for g in root.iter() if (g.get("id") or "").startswith(axis) for t in g.iter(text)]
                         for axis in ("xtick", "ytick"))  # fmt: skip
        titles = [t for t in root.iter(text) if t.text in self.chains]
        for element in (t for t in root.iter(text) if t not in ticks and re.search(NUMBER, t.text or "")):
            shown, y = element.text or "", float(element.get("y", 0))
            away, label = min(((y - float(t.get("y", 0)), t.text or "") for t in labels), key=lambda one: abs(one[0]))
            if element in labels or not re.match(rf"(?:a tie, )?{NUMBER}", shown) or abs(away) > 15:
                self.check(shown)
            elif titles:
                title = [t.text or "" for t in titles if float(t.get("y", 0)) < y][-1]
                compute = COLUMNS[0][1] if "µs" in shown else lambda c, row, words: c.beside_graph(*row, words)
                self.cell(shown, f"{title} | {label}", compute, (title, label), shown)
            elif ":" in label:
                others = [other for other in self.others if (other.title, label.rpartition(":")[0]) in self.pairs]
                for part, other in zip(shown.split(" · "), others, strict=False):
                    self.cell(part, label, lambda c, *about: about[0].key(about[1])[0], other, label)
            elif "%" in shown:
                self.cell(shown, label, lambda c, row: c.own.share(stack_in(row)), label)
            else:  # a value stands above the mark of Python, below that of compiled code, beside that of a batch
                called = "from Python" if away < -5 else "from compiled code" if away > 5 else "batched"
                self.cell(shown, f"{label}, {called}", lambda c, *about: figure_of(c.case_of(*about)), label, called)

    def readme(self, text: str) -> None:
        """Sentences by the rules, with the run that was linked last; claims by the registry; no lines of code."""
        claim = ""
        for line in (line for line in text.splitlines() if not line.startswith("    ")):
            linked = re.search(r"reports/data/([\w.-]+)\.json", line)
            self.run = next((run for run in self.runs if linked and run.name == linked[1]), self.run)
            line = re.sub(rf"\]\([^)]*\)|{NO_FIGURES}", "]", line)
            tokens = {token.replace(",", "") for token in re.findall(NUMBER, line)}
            if linked and line.startswith("|"):
                for flawed, cell in zip((True, False), line.strip("| ").split(" |")[-2:], strict=True):
                    for part in re.split(r", (?=[a-z])", cell):
                        self.cell(part, f"{claim}: {self.run.name}", Checker.claimed, claim, part, flawed)
            elif tokens and re.match(r"\||- [\d,.]+", line) and any(tokens <= published for published in self.claims):
                claim = line
            else:
                self.check(line)

    def claimed(self, claim: str, shown: str, flawed: bool) -> Value:
        """A claim's quantity in the linked run, formed as its source did or like for like: see claims.toml."""
        if "reduce-overhead" in claim:
            modes = (self.run.case("torch-compile", mode=mode, ops=5) for mode in ("eager", "reduce-overhead"))
            return figure_of(next(modes)).over(figure_of(next(modes)))
        if "fused WGSL" not in claim:
            case = self.run.case("firefox" if "Firefox" in claim else stack_in(shown))
            return figure_of(case, "legacy" if flawed else "complete")
        wanted = (("torch", "per-submit", 5000), (stack_in(shown), "fused", 1500))
        times = []
        for stack, pattern, steps in wanted:
            own = self.run.target(stack)
            case = next(r for r in own if (r["workload"], r["pattern"]) == ("simulation", pattern))
            times.append(figure_of(case, "fixed").plus(figure_of(case), steps) if flawed else figure_of(case))
        return times[0].over(times[1])

    def page(self, text: str) -> None:
        """All tables first, because sentences and pictures are about their rows."""
        text = re.sub(r"<(head|script)\b.*?</\1>", "", text, flags=re.DOTALL)
        when = re.search(r"measured (\S+) at (\S+) UTC", text)
        self.own = self.run = next(run for run in self.runs if when and (run.day, run.time) == when.groups())

        def plain(part: str) -> str:
            return " ".join(html.unescape(re.sub(r"<[^>]*>", "", part)).split())

        for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
            self.table(
                [
                    [plain(cell) for cell in re.split(r"<t[hd]\b[^>]*>", row)[1:]]
                    for row in re.split(r"<tr\b[^>]*>", table)[1:]
                ]
            )
        for svg in re.findall(r"data:image/svg.xml;base64,([^\"]+)", text):
            self.picture(base64.b64decode(svg).decode())
        rest = re.sub(r"<t[hdr]\b.*?</t[hdr]>", "", text, flags=re.DOTALL)
        for block in re.split(
            r"</?(?:p|li|h\d|summary|figcaption|caption|div|nav|section|details|table)\b[^>]*>", rest
        ):
            self.check(plain(block))


def faults(paths: Sequence[Path]) -> list[str]:
    """What is wrong on the pages and in the documents among the files."""
    checker = Checker(paths)
    for path in paths:
        check = {".html": checker.page, ".md": checker.readme}.get(path.suffix)
        if check is not None:
            check(path.read_text("utf-8"))
    return list(dict.fromkeys(checker.faults))


if __name__ == "__main__":
    wrong = faults([Path(argument) for argument in sys.argv[1:]])
    print("\n".join(wrong) or "every number is right")
    sys.exit(bool(wrong))
