"""Test the texts for readers: digits follow the interval, sentences follow the figures, no control
characters.
"""

from __future__ import annotations

import msgspec
import pytest

from overhead.extras import install_command
from overhead.reading.findings import RunsAtHand, findings_of
from overhead.reading.host_shares import HostShares, host_shares
from overhead.reading.plain_text import plain
from overhead.reading.view import View
from overhead.report.brief import brief_blocks, end_blocks
from overhead.results import Figure, Fingerprint, MissingStack, Record, Status, Value
from overhead.words import format as shown
from overhead.words.findings import finding_words
from overhead.words.report.beside import table_title as key_figures_title
from overhead.words.report.brief import BASE_CASES
from overhead.words.report.host_shares import title as layers_title
from overhead.words.summary import speed_sentence
from tests.fakes.report import crowded, fingerprint, record, share
from tests.report.report_page import numbers
from tests.terminal.test_goldens import printed


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (26.34, 25.9, 26.8, "26.3 (25.9 to 26.8)"),
        (26.34, 24.0, 28.6, "26.3 (24.0 to 28.6)"),
        (12_345.0, 12_000.0, 12_700.0, "12,300 (12,000 to 12,700)"),
        (0.01234, 0.0122, 0.0125, "0.0123 (0.0122 to 0.0125)"),
        (1.0, 0.9999999, 1.0000001, "1.000 (1.000 to 1.000)"),
        (-0.2, -1.9, 1.4, "−0.2 (−1.9 to 1.4)"),
        (-3.21, -3.4, -3.0, "−3.21 (−3.40 to −3.00)"),
        (26.34, 21.0, 31.7, "26 (21 to 32)"),
        (0.0, 0.0, 0.0, "0 (0 to 0)"),
        (26.34, None, None, "26"),
        (0.5, None, 0.7, "0.50"),
    ],
)
def test_the_interval_of_a_value_decides_the_number_of_digits(
    value: float, low: float | None, high: float | None, said: str
) -> None:
    assert shown.spread(Value(value, low, high)) == said


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (28.35, -51.8, 108.5, "30 (at most 110)"),
        (0.0062, -0.0163, 0.0287, "0.006 (at most 0.029)"),
        (4.499, 0.21, 8.79, "4 (at most 9)"),
        (26.34, 25.9, 26.8, "26.3 (25.9 to 26.8)"),
        (2.71, 2.3, 3.1, "2.7 (2.3 to 3.1)"),
        (-1.0, -30.0, 28.0, "−1 (−30 to 28)"),
        (28.35, None, 108.5, "28"),
    ],
)
def test_a_positive_value_whose_interval_reaches_zero_keeps_its_digits(
    value: float, low: float | None, high: float | None, said: str
) -> None:
    assert shown.positive_spread(Value(value, low, high)) == said


def test_only_an_intercept_or_a_difference_shows_an_end_below_zero() -> None:
    wide = Figure(name="complete", value=28_350.0, low=-51_800.0, high=108_500.0)
    assert shown.micro_spread(wide) == "30 (at most 110)"
    assert shown.time(wide) == "30 \u00b5s (at most 110)"
    assert shown.micro_spread(msgspec.structs.replace(wide, name="fixed")) == "30 (−50 to 110)"
    assert shown.factor_spread(Value(1.33, -1.4, 4.5)) == "1.3× (at most 4.5)"


def test_shares_and_ratios_are_printed_with_the_right_digits() -> None:
    assert shown.percent(Value(0.4567, 0.44, 0.47)) == "46 %"
    assert shown.percent(Value(0.034, 0.0312, 0.0371)) == "3.4 %"
    assert shown.percent(Value(0.5, 0.1, 0.9)) == "50 %"
    assert shown.factor(Value(4.04, 3.9, 4.2)) == "4.04×"
    assert shown.factor(Value(3.4, 0.2, 40.0)) == "3×"
    assert shown.factor(0.0) == "0×"


def test_names_are_listed_with_an_and_before_the_last() -> None:
    assert shown.listed([]) == ""
    assert shown.listed(["a"]) == "a"
    assert shown.listed(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    "status", ["nonlinear", "unverified", "below-resolution", "failed", "unavailable"]
)
def test_a_figure_without_a_value_is_shown_by_its_status(status: Status) -> None:
    given = Figure(name="complete", value=5.0, status=status)
    assert shown.micro(given) == status
    assert shown.micro_spread(given) == status
    assert shown.time(given) == status


