"""Values with intervals, formed from the files of runs as a fact says."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

SHOWN = r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
STUDENT = {13: 1.7709, 14: 1.7613, 15: 1.7531, 16: 1.7459}
"""The 95th percentile of Student's t, by degrees of freedom."""
STEPS = {"recurrence": 1500, "acrobot": 500, "simulation": 1500, "rastrigin": 100}
"""The steps that a workload has, where a page tells them."""
Source = Mapping[str, Any]


class Interval(NamedTuple):
    """A value and the ends of its interval; an end is None where it is not known."""

    value: float
    low: float | None = None
    high: float | None = None

    def is_shown_by(self, text: str) -> bool:
        """Whether the text is a rounding: ``V``, ``V (L to H)``, ``L to H`` or ``V (at most H)``,
        with units.
        """
        tokens = [token.replace(",", "").replace("−", "-") for token in re.findall(SHOWN, text)]
        wanted = self._wanted(text, len(tokens))
        if wanted is None:
            return False
        units = [unit_of(token) for token in tokens]
        half = (self.high - self.low) / 2 if self.low is not None and self.high is not None else 0.0
        if half <= 0:
            units = [min(units)] * len(units)
        # Zeros at the end may be digits: two are shown, or one where the interval is wide.
        units = [
            min(u, max(1.0, 10.0 ** (len(t) - 2), half)) for u, t in zip(units, tokens, strict=True)
        ]
        return all(
            abs(float(a) - b) <= 0.5001 * u for a, b, u in zip(tokens, wanted, units, strict=True)
        )

    def _wanted(self, text: str, numbers: int) -> list[float] | None:
        """The numbers that the text should show, in order."""
        shown: tuple[float | None, ...]
        if numbers == 1:
            shown = (self.value,)
        elif numbers == 3:
            shown = (self.value, self.low, self.high)
        elif "at most" in text:
            shown = (self.value, self.high)
        else:
            shown = (self.low, self.high)
        known = [number for number in shown if number is not None]
        return known if len(known) == len(shown) == numbers else None

    def plus(self, other: Interval, sign: int = 1) -> Interval:
        """The sum, or with -1 the difference, with the widest interval."""
        theirs = other.ends if sign > 0 else other.ends[::-1]
        ends = [
            None if a is None or b is None else a + sign * b
            for a, b in zip(self.ends, theirs, strict=True)
        ]
        return Interval(self.value + sign * other.value, *ends)

    def times(self, by: float) -> Interval:
        """The product with a plain number."""
        return (
            self.each(lambda number: number * by)
            if by >= 0
            else self.each(lambda number: number * by).turned
        )

    def over(self, by: Interval) -> Interval:
        """The quotient by a value above zero."""
        low = None if self.low is None or by.high is None else self.low / by.high
        high = None if self.high is None or by.low is None or by.low <= 0 else self.high / by.low
        return Interval(self.value / by.value, low, high)

    def each(self, change: Callable[[float], float]) -> Interval:
        """The value and both ends, changed."""
        ends = [None if end is None else change(end) for end in self.ends]
        return Interval(change(self.value), *ends)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        return self.low, self.high

    @property
    def turned(self) -> Interval:
        return Interval(self.value, self.high, self.low)


def unit_of(token: str) -> float:
    """What the last digit of a number counts."""
    decimals = len(token.partition(".")[2])
    return 10.0 ** (-decimals or len(token) - len(token.rstrip("0")))


def exactly(number: float) -> Interval:
    return Interval(number, number, number)


