"""Recompute every number of the report's front page and of README.md from the files of the runs, without the package.

``python tests/recompute/figures.py index.html README.md RUN.json... next_run.json claims.toml`` prints what is wrong.
A number is right within half a unit of its last shown digit. A number that no rule explains is wrong. Times are in µs.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import re
import statistics
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

NUMBER = r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
VALUE = rf"({NUMBER}(?: or {NUMBER})?(?: ?(?:µs|%|×))?(?: \((?:noisy, |at most )?{NUMBER}(?: to {NUMBER})?\))?)"
RANGE = rf"({NUMBER} to {NUMBER}(?: µs)?|{VALUE[1:]}"
STACKS = {"CUDA driver": "cuda-driver", "PyTorch": "torch", "torch.compile": "torch-compile", "CuPy": "cupy",
          "Triton": "triton", "JAX": "jax", "Vulkan": "vulkan", "Dawn": "dawn", "wgpu-native": "wgpu-native",
          "NumPy": "numpy", "Chromium": "chromium", "Firefox": "firefox"}  # fmt: skip
STEPS = {"recurrence": 1500, "acrobot": 500, "simulation": 1500, "rastrigin": 100}
PATTERNS = {"eager": "per-submit", "a launch": "per-submit", "a graph": "replay", "fused": "fused"}
ACTS = {".item()": "item", ".cpu()": "cpu", "stream": "stream", "device": "device"}
STUDENT = {1: 6.3138, 2: 2.9200, 3: 2.3534, 4: 2.1318}  # the 95th percentile, by degrees of freedom
KEY_FIGURES = 14
NO_FIGURES = (r"x\.add_\(1\)|torch\.compile, 1 op|T\(1\)|^= 1$|left of 1:|95 % confidence|90 % of cases|9 of 10 runs|"
              r"within 5 %, or not|graph of 100 nodes|Python 3\.11")  # fmt: skip
WITH_METHOD = r"\((\d{4}-\d\d-\d\d), (\w+), method (\d+)\)"
Record = dict[str, Any]


class Value(NamedTuple):
    """A value and the ends of its interval, or two speeds; NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    modes: tuple[float, ...] = ()

    def over(self, by: Value) -> Value:
        return Value(self.value / by.value, self.low / by.high, self.high / by.low if by.low > 0 else math.nan)

    def plus(self, by: Value, n: float = 1.0) -> Value:
        low, high = sorted((by.low * n, by.high * n))
        return Value(self.value + by.value * n, self.low + low, self.high + high)

    def each(self, change: Callable[[float], float]) -> Value:
        return Value(*map(change, self[:3]), tuple(map(change, self.modes)))

    def is_shown_by(self, text: str) -> bool:
        """As ``V``, ``V (L to H)``, ``L to H``, ``V (at most H)`` or ``V or W``."""
        tokens = [token.replace(",", "").replace("−", "-") for token in re.findall(NUMBER, text)]
        wanted: Sequence[float] = {1: self[:1], 2: self[1:3], 3: self[:3]}.get(len(tokens), ())
        wanted = sorted(self.modes) if " or " in text else (self.value, self.high) if "at most" in text else wanted
        units = [10.0 ** (-len(t.partition(".")[2]) or len(t) - len(t.rstrip("0"))) for t in tokens]
        if " or " not in text:
            units = [min(units)] * len(units)
        if units[0] > 1:  # zeros at the end may be digits: two are shown, or one where the interval is wide
            units = [min(unit, max(10.0 ** (len(tokens[0]) - 2), (self.high - self.low) / 2)) for unit in units]
        near = (abs(float(a) - b) <= 0.5001 * unit for a, b, unit in zip(tokens, wanted, units, strict=False))
        return len(tokens) == len(wanted) and all(near)