def test_an_infinite_value_counts_as_missing() -> None:
    assert Figure(name="complete", value=float("inf")).measured is None
    assert shown.spread(Value(1.0, float("-inf"), float("inf"))) == "1 (−inf to inf)"


def test_text_from_files_is_one_line_without_control_characters() -> None:
    assert plain("a\x1b[31m\n b\u202e\u0000c") == "a[31m bc"
    assert plain("x" * 300, 10) == "x" * 9 + "…"


def test_targets_have_different_labels_and_software_is_marked() -> None:
    view = View(crowded())
    labels = [target.label for target in view.targets]
    assert len(set(labels)) == len(labels)
    for target in view.targets:
        if target.executes:
            assert ("(software)" in target.label) == target.software
    assert "wgpu-native on llvmpipe OpenGL (software)" in labels


def test_targets_of_one_name_are_numbered() -> None:
    twins = View(fingerprint(record(), record(adapter="Fake Adapter (two)")))
    assert [target.label for target in twins.targets] == [
        "wgpu-native on Fake Adapter",
        "wgpu-native on Fake Adapter [2]",
    ]


def _callers() -> list[Record]:
    """The same case from Python, without wrapper objects and from compiled code: 30, 20, 10 µs."""
    return [
        record(each=30e3, caller="binding"),
        record(each=20e3, caller="ffi"),
        record(each=10e3, caller="native"),
    ]


def test_the_layers_are_differences_of_measured_levels_and_add_up_to_the_whole() -> None:
    top, ffi, native = _callers()
    pairs = [
        share("binding-share", top, ffi, difference=8e3),
        share("python-share", top, native, difference=16e3),
    ]
    (found,) = host_shares(View(fingerprint(top, ffi, native, comparisons=pairs)))
    assert [layer.name for layer in found.shares] == ["binding", "interpreter", "api and driver"]
    # Of 30, 20 and 10 us the host takes 80 %: each layer is 8 of 24 us.
    assert [layer.of_host.value for layer in found.shares] == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert sum_of_layers(found) == found.top.value("host")
    assert sum_of_layers(found) == pytest.approx(24e3)
    assert found.top.pattern == "per-submit"
    assert found.top.caller == "binding"


def sum_of_layers(found: HostShares) -> float:
    """ns of all layers together."""
    return sum(layer.figure.value or 0 for layer in found.shares)


def test_the_share_of_python_comes_from_the_rounds_and_not_from_the_two_costs() -> None:
    # By their two costs Python would take half. Round by round its host time is four times that of
    # compiled code: three quarters are Python.
    top, native = record(each=20e3), record(each=10e3, caller="native")
    pair = share("python-share", top, native, difference=10e3)
    difference, ratio = pair.figures
    ratio_of_rounds = msgspec.structs.replace(ratio, value=4.0, low=3.9, high=4.1)
    pair = msgspec.structs.replace(pair, figures=[difference, ratio_of_rounds])
    (found,) = host_shares(View(fingerprint(top, native, comparisons=[pair])))
    assert found.python is not None
    assert found.python.value == pytest.approx(0.75)
    assert found.python.low == pytest.approx(1 - 1 / 3.9)
    assert found.python.high == pytest.approx(1 - 1 / 4.1)
    # 75 % and 25 % of the 16 us that the host takes from Python.
    assert [layer.figure.value for layer in found.shares] == pytest.approx([12e3, 4e3])


def test_without_the_middle_level_python_is_one_layer() -> None:
    top, ffi, native = _callers()
    ffi = msgspec.structs.replace(ffi, figures=[])
    pairs = [
        share("binding-share", top, ffi, difference=8e3),
        share("python-share", top, native, difference=16e3),
    ]
    (found,) = host_shares(View(fingerprint(top, ffi, native, comparisons=pairs)))
    layers = {layer.name: layer.figure.value for layer in found.shares}
    assert layers == pytest.approx({"python": 16e3, "api and driver": 8e3})


@pytest.mark.parametrize(
    ("ffi_ns", "doubt"),
    [
        pytest.param(20_375.0, "unclear", id="the layer may be positive within its interval"),
        pytest.param(25e3, "below-zero", id="the layer is negative for certain"),
    ],
)
def test_a_negative_layer_is_named_and_the_layers_still_add_up(ffi_ns: float, doubt: str) -> None:
    top = record(each=20e3)
    # The binding above it seems to take less than nothing: 20 us with it, more without.
    ffi = record(caller="ffi", each=ffi_ns)
    native = record(caller="native", each=10e3)
    pairs = [
        share("binding-share", top, ffi, difference=-300.0),
        share("python-share", top, native, difference=8e3),
    ]
    (found,) = host_shares(View(fingerprint(top, ffi, native, comparisons=pairs)))
    assert found.shares[0].doubt == doubt
    # Of each cost the host takes 80 %.
    assert sum_of_layers(found) == pytest.approx(0.8 * 20e3)


