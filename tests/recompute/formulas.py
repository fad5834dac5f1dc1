"""Values with intervals, formed from the files of runs as a fact says."""

from __future__ import annotations

import json
import math
import re
import statistics
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SHOWN = r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
"""A number as pages print it: ``−1,234.5``."""
STUDENT = {13: 1.7709, 14: 1.7613, 15: 1.7531, 16: 1.7459, 17: 1.7396}
"""The 95th percentile of Student's t, by degrees of freedom."""
STEPS = {"recurrence": 1500, "acrobot": 500, "simulation": 1500, "rastrigin": 100}
"""The steps that a workload has, where a page tells them."""
BOARD_LETTERS = 12
"""The length of a device's name that is the id of a board; others number the devices."""
ROUNDING = 0.5001
"""A number is rounded to half of what its last digit counts; a bit more, for rounded doubles."""
Source = Mapping[str, Any]
"""What a fact says of a value: where the files have it, or an operation and its parts."""


class Interval(NamedTuple):
    """A value and the ends of its interval; an end is None where it is not known."""

    value: float
    low: float | None = None
    high: float | None = None

    def is_shown_by(self, text: str) -> bool:
        """Whether the text is a rounding: ``V``, ``V (L to H)``, ``L to H`` or ``V (at most H)``,
        with units.
        """
        shown = [plain_number(number) for number in re.findall(SHOWN, text)]
        wanted = self._wanted(text, len(shown))
        if wanted is None:
            return False
        units = self._units(shown)
        for number, value, unit in zip(shown, wanted, units, strict=True):
            if abs(float(number) - value) > ROUNDING * unit:
                return False
        return True

    def _wanted(self, text: str, numbers: int) -> list[float] | None:
        """The numbers that the text should show, in order; None where the interval lacks an end
        that the text shows.
        """
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
        if len(known) < len(shown) or len(shown) != numbers:
            return None
        return known

    def _units(self, shown: Sequence[str]) -> list[float]:
        """What the last digit counts, for each number of a text."""
        half_width = 0.0
        if self.low is not None and self.high is not None:
            half_width = (self.high - self.low) / 2
        units = [unit_of(number) for number in shown]
        if half_width <= 0:
            units = [min(units)] * len(units)
        # Zeros at the end may be digits: two are shown, or one where the interval is wide.
        limited = []
        for unit, number in zip(units, shown, strict=True):
            of_second_digit = 10.0 ** (len(number) - 2)
            limited.append(min(unit, max(1.0, of_second_digit, half_width)))
        return limited

    def plus(self, other: Interval) -> Interval:
        """The sum, with the widest interval."""
        low = None if self.low is None or other.low is None else self.low + other.low
        high = None if self.high is None or other.high is None else self.high + other.high
        return Interval(self.value + other.value, low, high)

    def minus(self, other: Interval) -> Interval:
        """The difference, with the widest interval."""
        return self.plus(other.times(-1.0))

    def times(self, by: float) -> Interval:
        """The product with a plain number; one below zero turns the interval round."""
        product = self.each(lambda number: number * by)
        if by >= 0:
            return product
        return Interval(product.value, product.high, product.low)

    def over(self, by: Interval) -> Interval:
        """The quotient by a value above zero."""
        low = None
        if self.low is not None and by.high is not None:
            low = self.low / by.high
        high = None
        if self.high is not None and by.low is not None and by.low > 0:
            high = self.high / by.low
        return Interval(self.value / by.value, low, high)

    def each(self, change: Callable[[float], float]) -> Interval:
        """The value and both ends, changed."""
        low = None if self.low is None else change(self.low)
        high = None if self.high is None else change(self.high)
        return Interval(change(self.value), low, high)


def plain_number(shown: str) -> str:
    """A printed number as Python reads it: ``-1234.5`` for ``−1,234.5``."""
    return shown.replace(",", "").replace("−", "-")


