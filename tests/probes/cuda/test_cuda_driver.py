"""The stacks of the CUDA driver on a fake driver: their calls, counts, device times and errors."""

from __future__ import annotations

import functools
from typing import NamedTuple

import pytest

from overhead.probes.base import Chain, Probe, Unavailable, Unverified, vary
from overhead.probes.cuda import api
from overhead.probes.cuda.cuda_driver import CudaDriverProbe, CudaGraphProbe
from overhead.results import Case, Target, codes_of
from tests.fakes.chains import run
from tests.fakes.cuda_driver import LAUNCH_NS, calls, install
from tests.fakes.of_step import of_step

TARGET = Target(stack="cuda-driver", api="CUDA", adapter="Fake GPU", options={"ordinal": 0})
PROBES: tuple[Probe, ...] = (CudaDriverProbe(), CudaGraphProbe())


class ProbeCase(NamedTuple):
    """A case, and the stack that has it."""

    probe: Probe
    case: Case


def _cases() -> dict[str, ProbeCase]:
    """The cases of both stacks by key, without those of torch, for which there is no fake."""
    found = {}
    for probe in PROBES:
        for case in of_step(probe.space(TARGET).star()):
            if case.params.get("maker") != "torch":
                found[f"{probe.name} {case.key}"] = ProbeCase(probe, case)
    return found


CASES = _cases()
FROM_PYTHON = [key for key, one in CASES.items() if one.case.caller == "binding"]
WITHOUT_PYTHON = [key for key, one in CASES.items() if one.case.caller != "binding"]
pytestmark = [pytest.mark.needs("cxx", "numba")]


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


def opened(key: str) -> Chain:
    probe, case = CASES[key]
    return probe.open(TARGET, case)


def the(stack: str, **wanted: object) -> str:
    """The key of the first case of this stack with these values of fields or parameters."""
    for key, (probe, case) in CASES.items():
        values: dict[str, object] = {"pattern": case.pattern, "caller": case.caller, **case.params}
        if probe.name == stack and wanted.items() <= values.items():
            return key
    raise AssertionError(wanted)


@pytest.mark.parametrize("key", WITHOUT_PYTHON)
def test_each_caller_makes_the_same_calls_of_the_cuda_driver(key: str) -> None:
    probe, case = CASES[key]
    calls_of_issue = {}
    calls_of_wait = {}
    for caller in ("binding", case.caller):
        chain = probe.open(TARGET, vary(case, "caller", caller))
        chain.prepare(10)
        calls_of_issue[caller] = calls(functools.partial(chain.issue, 10))
        calls_of_wait[caller] = calls(chain.wait)
        chain.close()
    assert calls_of_issue[case.caller] == calls_of_issue["binding"]
    assert calls_of_wait[case.caller] == calls_of_wait["binding"]
    assert max(calls_of_issue["binding"]) == 10


@pytest.mark.parametrize("key", CASES)
def test_a_cuda_chain_counts_units_timed_by_stage_but_not_units_for_device_time(key: str) -> None:
    case = CASES[key].case
    chain = opened(key)
    try:
        assert chain.kernels()
        run(chain, 3)
        device_time = chain.device(20)
        durations = chain.stages(5)
        # The 3 of ``run``, and the 5 of ``stages`` where the chain can time its stages.
        assert chain.executed() == (3 + 5 if durations else 3)
        assert {len(times) for times in durations.values()} <= {5}
        if chain.latency:
            assert device_time is None
            return
        is_one_launch = case.unit == "step"
        launches = 1 if is_one_launch else 20 * int(case.params.get("nodes", 1))
        assert device_time is not None
        assert device_time.n == 20
        assert device_time.busy
        assert device_time.span == pytest.approx(launches * LAUNCH_NS, rel=1e-3)
    finally:
        chain.close()


@pytest.mark.parametrize("where", [{"pattern": "per-submit", "caller": "native"}, {"loops": 8000}])
def test_a_failed_cuda_launch_raises_unverified(
    where: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = opened(the("cuda-driver", **where))
    monkeypatch.setenv("FAKE_CUDA_FAIL", "1")
    run(chain, 4)
    with pytest.raises(Unverified, match="CUDA_ERROR_INVALID_VALUE"):
        chain.executed()
    chain.close()


@pytest.mark.parametrize("key", FROM_PYTHON)
def test_a_failed_wait_or_read_from_python_raises_unverified(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = opened(key)
    run(chain, 4)
    chain.prepare(4)
    # Where each unit contains a wait or a read, that one fails, else the wait after all units.
    with monkeypatch.context() as broken:
        broken.setenv("FAKE_CUDA_FAIL_WAIT", "1" if chain.latency else "0")
        chain.issue(4)
    with monkeypatch.context() as broken:
        broken.setenv("FAKE_CUDA_FAIL_WAIT", "0" if chain.latency else "1")
        chain.wait()
    with pytest.raises(Unverified, match="CUDA_ERROR_INVALID_VALUE"):
        chain.executed()
    chain.close()


def test_the_nodes_of_a_cuda_graph_are_spread_evenly_over_eight_sets_of_words() -> None:
    from overhead.probes.cuda.graphs import CudaReplay
    from overhead.probes.kernels import lcg

    chain = opened(the("cuda-graph", pattern="replay"))
    assert isinstance(chain, CudaReplay)
    run(chain, 20)
    session = chain.session
    words = session.seeds.copy()
    session.driver.call("cuMemcpyDtoH_v2", words.ctypes.data, session.words, words.nbytes)
    steps = []
    for before, after in zip(session.seeds.reshape(8, -1), words.reshape(8, -1), strict=True):
        steps.append(lcg.distance(before, after))
    assert steps == [3, 2, 3, 2, 3, 2, 3, 2], "20 nodes: two or three for each set of words"
    assert chain.executed() == 20
    assert chain.window()["places"] == 8
    chain.close()


def test_a_cuda_graph_chain_times_capture_and_instantiation_for_several_sizes() -> None:
    from overhead.probes.cuda.graphs import TIMED_SIZES, CudaReplay

    chain = opened(the("cuda-graph", pattern="replay"))
    assert isinstance(chain, CudaReplay)
    run(chain, 2)
    making = chain.making()
    assert set(making) == {"capture", "instantiate", "upload", "first_launch", "update"}
    for nodes, times_ns in making.values():
        assert tuple(nodes) == TIMED_SIZES
        assert min(times_ns) > 0
    assert chain.executed() == 2
    assert chain.recorded
    assert chain.max_n == TIMED_SIZES[-1]
    chain.close()


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("FAKE_CUDA_NO_DEVICE", "1", "nvidia-driver-finds-no-device"),
        ("FAKE_CUDA_VERSION", "11080", r"nvidia-driver-too-old \(version=11\.8\)"),
    ],
)
def test_cuda_stacks_are_unavailable_without_a_device_or_with_an_old_driver(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(variable, value)
    for probe in PROBES:
        with pytest.raises(Unavailable, match=reason) as caught:
            probe.targets()
        assert caught.value.mend


def test_cuda_stacks_are_unavailable_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes.cuda.cupy import CupyProbe
    from overhead.probes.triton.triton import TritonProbe

    def nothing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.undo()
    monkeypatch.setattr(api, "driver", functools.cache(api.driver.__wrapped__))
    monkeypatch.setattr("ctypes.CDLL", nothing)
    for probe in (*PROBES, CupyProbe(), TritonProbe()):
        with pytest.raises(Unavailable, match=r"^no-nvidia-driver$") as caught:
            probe.targets()
        assert codes_of(caught.value.mend) == {"install-nvidia-driver"}
