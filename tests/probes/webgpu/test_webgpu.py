"""WebGPU without a device: targets from adapters, valid and invalid cases, and the steps of a
loop.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from overhead.probes.base import Unavailable, Unsupported, device_id
from overhead.probes.vulkan import adapters
from overhead.probes.webgpu import targets
from overhead.probes.webgpu.cases import StepSpec
from overhead.probes.webgpu.library import Library
from overhead.results import Case, Target


def info(backend: str, device: str, kind: str = "DiscreteGPU", **more: str) -> dict[str, str]:
    empty = dict.fromkeys(("vendor", "architecture", "description"), "")
    return {**empty, "backend_type": backend, "device": device, "adapter_type": kind, **more}


class FakeLibrary(Library):
    """A fake library with a given list of adapters. Like its binding, Dawn's list has one adapter
    of each model.
    """

    def __init__(self, *infos: dict[str, str], prints: str = "", stack: str = "dawn") -> None:
        self.stack = stack
        self.versions = {stack: "1"}
        self.prints = prints
        self.every = []
        for number, adapter_info in enumerate(infos):
            self.every.append(SimpleNamespace(info=adapter_info, uuid=bytes([number])))
        gpu = SimpleNamespace(enumerate_adapters_sync=self._listed)
        extras = SimpleNamespace()
        if self.is_dawn:
            gpu._enumerate_all_adapters = self._all
            extras.get_adapter_properties = self._properties
        self.webgpu = cast("Any", SimpleNamespace(gpu=gpu))
        self.extras = cast("Any", extras)

    def _properties(self, adapter: Any) -> dict[str, Any]:
        if adapter.info["backend_type"] != "Vulkan":
            return {}
        return {"vulkan_uuids": {"device_uuid": adapter.uuid}}

    def _all(self) -> list[Any]:
        self._listed()
        return self.every

    def _listed(self) -> list[Any]:
        if self.prints:
            os.write(2, self.prints.encode())
        if not self.is_dawn:
            return self.every
        by_model = {}
        for adapter in self.every:
            by_model[adapter.info["backend_type"], adapter.info["device"]] = adapter
        return list(by_model.values())


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in adapters.DRIVER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def found(*infos: dict[str, str], prints: str = "") -> list[Target]:
    return targets.targets(FakeLibrary(*infos, prints=prints))


def test_targets_contains_one_target_for_each_measured_backend() -> None:
    adapters = [
        info("Vulkan", "GeForce"),
        info("OpenGL", "GeForce"),
        info("OpenGLES", "Mali"),
        info("D3D12", "Radeon"),
        info("Metal", "Apple M3"),
        info("D3D11", "Radeon"),
        info("Undefined", "who knows"),
    ]
    assert [(t.api, t.adapter) for t in found(*adapters)] == [
        ("Vulkan", "GeForce"),
        ("OpenGL", "GeForce"),
        ("OpenGL", "Mali"),
        ("D3D12", "Radeon"),
        ("Metal", "Apple M3"),
    ]


@pytest.mark.parametrize(
    ("adapter", "software"),
    [
        (info("Vulkan", "GeForce RTX 4090"), False),
        (info("Vulkan", "llvmpipe (LLVM 15.0.6, 256 bits)", "CPU"), True),
        (info("Vulkan", "some device", "Unknown", description="lavapipe"), True),
        (info("D3D12", "an adapter", "Unknown", description="WARP"), True),
    ],
    ids=lambda value: value["device"] if isinstance(value, dict) else "",
)
def test_is_software_recognises_adapters_by_type_and_by_name(
    adapter: dict[str, str], software: bool
) -> None:
    assert targets.is_software(adapter) is software


@pytest.mark.parametrize(("below", "software"), [("llvmpipe", True), ("Radeon", False)])
def test_under_wine_d3d12_is_software_where_vulkan_is(
    monkeypatch: pytest.MonkeyPatch, below: str, software: bool
) -> None:
    monkeypatch.setattr(targets, "under_wine", lambda: True)
    named_by_wine = info("D3D12", "NVIDIA GeForce GTX 470", "IntegratedGPU")
    _, d3d12 = found(info("Vulkan", below), named_by_wine)
    assert d3d12.api == "D3D12"
    assert d3d12.software == software
    assert "Wine" in d3d12.driver


@pytest.mark.parametrize(
    ("stack", "devices"),
    [("wgpu-native", ["", "1", ""]), ("dawn", [device_id(bytes([0])), device_id(bytes([1])), ""])],
)
def test_two_cards_with_the_same_name_are_two_targets(stack: str, devices: list[str]) -> None:
    library = FakeLibrary(
        info("Vulkan", "H100"), info("Vulkan", "H100"), info("OpenGL", "H100"), stack=stack
    )
    found = targets.targets(library)
    assert [target.device for target in found] == devices
    assert len({target.key for target in found}) == 3
    assert [targets.adapter(library, target) for target in found] == library.every
    with pytest.raises(Unavailable, match="adapter-is-gone"):
        targets.adapter(FakeLibrary(), found[1])


def test_targets_raises_unavailable_with_the_message_that_a_library_prints_if_it_refuses_the_driver(
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = (
        "error: XDG_RUNTIME_DIR is invalid or not set\nWarning: Vulkan feature required.\n - While"
        " initializing\n"
    )
    with pytest.raises(
        Unavailable, match=r"^stack-refuses-driver \(stack=dawn, text=Vulkan feature required\.\)$"
    ) as caught:
        found(prints=said)
    assert caught.value.mend == targets.REFUSED_MEND
    os.write(2, b"afterwards")
    assert "afterwards" in capfd.readouterr().err


def test_targets_without_an_adapter_raises_unavailable_that_names_what_is_missing() -> None:
    with pytest.raises(Unavailable, match="no-driver-with-adapter") as caught:
        found()
    assert caught.value.mend == targets.LOADER_MEND


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case(pattern="replay"), "webgpu-has-no-pattern .*replay"),
        (Case(pattern="per-submit", caller="browser"), "no-such-caller .*browser"),
        (Case(pattern="per-submit", params={"colour": 1}), "no-such-parameter .*colour"),
        (Case(pattern="per-k", params={"k": 1}), "per-k-takes-k"),
        (Case(pattern="per-submit", dependency="independent"), "independent-rotates-groups"),
        (Case(pattern="fused", params={"indirect": True}), "fused-has-one-group"),
        (Case(pattern="read-each", caller="native"), "reading-needs-python"),
    ],
    ids=lambda value: value.key if isinstance(value, Case) else "",
)
def test_step_spec_refuses_an_invalid_case_with_a_reason(case: Case, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        StepSpec.of(case)
