"""WebGPU without a device: targets from adapters, valid and invalid cases, and the steps of a loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead.probes import registry
from overhead.probes.base import Unavailable, Unsupported
from overhead.probes.vulkan import drivers
from overhead.probes.webgpu import targets
from overhead.probes.webgpu.cases import StepSpec
from overhead.probes.webgpu.library import captured_stderr
from overhead.results import Case, Target
from tests.fakes.of_step import of_step

STACKS = ["wgpu-native", "dawn"]


def info(backend: str, device: str, kind: str = "DiscreteGPU", **more: str) -> dict[str, str]:
    empty = dict.fromkeys(("vendor", "architecture", "description"), "")
    return {**empty, "backend_type": backend, "device": device, "adapter_type": kind, **more}


class FakeLibrary:
    """A fake library with a given list of adapters."""

    def __init__(self, *infos: dict[str, str], prints: str = "") -> None:
        self.stack, self.versions, self.prints = "dawn", {"dawn": "1"}, prints
        self.adapters = [SimpleNamespace(info=one) for one in infos]
        self.webgpu = SimpleNamespace(gpu=self)

    def enumerate_adapters_sync(self) -> list[Any]:
        if self.prints:
            import os

            os.write(2, self.prints.encode())
        return self.adapters

    def request_adapter_sync(self) -> Any:
        return SimpleNamespace(info=info("Null", "Null backend", "Unknown"))


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*drivers.DRIVER_VARIABLES, targets.BACKEND_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def found(*infos: dict[str, str], prints: str = "") -> list[Target]:
    return targets.targets(FakeLibrary(*infos, prints=prints))  # type: ignore[arg-type]


def test_every_backend_is_a_separate_target() -> None:
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
        (info("Metal", "Apple M3", "IntegratedGPU"), False),
        (info("Vulkan", "llvmpipe (LLVM 15.0.6, 256 bits)", "CPU"), True),
        (info("OpenGL", "llvmpipe (LLVM 15.0.6, 256 bits)", "Unknown"), True),
        (info("Vulkan", "SwiftShader Device (Subzero)", "Unknown"), True),
        (info("Vulkan", "some device", "Unknown", description="lavapipe"), True),
        (info("D3D12", "Microsoft Basic Render Driver", "Unknown"), True),
        (info("D3D12", "an adapter", "Unknown", description="WARP"), True),
        (info("Null", "Null backend", "Unknown"), False),
    ],
    ids=lambda value: value["device"] if isinstance(value, dict) else "",
)
def test_software_adapters_are_recognised_by_type_and_by_name(adapter: dict[str, str], software: bool) -> None:
    assert targets.is_software(adapter) is software


def test_two_cards_with_the_same_name_are_two_targets() -> None:
    library: Any = FakeLibrary(info("Vulkan", "H100"), info("Vulkan", "H100"), info("OpenGL", "H100"))
    one, two, three = targets.targets(library)
    assert [t.device for t in (one, two, three)] == ["", "1", ""]
    assert len({t.key for t in (one, two, three)}) == 3
    assert [targets.adapter(library, t) for t in (one, two, three)] == library.adapters
    with pytest.raises(Unavailable, match="is gone"):
        targets.adapter(FakeLibrary(), two)  # type: ignore[arg-type]


def test_an_adapter_without_a_name_is_named_after_its_vendor() -> None:
    (target,) = found(info("Metal", "", vendor="apple"))
    assert (target.adapter, target.driver) == ("apple", "apple")


def test_the_null_backend_is_a_target_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [t.api for t in found(info("Vulkan", "GeForce"), info("Null", "Null backend"))] == ["Vulkan"]
    monkeypatch.setenv(targets.BACKEND_VARIABLE, "Null")
    (target,) = found(info("Vulkan", "GeForce"))
    assert (target.api, target.executes, target.software) == ("Null", False, False)


def test_the_swiftshader_environment_offers_only_vulkan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifest = tmp_path / "vk_swiftshader_icd.json"
    manifest.write_text("{}")
    monkeypatch.setattr(drivers, "swiftshader_icd", lambda: manifest)
    for variable in drivers.DRIVER_VARIABLES:
        monkeypatch.setenv(variable, str(manifest))
    swiftshader, mesa = info("Vulkan", "SwiftShader", "CPU"), info("OpenGL", "llvmpipe", "CPU")
    assert [t.adapter for t in found(swiftshader, mesa)] == ["SwiftShader"]


def test_if_the_library_refuses_the_driver_its_message_is_the_reason() -> None:
    said = "error: XDG_RUNTIME_DIR is invalid or not set\nWarning: Vulkan feature required.\n - While initializing\n"
    with pytest.raises(Unavailable, match=r"^dawn refuses the driver: Vulkan feature required\.$") as caught:
        found(prints=said)
    assert caught.value.mend == targets.REFUSED_MEND


@pytest.mark.parametrize(("loader", "reason"), [(True, "no driver that has an adapter"), (False, "no Vulkan loader")])
def test_without_an_adapter_the_reason_names_what_is_missing(
    loader: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "_loader", lambda: loader)
    with pytest.raises(Unavailable, match=reason) as caught:
        found()
    assert "libvulkan1" in caught.value.mend


def test_output_of_c_code_is_captured_and_standard_error_is_restored(capfd: pytest.CaptureFixture[str]) -> None:
    with captured_stderr() as lines:
        print("from Python", file=sys.__stderr__, flush=True)
        subprocess.run([sys.executable, "-c", "import os; os.write(2, b'from C')"], check=True)
    assert "from C" in "\n".join(lines)
    print("afterwards", file=sys.__stderr__, flush=True)
    assert "afterwards" in capfd.readouterr().err


def test_the_null_backend_adds_an_environment() -> None:
    assert targets.environments(null=False) == drivers.environments()
    assert targets.environments(null=True)[-1] == {"WGPU_BACKEND_TYPE": "Null"}


def test_the_parent_loads_no_gpu_library() -> None:
    script = (
        "import sys; from overhead.probes import registry; from overhead.results import Target;"
        "t = Target(stack='dawn', api='Vulkan', adapter='x'); p = registry()['dawn']; list(p.space(t).star());"
        "p.environments(); sys.exit(bool({'wgpu', 'wgpudawn', 'cffi', 'numba'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("executes", [True, False])
def test_a_target_offers_the_expected_cases(stack: str, executes: bool) -> None:
    target = Target(stack=stack, api="Vulkan" if executes else "Null", adapter="x", executes=executes)
    space = registry()[stack].space(target)
    star = of_step(space.star())
    assert star[0] == space.base == Case(pattern="per-submit")
    specs = [StepSpec.of(case) for case in star]
    patterns = {"per-submit", "per-k", "per-pass", "one-pass", "wait-each"} | (
        {"fused", "read-each"} if executes else set()
    )
    assert {spec.pattern for spec in specs} == patterns
    assert {spec.k for spec in specs if spec.caller == "binding"} >= {4, 16, 64, 256}
    assert {spec.validation for spec in specs} == ({"on", "skip"} if stack == "dawn" else {"on"})
    for caller in ("ffi", "native"):
        own = {(r.pattern, r.k) for r in specs if r.caller == caller}
        assert own >= {
            ("per-submit", 0),
            ("one-pass", 0),
            ("per-pass", 0),
            ("per-k", 16),
            ("per-k", 64),
            ("wait-each", 0),
        }
        assert any(spec.independent for spec in specs if spec.caller == caller)
    cross = of_step(space.cross())
    assert {case.key for case in star} <= {case.key for case in cross}
    assert len(cross) < 300


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case(pattern="replay"), "WebGPU compute has no replay"),
        (Case(pattern="per-submit", workload="matmul"), "no workload matmul"),
        (Case(pattern="per-submit", caller="browser"), "no caller browser"),
        (Case(pattern="per-submit", params={"colour": 1}), "no parameter colour"),
        (Case(pattern="per-submit", params={"wait": "patiently"}), "wait has no value patiently"),
        (Case(pattern="per-k"), "takes k"),
        (Case(pattern="per-k", params={"k": 1}), "takes k"),
        (Case(pattern="one-pass", params={"k": 4}), "takes k"),
        (Case(pattern="per-submit", dependency="independent"), "rotate bind groups"),
        (Case(pattern="one-pass", params={"argument": "write-buffer"}), "between submissions"),
        (Case(pattern="fused", params={"indirect": True}), "fused dispatch is one"),
        (Case(pattern="per-submit", params={"checks": "unbounded-loops"}), "holds a loop"),
        (Case(pattern="read-each", caller="native"), "callback into Python"),
        (
            Case(pattern="per-submit", params={"argument": "write-buffer", "bindgroup": "rotated"}),
            "varied on one bind group",
        ),
    ],
    ids=lambda value: value.key if isinstance(value, Case) else "",
)
def test_an_invalid_case_is_unsupported_with_a_reason(case: Case, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        StepSpec.of(case)
