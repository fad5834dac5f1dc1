"""Rules for one device under several names: adapters, APIs, device ids."""

from __future__ import annotations

from overhead.devices import (
    same_adapter,
    same_device,
    same_device_across_apis,
    same_device_if_ids_allow,
    without_brackets,
)
from overhead.results import Api, Target


def target(
    adapter: str, api: Api = "Vulkan", device: str = "", *, software: bool = False
) -> Target:
    return Target(stack="fake", api=api, adapter=adapter, device=device, software=software)


def test_the_same_device_has_the_same_api_adapter_and_id() -> None:
    one = target("NVIDIA H200", device="a")
    assert same_device(one, target("NVIDIA H200", device="a"))
    for other in (
        target("NVIDIA H200", device="b"),
        target("NVIDIA H200"),
        target("NVIDIA H200", api="CUDA", device="a"),
        target("NVIDIA H100", device="a"),
    ):
        assert not same_device(one, other)


def test_the_same_adapter_is_the_same_name_under_any_api() -> None:
    assert same_adapter(target("NVIDIA H200", "CUDA", "a"), target("NVIDIA H200", "Vulkan", "b"))
    assert not same_adapter(target("NVIDIA H200"), target("NVIDIA H200 NVL"))


def test_a_missing_device_id_counts_as_equal_and_a_different_one_does_not() -> None:
    one = target("llvmpipe (LLVM 15.0.6, 256 bits)", device="a")
    assert same_device_if_ids_allow(one, target("LLVMpipe"))
    assert not same_device_if_ids_allow(one, target("llvmpipe", device="b"))
    assert not same_device_if_ids_allow(one, target("llvmpipe", "OpenGL"))
    assert not same_device_if_ids_allow(one, target("llvmpipe", software=True))


def test_names_of_one_device_under_two_apis_share_a_characteristic_word() -> None:
    one = target("NVIDIA H200", "CUDA")
    assert same_device_across_apis(one, target("NVIDIA Graphics Device", "Vulkan"))
    assert not same_device_across_apis(
        target("AMD Graphics Device"), target("Intel Graphics Device", "OpenGL")
    )
    assert same_device_across_apis(
        target("NVIDIA H100 80GB HBM3", "CUDA"), target("NVIDIA H100", "OpenCL")
    )
    assert not same_device_across_apis(one, target("NVIDIA RTX A2000", "OpenCL"))
    assert not same_device_across_apis(one, target("NVIDIA H200", "CPU"))
    assert not same_device_across_apis(one, target("NVIDIA H200", "Vulkan", software=True))


def test_brackets_in_an_adapter_name_are_removed_unless_nothing_remains() -> None:
    assert without_brackets("SwiftShader Device (Subzero (LLVM)) (0x0000C0DE)") == "SwiftShader"
    assert without_brackets("(only brackets)") == "(only brackets)"
