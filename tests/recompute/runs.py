"""The runs for ``figures.py``: values with their intervals, and cases by stack, caller, pattern and parameters."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

NUMBER = r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
STACKS = {
    "CUDA driver": "cuda-driver",
    "PyTorch": "torch",
    "torch.compile": "torch-compile",
    "cuda.core": "cuda-core",
    "CuTe DSL": "cute-dsl",
    **{name: name.lower() for name in ("CuPy", "Triton", "JAX", "NumPy", "Warp", "numba-cuda", "PyOpenCL", "MLX")},
    **{name: name.lower() for name in ("Vulkan", "Dawn", "wgpu-native", "Chromium", "Firefox")},
}
STEPS = {"recurrence": 1500, "acrobot": 500, "simulation": 1500, "rastrigin": 100}
PATTERNS = {
    "CUDA graph": "replay",
    "eager": "per-submit",
    "a launch": "per-submit",
    "a graph": "replay",
    "fused": "fused",
}
ACTS = {
    ".item()": "item",
    ".cpu()": "cpu",
    "nonzero": "nonzero",
    "branch": "branch",
    "stream": "stream",
    "device": "device",
}
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
        return Value(change(self.value), change(self.low), change(self.high), tuple(map(change, self.modes)))

    def is_shown_by(self, text: str) -> bool:
        """As ``V``, ``V (L to H)``, ``L to H``, ``V (at most H)`` or ``V or W``."""
        if " or " in text:
            both = zip(sorted(self.modes), text.split(" or "), strict=True)
            return all(Value(mode).is_shown_by(part) for mode, part in both)
        tokens = [token.replace(",", "").replace("−", "-") for token in re.findall(NUMBER, text)]
        wanted = (self[:1], self[1:3] if "at most" not in text else self[:3:2], self[:3])[len(tokens) - 1]
        half = (self.high - self.low) / 2
        units = [10.0 ** (-len(t.partition(".")[2]) or len(t) - len(t.rstrip("0"))) for t in tokens]
        if not self.low < half:  # else each has digits of its own
            units = [min(units)] * len(units)
        # Zeros at the end may be digits: two are shown, or one where the interval is wide.
        units = [min(u, max(1.0, 10.0 ** (len(t) - 2), half)) for u, t in zip(units, tokens, strict=True)]
        return all(abs(float(a) - b) <= 0.5001 * u for a, b, u in zip(tokens, wanted, units, strict=True))


class Run:
    """One file, with its cases by stack, caller, pattern and parameters."""

    def __init__(self, path: Path) -> None:
        self.data, self.name = json.loads(path.read_bytes()), path.stem
        usual: Record = {"caller": "binding", "workload": "step", "params": {}, "bound": "", "curve": [], "figures": []}
        self.records = [
            {**usual, **r} for r in self.data.get("records", []) if r.get("executes", True) and not r.get("software")
        ]
        self.versions = {"method": str(self.data["method_version"]), **self.data["versions"]}
        self.day, self.time, self.machine = self.data["created"][:10], self.data["created"][11:16], self.data["machine"]
        self.title = f"{self.day}, {self.data['profile']}, method {self.versions['method']}"

    @property
    def kind(self) -> str:
        gpus = dict.fromkeys(gpu["name"] for gpu in self.machine["gpus"])
        return f"{', '.join(gpus)} with {self.machine['cpu']}"

    @property
    def boards(self) -> set[str]:
        return {r["device"] for r in self.records if len(r.get("device", "")) == 12}

    def single_dispatches(self) -> list[Record]:
        """The CPU-bound base cases of each stack, from Python and from compiled code, and CuPy's RawKernel."""
        found = []
        for stack, caller, params in (
            *((stack, caller, {}) for stack in dict.fromkeys(STACKS.values()) for caller in ("binding", "native")),
            ("cupy", "binding", {"operation": "raw-kernel"}),
        ):
            with contextlib.suppress(LookupError, StopIteration):
                record = self.case(stack, caller, **params)
                if record["api"] != "CPU" and class_of(record) == "host" and figure_of(record).value > 0:
                    found.append(record)
        return found

    def like(self, record: Record) -> list[Record]:
        """The same case, on whichever device."""
        same = ("stack", "api", "workload", "pattern", "caller", "dependency", "params")
        return [r for r in self.records if all(r.get(name) == record.get(name) for name in same)]

    def has_chain(self, title: str, label: str) -> bool:
        try:
            return not math.isnan(self.chain(title, label)[0].value)
        except (LookupError, StopIteration, ValueError):
            return False

    def target(self, stack: str) -> list[Record]:
        own = [r for r in self.records if r["stack"] == stack]
        first = min((r["api"] for r in own), key="CUDA Vulkan CPU".find, default="")
        return [r for r in own if r["api"] == first]

    def case(self, stack: str, caller: str = "", pattern: str = "", **params: Any) -> Record:
        """The case that differs from the base case in these alone, or, of compiled code, also in its operand."""
        base = next(r for r in self.target(stack) if r["workload"] == "step")
        where = ("step", caller or base["caller"], pattern or base["pattern"])
        own = [r for r in self.target(stack) if (r["workload"], r["caller"], r["pattern"]) == where]
        wanted = {**base["params"], **params}.items()
        free: tuple[set[str], ...] = (set(), {"operand"} if caller == "native" else set())
        return next(r for names in free for r in own if {k for k, _ in wanted ^ r["params"].items()} == names)

    def batch(self, stack: str) -> Record:
        if stack == "warp":
            return self.case(stack, "", "replay", entry="graph")
        maker = {"cuda-driver": "driver", "torch": "torch"}.get(stack)
        nodes = (r for r in self.target("cuda-graph") if (r["pattern"], r["workload"]) == ("replay", "step"))
        return next(r for r in nodes if r["params"]["maker"] == maker) if maker else self.case(stack, "", "one-pass")

    def waited(self, stack: str, act: str) -> Record:
        if stack != "torch":
            return self.case(stack, "", "wait-each")
        sync = next(name for word, name in ACTS.items() if word in act)
        return self.case(stack, "", "wait-each" if sync in ("stream", "device") else "read-each", sync=sync, every=1)

    def compared(self, name: str, stack: str, figure: str = "ratio", case: str = " per-submit ") -> Value:
        """A figure of the comparison of two cases that alternated in one process."""
        own = (c for c in self.data["comparisons"] if c["name"] == name and c["of"].startswith(f"{stack}@"))
        return figure_of(next(c for c in own if case in c["of"] and self.machine["gpus"][0]["name"] in c["of"]), figure)

    def share(self, stack: str) -> Value:
        return self.compared("python-share", stack).each(lambda times: 100 * (1 - 1 / times))

    def chain(self, title: str, label: str) -> list[Value]:
        """Of the cheapest way with this label: the time of all steps, of one, and of none."""
        if title.startswith("a token"):
            return [figure_of(self.token(title, label)), Value(), Value()]
        name, steps, elements = re.findall(r"^(\w+): (\S+) steps of (\S+) elements", title)[0]
        where = (name, next(found for word, found in PATTERNS.items() if label.startswith(word)), "binding")
        stack = "cuda-graph" if " graph" in label else "cuda-driver" if "CUDA" in label else stack_in(label)
        own = [r for r in self.target(stack) if (r["workload"], r["pattern"], r["caller"]) == where]
        maker = "torch-compiled" if "torch.compile" in label else "driver"
        fitting = {"elements": int(elements.replace(",", "")), "maker": maker}
        own = [r for r in own if "checks" not in r["params"] and {**fitting, **r["params"]}.items() >= fitting.items()]
        if steps != f"{STEPS[name]:,}":
            raise LookupError(title)
        return min((chain_of(r, STEPS[name]) for r in own), key=lambda times: times[0].value)

    def token(self, title: str, label: str) -> Record:
        """The case of a decoder with this label; its program is the one that the title tells the dispatches of."""
        name, unfused, fused = re.findall(r"^a token: (\S+), (\S+) dispatches, (\S+) when fused", title)[0]
        own = [r for r in self.records if (r["workload"], r["caller"]) == (name, "binding")]
        most = max(r["params"].get("fusions", 0) for r in own)
        counts = {(r["params"].get("fusions"), f"{r['window'].get('dispatches', 0):,}") for r in own}
        if not {(0, unfused), (most, fused)} <= counts:
            raise LookupError(title)
        ways: dict[str, tuple[str, Record]] = {
            "eager": ("torch per-submit", {"fusions": None}),
            "a graph, by PyTorch": ("cuda-graph launches", {"maker": "torch"}),
            "an unfused": ("cuda-graph launches", {"maker": "driver", "fusions": 0}),
            "fused CUDA": ("cuda-driver per-submit", {"fusions": most}),
            "a fused": ("cuda-graph launches", {"maker": "driver", "fusions": most}),
            "fused WGSL, Dawn": ("dawn per-pass", {"fusions": most}),
            "fused WGSL, wgpu": ("wgpu-native per-pass", {"fusions": most}),
        }  # fmt: skip
        where, params = next(way for start, way in ways.items() if label.startswith(start))
        own = [r for r in own if f"{r['stack']} {r['pattern']}" == where]
        return next(r for r in own if {"fusions": None, **r["params"]}.items() >= params.items())

    def key(self, label: str) -> tuple[Value, Record]:
        """A key figure by its label, and its record."""
        stack = stack_in(label)
        record = self.batch(stack) if "node" in label else self.case(stack, caller_in(label))
        if "fused" in label:
            own = (r for r in self.target(stack) if (r["pattern"], r["workload"]) == ("fused", "recurrence"))
            record = next(r for r in own if r["params"] == {"elements": 4096})
        if "share" in label or "submit" in label:
            return self.share(stack) if "share" in label else self.compared("marginal", stack, "per_submit"), record
        return figure_of(record, "naive" if "wait" in label else "complete"), record

    def has(self, label: str) -> bool:
        try:
            return not math.isnan(self.key(label)[0].value)
        except (LookupError, StopIteration):
            return False