def test_a_ladder_without_the_usual_caller_names_its_own() -> None:
    ffi = record(caller="ffi")
    native = record(caller="native", each=15e3)
    pair = share("interpreter-share", ffi, native, difference=8e3)
    (found,) = host_shares(View(fingerprint(ffi, native, comparisons=[pair])))
    assert found.top.caller == "ffi"
    assert found.python is None


def test_a_minimal_vulkan_program_is_not_a_layer_of_the_host_time() -> None:
    dawn = record("dawn")
    native = record("dawn", caller="native", each=10e3)
    vulkan = record("vulkan", caller="native", each=5e3)
    pairs = [
        share("python-share", dawn, native, difference=8e3),
        share("api-share", native, vulkan, difference=4e3),
    ]
    (found,) = host_shares(View(fingerprint(dawn, native, vulkan, comparisons=pairs)))
    assert [layer.name for layer in found.shares] == ["python", "api and driver"]
    assert found.minimal == vulkan.figure("host")


def test_circular_and_dangling_comparisons_do_not_cause_an_endless_loop() -> None:
    top, ffi, native = _callers()
    ring = [
        share("binding-share", top, ffi, difference=1.0),
        share("interpreter-share", ffi, native, difference=1.0),
        share("driver-share", native, ffi, difference=1.0),
    ]
    circular = fingerprint(top, ffi, native, comparisons=ring)
    dangling = fingerprint(top, comparisons=ring[:1])
    assert len(host_shares(View(circular))) == 1
    (found,) = host_shares(View(dangling))
    assert len(found.shares) == 1


def test_the_terminal_shows_all_parts_of_a_run_and_ignores_markup_in_files() -> None:
    bad = record(
        adapter="[bold red]x[/] \x1b[2J", each=None, status="failed", reason="signal \x1b]0;11"
    )
    run = crowded()
    made = fingerprint(bad, *run.records, comparisons=run.comparisons, unavailable=run.unavailable)
    text = printed(brief_blocks(made))
    assert "[bold red]x[/] [2J" in text
    assert "no NVIDIA driver" in text
    assert "make report EXTRAS=jax" in text
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    titles = [key_figures_title(""), BASE_CASES, layers_title("")]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)


def ended_run() -> Fingerprint:
    """A run of two stacks, without two more stacks that were chosen."""
    numpy = record("numpy", api="CPU", each=700.0)
    python = record()
    native = record(caller="native", each=5e3)
    mend = install_command("wgpu")
    return fingerprint(
        python,
        native,
        numpy,
        unavailable=[
            MissingStack(stack="jax", reason="no jax here", mend=mend),
            MissingStack(stack="vulkan", reason="no vulkan here", mend=mend),
        ],
        comparisons=[share("python-share", python, native, difference=12e3)],
    )


def test_the_end_of_a_run_has_a_line_for_each_chosen_stack() -> None:
    text = printed(end_blocks(ended_run()))
    for shown_text in ("wgpu-native", "20.0", "numpy", "0.700", "no jax here", "no vulkan here"):
        assert shown_text in text
    assert text.count(install_command("wgpu")) == 1, "one command for both stacks"
    for other_stack in ("torch", "CUDA", "Dawn"):
        assert other_stack not in text


def test_the_end_of_a_run_has_the_findings() -> None:
    run = ended_run()
    first = finding_words(findings_of(RunsAtHand(View(run)))[0])
    assert "5.00" in first.title
    assert f"1. {first.title}" in printed(end_blocks(run))


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(70.0, 87.5, ["25", "70", "87.5"]), (70.0, 72.0, []), ("no", [], []), (None, None, [])],
)
def test_a_change_of_the_processors_speed_is_reported(
    least: object, most: object, said: list[str]
) -> None:
    run = fingerprint(volatile={"canary_us_least": least, "canary_us_most": most})
    text = speed_sentence(View(run))
    assert numbers(text) == said
    assert bool(text) == bool(said)


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (1_004.5, "1.00"),
        (29.0, "0.0290"),
        (137_000.0, "137"),
        (999_900.0, "1,000"),
        (1_510_400.0, "1,510"),
    ],
)
def test_a_time_without_an_interval_has_three_digits(ns: float, said: str) -> None:
    assert shown.micro_of(ns) == said