class Run:
    """One file, with its cases by stack, caller, pattern and parameters."""

    def __init__(self, path: Path) -> None:
        self.data, self.name = json.loads(path.read_bytes()), path.stem
        usual: Record = {"caller": "binding", "workload": "step", "params": {}, "bound": "", "curve": [], "figures": []}
        self.records = [{**usual, **r} for r in self.data.get("records", ()) if r.get("executes", True)]
        self.created, self.machine = self.data.get("created", ""), self.data.get("machine", {"gpus": []})
        self.versions = {"method": str(self.data.get("method_version")), **self.data.get("versions", {})}

    def target(self, stack: str) -> list[Record]:
        own = [r for r in self.records if r["stack"] == stack and not r.get("software")]
        first = min(own, key=lambda r: "CUDA Vulkan WebGPU CPU".find(r["api"]), default={"api": ""})
        return [r for r in own if r["api"] == first["api"]]

    def case(self, stack: str, caller: str = "", pattern: str = "", **params: Any) -> Record:
        """The case that differs from the base case in these alone, or, of compiled code, also in its operand."""
        base = next(r for r in self.target(stack) if r["workload"] == "step")
        where = ("step", caller or base["caller"], pattern or base["pattern"])
        own = [r for r in self.target(stack) if (r["workload"], r["caller"], r["pattern"]) == where]
        allowed: tuple[set[str], ...] = (set(), {"operand"} if caller == "native" else set())
        wanted = {**base["params"], **params}.items()
        return next(r for free in allowed for r in own if {k for k, _ in wanted ^ r["params"].items()} == free)

    def batch(self, stack: str) -> Record:
        maker = {"cuda-driver": "driver", "torch": "torch"}.get(stack)
        nodes = (r for r in self.target("cuda-graph") if (r["pattern"], r["workload"]) == ("replay", "step"))
        return next(r for r in nodes if r["params"]["maker"] == maker) if maker else self.case(stack, "", "one-pass")

    def waited(self, stack: str, act: str) -> Record:
        acts = {"sync": next((name for word, name in ACTS.items() if word in act), ""), "every": 1}
        wanted = {**self.case(stack)["params"], **acts}
        return next((r for r in self.target(stack) if r["params"] == wanted), None) or self.case(stack, "", "wait-each")

    def compared(self, name: str, stack: str, figure: str = "ratio", case: str = "") -> Value:
        """A figure of the comparison of two cases that alternated in one process."""
        gpu = self.machine["gpus"][0]["name"]
        own = (c for c in self.data["comparisons"] if c["name"] == name and f"{stack}@" in c["of"] and gpu in c["of"])
        return figure_of(next(c for c in own if case in c["of"]), figure)

    def share(self, stack: str) -> Value:
        return self.compared("python-share", stack, case=" per-submit ").each(lambda times: 100 * (1 - 1 / times))

    def chain(self, title: str, label: str) -> list[Value]:
        """Of the cheapest way with this label: the time of all steps, of one, and of none."""
        name, steps, elements = re.findall(r"[\w,-]+", title.replace(":", "").replace(" steps of", ""))[:3]
        pattern = next(found for word, found in PATTERNS.items() if label.startswith(word))
        stack = "cuda-graph" if pattern == "replay" else "cuda-driver" if "CUDA" in label else stack_in(label)
        where = (name, pattern, "binding")
        own = [r for r in self.target(stack) if (r["workload"], r["pattern"], r["caller"]) == where]
        fitting = {"elements": int(elements.replace(",", "")), "maker": "driver"}
        own = [r for r in own if "checks" not in r["params"] and {**fitting, **r["params"]}.items() >= fitting.items()]
        if int(steps.replace(",", "")) != STEPS[name] or not own:
            raise LookupError(title)
        return min((chain_of(r, STEPS[name]) for r in own), key=lambda times: times[0].value)

    def key(self, label: str) -> tuple[Value, Record, str]:
        """A key figure by its label, its record, and the class of its spread between runs; '' for none."""
        stack, caller = stack_in(label), caller_in(label)
        if "node" in label or "fused" in label:
            where = ("replay", "step", 0) if "node" in label else ("fused", "recurrence", 4096)
            own = self.target("cuda-graph") if "node" in label else self.target(stack)
            own = [r for r in own if (r["pattern"], r["workload"], r["params"].get("elements", 0)) == where]
            record = next(r for r in own if r["params"].get("maker", "driver") == "driver")
        else:
            record = self.case(stack, caller)
        if "share" in label or "submit" in label:
            value = self.share(stack) if "share" in label else self.compared("marginal", stack, "per_submit")
            return value, record, ""
        return figure_of(record, "naive" if "wait" in label else "complete"), record, class_of(record, label)