def unit_of(number: str) -> float:
    """What the last digit of a number counts: 0.01 in ``1.25``, 100 in ``1200``."""
    decimals = len(number.partition(".")[2])
    if decimals:
        return 10.0**-decimals
    zeros = len(number) - len(number.rstrip("0"))
    return 10.0**zeros


def exactly(number: float) -> Interval:
    """A number without uncertainty."""
    return Interval(number, number, number)


class Files:
    """The runs, by moment and machine; and the spread between boards."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.spreads: dict[str, Any] = {}
        """By class of figure and kind of machine: how far runs of different boards differ."""
        self.costs: dict[str, Any] = {}
        """By kind of machine and case: what the case costs on each board, ns."""
        self.claims: list[set[str]] = []
        """The numbers that stand in each published claim, without commas."""
        self.published: dict[str, float] = {}
        """By id, the published figures, in microseconds."""
        self.published_traces: dict[str, float] = {}
        """What published traces and our own tell, in microseconds; by file and quantity."""
        self.sources: set[str] = set()
        """The addresses of publications."""
        self.samples: set[str] = set()
        """The names of the files of raw samples."""
        for path in paths:
            if path.suffix == ".toml":
                self._read_publications(path.read_text("utf-8"))
            else:
                self._read_data(path)
        self._names: set[str] = set()

    def _read_publications(self, text: str) -> None:
        self.sources |= set(re.findall(r"(?:doi|arxiv)\.org/[\w./-]+", text))
        for point in tomllib.loads(text).get("point", ()):
            self.published[point["id"]] = point["value"]
        if "[[claim]]" in text:
            claims = text.replace(",", "").split("[[claim]]")
            self.claims = [set(re.findall(SHOWN, claim)) for claim in claims]

    def _read_traces(self, data: dict[str, Any]) -> None:
        """Read what traces tell that others published, and our own."""
        for trace in data["trace"]:
            if "latency_us" in trace:
                file = f"{trace['repository']}/{trace['path']}"
                self.published_traces[f"{file} latency"] = trace["latency_us"]
        for program in data["own"]:
            self.published_traces[f"{program['name']} latency"] = program["latency_us"]

    def _read_data(self, path: Path) -> None:
        """Read a run, or the table of spreads. Other files are none of these."""
        data = json.loads(path.read_bytes())
        if path.name == "next_run.json":
            self.spreads = data["spreads"]
            self.costs = data["costs"]
        elif path.name == "published.json":
            self._read_traces(data)
        elif "created" in data and "machine" in data:
            self.samples.add(f"{path.stem}.samples.jsonl.gz")
            run = {"records": [], "comparisons": [], "contention": [], **data}
            self.runs[f"{run['created']} {run['machine']['id']}"] = run

    def names(self) -> set[str]:
        """Names and moments in the files, which hold numbers that are no figures."""
        if not self._names:
            self._names |= self.sources | self.samples
            for run in self.runs.values():
                self._names |= names_in(run)
        return self._names

    def kinds_of_machine(self, of: Source) -> Interval:
        """How many kinds of machine the files are of."""
        machines = {run["machine"]["id"] for run in self.runs.values()}
        return Interval(len(machines))

    def boards_of_spread(self, of: Source) -> Interval:
        """From how many boards it is known how far another run may differ."""
        of_kind = f", {of['words']}"
        boards = []
        for name, spread in self.spreads.items():
            if name.endswith(of_kind):
                boards.append(spread["boards"])
        return Interval(max(boards))

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
        figure = figure_named(self._holder(of), of["figure"])
        if "mode" in of:
            return Interval(figure["modes"][of["mode"]])
        low, high = figure.get("low"), figure.get("high")
        if low is None or high is None:
            return Interval(figure["value"])
        return Interval(figure["value"], low, high)

    def _holder(self, of: Source) -> dict[str, Any]:
        """What has the figure: a comparison, peers, or a record."""
        run = self.runs[of["run"]]
        if "comparison" in of:
            return next(found for found in run["comparisons"] if is_comparison(found, of))
        if "peers" in of:
            return next(found for found in run["contention"] if is_of_peers(found, of))
        return self.record(of)

    def record(self, of: Source) -> dict[str, Any]:
        """The record with the key that the fact names."""
        run = self.runs[of["run"]]
        return next(record for record in run["records"] if key_of(record) == of["record"])

    def run_to_run(self, of: Source) -> Interval:
        """A figure, and where 9 of 10 other runs would put it."""
        value = self.formed(of["parts"][0]).value
        factor = self._factor_between_runs(of)
        return Interval(value, value / factor, value * factor)

    def _factor_between_runs(self, of: Source) -> float:
        """The factor by which two runs differ at most in 9 of 10 cases.

        ``s`` is the standard deviation of ln(figure) between boards. The difference of two runs has
        that of one, times the root of 2.
        """
        spread = self.spreads[of["words"]]
        t = STUDENT[spread["degrees"]]
        return math.exp(t * spread["s"] * math.sqrt(2))

    def time_of_units(self, of: Source) -> Interval:
        """T(n) between two measured n, with the quartiles; beyond the last one, or below the first
        chain that is not empty, with the cost of a unit.
        """
        n = of["parts"][0]
        for point in self.record(of)["curve"]:
            if point["n"] == n:
                return Interval(point["total"], point["q1"], point["q3"])
        chains = [point for point in self.record(of)["curve"] if point["n"] > 0]
        curve = sorted(chains, key=lambda point: point["n"])
        first, last = curve[0], curve[-1]
        if n > last["n"]:
            return self._beyond(of, last, n - last["n"])
        if n < first["n"]:
            return self._beyond(of, first, n - first["n"])
        above = next(point for point in curve if point["n"] >= n)
        below = curve[max(0, curve.index(above) - 1)]
        share = 0.0
        if above is not below:
            share = (n - below["n"]) / (above["n"] - below["n"])
        ends = []
        for part in ("total", "q1", "q3"):
            ends.append(below[part] + share * (above[part] - below[part]))
        return Interval(*ends)

    def _beyond(self, of: Source, nearest: Source, more: float) -> Interval:
        """The time of the nearest measured chain, and of so many units more; below 0 for fewer."""
        modes = figure_named(self.record(of), "complete")["modes"]
        least, most = sorted([more * min(modes), more * max(modes)])
        return Interval(
            nearest["total"] + more * modes[0], nearest["q1"] + least, nearest["q3"] + most
        )

    def other_boards(self, of: Source) -> dict[str, float]:
        """What the case of a figure costs on the other boards of its kind of machine, ns, by
        board.
        """
        run = self.runs[of["run"]]
        record = self.record(of)
        gpus = [gpu["name"] for gpu in run["machine"]["gpus"] if not gpu.get("software")]
        kind = f"{', '.join(dict.fromkeys(gpus))} with {run['machine']['cpu']}"
        target = f"{record['stack']}@{record['api']}:{record['adapter']}"
        case = key_of({**record, "device": ""}).removeprefix(target).strip()
        costs = self.costs[kind][f"{record['stack']} {record['api']} {case}"]
        devices = {other.get("device", "") for other in run["records"]}
        own_boards = {device for device in devices if len(device) == BOARD_LETTERS}
        return {board: cost for board, cost in costs.items() if board not in own_boards}

    def times_of_other_boards(self, of: Source) -> Interval:
        """The median of the other boards over the figure."""
        (figure,) = of["parts"]
        median = statistics.median(self.other_boards(figure).values())
        return Interval(median / self.figure(figure).value)

    def below_other_boards(self, of: Source) -> Interval:
        """How many figures are below those of all other boards."""
        below = 0
        for figure in of["parts"]:
            if self.figure(figure).value < min(self.other_boards(figure).values()):
                below += 1
        return Interval(below)

    def above_other_boards(self, of: Source) -> Interval:
        """How many figures are above those of all other boards."""
        above = 0
        for figure in of["parts"]:
            if self.figure(figure).value > max(self.other_boards(figure).values()):
                above += 1
        return Interval(above)

    def boards(self, of: Source) -> Interval:
        """How many other boards have one of the figures."""
        boards: set[str] = set()
        for figure in of["parts"]:
            boards |= self.other_boards(figure).keys()
        return Interval(len(boards))


def names_in(run: Source) -> set[str]:
    """The names and moments of a run that hold numbers: its time, its devices, versions, sizes."""
    day, time = run["created"][:10], run["created"][11:16]
    method = run["method_version"]
    names = {
        day,
        f"{day} {time} UTC",
        f"{day} at {time} UTC",
        f"{day}, {run['profile']}, method {method}",
        f"method {method}",
        run["machine"]["cpu"],
        run["machine"]["id"],
    }
    names |= {f"method {earlier} → {method}" for earlier in range(1, method)}
    for gpu in run["machine"].get("gpus", ()):
        first_words = " ".join(gpu["name"].split()[:2])
        names |= {gpu["name"], first_words}
    for version in run.get("versions", {}).values():
        if re.search(r"\d\.\d", version):
            names.add(version)
    for record in run["records"]:
        names |= sizes_of(record)
        precision = record.get("window", {}).get("precision")
        if precision:
            names.add(precision)
    return names | programs_of(run)


def figure_named(holder: Source, name: str) -> dict[str, Any]:
    """The figure of that name; raises ``StopIteration`` without one."""
    return next(figure for figure in holder["figures"] if figure["name"] == name)


def key_of(record: Source) -> str:
    """Target and case of a record in one line, as the files name it in comparisons."""
    device = f"#{record['device']}" if record.get("device") else ""
    words = [f"{record['stack']}@{record['api']}:{record['adapter']}{device}"]
    words += [record[name] for name in ("workload", "pattern", "caller", "dependency")]
    for name, value in sorted(record.get("params", {}).items()):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words.append(f"{name}={text}")
    return " ".join(words)


def sizes_of(record: Source) -> set[str]:
    """What a record is about, where that is a number: elements and steps."""
    workload = record["workload"]
    sizes = {workload}
    elements = record.get("params", {}).get("elements")
    if elements is not None:
        sizes.add(f"{elements:,} elements")
    if workload in STEPS:
        sizes.add(f"{STEPS[workload]:,} steps")
    return sizes


def programs_of(run: Source) -> set[str]:
    """How many dispatches each program of the run has, as it is and when fused."""
    dispatches_by_fusions: dict[str, dict[int, set[int]]] = {}
    for record in run["records"]:
        dispatches = record.get("window", {}).get("dispatches")
        fusions = record.get("params", {}).get("fusions")
        if isinstance(dispatches, int) and isinstance(fusions, int):
            of_program = dispatches_by_fusions.setdefault(record["workload"], {})
            of_program.setdefault(fusions, set()).add(dispatches)
    programs = set()
    for of_program in dispatches_by_fusions.values():
        most_fusions = max(of_program)
        for unfused in of_program.get(0, ()):
            for fused in of_program[most_fusions]:
                programs.add(f"{unfused:,} dispatches, {fused:,} when fused")
                programs.add(f"{fused:,} in place of {unfused:,}")
    return programs


def is_comparison(found: Source, of: Source) -> bool:
    """Whether a comparison of a run is the one that the fact is about, and has its figure."""
    if found["name"] != of["comparison"] or found["of"] != of["record"]:
        return False
    if found.get("against", []) != of["against"]:
        return False
    return any(figure["name"] == of["figure"] for figure in found["figures"])


def is_of_peers(found: Source, of: Source) -> bool:
    """Whether peers of a run are those that the fact is about."""
    usual = {"caller": "binding", "dependency": "chained", "workload": "step"}
    key = key_of({**usual, **found["target"], **found["case"]})
    same_peers = (found["way"], found["peers"]) == (of["way"], of["peers"])
    same_placement = found.get("placement", "free") == of["placement"]
    return key == of["record"] and same_peers and same_placement


def state_of_run(files: Files, of: Source) -> Interval:
    """What the run tells of the machine's state."""
    return Interval(files.runs[of["run"]]["volatile"][of["words"]])


