"""Test the cost that a browser adds to its GPU library, on the same adapter and with the same
window.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from overhead.blocks.parts import Drawing, Table, cell_text
from overhead.reading.browser_tax import Tax, taxes
from overhead.reading.view import View
from overhead.report.brief import brief_blocks
from overhead.report.sections.browser_tax import browser_tax, tax_tables
from overhead.results import Figure, Record, about, because
from tests.fakes.report import fingerprint, record

GPU = "NVIDIA Example 5000"


def case(
    stack: str, caller: Any, *, each_ns: float | None, fixed_ns: float = 60e3, **more: Any
) -> Record:
    window = {"submits": "1 per unit", "wait": f"that of {stack}", **more.pop("window", {})}
    return replace(
        record(stack, each=each_ns, fixed=fixed_ns, caller=caller, **({"adapter": GPU} | more)),
        window=window,
    )


BROWSER = case("chromium", "browser", each_ns=30e3, fixed_ns=2.5e6)
BINDING = case("dawn", "binding", each_ns=20e3)
NATIVE = case("dawn", "native", each_ns=2e3)


def taxed(*records: Record) -> list[Tax]:
    return taxes(View(fingerprint(*records)))


def test_a_browsers_case_is_paired_with_the_same_case_of_its_library() -> None:
    (tax,) = taxed(BROWSER, BINDING, NATIVE)
    assert tax.library == "dawn"
    assert list(tax.against) == ["binding", "native"]
    assert tax.refused == {}
    times = tax.slope_ratio("native")
    assert times is not None
    # A unit takes 30 us in the browser, 2 us natively; both have 2 % to both sides.
    assert times.value == pytest.approx(15)
    assert times.low == pytest.approx(15 * 0.98 / 1.02)
    assert times.high == pytest.approx(15 * 1.02 / 0.98)
    # A single unit with its wait takes the fixed time too.
    assert tax.single_ratio is not None
    assert tax.single_ratio.value == pytest.approx((30e3 + 2.5e6) / 30e3)


def test_a_browser_is_not_compared_with_its_library_on_another_adapter() -> None:
    (tax,) = taxed(
        BROWSER, case("dawn", "native", each_ns=2e3, adapter="llvmpipe (LLVM 15)", software=True)
    )
    assert tax.against == {}
    assert tax.slope_ratio("native") is None
    assert tax.refused["native"] == because(
        "library-on-another-adapter", library="dawn", adapter="llvmpipe (LLVM 15)"
    )


@pytest.mark.parametrize(
    ("browser", "library", "alike"),
    [
        ("NVIDIA Example 5000", "NVIDIA Example 5000", True),
        ("SwiftShader Device (Subzero)", "SwiftShader Device (Subzero) (0x0000C0DE)", True),
        ("NVIDIA Example 5000", "NVIDIA Example 5000/PCIe/SSE2", True),
        ("NVIDIA Example 5000", "NVIDIA Example 6000", False),
    ],
)
def test_additions_to_an_adapter_name_are_ignored(browser: str, library: str, alike: bool) -> None:
    (tax,) = taxed(
        case("chromium", "browser", each_ns=3e4, adapter=browser),
        case("dawn", "native", each_ns=2e3, adapter=library),
    )
    assert bool(tax.against) is alike


def test_a_browser_is_compared_only_with_its_own_library() -> None:
    (tax,) = taxed(case("firefox", "browser", each_ns=30e3, fixed_ns=100e6), BINDING, NATIVE)
    why = because("library-not-measured", library="wgpu-native")
    assert tax.refused == {"binding": why, "native": why}


def test_a_comparison_with_a_library_that_timed_something_else_is_refused_and_names_the_field() -> (
    None
):
    batched = case("dawn", "native", each_ns=2e3, window={"submits": "1 per 16 units"})
    (tax,) = taxed(BROWSER, batched)
    assert tax.against == {}
    assert tax.refused["native"] == because(
        "windows-differ", field="submits", browser_has="1 per unit", library_has="1 per 16 units"
    )


def test_browser_and_library_may_differ_in_wait_and_dispatches_but_not_in_pattern() -> None:
    cut = {"dispatches": "1 per 65535 units"}
    fused = case("chromium", "browser", each_ns=100.0, pattern="fused", unit="step", window=cut)
    native = case("dawn", "native", each_ns=90.0, pattern="fused", unit="step")
    (tax,) = taxed(fused, native, BINDING)
    assert list(tax.against) == ["native"]
    assert tax.refused == {
        "binding": because("library-lacks-case", library="dawn", caller="binding")
    }


def test_the_library_case_with_the_same_wait_is_preferred() -> None:
    mapped = case("chromium", "browser", each_ns=30e3, params={"wait": "map"})
    theirs = case("dawn", "binding", each_ns=25e3, params={"wait": "map"})
    (tax,) = taxed(mapped, BINDING, theirs)
    assert tax.against["binding"].params == theirs.params


def test_a_browser_without_a_value_has_no_ratio_and_the_reason_of_its_library() -> None:
    broken = case("chromium", "browser", each_ns=None, status="unavailable", reason="no WebGPU")
    bent = case("dawn", "native", each_ns=2e3, status="nonlinear", reason="it bends")
    (tax,) = taxed(broken, bent)
    assert tax.slope_ratio("native") is None
    assert tax.refused["native"] == because(
        "library-lacks-value", library="dawn", caller="native", why=about("nonlinear", "it bends")
    )


def test_the_section_on_browsers_has_a_figure_and_a_table_of_each_case_by_each_caller() -> None:
    ratios, table = browser_tax(View(fingerprint(BROWSER, BINDING, NATIVE)))
    assert isinstance(ratios, Drawing)
    assert isinstance(table, Table)
    through = [cell_text(row[1]) for row in table.rows]
    assert through == ["the browser", "dawn, from Python", "dawn, from compiled code"]
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert not list(browser_tax(View(fingerprint(BINDING, NATIVE))))


def test_show_hides_the_rows_of_a_library_that_was_not_measured() -> None:
    caption = next(iter(tax_tables(View(fingerprint(BROWSER))))).caption
    tables = [part for part in brief_blocks(fingerprint(BROWSER)) if isinstance(part, Table)]
    (table,) = (part for part in tables if part.caption == caption)
    assert 0 < table.most < len(table.rows)
    for row in table.rows[: table.most]:
        numbers = [cell_text(row[column]) for column in table.numeric]
        assert any(numbers)


def test_a_browser_slope_whose_interval_reaches_zero_has_no_ratio_to_the_library() -> None:
    wide_cost = Figure(name="complete", value=12e3, low=-11e3, high=35e3)
    (clear,) = taxes(View(fingerprint(BROWSER, BINDING)))
    (unclear,) = taxes(View(fingerprint(replace(BROWSER, figures=[wide_cost]), BINDING)))
    assert clear.slope_ratio("binding") is not None
    assert unclear.slope_ratio("binding") is None
