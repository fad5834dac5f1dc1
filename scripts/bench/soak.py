"""``main.py soak``: disturb runs at random moments, and resume each of them until it has ended.

A disturbance kills or stops the run or one of its workers, kills it at a chosen change of a file, or fills its disk.
After each, no line of a journal is lost and no process is left for longer than 5 s; after one that let the run clean
up, no other file is left. At the end the files are whole, nothing else is left, and each figure is that of a run which
nothing disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from overhead.loading import files
from overhead.loading.reduce import load
from overhead.results import EndedLine, Fingerprint, RoundLine
from overhead.runner.journal import holds_plan
from scripts.bench.soak_run import SOAK_PLAN
from tests.fakes.disk import measured_lines

_ROOT = Path(__file__).parents[2]
_STEADY = _ROOT / "tests" / "fakes" / "stacks" / "steady.py"
_GONE_S = 5.0
_LONGEST_S = 6.0
"""A disturbance by time comes within this time from the start of a run."""
_MOST_PER_RUN = 6
_DISK_KB = 8192
_UNDISTURBED_SHARE = 15
"""One undisturbed run of numpy for so many disturbances, to compare its figures."""
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_STEPS = (
    "write r.jsonl",
    "sync",
    "open r.json.part",
    "write r.json.part",
    "rename to r.json",
    "write r.samples.jsonl.gz.part",
    "rename to r.samples.jsonl.gz",
    "remove r.jsonl",
)
CRASH_FAULTS = ("lost lines", "orphans", "left files", "failed", "wrong figures")


@dataclass(frozen=True)
class CrashScenario:
    """The options of a run. ``sides``: the folders of its files. ``units_ns``: its true costs by side, if known."""

    options: tuple[str, ...]
    sides: tuple[str, ...] = ("",)
    units_ns: tuple[float, ...] = ()


_STEADY_RUN = ("--plugin", str(_STEADY), "-p", "steady")
CRASH_SCENARIOS: Mapping[str, CrashScenario] = {
    "one journal": CrashScenario(_STEADY_RUN, units_ns=(1_000.0,)),
    "a pair": CrashScenario((*_STEADY_RUN, "--env-new", "STEADY_FACTOR=1.5"), ("base", "new"), (1_000.0, 1_500.0)),
    "numpy": CrashScenario(("-p", "numpy", "--pattern", "per-submit", "--workload", "step")),
}


@dataclass
class Soak:
    """The counts of a soak. ``table``: by disturbance, how often it came and each fault after it."""

    rng: random.Random
    say: Callable[[str], None]
    table: dict[str, Counter[str]] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    figures: dict[str, list[float]] = field(default_factory=lambda: {"disturbed": [], "undisturbed": []})

    @property
    def disturbances(self) -> int:
        return sum(row["times"] for row in self.table.values())

    @property
    def faults(self) -> Counter[str]:
        return Counter({name: sum(row[name] for row in self.table.values()) for name in CRASH_FAULTS})

    def fault(self, disturbance: str, name: str, words: str, times: int = 1) -> None:
        """Count a fault, and print what is known of it."""
        if times:
            self.table.setdefault(disturbance, Counter())[name] += times
            self.say(f"{name} after {disturbance}: {words}")


def soak(options: argparse.Namespace, console: Console) -> bool:
    """Disturb ``--seeds`` times. Returns whether nothing was lost, left or wrong."""
    found = Soak(random.Random(options.seed), lambda words: console.print(words, markup=False, highlight=False))
    while found.disturbances < options.seeds:
        name = found.rng.choice([*CRASH_SCENARIOS])
        with _folder() as folder:
            _Run(found, name, CRASH_SCENARIOS[name], folder).until_it_ends(options.seeds)
        if not options.json:
            console.print(f"{found.disturbances} of {options.seeds}, faults: {found.faults.total()}", highlight=False)
    for _ in range(options.seeds // _UNDISTURBED_SHARE + 1):
        with _folder() as folder:
            _Run(found, "numpy", CRASH_SCENARIOS["numpy"], folder).until_it_ends(0)
    if options.json:
        console.print_json(data={"table": found.table, "states": found.states, "runs": found.runs} | found.figures)
    else:
        _print(found, console)
    return not found.faults.total()


def _print(found: Soak, console: Console) -> None:
    table = Table("disturbance", "times", *CRASH_FAULTS)
    for name, row in sorted(found.table.items()):
        table.add_row(name, *(str(row[column]) for column in ("times", *CRASH_FAULTS)))
    console.print(table)
    states = Table("state of the files", "times")
    for name, times in sorted(found.states.items()):
        states.add_row(name, str(times))
    console.print(states)
    console.print(dict(found.runs))
    for name, values in found.figures.items():
        console.print(f"numpy, {name} runs, cost of a step, us: {' '.join(f'{v / 1e3:.3f}' for v in sorted(values))}")


class _Run:
    """One run in its own folder, with all its resumes."""

    def __init__(self, found: Soak, name: str, scenario: CrashScenario, folder: Path) -> None:
        self.found, self.name, self.scenario, self.rng = found, name, scenario, found.rng
        self.out, self.temporary, self.locks = folder / "out", folder / "tmp", folder / "locks"
        for one in (self.temporary, self.locks, folder / "packages"):
            one.mkdir()
        (folder / "packages" / "steadylib.py").write_text("__version__, COST = '1.0', 1000.0\n")
        paths = [str(folder / "packages"), str(_ROOT), os.environ.get("PYTHONPATH", "")]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "TMPDIR": str(self.temporary),
            "SOAK_FOLDER": str(self.locks),
        }
        self.said = folder / "stderr"
        self.journals = [self.out / side / "r.jsonl" for side in scenario.sides]
        self.seen: list[Counter[bytes]] = [Counter() for _ in self.journals]
        self.last = "nothing"

    def until_it_ends(self, most: int) -> None:
        """Disturb the run at most ``_MOST_PER_RUN`` times, while the soak has fewer than ``most``; then let it end."""
        self.found.runs[self.name] += 1
        planned = self.rng.randint(1, _MOST_PER_RUN)
        disturbed = False
        while planned and self.found.disturbances < most and not self._ended():
            planned -= 1
            disturbed = True
            self.last, disturb = self.rng.choice(_DISTURBANCES)
            disturb(self)
            self.found.table.setdefault(self.last, Counter())["times"] += 1
            self.found.states[self._state()] += 1
            self._check_lines()
            self._check_processes()
        while not self._ended():
            if (code := self._start().wait()) != 0:
                self._fault("failed", f"exit code {code} of the last resume: {self._words()}")
                return
        self._check_end(disturbed)

    def _fault(self, name: str, words: str, times: int = 1) -> None:
        self.found.fault(self.last, name, f"{self.name}: {words}", times)

    def _ended(self) -> bool:
        return not any(path.exists() for path in self.journals) and any(self.out.rglob("*.json"))

    def _start(self, fault: str = "") -> subprocess.Popen[bytes]:
        """Start the run, or resume it as its messages say."""
        command = [sys.executable, "-m", "scripts.bench.soak_run", "run", *self.scenario.options]
        first = [*command, "--profile", "quick", "--out", str(self.out / "r.json")]
        left = [path for path in self.journals if path.exists()]
        whole = len(left) == len(self.journals) or any(self.out.rglob("*.json"))
        if left and whole and all(map(holds_plan, left)):
            first = [*command, "--resume", str(self.rng.choice(left))]
        with open(self.said, "wb") as said:
            return subprocess.Popen(
                first, cwd=_ROOT, env=self.environment | {"SOAK_FAULT": fault}, stdout=said, stderr=said
            )

    def _words(self) -> str:
        lines = self.said.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-4:])[-1_000:]

    # The disturbances

    def kill_run(self) -> None:
        process = self._at_a_moment()
        process.kill()
        process.wait()

    def end_run(self) -> None:
        process = self._at_a_moment()
        process.send_signal(self.rng.choice(_ENDING))
        self._check_code(process.wait(), 0, 130, *(-number for number in _ENDING))
        self._check_left()

    def kill_worker(self) -> None:
        process = self._at_a_moment()
        if workers := self._workers(process):
            with contextlib.suppress(psutil.Error):
                self.rng.choice(workers).kill()
        self._let_end(process, 2, words="while it was imported")  # the child that tries a plugin was killed

    def stop_run(self) -> None:
        self._stop(stop_worker=False)

    def stop_worker(self) -> None:
        self._stop(stop_worker=True)

    def _stop(self, *, stop_worker: bool) -> None:
        process = self._at_a_moment()
        with contextlib.suppress(psutil.Error, IndexError):  # it may have ended
            chosen = self.rng.choice(self._workers(process)) if stop_worker else psutil.Process(process.pid)
            chosen.suspend()
            time.sleep(self.rng.choice((0.2, 1.0, 3.0)))
            chosen.resume()
        self._let_end(process)

    def kill_run_with_a_stopped_worker(self) -> None:
        process = self._at_a_moment()
        workers = self._workers(process)
        for one in workers:
            with contextlib.suppress(psutil.Error):
                one.suspend()
        process.kill()
        process.wait()
        for one in workers:  # nothing but SIGKILL and SIGCONT reaches a stopped process
            with contextlib.suppress(psutil.Error):
                one.resume()

    def kill_at_a_change(self) -> None:
        self._check_code(self._start(f"kill:{self._step()}").wait(), 0, -signal.SIGKILL)

    def fill_disk_at_a_change(self) -> None:
        self._check_code(self._start(f"full:{self._step()}").wait(), 0, 2, words="No space left")
        self._check_left()

    def fill_small_disk(self) -> None:
        _mount(self.out, "-o", f"remount,size={self.rng.choice((8, 16, 32, 64, 96))}k")
        code = self._start().wait()
        _mount(self.out, "-o", f"remount,size={_DISK_KB}k")
        self._check_code(code, 0, 2, words="No space left")
        self._check_left()

    def _at_a_moment(self) -> subprocess.Popen[bytes]:
        process = self._start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.rng.uniform(0.1, _LONGEST_S))
        return process

    def _step(self) -> str:
        if self.rng.random() < 0.4:
            return f"#{self.rng.randrange(80)}"
        return f"{self.rng.choice(_STEPS)}#{self.rng.randrange(2)}"

    def _let_end(self, process: subprocess.Popen[bytes], *allowed: int, words: str = "") -> None:
        self._check_code(process.wait(), 0, *allowed, words=words)
        self._check_left()

    # The checks

    def _workers(self, process: subprocess.Popen[bytes]) -> list[psutil.Process]:
        try:
            return list(psutil.Process(process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def _check_code(self, code: int, *allowed: int, words: str = "") -> None:
        if code not in allowed or (words and code == 2 and words not in self._words()):
            self._fault("failed", f"exit code {code}: {self._words()}")

    def _check_left(self) -> None:
        left = [str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*")]
        left += [path.name for path in self.out.rglob("*.part")]
        self._fault("left files", " ".join(left), len(left))

    def _check_lines(self) -> None:
        for number, journal in enumerate(self.journals):
            now = measured_lines(journal)
            lost = self.seen[number] - now
            measured = any(b'"round"' in line or b'"ended"' in line for line in lost)
            self._fault(
                "lost lines", f"{lost.total()} of {journal.parent.name}/{journal.name}", lost.total() * measured
            )
            self.seen[number] = now

    def _check_processes(self) -> None:
        give_up = time.monotonic() + _GONE_S
        while left := self._own_processes():
            if time.monotonic() > give_up:
                self._fault("orphans", f"{len(left)}: {left}", len(left))
                for one in left:
                    one.kill()
                return
            time.sleep(0.1)

    def _own_processes(self) -> list[psutil.Process]:
        found = []
        for one in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                own = one.environ().get("SOAK_FOLDER") == str(self.locks)
                if own and one.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
        return found

    def _state(self) -> str:
        """What the files of the run are after the disturbance."""
        journals = [path for path in self.journals if path.exists()]
        if not journals:
            return "the run has ended" if self._ended() else "no journal"
        if len(journals) < len(self.journals):
            return "a pair of which one journal is left"
        if any(self.out.rglob("*.part")):
            return "a file half written"
        if any(self.out.rglob("*.json")) or any(self.out.rglob("*.gz")):
            return "files beside a journal"
        if not any(measured_lines(path) for path in journals):
            return "no whole plan"
        kinds = [[type(line) for line in files.read_journal(p)] for p in journals if measured_lines(p)]
        if all(own.count(EndedLine) >= SOAK_PLAN.processes for own in kinds):
            return "a complete journal"
        if any(EndedLine in own for own in kinds):
            return "some processes ended"
        return "rounds of the first process" if any(RoundLine in own for own in kinds) else "a plan"

    def _check_end(self, disturbed: bool) -> None:
        self._check_lines()
        self._check_processes()
        left = list(self.temporary.rglob("*"))
        self._fault("left files", " ".join(map(str, left)), len(left))
        wanted = {p.with_suffix(end) for p in self.journals for end in (".json", ".samples.jsonl.gz")}
        others = {path for path in self.out.rglob("*") if path.is_file()} ^ wanted
        self._fault("left files", f"other files than expected: {others}", len(others))
        for number, journal in enumerate(self.journals):
            samples = journal.with_suffix(".samples.jsonl.gz")
            ended = sum(isinstance(line, EndedLine) for line in files.read_journal(samples))
            if ended < SOAK_PLAN.processes:
                self._fault("failed", f"{ended} of {SOAK_PLAN.processes} processes")
            self._check_figure(load(journal.with_suffix(".json")), number, disturbed)
        self.found.runs["ended"] += 1

    def _check_figure(self, run: Fingerprint, side: int, disturbed: bool) -> None:
        figure = next((f for f in run.records[0].figures if f.name == "complete"), None)
        if figure is None or figure.value is None or figure.low is None or figure.high is None:
            self._fault("wrong figures", f"none: {run.records[0].status}: {run.records[0].reason}")
        elif not self.scenario.units_ns:
            self.found.figures["disturbed" if disturbed else "undisturbed"].append(figure.value)
        elif not figure.low <= (true := self.scenario.units_ns[side]) * 1.001 or not 0.999 * true <= figure.high:
            self._fault("wrong figures", f"{figure.low} to {figure.high} ns instead of {true} ns")


def _can_mount() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def _mount(folder: Path, *options: str) -> None:
    """Mount a memory disk, or change its size. A disk that holds more than the new size keeps its own."""
    subprocess.run(["mount", *options, str(folder)], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for a run. Its folder ``out`` is a small disk of its own where this user may mount one."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name, contextlib.ExitStack() as stack:
        out = Path(name) / "out"
        out.mkdir()
        if _can_mount():
            _mount(out, "-t", "tmpfs", "-o", f"size={_DISK_KB}k", "tmpfs")
            stack.callback(subprocess.run, ["umount", str(out)], check=False, stderr=subprocess.DEVNULL)
        yield Path(name)


_DISTURBANCES: list[tuple[str, Callable[[_Run], None]]] = [
    ("run killed", _Run.kill_run),
    ("run killed", _Run.kill_run),
    ("run ended by another signal", _Run.end_run),
    ("worker killed", _Run.kill_worker),
    ("run stopped and continued", _Run.stop_run),
    ("worker stopped and continued", _Run.stop_worker),
    ("run killed, its workers stopped", _Run.kill_run_with_a_stopped_worker),
    ("run killed at a change of a file", _Run.kill_at_a_change),
    ("run killed at a change of a file", _Run.kill_at_a_change),
    ("disk full from a change of a file on", _Run.fill_disk_at_a_change),
    *([("small disk full", _Run.fill_small_disk)] if _can_mount() else []),
]
