"""Mistakes planted in the example stack: ``overhead check`` finds each of them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from overhead.checking.check import Report, check
from overhead.checking.findings import Level, Result
from overhead.results import because, codes_of
from tests.fakes.plugins import EXAMPLES, forget_plugins_afterwards

SOURCE = (EXAMPLES / "my_gpu_stack.py").read_text(encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class Mistake:
    """``before`` becomes ``after`` in the example. The check must give ``said``, a code or a part
    of an error, and name a line with ``where``.
    """

    before: str
    after: str
    said: str
    where: str = ""
    level: Level = "error"
    result: Result = "failed"


MISTAKES = {
    "a misspelt pattern": Mistake(
        '"wait-each", "read-each"]',
        '"wait-ech"]',
        "Case.pattern is 'wait-ech'; allowed: per-submit, ",
        "in space",
    ),
    "an axis that the base lacks": Mistake(
        '"arguments": [8]}',
        '"argumnets": [8]}',
        "Space.axes has 'argumnets', which the base case lacks",
        "in space",
    ),
    "an array in the window": Mistake(
        '"queue": "SimpleQueue"',
        '"queue": np.arange(3)',
        "window()['queue'] is array([0, 1, 2]) (ndarray); it must be ",
    ),
    "a wrong overlap": Mistake(
        "self.warm_up(1)",
        'self.overlap = "overlapped"',
        "overlap is 'overlapped'; allowed: pipelined, serial",
    ),
    "units that are rejected silently": Mistake(
        "    def _count(self)",
        "    def issue(self, n: int) -> None:\n        super().issue(min(n, 5))\n\n    def"
        " _count(self)",
        "units-differ (issued=7, executed=5)",
    ),
    "a wait that does not wait": Mistake(
        "        done.wait()", "        self.put((time.sleep, (0.02,)))", "units-differ"
    ),
    "a device time that fails": Mistake(
        "start, end = self._device.stamps",
        "start, end = self._device.stampz",
        "has no attribute 'stampz'",
        "in _time",
    ),
    "a count that returns nothing": Mistake(
        "return lcg.distance(self._seeds, self._words)",
        "return None",
        "count returned None; it must be a number",
    ),
    "a finish that is called too early": Mistake(
        "self._device.finish,\n",
        "self._device.finish(),\n",
        "finish is None; it must be a function, given without calling it",
        "in __init__",
    ),
    "an open that fails": Mistake(
        "lcg.seeds()\n", "lcg.seeds()\n        {}['kernel']\n", "KeyError: 'kernel'", "in __init__"
    ),
    "units of open that count": Mistake(
        "self.warm_up(1)", "super().issue(2)", "units-differ (issued=0, executed=2)"
    ),
    "a device time in seconds instead of an object": Mistake(
        "return DeviceTime(\n            n, end - start,",
        "return dict(\n            n=n, span=end - start,",
        "device-gave-other-types (n=4",
    ),
    "chains that share their values": Mistake(
        "self._words = self._seeds.copy()",
        "self._words = globals().setdefault('WORDS', self._seeds.copy())",
        "units-differ (issued=0, ",
    ),
    "two targets with one key": Mistake(
        "        return [Target(", "        return 2 * [Target(", "targets-share-key (key=mistake-"
    ),
    "a name that is not the target's": Mistake(
        "stack=self.name",
        'stack="thread"',
        "targets() has the stack 'thread'; it must be 'mistake-",
    ),
    "a parameter that changes nothing": Mistake(
        'int(case.params["arguments"])',
        "1",
        "parameter-not-read (parameter='arguments')",
        level="warning",
    ),
    "a unit that differs": Mistake(
        "self.warm_up(1)",
        'self.unit = "launch"',
        "units-named-differently (chain='launch', case='call')",
        level="warning",
    ),
    "a synchronous chain that says that it overlaps": Mistake(
        "self.warm_up(1)", "self.synchronous = True", "synchronous-yet-pipelined", level="warning"
    ),
    "a device time in seconds": Mistake(
        "n, end - start,", "n, (end - start) / 1e9,", "device-time-too-short", level="warning"
    ),
    "a device time in picoseconds": Mistake(
        "n, end - start,", "n, (end - start) * 1e3,", "span-exceeds-calls", level="warning"
    ),
    "a device time of one unit": Mistake(
        "n, end - start,", "n, (end - start) / n,", "span-of-one-unit", level="warning"
    ),
    "a read that does not wait": Mistake(
        "        self._device.finish()\n        return int(self._words[0])",
        "        return int(self._words[0])",
        "work-left-after-units",
        level="warning",
    ),
    "units that run only when their values are read": Mistake(
        "    def _count(self)",
        "    due = 0\n\n    def issue(self, n: int) -> None:\n        self.due += n\n\n    def"
        " executed(self) -> int:\n        super().issue(self.due)\n        self._device.finish()\n "
        "       self.due = 0\n        return super().executed()\n\n    def _count(self)",
        "wait-returns-early",
        level="warning",
    ),
}


def planted(folder: Path, number: int, mistake: Mistake) -> Path:
    """The example with one mistake, as a stack with a name of its own."""
    assert SOURCE.count(mistake.before) == 1
    path = folder / f"mistake_{number}.py"
    own = SOURCE.replace('name = "thread"', f'name = "mistake-{number}"')
    path.write_text(own.replace(mistake.before, mistake.after), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_plugins_afterwards(monkeypatch)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("plugins")
    with pytest.MonkeyPatch.context() as patch:
        forget_plugins_afterwards(patch)
        return check(
            [planted(folder, i, one) for i, one in enumerate(MISTAKES.values())], seconds=0
        )


@pytest.mark.parametrize("name", MISTAKES)
def test_check_finds_a_planted_mistake_in_a_stack(name: str, report: Report) -> None:
    number, mistake = list(MISTAKES).index(name), MISTAKES[name]
    whats = (f"mistake-{number}@", f"mistake-{number} ")
    found = [one for row in report.rows if row.what.startswith(whats) for one in row.findings]
    said = [one for one in found if mistake.said in str(one.message)]
    assert said, [one.message for one in found]
    assert said[0].level == mistake.level
    if mistake.where:
        assert re.search(
            rf"mistake_{number}.py:\d+, {mistake.where}", f"{said[0].message} {said[0].where}"
        )


@pytest.mark.parametrize(
    ("call", "result", "said"),
    [
        ("time.sleep(99)", "hung", "process-silent"),
        ("__import__('ctypes').string_at(0)", "crashed", "process-killed"),
    ],
)
def test_check_reports_a_hang_or_a_crash_as_one_row(
    call: str, result: Result, said: str, tmp_path: Path
) -> None:
    path = planted(tmp_path, 99, Mistake("return int(self._words[0])", f"return int({call})", said))
    report = check([path], seconds=0, silence_s=3)
    (fault,) = (row for row in report.rows if row.failed)
    assert fault.result == result
    assert said in codes_of(fault.findings[0].message)
    assert [row.result for row in report.rows].count(
        "verified"
    ) == 3  # the other patterns do not read


def test_check_finds_no_mistake_in_the_example_stacks() -> None:
    report = check(
        [EXAMPLES / f"{name}.py" for name in ("my_gpu_stack", "my_stack", "my_workload_stack")],
        seconds=0,
    )
    assert {row.result for row in report.rows} == {"verified"}
    assert [one for row in report.rows for one in row.findings if one.level == "error"] == []
    assert not report.failed
    compared = {row.reason for row in report.rows if " recurrence " in row.what}
    assert compared == {because("compared-in-numpy", workload="recurrence")}


WORKLOAD_MISTAKES = {
    "a step that computes something else": Mistake(
        "self._values = self._step(self._values)",
        "new = self._step(self._values)\n        self._values = {**new, 'v': new['v'] *"
        " np.float32(1.02)}",
        "why=after-steps (steps=3)",
    ),
    "a state that is not set": Mistake("{**state, ", "{**self.zeros(), ", "differs-from-reference"),
    "steps that do not run": Mistake("repeat(None, n)", "repeat(None, n - 1)", "counters-differ"),
    "a chain that is not compared": Mistake(
        "verified(PoolWork(case))", "PoolWork(case)", "chain-without-reference"
    ),
    "a chain of another class": Mistake(
        "verified(PoolWork(case))", "step_chain(case)", "chain-not-compared", level="warning"
    ),
}


@pytest.mark.parametrize("name", WORKLOAD_MISTAKES)
def test_check_finds_a_planted_mistake_in_a_workload(name: str, tmp_path: Path) -> None:
    mistake = WORKLOAD_MISTAKES[name]
    text = (EXAMPLES / "my_workload_stack.py").read_text(encoding="utf-8")
    assert text.count(mistake.before) == 1
    path = tmp_path / "mistake.py"
    path.write_text(
        text.replace(mistake.before, mistake.after).replace('"pool"', '"mistake-pool"'),
        encoding="utf-8",
    )
    report = check([path], seconds=0)
    found = [one for row in report.rows if " recurrence " in row.what for one in row.findings]
    assert any(mistake.said in str(one.message) and one.level == mistake.level for one in found), (
        found
    )
    assert not any("compared-in-numpy" in codes_of(row.reason) for row in report.rows)
