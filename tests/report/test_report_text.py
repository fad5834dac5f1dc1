"""Test the texts for readers: digits follow the interval, sentences follow the figures, no control
characters.
"""

from __future__ import annotations

import msgspec
import pytest

from overhead.extras import install_command
from overhead.reading.findings import findings_of
from overhead.reading.host_shares import host_shares
from overhead.reading.plain_text import plain
from overhead.reading.view import View
from overhead.report.brief import brief_blocks, end_blocks
from overhead.results import Caller, Figure, MissingStack, Record, Status, Value
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
        (28.35, -51.8, 108.5, "28 (at most 110)"),
        (0.0062, -0.0163, 0.0287, "0.0062 (at most 0.029)"),
        (4.499, 0.21, 8.79, "4.5 (0.21 to 8.8)"),
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
    assert shown.micro_spread(wide) == "28 (at most 110)"
    assert shown.time(wide) == "28 \u00b5s (at most 110)"
    assert shown.micro_spread(msgspec.structs.replace(wide, name="fixed")) == "30 (−50 to 110)"
    assert shown.factor_spread(Value(1.33, -1.4, 4.5)) == "1.3× (at most 4.5)"


def test_shares_and_ratios_are_printed_with_the_right_digits() -> None:
    shares = [Value(0.4567, 0.44, 0.47), Value(0.034, 0.0312, 0.0371), Value(0.5, 0.1, 0.9)]
    ratios: list[Value | float] = [Value(4.04, 3.9, 4.2), Value(3.4, 0.2, 40.0), 0.0]
    assert [shown.percent(share) for share in shares] == ["46 %", "3.4 %", "50 %"]
    assert [shown.factor(ratio) for ratio in ratios] == ["4.04×", "3×", "0×"]
    assert shown.listed(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    "status", ["nonlinear", "unverified", "below-resolution", "failed", "unavailable"]
)
def test_a_figure_without_a_value_is_shown_by_its_status(status: Status) -> None:
    given = Figure(name="complete", value=5.0, status=status)
    assert shown.micro(given) == shown.micro_spread(given) == shown.time(given) == status


def test_an_infinite_value_counts_as_missing() -> None:
    assert Figure(name="complete", value=float("inf")).measured is None
    assert shown.spread(Value(1.0, float("-inf"), float("inf"))) == "1 (−inf to inf)"


def test_text_from_files_is_one_line_without_control_characters() -> None:
    assert plain("a\x1b[31m\n b\u202e\u0000c") == "a[31m bc"
    assert plain("x" * 300, 10) == "x" * 9 + "…"


def test_targets_have_different_labels_and_software_is_marked() -> None:
    view = View(crowded())
    labels = [t.label for t in view.targets]
    assert len(set(labels)) == len(labels)
    assert all(("(software)" in t.label) == t.software for t in view.targets if t.executes)
    assert "wgpu-native on llvmpipe OpenGL (software)" in labels
    twins = View(fingerprint(record(), record(adapter="Fake Adapter (two)")))
    assert [t.label for t in twins.targets] == [
        "wgpu-native on Fake Adapter",
        "wgpu-native on Fake Adapter [2]",
    ]


def _callers() -> list[Record]:
    callers: tuple[Caller, ...] = ("binding", "ffi", "native")
    return [record(each=10e3 * (3 - i), caller=caller) for i, caller in enumerate(callers)]


def test_the_layers_are_differences_of_measured_levels_and_add_up_to_the_whole() -> None:
    top, ffi, native = _callers()
    pairs = [share("binding-share", top, ffi, 8e3), share("python-share", top, native, 16e3)]
    (found,) = host_shares(View(fingerprint(top, ffi, native, comparisons=pairs)))
    assert [s.name for s in found.shares] == ["binding", "interpreter", "api and driver"]
    assert [s.of_host.value for s in found.shares] == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert (
        sum(s.figure.value or 0 for s in found.shares)
        == found.top.value("host")
        == pytest.approx(24e3)
    )
    assert (found.top.pattern, found.top.caller) == ("per-submit", "binding")


def test_the_share_of_python_comes_from_the_rounds_and_not_from_the_two_costs() -> None:
    top, native = record(each=20e3), record(each=10e3, caller="native")
    pair = share("python-share", top, native, 10e3)
    rounds = msgspec.structs.replace(pair.figures[1], value=4.0, low=3.9, high=4.1)
    pair = msgspec.structs.replace(pair, figures=[pair.figures[0], rounds])
    (found,) = host_shares(View(fingerprint(top, native, comparisons=[pair])))
    assert found.python is not None
    assert (found.python.value, found.python.low, found.python.high) == pytest.approx(
        (0.75, 1 - 1 / 3.9, 1 - 1 / 4.1)
    )
    assert [s.figure.value for s in found.shares] == pytest.approx([12e3, 4e3])