def figure_of(record: Record, name: str = "complete") -> Value:
    found: Record = next((f for f in record["figures"] if f["name"] == name), {})
    ends = [found.get(part, math.nan) for part in ("value", "low", "high")]
    value = Value(ends[0], ends[1], ends[2], tuple(found.get("modes", ())))
    return value if found.get("unit") == "ratio" else value.each(lambda ns: ns / 1e3)


def class_of(record: Record) -> str:
    if record["pattern"] in ("fused", "replay", "one-pass") and record["api"] != "CPU":
        return "submission"
    return "device" if record["bound"] in ("device", "balanced") else "host"


def chain_of(record: Record, steps: int) -> list[Value]:
    slope, fixed, curve = figure_of(record), figure_of(record, "fixed"), sorted(record["curve"], key=lambda p: p["n"])
    if math.isnan(slope.value) and slope.modes:  # T(n) bends: as measured, and beyond with the cost of long chains
        high = next((point for point in curve if point["n"] >= steps), curve[-1])
        low = curve[curve.index(high) - 1]
        share = min(1.0, (steps - low["n"]) / (high["n"] - low["n"]))
        ends = ((low[part] + share * (high[part] - low[part])) / 1e3 for part in ("total", "q1", "q3"))
        slope = Value(slope.modes[0], min(slope.modes), max(slope.modes))
        return [Value(*ends).plus(slope, max(0, steps - high["n"])), slope, Value()]
    if not fixed.value > 0:
        fixed = Value(*(curve[0][part] / 1e3 for part in ("total", "q1", "q3")))
    line = fixed.each(lambda end: max(end, 0.0)).plus(slope, steps)
    if not curve[0]["n"] <= steps <= curve[-1]["n"]:
        return [line, slope, fixed]
    high = next(point for point in curve if point["n"] >= steps)  # as measured, at least as wide as the line
    low = curve[max(0, curve.index(high) - 1)]
    share = (steps - low["n"]) / (high["n"] - low["n"]) if high is not low else 0.0
    total, q1, q3 = ((low[part] + share * (high[part] - low[part])) / 1e3 for part in ("total", "q1", "q3"))
    if math.isnan(line.value):  # a refused line: the measured time alone
        return [Value(total, q1, q3), slope, fixed]
    lowest, highest = min(q1, total - (line.value - line.low)), max(q3, total + (line.high - line.value))
    return [Value(total, max(0.0, lowest), highest), slope, fixed]


def work_in(text: str) -> str:
    """The workload that is named last."""
    return max((*STEPS, "a token"), key=text.lower().rfind)


def stack_in(text: str) -> str:
    """The stack that is named last."""
    last = max(STACKS, key=lambda name: text.lower().rfind(name.lower()))
    return STACKS[last] if last.lower() in text.lower() else text


def caller_in(text: str) -> str:
    return "native" if "ompiled code" in text else "browser" if "JavaScript" in text else "binding"
