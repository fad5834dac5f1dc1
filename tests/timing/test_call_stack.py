"""The stack ``call`` on a fake clock: known costs are found, errors end the case, values are not
claimed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import overhead.timing
from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.one_process import Series
from overhead.measure.sampling.chain import Chain
from overhead.probes import load_plugin
from overhead.probes.common.statements import StatementError
from overhead.probes.held_chain import StreamHolder
from overhead.timing.call_spec import CallSpec, FoundCall
from overhead.timing.user_statement import CallChain
from tests.fakes.chains import dropped, measured
from tests.fakes.machine import FakeClock
from tests.fakes.queue_device import QueueDevice

SETUP = "from tests.fakes.queue_device import QueueDevice\nq = QueueDevice.current"
BY_TEXT = FoundCall(one_ns=20_000.0, waits=[], said="q.synchronize()", api="CUDA", adapter="a fake")
HERE = FoundCall(one_ns=5_000.0, waits=["none"], said="nothing", api="CPU", adapter="CPU")


@pytest.fixture(autouse=True)
def _loaded() -> None:
    load_plugin(Path(overhead.timing.__file__).with_name("call_stack.py"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def chains(spec: CallSpec) -> dict[str, Chain]:
    """The open chains of a spec, by the position of the statement."""
    return {str(position): CallChain(spec, position) for position in range(len(spec.calls))}


def test_an_error_at_a_later_call_names_the_line_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "data_loop.py").write_text(
        "data = iter(range(9))\n\ndef step():\n    return next(data)\n"
    )
    spec = CallSpec(
        calls=["step()"], setup="from data_loop import step", path=[str(tmp_path)], found=[HERE]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        chain = CallChain(spec, 0)
        chain.issue(9)
        with pytest.raises(StatementError, match=r"^data_loop\.py:4, in step: StopIteration$"):
            chain.issue(1)


@pytest.mark.parametrize(("host", "device"), [(5_000.0, 500.0), (3_000.0, 13_000.0), (700.0, 0.0)])
def test_a_simulated_statement_gets_its_known_host_and_device_times(
    clock: FakeClock, host: float, device: float
) -> None:
    QueueDevice(clock, host, device)
    opened = chains(
        CallSpec(calls=["q.launch()"], setup=SETUP, wait="q.synchronize()", found=[BY_TEXT])
    )
    _, events, processes = measured(opened, clock)
    assert not dropped(events)
    figures = estimate(Series(list(processes.values()), False, True, "pipelined"), 0.03)
    assert figures["issue"].value == pytest.approx(host, rel=0.01)
    assert figures["complete"].value == pytest.approx(max(host, device), rel=0.01)


def test_two_statements_are_measured_in_turn_each_with_its_own_setup(clock: FakeClock) -> None:
    QueueDevice(clock, host_ns=2_000.0, device_ns=0.0)
    calls = ["q.launch()", "q.launch(); q.launch(); own += 1"]
    spec = CallSpec(
        calls=calls, setup=f"{SETUP}\nown = 0", wait="q.synchronize()", found=[BY_TEXT, BY_TEXT]
    )
    _, events, processes = measured(chains(spec), clock, seconds=1.0)
    assert not dropped(events)
    costs = [
        estimate(Series([processes[key]], False, True, "pipelined"), 0.03)["complete"].value
        for key in "01"
    ]
    assert costs == pytest.approx([2_000.0, 4_000.0], rel=0.01)


def test_a_statement_with_the_wait_none_is_a_synchronous_chain() -> None:
    (chain,) = chains(CallSpec(calls=["x.append(1)"], setup="x = []", found=[HERE])).values()
    chain.issue(3)
    chain.wait()
    assert chain.synchronous
    assert chain.overlap == "serial"
    assert chain.executed() == 3
    assert chain.flags == ("values-not-checked",)
    assert chain.device(4) is None
    assert chain.window() == {"wait": "none", "entry": "python"}


def test_a_statement_that_raises_while_measured_fails_with_its_line(clock: FakeClock) -> None:
    QueueDevice(clock, host_ns=1_000.0, device_ns=0.0)
    call = "q.launch()\nif q.launched > 40: raise OSError('the device went away')"
    spec = CallSpec(calls=[call], setup=SETUP, wait="q.synchronize()", found=[BY_TEXT])
    _, events, _ = measured(chains(spec), clock)
    (event,) = dropped(events).values()
    said = (
        "CALL, line 2: OSError: the device went away: if q.launched > 40: raise OSError('the device"
        " went away')"
    )
    assert event.status == "failed"
    assert event.reason == said


class ShortQueue(StreamHolder):
    """A held stream whose queue takes so many launches, of ``launches`` for each call; then the
    issue waits for it.

    ``waits``: a call waits for the device itself.
    """

    method = "a fake"

    def __init__(
        self, device: QueueDevice, depth: int, launches: int, *, waits: bool = False
    ) -> None:
        self.device, self.depth, self.launches, self.waits = device, depth, launches, waits
        self.held: list[int] = []
        self.began = 0

    def block(self, ns: float) -> None:
        self.began = self.device.launched

    def mark(self) -> int:
        return self.device.launched

    def passed(self, mark: int) -> bool:
        return self.waits or (self.device.launched - self.began) * self.launches > self.depth

    def wait(self, mark: int) -> None:
        self.held.append(mark - self.began)

    def between(self, start: int, end: int) -> float:
        return 1_500.0 * (end - start)


def held_chain(device: QueueDevice, holder: ShortQueue) -> CallChain:
    chain = CallChain(
        CallSpec(calls=["q.launch()"], setup=SETUP, wait="q.synchronize()", found=[BY_TEXT]), 0
    )
    chain._clock = lambda: holder
    return chain


@pytest.mark.parametrize(
    ("launches_of_call", "held"), [(1, [512, 256, 128]), (5, [128, 64, 32]), (100, [8, 4, 2])]
)
def test_the_device_time_is_measured_with_as_many_calls_as_the_queue_of_the_device_holds(
    clock: FakeClock, launches_of_call: int, held: list[int]
) -> None:
    device = QueueDevice(clock, host_ns=1_000.0, device_ns=0.0)
    chain = held_chain(device, ShortQueue(device, depth=1_000, launches=launches_of_call))
    found = [chain.device(n) for n in (512, 256, 128)]
    call_ns = 1_500.0  # of a ShortQueue
    assert all(one is not None and one.busy and one.span == call_ns * one.n for one in found)
    assert [one.n for one in found if one is not None] == held
    assert chain.executed() == 0, "calls for the device's time do not count"


def test_a_statement_that_waits_for_the_device_gets_no_device_busy_time(clock: FakeClock) -> None:
    device = QueueDevice(clock, host_ns=1_000.0, device_ns=0.0)
    found = held_chain(device, ShortQueue(device, depth=1_000, launches=1, waits=True)).device(512)
    assert found is not None
    assert not found.busy