def published_value(files: Files, of: Source) -> Interval:
    """A figure that others published, in microseconds."""
    named = of["words"]
    if named in files.published_traces:
        return Interval(files.published_traces[named])
    return Interval(files.published[named])


OF_RUN: dict[str, Callable[[Files, Source], Interval]] = {
    "run-to-run range": Files.run_to_run,
    "time of units": Files.time_of_units,
    "times of other boards": Files.times_of_other_boards,
    "below other boards": Files.below_other_boards,
    "above other boards": Files.above_other_boards,
    "boards": Files.boards,
    "boards of a spread": Files.boards_of_spread,
    "kinds of machine": Files.kinds_of_machine,
    "published": published_value,
    "state of the run": state_of_run,
}
"""Operations that need more of a file than a figure."""


def at_least(value: Interval, least: Interval) -> Interval:
    return value.each(lambda number: max(number, least.value))


def share_saved(times: Interval) -> Interval:
    """The share of a time that a change by so many times saves: 0.5 for 2 times."""
    low = None if times.low is None or times.low <= 0 else 1 - 1 / times.low
    high = None if times.high is None or times.high <= 0 else 1 - 1 / times.high
    return Interval(1 - 1 / times.value, low, high)


def ends_of_modes(first: Interval, last: Interval) -> Interval:
    """The first speed, with both speeds as the ends."""
    speeds = (first.value, last.value)
    return Interval(first.value, min(speeds), max(speeds))