def test_without_the_middle_level_python_is_one_layer() -> None:
    top, ffi, native = _callers()
    ffi = msgspec.structs.replace(ffi, figures=[])
    pairs = [share("binding-share", top, ffi, 8e3), share("python-share", top, native, 16e3)]
    (found,) = host_shares(View(fingerprint(top, ffi, native, comparisons=pairs)))
    layers = {s.name: s.figure.value for s in found.shares}
    assert layers == pytest.approx({"python": 16e3, "api and driver": 8e3})


@pytest.mark.parametrize(("ffi_each", "doubt"), [(20_375.0, "unclear"), (25e3, "below-zero")])
def test_a_negative_layer_is_named_and_the_layers_still_add_up(ffi_each: float, doubt: str) -> None:
    top, ffi, native = (
        record(),
        record(caller="ffi", each=ffi_each),
        record(caller="native", each=10e3),
    )
    pairs = [share("binding-share", top, ffi, -300.0), share("python-share", top, native, 8e3)]
    (found,) = host_shares(View(fingerprint(top, ffi, native, comparisons=pairs)))
    assert found.shares[0].doubt == doubt
    assert sum(s.figure.value or 0 for s in found.shares) == pytest.approx(16e3)


def test_a_ladder_without_the_usual_caller_names_its_own() -> None:
    ffi, native = record(caller="ffi"), record(caller="native", each=15e3)
    found = host_shares(
        View(fingerprint(ffi, native, comparisons=[share("interpreter-share", ffi, native, 8e3)]))
    )
    assert [each.top.caller for each in found] == ["ffi"]
    assert found[0].python is None


def test_a_minimal_vulkan_program_is_not_a_layer_of_the_host_time() -> None:
    dawn, native = record("dawn"), record("dawn", caller="native", each=10e3)
    vulkan = record("vulkan", caller="native", each=5e3)
    pairs = [share("python-share", dawn, native, 8e3), share("api-share", native, vulkan, 4e3)]
    (found,) = host_shares(View(fingerprint(dawn, native, vulkan, comparisons=pairs)))
    assert [s.name for s in found.shares] == ["python", "api and driver"]
    assert found.minimal == vulkan.figure("host")


def test_circular_and_dangling_comparisons_do_not_cause_an_endless_loop() -> None:
    top, ffi, native = _callers()
    ring = [
        share("binding-share", top, ffi, 1.0),
        share("interpreter-share", ffi, native, 1.0),
        share("driver-share", native, ffi, 1.0),
    ]
    assert len(host_shares(View(fingerprint(top, ffi, native, comparisons=ring)))) == 1
    assert len(host_shares(View(fingerprint(top, comparisons=ring[:1])))[0].shares) == 1


def test_the_terminal_shows_all_parts_of_a_run_and_ignores_markup_in_files() -> None:
    bad = record(
        adapter="[bold red]x[/] \x1b[2J", each=None, status="failed", reason="signal \x1b]0;11"
    )
    run = crowded()
    made = fingerprint(bad, *run.records, comparisons=run.comparisons, unavailable=run.unavailable)
    text = printed(brief_blocks(made))
    for shown_text in ("[bold red]x[/] [2J", "no NVIDIA driver", "make report EXTRAS=jax"):
        assert shown_text in text
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert text.index(key_figures_title("")) < text.index(BASE_CASES) < text.index(layers_title(""))


def test_the_end_of_a_run_has_a_line_for_each_chosen_stack_and_the_findings() -> None:
    numpy = record("numpy", api="CPU", each=700.0)
    absent = [
        MissingStack(stack=s, reason=f"no {s} here", mend=install_command("wgpu"))
        for s in ("jax", "vulkan")
    ]
    python, native = record(), record(caller="native", each=5e3)
    pairs = [share("python-share", python, native, 12e3)]
    run = fingerprint(python, native, numpy, unavailable=absent, comparisons=pairs)
    text = printed(end_blocks(run))
    for said in ("wgpu-native", "20.0", "numpy", "0.700", "no jax here", "no vulkan here"):
        assert said in text
    assert text.count(install_command("wgpu")) == 1, "one command for both stacks"
    for of_others in ("torch", "CUDA", "Dawn"):
        assert of_others not in text
    first = findings_of(View(run))[0]
    assert "5.00" in finding_words(first).title
    assert f"1. {finding_words(first).title}" in text


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(70.0, 87.5, ["25", "70", "87.5"]), (70.0, 72.0, []), ("no", [], []), (None, None, [])],
)
def test_a_change_of_the_processors_speed_is_reported(
    least: object, most: object, said: list[str]
) -> None:
    text = speed_sentence(
        View(fingerprint(volatile={"canary_us_least": least, "canary_us_most": most}))
    )
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