def figure_of(record: Record, name: str = "complete") -> Value:
    found = next((f for f in record["figures"] if f["name"] == name), {})
    value = Value(*(found.get(k, math.nan) for k in ("value", "low", "high")), tuple(found.get("modes", ())))
    return value if found.get("unit") == "ratio" else value.each(lambda ns: ns / 1e3)


def class_of(record: Record, label: str = "") -> str:
    if record["pattern"] in ("fused", "replay", "one-pass") and record["api"] != "CPU":
        return "submission"
    return "device" if record["bound"] in ("device", "balanced") and "wait" not in label else "host"


def chain_of(record: Record, steps: int) -> list[Value]:
    slope, fixed, curve = figure_of(record), figure_of(record, "fixed"), sorted(record["curve"], key=lambda p: p["n"])
    if math.isnan(slope.value) and slope.modes:  # T(n) bends: as measured, and beyond with the cost of long chains
        slope = Value(slope.modes[0], min(slope.modes), max(slope.modes))
        ends = curve[-1], next((point for point in curve if point["n"] >= steps), curve[-1])
        high, low = ends[1], [point for point in curve if point["n"] < ends[1]["n"]][-1]
        share, beyond = min(1.0, (steps - low["n"]) / (high["n"] - low["n"])), max(0, steps - high["n"])
        ends = (low[part] + share * (high[part] - low[part]) for part in ("total", "q1", "q3"))
        return [Value(*(end / 1e3 for end in ends)).plus(slope, beyond), slope, Value()]
    if not fixed.value > 0:
        fixed = Value(*(curve[0][part] / 1e3 for part in ("total", "q1", "q3")))
    return [fixed.each(lambda end: max(end, 0.0)).plus(slope, steps), slope, fixed]


def stack_in(text: str) -> str:
    """The stack that is named last."""
    last = max(STACKS, key=lambda name: text.lower().rfind(name.lower()))
    return STACKS[last] if last.lower() in text.lower() else text


def caller_in(text: str) -> str:
    return "native" if "ompiled code" in text else "browser" if "JavaScript" in text else "binding"