class Files:
    """The runs, by moment and machine; and the spread between boards."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.spreads: dict[str, Any] = {}
        self.claims: list[set[str]] = []
        """The numbers that stand in each published claim, without commas."""
        self.sources: set[str] = set()
        """The addresses of publications."""
        for path in paths:
            if path.suffix == ".toml":
                text = path.read_text("utf-8")
                self.sources |= set(re.findall(r"(?:doi|arxiv)\.org/[\w./-]+", text))
                if "[[claim]]" in text:
                    claims = text.replace(",", "").split("[[claim]]")
                    self.claims = [set(re.findall(SHOWN, claim)) for claim in claims]
                continue
            data = json.loads(path.read_bytes())
            if path.name == "next_run.json":
                self.spreads = data["spreads"]
                self.costs = data["costs"]
            elif "created" in data and "machine" in data:
                data = {"records": [], "comparisons": [], "contention": [], **data}
                self.runs[f"{data['created']} {data['machine']['id']}"] = data
        self._names: set[str] = set()

    def names(self) -> set[str]:
        """Names and moments in the files, which hold numbers that are no figures."""
        if not self._names:
            self._names |= self.sources
            for run in self.runs.values():
                day, time = run["created"][:10], run["created"][11:16]
                self._names |= {
                    day,
                    f"{day} {time} UTC",
                    f"{day} at {time} UTC",
                    run["machine"]["cpu"],
                }
                for gpu in run["machine"].get("gpus", ()):
                    self._names |= {gpu["name"], " ".join(gpu["name"].split()[:2])}
                method = run["method_version"]
                self._names |= {f"method {other} → {method}" for other in range(1, method)}
                self._names.add(f"{day}, {run['profile']}, method {method}")
                self._names |= {
                    version
                    for version in run.get("versions", {}).values()
                    if re.search(r"\d\.\d", version)
                }
                for record in run["records"]:
                    self._names |= sizes_of(record)
                self._names |= programs_of(run)
        return self._names

    def kinds_of_machine(self, of: Source) -> Interval:
        """How many kinds of machine the files are of."""
        return Interval(len({run["machine"]["id"] for run in self.runs.values()}))

    def boards_of_spread(self, of: Source) -> Interval:
        """From how many boards it is known how far another run may differ."""
        kind = of["words"]
        return Interval(
            max(one["boards"] for name, one in self.spreads.items() if name.endswith(f", {kind}"))
        )

    def formed(self, of: Any) -> Interval:
        """The value of an origin: a figure of a file, a plain number, or an operation on
        origins.
        """
        if isinstance(of, int | float):
            return exactly(of)
        if "figure" in of:
            return self.figure(of)
        operation = of["operation"]
        if operation in OF_RUN:
            return OF_RUN[operation](self, of)
        parts = [self.formed(part) for part in of["parts"]]
        return OPERATIONS[operation](*parts)

    def figure(self, of: Source) -> Interval:
        """A figure of a record, of a comparison, or of peers."""
        run = self.runs[of["run"]]
        if "comparison" in of:
            holder = next(
                one
                for one in run["comparisons"]
                if (one["name"], one["of"], one.get("against", []))
                == (of["comparison"], of["record"], of["against"])
                and any(figure["name"] == of["figure"] for figure in one["figures"])
            )
        elif "peers" in of:
            holder = next(one for one in run["contention"] if is_of_peers(one, of))
        else:
            holder = self.record(of)
        found = next(figure for figure in holder["figures"] if figure["name"] == of["figure"])
        if "mode" in of:
            return Interval(found["modes"][of["mode"]])
        low, high = found.get("low"), found.get("high")
        bounded = low is not None and high is not None
        return Interval(found["value"], low if bounded else None, high if bounded else None)

    def record(self, of: Source) -> dict[str, Any]:
        run = self.runs[of["run"]]
        return next(record for record in run["records"] if key_of(record) == of["record"])

    def run_to_run(self, of: Source) -> Interval:
        """A figure, and where 9 of 10 other runs would put it."""
        value = self.formed(of["parts"][0])
        spread = self.spreads[of["words"]]
        factor = math.exp(STUDENT[spread["degrees"]] * spread["s"] * math.sqrt(2))
        return Interval(value.value, value.value / factor, value.value * factor)

    def spread_factor(self, of: Source) -> Interval:
        """By how much another run may differ, as a share."""
        spread = self.spreads[of["words"]]
        return Interval(math.exp(STUDENT[spread["degrees"]] * spread["s"] * math.sqrt(2)) - 1)

    def time_of_units(self, of: Source) -> Interval:
        """T(n) between two measured n, with the quartiles; beyond the last one with the cost of a
        unit.
        """
        n = of["parts"][0]
        curve = sorted(self.record(of)["curve"], key=lambda point: point["n"])
        high = next((point for point in curve if point["n"] >= n), curve[-1])
        low = curve[max(0, curve.index(high) - 1)]
        share = min(1.0, (n - low["n"]) / (high["n"] - low["n"])) if high is not low else 0.0
        ends = [low[part] + share * (high[part] - low[part]) for part in ("total", "q1", "q3")]
        if n <= high["n"]:
            return Interval(*ends)
        modes = next(f["modes"] for f in self.record(of)["figures"] if f["name"] == "complete")
        costs = (modes[0], min(modes), max(modes))
        more = n - high["n"]
        return Interval(
            *(
                high[part] + more * cost
                for part, cost in zip(("total", "q1", "q3"), costs, strict=True)
            )
        )

    def other_boards(self, of: Source) -> dict[str, float]:
        """What the case of a figure costs on the other boards of its kind of machine, ns, by
        board.
        """
        run, record = self.runs[of["run"]], self.record(of)
        gpus = dict.fromkeys(
            gpu["name"] for gpu in run["machine"]["gpus"] if not gpu.get("software")
        )
        kind = f"{', '.join(gpus)} with {run['machine']['cpu']}"
        target = f"{record['stack']}@{record['api']}:{record['adapter']}"
        case = key_of({**record, "device": ""}).removeprefix(target).strip()
        costs = self.costs[kind][f"{record['stack']} {record['api']} {case}"]
        own = {one["device"] for one in run["records"] if len(one.get("device", "")) == 12}
        return {board: cost for board, cost in costs.items() if board not in own}

    def times_of_other_boards(self, of: Source) -> Interval:
        """The median of the other boards over the figure."""
        (figure,) = of["parts"]
        return Interval(
            statistics.median(self.other_boards(figure).values()) / self.figure(figure).value
        )

    def below_other_boards(self, of: Source) -> Interval:
        """How many figures are below those of all other boards."""
        below = [
            self.figure(part).value < min(self.other_boards(part).values()) for part in of["parts"]
        ]
        return Interval(sum(below))

    def above_other_boards(self, of: Source) -> Interval:
        """How many figures are above those of all other boards."""
        above = [
            self.figure(part).value > max(self.other_boards(part).values()) for part in of["parts"]
        ]
        return Interval(sum(above))

    def boards(self, of: Source) -> Interval:
        """How many other boards have one of the figures."""
        found: set[str] = set()
        for part in of["parts"]:
            found |= self.other_boards(part).keys()
        return Interval(len(found))


def key_of(record: Source) -> str:
    """Target and case of a record in one line, as the files name it in comparisons."""
    device = f"#{record['device']}" if record.get("device") else ""
    words = [f"{record['stack']}@{record['api']}:{record['adapter']}{device}"]
    words += [record[name] for name in ("workload", "pattern", "caller", "dependency")]
    for name, value in sorted(record.get("params", {}).items()):
        words.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    return " ".join(words)


def sizes_of(record: Source) -> set[str]:
    """What a record is about, where that is a number: elements and steps."""
    found = {record["workload"]}
    elements = record.get("params", {}).get("elements")
    if elements is not None:
        found.add(f"{elements:,} elements")
    if record["workload"] in STEPS:
        found.add(f"{STEPS[record['workload']]:,} steps")
    return found


def programs_of(run: Source) -> set[str]:
    """How many dispatches each program of the run has, as it is and when fused."""
    counts: dict[str, dict[int, set[int]]] = {}
    for record in run["records"]:
        dispatches, fusions = (
            record.get("window", {}).get("dispatches"),
            record.get("params", {}).get("fusions"),
        )
        if isinstance(dispatches, int) and isinstance(fusions, int):
            counts.setdefault(record["workload"], {}).setdefault(fusions, set()).add(dispatches)
    found = set()
    for own in counts.values():
        for unfused in own.get(0, ()):
            for fused in own[max(own)]:
                found.add(f"{unfused:,} dispatches, {fused:,} when fused")
    return found


def is_of_peers(one: Source, of: Source) -> bool:
    target, case = one["target"], one["case"]
    usual = {"caller": "binding", "dependency": "chained", "workload": "step"}
    key = key_of({**usual, **target, **case})
    where = (one["way"], one["peers"], one.get("placement", "free"))
    return key == of["record"] and where == (of["way"], of["peers"], of["placement"])


def state_of_run(files: Files, of: Source) -> Interval:
    """What the run tells of the machine's state."""
    return Interval(files.runs[of["run"]]["volatile"][of["words"]])


