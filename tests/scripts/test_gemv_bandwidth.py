"""The check of the lowered matrix products against a copy, at a small size, and of all kernels of a token."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead.loading.files import write_fingerprint
from overhead.probes import registry
from overhead.results import Figure, Record, Target
from scripts.agreement import gemv_bandwidth
from scripts.agreement.gemv_bandwidth import BandwidthRow
from tests.fakes.report import fingerprint

KERNELS = {"mlp.gate_proj, gemv", "mlp.down_proj, gemv", "lm_head, gemv", "mlp, gated_gemv"}


def only(monkeypatch: pytest.MonkeyPatch, stack: str, *targets: Target) -> None:
    """One stack has these targets, and the other two have none."""
    stacks = {name: SimpleNamespace(targets=list) for name in ("cuda-driver", "dawn", "wgpu-native")}
    found = [t for t in registry()[stack].targets() if t.api != "OpenGL"] if not targets else list(targets)
    stacks[stack] = SimpleNamespace(targets=lambda: found)
    monkeypatch.setattr(gemv_bandwidth, "registry", lambda: stacks)
    monkeypatch.setattr(gemv_bandwidth, "_TIMINGS", 1)


def products_of(out: Path) -> list[dict[str, Any]]:
    gemv_bandwidth.main(["--small", "--out", str(out)])
    found: list[dict[str, Any]] = json.loads(out.read_text())["products"]
    return found


@pytest.mark.slow
@pytest.mark.needs("torch", "wgpu", "numba", "lavapipe")
def test_every_product_is_verified_and_set_beside_a_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only(monkeypatch, "wgpu-native")
    products = products_of(tmp_path / "gemv.json")
    assert {row["kernel"] for row in products} == KERNELS
    assert all(row["reason"] in ("", "the time of a unit is not resolved") for row in products)
    assert all(row["within"] is None for row in products)


@pytest.mark.needs("torch", "cxx", "numba")
def test_cuda_c_runs_on_a_fake_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from overhead.probes._support.cuda import workload
    from tests.fakes import kernels
    from tests.fakes.cuda_driver import install

    install(monkeypatch)
    monkeypatch.setattr(workload, "machine_code_of", kernels.machine_code_of)
    only(
        monkeypatch, "cuda-driver", Target(stack="cuda-driver", api="CUDA", adapter="Fake GPU", options={"ordinal": 0})
    )
    products = products_of(tmp_path / "gemv.json")
    assert {row["kernel"] for row in products} == KERNELS
    assert not any(row["reason"].startswith("differs") for row in products)


@pytest.mark.needs("torch", "cxx", "numba")
def test_a_wrong_product_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = next(gemv_bandwidth.subjects(small=True))
    device = SimpleNamespace(products=lambda n: None, output=lambda: 2 * subject.expected, close=lambda: None)
    row = gemv_bandwidth.measured(lambda own: device, subject, "fake", small=False)
    assert (row.reason, row.share, row.within) == ("differs from NumPy", None, None)


@pytest.mark.parametrize(("rate", "small", "within"), [(60.0, False, True), (40.0, False, False), (40.0, True, None)])
def test_a_product_below_half_of_the_copy_fails_unless_it_is_small(
    rate: float, small: bool, within: bool | None
) -> None:
    assert BandwidthRow("GPU", "lm_head", 1, rate, 90.0, 100.0, small).within is within


def test_each_product_is_judged_by_the_fastest_copy_of_any_stack_on_its_adapter() -> None:
    rows = [
        BandwidthRow("cuda-driver on A", "lm_head", 1, 300.0, 400.0),
        BandwidthRow("dawn on A", "lm_head", 1, 190.0, 80.0),
        BandwidthRow("dawn on A", "mlp", 1, 190.0, 80.0),
        BandwidthRow("dawn on B", "lm_head", 1, 190.0, 80.0),
        BandwidthRow("wgpu-native", "", reason="no driver"),
    ]
    found = gemv_bandwidth.with_fastest_copies(rows)
    assert [row.fastest_copy for row in found] == [400.0, 400.0, 80.0, 80.0, None]
    assert [row.within for row in found] == [True, False, True, True, None]


def test_nothing_measured_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gemv_bandwidth, "devices", lambda small: [BandwidthRow("dawn", "", reason="no driver")])
    assert gemv_bandwidth.main([]) == 1
    assert "no driver" in capsys.readouterr().out


def decode_record(stack: str, ms: float, language: str = "", **params: Any) -> Record:
    figures = [
        Figure(name=n, value=v * 1e6, low=v * 1e6, high=v * 1e6) for n, v in (("complete", 9.0), ("device_busy", ms))
    ]
    return Record(
        stack=stack,
        api="CUDA",
        adapter="GPU",
        pattern="launches",
        caller="binding",
        dependency="chained",
        unit="token",
        workload="qwen2.5-0.5b",
        params=params,
        status="ok",
        figures=figures,
        window={"language": language} if language else {},
    )


def test_the_kernels_of_a_token_may_take_one_and_a_half_times_those_of_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [
        decode_record("cuda-graph", 2.0, maker="torch"),
        decode_record("cuda-graph", 2.8, "cuda", maker="driver", fusions=0),
        decode_record("dawn", 3.2, "wgsl", fusions=0),
    ]
    write_fingerprint(tmp_path / "run.json", fingerprint(*records))
    row = BandwidthRow("GPU", "lm_head", 1, 60.0, 100.0, 100.0)
    monkeypatch.setattr(gemv_bandwidth, "bandwidths", lambda small: [row])
    out = tmp_path / "gemv.json"
    assert gemv_bandwidth.main(["--out", str(out), "--run", str(tmp_path / "run.json")]) == 1
    kernels = json.loads(out.read_text())["kernels"]
    assert [(one["ms"], one["within"]) for one in kernels] == [(2.0, None), (2.8, True), (3.2, False)]
    assert gemv_bandwidth.main([]) == 0


def test_the_tables_hold_every_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gemv_bandwidth, "bandwidths", lambda small: [BandwidthRow("GPU", "lm_head", 1, 60.0, 100.0, 100.0)]
    )
    kernels = [gemv_bandwidth.KernelTimeRow("qwen2.5-0.5b", "wgsl, 6 fusions", 3.0, 1.25)]
    monkeypatch.setattr(gemv_bandwidth, "kernel_times", lambda view: kernels)
    monkeypatch.setattr(gemv_bandwidth, "load", lambda path: fingerprint())
    assert gemv_bandwidth.main(["--run", "run.json"]) == 0
    text = capsys.readouterr().out
    assert "0.60" in text
    assert "1.25" in text