# A rule: a pattern, with # for a value with its interval and ~ where that may be a range alone, and what gives the
# values from the checker with the run that the text is about, the match, and the text before it.
RULES: tuple[tuple[str, Callable[[Any, Any, str], Sequence[Value]]], ...] = (
    (r"goes through (?P<s>[^:]+): #(?: \(expect ~)?", lambda c, m, t: c.with_next(c.named_case(m, t))),
    (r"# through (?P<s>Dawn|wgpu-native)(?: \(noisy, ~)?", lambda c, m, t: (
        [c.run.share(stack_in(m["s"]))] if "%" in m[0] else [figure_of(c.named_case(m, t))] * 2)),
    (r"a dispatch through (?P<s>[^,]+?) costs # instead of #", lambda c, m, t: [
        figure_of(c.run.batch(stack_in(m["s"]))), figure_of(c.run.case(stack_in(m["s"])))]),
    (r"up to # the real cost \((?P<s>.*?)\)", lambda c, m, t: [
        figure_of(c.named_case(m, t), "naive").over(figure_of(c.named_case(m, t)))]),
    (r"(?P<s>[\w -]+) #, CPU busy for #", lambda c, m, t: [figure_of(c.named_case(m, t), f) for f in ("complete", "host")]),
    (r"within # of the one shown", lambda c, m, t: [Value(100 * (c.spread("host") - 1))]),
    (r"changed by # between processes.* took # to #", lambda c, m, t: c.canary()),
    (r"(?:: |, |and )(?P<w>[a-z]+) \(~ times\)", lambda c, m, t: [c.fused(m["w"])]),
    (r"step of the WGSL kernel takes # times", lambda c, m, t: [c.step(t, "fused WGSL").over(c.step(t, "fused CUDA"))]),
    (r"the step itself takes #", lambda c, m, t: [c.step(t, "fused CUDA")]),
    (r"# times (?P<v>cheaper|dearer) through (?P<s>Dawn|wgpu-native)", lambda c, m, t: [
        c.relative(re.findall(r"(\w+) \(", t)[-1], f"fused WGSL, {m['s']}", m["v"])]),
    (r"\b(?P<w>[a-z]+) # times (?P<v>cheaper|dearer)(?! through)", lambda c, m, t: [
        c.relative(m["w"], "fused CUDA", m["v"])]),
    (r"the (?P<l>host|device)'s figures are (?:alike \()?# times.{0,20}?median of #\)", lambda c, m, t: c.median(m, t)),
    (r"(?P<k>(?:One|Python's share) [^;:(]+) \(# times\)", lambda c, m, t: [c.beside(m["k"], c.named(t))]),
    (r"from # (?:boards|runs of)", lambda c, m, t: [Value(max(s["boards"] for s in c.spreads["classes"].values()))]),
    (r"# figures? in neither", lambda c, m, t: [Value(KEY_FIGURES - len(c.labels))]),
    (r"(?P<k>(?:One|Python's share) [^:]+): #", lambda c, m, t: [c.run.key(m["k"])[0]]),
    (r"(?:: |from )# to # µs|# µs against #|# µs, in eager mode #", lambda c, m, t: [
        figure_of(r) for r in c.change(m.string, stack_in(t))] * 3),
    (r"# (?:µs )?(?:a \w+ )?instead of #(?! \()(?=[ .])", lambda c, m, t: [
        figure_of(r) for r in c.change(m.string, stack_in(t))[::-1]]),
    (r"µs, #(?=[;.])", lambda c, m, t: [figure_of(c.change(m.string, stack_in(t))[0]).over(
        figure_of(c.change(m.string, stack_in(t))[1]))]),
    (r"after # replays?|as much as ~ replays", lambda c, m, t: [c.replays(t).each(math.ceil), c.replays(t)]),
    (r"adds # to a step of #|# µs each; a step with it takes #", lambda c, m, t: [
        c.act(m.string, "difference"), figure_of(c.run.case("torch")), c.act(m.string, "difference"),
        c.act(m.string, "ratio")]),
    (r"a \w+ costs ~\. With (?P<a>.+?) after each it takes ~", lambda c, m, t: [
        figure_of(c.run.case(stack_in(t))), figure_of(c.run.waited(stack_in(t), m["a"]))]),
    (r"noisy, ~$|nonlinear: #, in long chains #|two speeds, #", lambda c, m, t: [
        figure_of(c.record), *map(Value, figure_of(c.record).modes), figure_of(c.record)]),
    (r"x\.add_\(y\), # from Python", lambda c, m, t: [figure_of(c.run.case("torch", operand="tensor"))]),
    (r"same numbers \(#\)$", lambda c, m, t: [Value(c.counts["way"])]),
    (r"^Key figures.* \(#\)$", lambda c, m, t: [Value(c.counts["this run"])]),
    (r"vendors \(#\)|fingerprints of # machines", lambda c, m, t: [Value(len({r.machine["id"] for r in c.runs}))] * 2),
)  # fmt: skip
CHANGES: tuple[tuple[str, Callable[[Run, str], tuple[Record, Record]]], ...] = (
    ("CUDA graph", lambda run, stack: (run.case(stack), run.batch(stack))),
    ("one pass", lambda run, stack: (run.case(stack), run.batch(stack))),
    ("use torch.compile", lambda run, stack: (run.case("torch-compile"), run.case("torch-compile", mode="eager"))),
    ("Wait once", lambda run, stack: (run.waited(stack, ""), run.case(stack))),
    ("from compiled code", lambda run, stack: (run.case(stack), run.case(stack, "native"))),
    ("compiled kernel", lambda run, stack: (run.case(stack), run.case(stack, entry="compiled"))),
    ("RawKernel", lambda run, stack: (run.case(stack), run.case(stack, operation="raw-kernel"))),
    ("tensor operand", lambda run, stack: (run.case(stack), run.case(stack, operand="tensor"))),
    ("Indirect", lambda run, stack: (run.case(stack, indirect=True), run.case(stack))),
    ("bind group", lambda run, stack: (run.case(stack, bindgroup="fresh"), run.case(stack))),
)