def measured_on_a_line(measured: Interval, line: Interval) -> Interval:
    """A measured time, with an interval that is at least as wide as that of the line on either
    side.
    """
    if measured.low is None or measured.high is None or line.low is None or line.high is None:
        raise LookupError("a time without an interval")
    line_below = line.value - line.low
    line_above = line.high - line.value
    low = min(measured.low, measured.value - line_below)
    high = max(measured.high, measured.value + line_above)
    return Interval(measured.value, max(low, 0.0), high)


def product(value: Interval, by: Interval) -> Interval:
    return value.times(by.value)


def rounded_up(value: Interval) -> Interval:
    return Interval(math.ceil(value.value))


def number_of(*parts: Interval) -> Interval:
    return Interval(len(parts))


def minimum(*parts: Interval) -> Interval:
    return Interval(min(part.value for part in parts))


def maximum(*parts: Interval) -> Interval:
    return Interval(max(part.value for part in parts))


def median(*parts: Interval) -> Interval:
    return Interval(statistics.median(part.value for part in parts))


def without_interval(value: Interval) -> Interval:
    return Interval(value.value)


def hull(*parts: Interval) -> Interval:
    """The interval that holds all parts."""
    low = min(part.value if part.low is None else part.low for part in parts)
    high = max(part.value if part.high is None else part.high for part in parts)
    return Interval((low + high) / 2, low, high)


def upper_end(value: Interval) -> Interval:
    if value.high is None:
        raise LookupError("no upper end")
    return Interval(value.high)


def unchanged(value: Interval) -> Interval:
    return value


OPERATIONS: dict[str, Callable[..., Interval]] = {
    "number": unchanged,
    "+": Interval.plus,
    "-": Interval.minus,
    "*": product,
    "/": Interval.over,
    "at least": at_least,
    "share saved": share_saved,
    "ceil": rounded_up,
    "count": number_of,
    "minimum": minimum,
    "maximum": maximum,
    "median": median,
    "point": without_interval,
    "ends of modes": ends_of_modes,
    "hull": hull,
    "upper end": upper_end,
    "measured on a line": measured_on_a_line,
}
"""By the name of an operation in a fact: how it forms its value from those of its parts."""
