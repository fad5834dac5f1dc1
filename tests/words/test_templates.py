"""How a template shows the values of a reason: with their intervals, units and nouns."""

from __future__ import annotations

from typing import Any

import pytest

from overhead.words.templates import Formatter


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{ns:micro}", {"ns": 1234.0}, "1.23"),
        ("{ns:micro-spread}", {"ns": 28e3}, "28"),
        ("{ns:micro-spread}", {"ns": 20e3, "ns_low": 19e3, "ns_high": 21e3}, "20.0 (19.0 to 21.0)"),
        ("{ns:micro-spread}", {"ns": 28e3, "ns_low": -5e3, "ns_high": 110e3}, "30 (at most 110)"),
        ("{ns:micro-spread}", {"ns": 1.5e5, "ns_other": 1.2e7}, "150 or 12,000"),
        ("x{ns:micro-interval}", {"ns": 28e3, "ns_low": 4e3, "ns_high": 66e3}, "x (4 to 66 µs)"),
        ("x{ns:micro-interval}", {"ns": 28e3}, "x"),
        (
            "{gain:factor-spread}",
            {"gain": 3.0, "gain_low": 2.0, "gain_high": 4.0},
            "3.0× (2.0 to 4.0)",
        ),
        ("{times:factor-or-many}", {"times": 3.0}, "3.0×"),
        ("{n:count launch/launches}", {"n": 1}, "1 launch"),
        ("{n:count launch/launches}", {"n": 1200}, "1,200 launches"),
        ("{n:count step}", {"n": 2}, "2 steps"),
        ("it runs{line:at}", {"line": "train.py:4"}, "it runs at train.py:4"),
        ("it runs{line:at}", {"line": ""}, "it runs"),
        ("one{why:more}", {"why": "two"}, "one; two"),
        ("one{why:more}", {"why": ""}, "one"),
        ("{why:capital}.", {"why": "it ended"}, "It ended."),
        ("{name:plain 5}", {"name": "a\nlong name"}, "a lo…"),
    ],
)
def test_a_value_is_shown_as_its_format_says(
    template: str, values: dict[str, Any], text: str
) -> None:
    assert Formatter().vformat(template, (), values) == text


@pytest.mark.parametrize(
    ("longest_ns", "other_ns", "texts"),
    [
        (84.457e6, 9.595e6, "84.5 ms, 9.60 ms"),
        (105.124e6, 11e3, "105 ms, 11.0 µs"),
        (13.336e9, 1760.0, "13.3 s, 1.76 µs"),
        (9.91e6, 0.0, "9,910 µs, 0 µs"),
    ],
)
def test_times_of_one_sentence_have_one_unit_unless_one_is_far_smaller(
    longest_ns: float, other_ns: float, texts: str
) -> None:
    values = {"a_ns": longest_ns, "b_ns": other_ns}
    assert Formatter().vformat("{a_ns:time}, {b_ns:time}", (), values) == texts


@pytest.mark.parametrize(
    ("share", "text"), [(0.99966, "99.97 %"), (0.999999, "over 99.99 %"), (1.0, "100 %")]
)
def test_a_share_is_all_only_where_nothing_is_left(share: float, text: str) -> None:
    assert Formatter().vformat("{share:share}", (), {"share": share}) == text