class Checker:
    """The faults of the texts that it was given. ``run``: the run that the text is about, usually ``own``."""

    def __init__(self, paths: Sequence[Path]) -> None:
        found = [Run(path) for path in paths if path.suffix == ".json"]
        self.runs = [run for run in found if run.records]
        self.spreads = next(run.data for run in found if "classes" in run.data)
        self.claims = next(path for path in paths if path.suffix == ".toml").read_text("utf-8").replace(",", "").split("[[claim]]")
        self.own = self.run = self.runs[0]
        self.labels: list[str] = []
        self.titles: dict[str, tuple[Run, str]] = {}
        self.others: list[Run] = []
        self.counts: dict[str, int] = {}
        self.record: Record = {"figures": []}
        self.faults: list[str] = []

    def check(self, text: str) -> None:
        """Report each number that is not what the rules give, or that no rule gives."""
        left = text
        for pattern, compute in RULES:
            for m in re.finditer(pattern.replace("#", VALUE).replace("~", RANGE), text):
                spans = [m.span(i) for i in range(1, m.re.groups + 1) if i not in m.re.groupindex.values()]
                for (start, end), value in zip(spans, self.computed(compute, m), strict=False):
                    if start >= 0:
                        left = left[:start] + "_" * (end - start) + left[end:]
                        self.cell(text[start:end], text, lambda value=value: value)
        for said in sorted(self.literals(text), key=len, reverse=True):
            left = left.replace(said, "_")
        left = re.sub(NO_FIGURES, "_", left)
        self.faults += [f"no rule explains {token} in: {text}" for token in re.findall(NUMBER, left)]

    def computed(self, compute: Callable[..., Sequence[Value]], m: re.Match[str]) -> Sequence[Value]:
        try:
            return compute(self, m, m.string[: m.start()])
        except (LookupError, StopIteration, ValueError):
            return [Value()] * 4

    def cell(self, shown: str, where: str, compute: Callable[[], Value]) -> None:
        if re.search(NUMBER, shown):
            try:
                value = compute()
            except (LookupError, StopIteration, ValueError):
                value = Value()
            if not value.is_shown_by(shown):
                self.faults.append(f"{shown} should be {value} in: {where}")

    def literals(self, text: str) -> Iterator[str]:
        """What is no figure but stands in the files: names and times of runs, versions, reasons."""
        for run in self.runs:
            day, time, profile = run.created[:10], run.created[11:16], run.data["profile"]
            yield from (day, f"{day} {time} UTC", f"{day} at {time} UTC", run.machine["cpu"])
            yield from (gpu["name"] for gpu in run.machine["gpus"])
            if (named := f"{day}, {profile}, method {run.versions['method']}") in text:
                new = self.own.versions
                yield from (named, *(f"{n} {old} → {new[n]}" for n, old in run.versions.items() if n in new))
        reasons = [f.get("reason", "") for r in self.run.records for f in r["figures"]]
        reasons += [one["reason"] for one in self.run.data.get("left_out", ())]
        yield from (title for _, title in self.titles.values())
        said = re.findall(r"(?:no figure|nonlinear): ([^:]{9,}?)…?$", text)
        yield from (one for one in said if any(reason.startswith(one) for reason in reasons))

    def named_case(self, m: re.Match[str], before: str) -> Record:
        return self.run.case(stack_in(m["s"]), caller_in(before + m[0]))

    def with_next(self, record: Record) -> list[Value]:
        """The cost, and the range for another run by the committed table."""
        cost, factor = figure_of(record), self.spread(class_of(record))
        return [cost, Value(cost.value, cost.value / factor, cost.value * factor)]

    def spread(self, kind: str) -> float:
        own, gpus = self.spreads["classes"][kind], dict.fromkeys(gpu["name"] for gpu in self.run.machine["gpus"])
        known = f"{kind}, {', '.join(gpus)} with {self.run.machine['cpu']}" in self.spreads["by_kind"]
        return math.exp(STUDENT[own["degrees"]] * own["s"] * math.sqrt(2)) if known else math.nan

    def canary(self) -> list[Value]:
        least, most = (self.run.data["volatile"][f"canary_us_{end}"] for end in ("least", "most"))
        return [Value(100 * (most / least - 1)), Value(least), Value(most)]

    def relative(self, work: str, label: str, verdict: str = "dearer") -> Value:
        """The time of a way over that of the graph of the same row; how many times it is cheaper."""
        run, title = self.titles[work]
        graph, own = run.chain(title, "a graph")[0], run.chain(title, label)[0]
        return graph.over(own) if verdict == "cheaper" else own.over(graph)

    def fused(self, work: str) -> Value:
        """How many times cheaper fused WGSL is: the range over the stacks that have it."""
        found = []
        for stack in ("Dawn", "wgpu-native"):
            with contextlib.suppress(LookupError):
                found.append(self.relative(work, f"fused WGSL, {stack}", "cheaper").value)
        return Value(found[0], min(found), max(found))

    def step(self, before: str, label: str) -> Value:
        """A step of the cheapest such kernel of the workload that was named last."""
        run, title = self.titles[re.findall(r"(\w+) \(", before)[-1]]
        found = []
        for stack in ("Dawn", "wgpu-native"):
            with contextlib.suppress(LookupError):
                found.append(run.chain(title, f"{label}, {stack}")[1])
        return min(found, key=lambda step: step.value)

    def change(self, text: str, stack: str) -> tuple[Record, Record]:
        """The cases before and after what a finding advises."""
        return next(cases for word, cases in CHANGES if word in text)(self.run, stack)

    def replays(self, before: str) -> Value:
        """After how many launches a graph of 100 nodes has saved the time of making it."""
        stack = STACKS[next(name for name in STACKS if f"made by the {name}" in before or f"made by {name}" in before)]
        launch, node = self.run.case(stack), self.run.batch(stack)
        line = lambda slope, fixed: figure_of(node, fixed).plus(figure_of(node, slope), 100)
        uploads = not math.isnan(figure_of(node, "making:upload").value)
        parts = ("capture", "instantiate", *(["upload"] if uploads else ["first_launch"]))
        making = [line(f"making:{part}", f"making:{part}:fixed") for part in parts]
        total = making[0].plus(making[1]).plus(making[2])
        total = total if uploads else total.plus(line("complete", "fixed"), -1)
        return total.over(Value(0, 0, 0).plus(figure_of(launch).plus(figure_of(node), -1), 100))

    def act(self, text: str, figure: str) -> Value:
        name = next(name for word, name in ACTS.items() if word in text)
        return self.run.compared("sync-cost", "torch", figure, f"every=1 operand=number sync={name}")

    def named(self, text: str) -> Run:
        """The run that is named last, by its machine, day, profile and method."""
        *_, m = re.finditer(r"([\w ,]+) \((\d{4}-\d\d-\d\d), (\w+), method (\d+)\)", text)
        found = [r for r in self.runs if (r.created[:10], r.data["profile"], r.versions["method"]) == m.groups()[1:]]
        here = [r for r in found if ("this machine" in m[1]) == (r.machine["id"] == self.own.machine["id"])]
        return max(here, key=lambda run: len(run.records))

    def pair(self, label: str, other: Run) -> tuple[Value, str] | None:
        """This run's key figure over the other's, and what bounds both; None for different cases."""
        try:
            (a, mine, one), (b, theirs, two) = self.own.key(label), other.key(label)
        except (LookupError, StopIteration):
            return None
        apart = any(mine[k] != theirs[k] for k in ("api", "pattern", "params")) or math.isnan(a.value + b.value)
        bounds = {"" if "wait" in label or not kind else "host" if kind == "host" else "device" for kind in (one, two)}
        return None if apart else (a.over(b), "".join(bounds) if len(bounds) == 1 else "")

    def median(self, m: re.Match[str], before: str) -> list[Value]:
        pairs = [self.pair(label, self.named(before)) for label in self.labels]
        found = [pair[0].value for pair in pairs if pair and pair[1] == m["l"]]
        middle = statistics.median(found)
        return [Value(1 / middle if "faster" in m[0] else middle), Value(len(found))]

    def table(self, rows: list[list[str]]) -> None:
        """Each cell by the heading of its column and the first cells of its row; the rest by the rules."""
        head = rows[0]
        kinds = {"way": self.way, "this run": self.key_row, "T(1)": self.wait_row, "called": self.stack_row}
        values_of = next((values_of for word, values_of in kinds.items() if word in head), None)
        self.counts.update(dict.fromkeys(head, len(rows) - 1))
        if "this run" in head:
            self.labels = [row[0] for row in rows[1:]]
            self.others = [self.named(name) for name in head if ", method" in name]
        for row in rows:
            known = values_of(row) if values_of and row is not head else {}
            for at, (name, cell) in enumerate(zip(head, row, strict=True)):
                column = next((word for word in known if re.search(word, name)), "")
                if column and re.match(NUMBER, cell):
                    before = sum(re.search(column, other) is not None for other in head[:at])
                    self.cell(cell, f"{' | '.join(row[:2])} | {name}", lambda: known[column](before))
                else:
                    self.check(cell)
            self.run = self.own

    def way(self, row: Sequence[str]) -> dict[str, Callable[[int], Value]]:
        title, label = row[0], row[1]
        self.run = next((run for run in self.runs if f"run of {run.created[:16].replace('T', ' ')}" in title), self.own)
        self.titles[title.partition(":")[0]] = (self.run, title)
        chain = lambda own: self.run.chain(title, own)
        return {
            "^µs": lambda _: chain(label)[0],
            "relative": lambda _: chain(label)[0].over(chain("a graph")[0]),
            "^a step": lambda _: chain(label)[1],
            "cheaper from": lambda _: cheaper_from(chain("a graph"), chain(label)),
        }

    def key_row(self, row: Sequence[str]) -> dict[str, Callable[[int], Value]]:
        label = row[0]
        return {
            "this run": lambda _: self.own.key(label)[0],
            "next run": lambda _: self.with_next(self.own.key(label)[1])[1],
            ", method": lambda i: self.others[i].key(label)[0],
            "over it": lambda i: self.beside(label, self.others[i]),
        }

    def wait_row(self, row: Sequence[str]) -> dict[str, Callable[[int], Value]]:
        stack = stack_in(row[0])
        return {
            "without": lambda _: figure_of(self.own.case(stack)),
            "with": lambda _: figure_of(self.own.waited(stack, row[1])),
            "T.1": lambda _: figure_of(self.own.case(stack), "naive"),
        }

    def stack_row(self, row: Sequence[str]) -> dict[str, Callable[[int], Value]]:
        self.record = self.case_of(row[0], row[1])
        return {
            "one more": lambda _: figure_of(self.record),
            "CPU": lambda _: figure_of(self.record, "host"),
            "next run": lambda _: self.with_next(self.record)[1],
            "met": lambda _: figure_of(self.record, "met"),
        }

    def case_of(self, label: str, called: str) -> Record:
        raw = {"operation": "raw-kernel"} if "RawKernel" in label else {}
        stack = stack_in(label)
        return self.own.batch(stack) if "batched" in called else self.own.case(stack, caller_in(called), **raw)

    def beside(self, label: str, other: Run) -> Value:
        pair = self.pair(label, other)
        return pair[0] if pair else Value()

    def picture(self, svg: str) -> None:
        """Labels stand in the row of the nearest label of the axis; numbers on the other axis grow to the right."""
        texts: list[tuple[str, float, float, str]] = []

        def walk(element: ET.Element, axis: str) -> None:
            axis = next((a for a in ("xtick", "ytick") if element.get("id", "").startswith(a)), axis)
            if element.tag.endswith("}text"):
                texts.append((axis, float(element.get("x", 0)), float(element.get("y", 0)), "".join(element.itertext())))
            for child in element:
                walk(child, axis)

        walk(ET.fromstring(svg), "")
        labels = [(y, text) for axis, _, y, text in texts if axis == "ytick"]
        titles = [(y, text) for _, _, y, text in texts if " steps of " in text]
        for axis, _, y, text in texts:
            away, label = min(((y - at, own) for at, own in labels), key=lambda one: abs(one[0]))
            if axis == "xtick" or not re.search(NUMBER, text):
                continue
            if not re.match(rf"(?:a tie, )?{NUMBER}", text) or abs(away) > 15:
                self.check(text)
            elif titles:
                title = max(one for one in titles if one[0] < y)[1]
                self.way([title, label])
                own, graph = (self.run.chain(title, name)[0] for name in (label, "a graph"))
                value = own if "µs" in text else graph.over(own) if "cheaper" in text else own.over(graph)
                self.cell(text, f"{title} | {label}", lambda: value)
                self.run = self.own
            elif ":" in label:
                values = [other.key(label)[0] for other in self.others if self.pair(label, other)]
                for shown, value in zip(text.split(" · "), values, strict=True):
                    self.cell(shown, label, lambda: value)
            elif "%" in text:
                self.cell(text, label, lambda: self.own.share(stack_in(label)))
            else:  # the mark's label is above for Python, below for compiled code, beside for batches
                called = "from Python" if away < -5 else "from compiled code" if away > 5 else "batched"
                self.cell(text, f"{label}, {called}", lambda: figure_of(self.case_of(label, called)))

    def readme(self, text: str) -> None:
        """Sentences by the rules, with the run that the block links; claims from the registry and the linked run."""
        claim = ""
        for line in text.splitlines():
            linked = re.search(r"reports/data/([\w.-]+)\.json", line)
            self.run = next((run for run in self.runs if linked and run.name == linked[1]), self.run)
            line = re.sub(r"\]\([^)]*\)|(?:doi|arXiv):[\w./]+", "]", line)
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            tokens = re.findall(NUMBER, line)
            if line.startswith("    ") or not tokens:
                continue
            if line.startswith("|") and linked:
                for flawed, cell in zip((True, False), cells[2:], strict=True):
                    for shown in re.split(r", (?=[a-z])", cell) if cell else ():
                        self.cell(shown, f"{claim} {self.run.name}: {cell}", lambda: self.claimed(claim, shown, flawed))
            elif any({token.replace(",", "") for token in tokens} <= set(re.findall(NUMBER, block)) for block in self.claims):
                claim = line
            else:
                self.check(line)

    def claimed(self, claim: str, shown: str, flawed: bool) -> Value:
        """A claim's quantity in the linked run, as its source formed it or like for like; see claims.toml."""
        if "reduce-overhead" in claim:
            eager, graph = (figure_of(self.run.case("torch-compile", mode=m, ops=5)) for m in ("eager", "reduce-overhead"))
            return eager.over(graph)
        if "fused WGSL" not in claim:
            case = self.run.case("firefox" if "Firefox" in claim else stack_in(shown))
            return figure_of(case, "legacy" if flawed else "complete")
        alike = (("torch", "per-submit"), (stack_in(shown), "fused"))
        cases = [next(r for r in self.run.target(stack) if (r["workload"], r["pattern"]) == ("simulation", pattern))
                 for stack, pattern in alike]  # fmt: skip
        a, b = (figure_of(r) for r in cases)
        if flawed:
            a, b = (figure_of(r, "fixed").plus(v, n) for r, v, n in zip(cases, (a, b), (5000, 1500), strict=True))
        return a.over(b)


