"""Vulkan without a device: the committed SPIR-V, the search for drivers, valid and invalid
cases.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.probes.base import Unsupported, vary
from overhead.probes.vulkan import adapters
from overhead.probes.vulkan.vulkan import Vulkan
from overhead.results import Case, Target
from scripts import build_spirv

TARGET = Target(stack="vulkan", api="Vulkan", adapter="any")
BASE = Case(pattern="per-submit", caller="ffi")


@pytest.mark.needs("glslang")
@pytest.mark.parametrize("source", build_spirv.sources(), ids=lambda path: path.name)
def test_each_spirv_binary_equals_what_the_compiler_makes_of_its_source(source: Path) -> None:
    built, committed = build_spirv.build(source), source.with_suffix(".spv").read_bytes()
    if built[8:12] != committed[8:12]:
        pytest.skip("another version of the compiler built the committed binary")
    assert built == committed


def test_driver_environments_adds_one_for_swiftshader_if_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tmp_path / "vk_swiftshader_icd.json"
    monkeypatch.setattr(adapters, "_manifests", lambda: iter([tmp_path / "absent.json", manifest]))
    for variable in adapters.DRIVER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert adapters.driver_environments() == [{}]
    manifest.touch()
    assert adapters.driver_environments() == [
        {},
        dict.fromkeys(adapters.DRIVER_VARIABLES, str(manifest)),
    ]
    monkeypatch.setenv("VK_ICD_FILENAMES", "/chosen.json")
    assert adapters.driver_environments() == [{}]


@pytest.mark.parametrize(
    ("axis", "value", "reason"),
    [
        ("caller", "binding", "vulkan-has-no-caller .*binding"),
        ("pattern", "per-pass", "vulkan-has-no-pattern .*per-pass"),
        ("k", 4, "per-k-takes-k-to-4096"),
        ("pattern", "replay", "replay-unit-is-node"),
        ("dependency", "independent", "independent-rotates-sets"),
        ("workload", "matmul", "no-such-workload .*matmul"),
        ("colour", "red", "no-such-parameter .*colour"),
    ],
)
def test_vulkan_refuses_an_invalid_case_with_a_reason(
    axis: str, value: str | int, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        Vulkan().open(TARGET, vary(BASE, axis, value))
