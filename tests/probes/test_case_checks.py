"""The shared checks of cases and adapters: parameters, software renderers, the longest fused chain."""

from __future__ import annotations

from overhead.probes.common.software_adapters import longest_fused_chain, names_software_renderer
from overhead.results import Case, Scalar


def case(**params: Scalar) -> Case:
    return Case(pattern="per-submit", params=params)


def test_software_renderers_are_recognised_in_any_text() -> None:
    assert names_software_renderer("NVIDIA H100", "SwiftShader driver 5.0.0")
    assert not names_software_renderer("NVIDIA H100", "580.65")


def test_a_fused_chain_is_limited_only_on_llvmpipe() -> None:
    assert longest_fused_chain("llvmpipe (LLVM 15.0.6, 256 bits)") == 65_535
    assert longest_fused_chain("llvmpipe (LLVM 15.0.6, 256 bits)", turns=3) == 21_845
    assert longest_fused_chain("NVIDIA H100") == 1 << 26