OF_RUN: dict[str, Callable[[Files, Source], Interval]] = {
    "run-to-run range": Files.run_to_run,
    "run-to-run share": Files.spread_factor,
    "time of units": Files.time_of_units,
    "times of other boards": Files.times_of_other_boards,
    "below other boards": Files.below_other_boards,
    "above other boards": Files.above_other_boards,
    "boards": Files.boards,
    "boards of a spread": Files.boards_of_spread,
    "kinds of machine": Files.kinds_of_machine,
    "state of the run": state_of_run,
}
"""Operations that need more of a file than a figure."""


def at_least(value: Interval, least: Interval) -> Interval:
    return value.each(lambda number: max(number, least.value))


def quotient(value: Interval, by: Interval) -> Interval:
    return value.over(by)


def share_saved(times: Interval) -> Interval:
    ends = [None if end is None or end <= 0 else 1 - 1 / end for end in times.ends]
    return Interval(1 - 1 / times.value, *ends)


def ends_of_modes(first: Interval, last: Interval) -> Interval:
    return Interval(first.value, min(first.value, last.value), max(first.value, last.value))


def measured_on_a_line(measured: Interval, line: Interval) -> Interval:
    """A measured time, with an interval that is at least as wide as that of the line on either
    side.
    """
    if measured.low is None or measured.high is None or line.low is None or line.high is None:
        raise LookupError("a time without an interval")
    low = min(measured.low, measured.value - (line.value - line.low))
    high = max(measured.high, measured.value + (line.high - line.value))
    return Interval(measured.value, max(low, 0.0), high)


OPERATIONS: dict[str, Callable[..., Interval]] = {
    "number": lambda number: number,
    "+": lambda one, other: one.plus(other),
    "-": lambda one, other: one.plus(other, -1),
    "*": lambda value, by: value.times(by.value),
    "/": quotient,
    "at least": at_least,
    "share saved": share_saved,
    "ceil": lambda value: Interval(math.ceil(value.value)),
    "count": lambda *parts: Interval(len(parts)),
    "minimum": lambda *parts: Interval(min(part.value for part in parts)),
    "maximum": lambda *parts: Interval(max(part.value for part in parts)),
    "median": lambda *parts: Interval(statistics.median(part.value for part in parts)),
    "point": lambda value: Interval(value.value),
    "ends of modes": ends_of_modes,
    "measured on a line": measured_on_a_line,
}