def cheaper_from(graph: list[Value], way: list[Value]) -> Value:
    """The number of steps from which on a way costs less than the graph."""
    paid = way[2].plus(graph[2], -1).each(lambda end: max(end, 0.0))
    return paid.over(graph[1].plus(way[1], -1)).each(lambda end: max(end, 1.0))


class Page(HTMLParser):
    """The blocks of text, tables and pictures of a page, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, Any]] = []
        self.text, self.hidden = "", 0
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("head", "script", "style")
        self._flush(tag, False)
        if tag == "tr":
            self.rows.append([])
        source = dict(attrs).get("src") or ""
        if source.startswith("data:image/svg+xml;base64,"):
            self.found.append(("picture", base64.b64decode(source.partition(",")[2]).decode()))

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("head", "script", "style")
        self._flush(tag, True)
        if tag == "table":
            self.found.append(("table", self.rows))
            self.rows = []

    def handle_data(self, data: str) -> None:
        self.text += "" if self.hidden else data

    def _flush(self, tag: str, ends: bool) -> None:
        text = " ".join(self.text.split())
        if tag in ("a", "b", "strong", "span", "em", "code"):
            return
        self.text = ""
        if ends and tag in ("td", "th"):
            self.rows[-1].append(text)
        elif text:
            self.found.append(("check", text))


def faults(paths: Sequence[Path]) -> list[str]:
    """What is wrong on the page and in the document among the files."""
    checker = Checker(paths)
    for path in (path for path in paths if path.suffix in (".html", ".md")):
        if path.suffix == ".md":
            checker.readme(path.read_text("utf-8"))
            continue
        page = Page(path.read_text("utf-8"))
        when = re.search(r"measured (\S+) at (\S+) UTC, profile (\w+)", " ".join(str(part) for _, part in page.found))
        named = (f"{when[1]}T{when[2]}", when[3]) if when else None
        checker.own = checker.run = next(r for r in checker.runs if (r.created[:16], r.data["profile"]) == named)
        for kind, part in sorted(page.found, key=lambda one: one[0] != "table"):
            getattr(checker, kind)(part)
    return list(dict.fromkeys(checker.faults))


if __name__ == "__main__":
    wrong = faults([Path(argument) for argument in sys.argv[1:]])
    print("\n".join(wrong) or "every number is right")
    sys.exit(bool(wrong))
