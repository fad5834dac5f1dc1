"""The shared checks of cases and adapters: parameters, software renderers, the longest fused chain."""

from __future__ import annotations

import pytest

from overhead.probes.base import Unsupported
from overhead.probes.common.case_parameters import accepts, check_parameters
from overhead.probes.common.software_adapters import longest_fused_chain, names_software_renderer
from overhead.results import Case, Scalar

ALLOWED = {"wait": ("idle", "fence"), "k": None}


def case(**params: Scalar) -> Case:
    return Case(pattern="per-submit", params=params)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"colour": "red", "barrier": 1}, "no parameter barrier, colour here"),
        ({"wait": "sleep"}, "wait has no value sleep"),
    ],
)
def test_an_unknown_parameter_or_value_is_unsupported(params: dict[str, Scalar], reason: str) -> None:
    with pytest.raises(Unsupported, match=f"^{reason}$"):
        check_parameters(case(**params), ALLOWED)
    assert not accepts(lambda one: check_parameters(one, ALLOWED), case(**params))


def test_a_known_value_and_a_parameter_without_fixed_values_are_accepted() -> None:
    assert accepts(lambda one: check_parameters(one, ALLOWED), case(wait="fence", k=12345))


def test_software_renderers_are_recognised_in_any_text() -> None:
    assert names_software_renderer("NVIDIA H100", "SwiftShader driver 5.0.0")
    assert not names_software_renderer("NVIDIA H100", "580.65")


def test_a_fused_chain_is_limited_only_on_llvmpipe() -> None:
    assert longest_fused_chain("llvmpipe (LLVM 15.0.6, 256 bits)") == 65_535
    assert longest_fused_chain("llvmpipe (LLVM 15.0.6, 256 bits)", turns=3) == 21_845
    assert longest_fused_chain("NVIDIA H100") == 1 << 26
