"""Sentences of older files are read back as codes with values, and only where these give the same
sentence.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from overhead.loading.files import formatted
from overhead.results import Reason, Why, about, because, together
from scripts.recode_reasons import (
    Counted,
    older_sentence as sentence,
    recoded,
    rewritten_fingerprint,
)

TOO_WIDE = because("too-wide", share=0.207, target=0.1)
SEEN: list[Why] = [
    because("half-width", processes=3, share=0.0157, target=0.1),
    because("half-width-at-canary", processes=7, canary_us=54.4, share=0.0428, target=0.03),
    together(TOO_WIDE, because("more-processes-would-do", processes=13)),
    together(
        TOO_WIDE, because("not-checked-beyond", units=125, why=because("n-is-bounded", most=64))
    ),
    because("bends-at-anchor", slope_us=2.012, units=1283, beyond_us=3.803, anchor=21900),
    because("two-long-speeds", fast_us=12345.0, slow_us=23456.0, by="canary"),
    because("drifts-in-rounds", early_us=5.658, late_us=5.443),
    because(
        "processes-measured",
        worker="cuda-driver@CUDA:NVIDIA H100 80GB HBM3#9a8a",
        measured=4,
        planned=5,
    ),
]


@pytest.mark.parametrize("reason", SEEN, ids=str)
def test_a_sentence_is_read_back_as_its_code_and_values(reason: Why) -> None:
    assert recoded(sentence(reason)) == reason


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_ERROR_UNKNOWN: 9 rounds",
        "no such thing",
        "half-width 20.70%, target 10%",
        "8 fused WGSL records: withdrawn: in this run a loop turned once a step",
    ],
)
def test_a_text_from_outside_stays_as_it_is(text: str) -> None:
    assert recoded(text) == text


def test_of_reasons_that_hold_together_a_part_may_stay() -> None:
    both = recoded(f"{sentence(TOO_WIDE)}; as somebody said")
    assert isinstance(both, Reason)
    assert both == together(TOO_WIDE, "as somebody said")


def test_a_file_keeps_its_layout_and_all_other_fields() -> None:
    figure: dict[str, Any] = {"name": "complete", "value": 1.5, "rule": "from outside"}
    record = {"flags": ["worker-died"], "figures": [figure | {"reason": sentence(TOO_WIDE)}]}
    run: dict[str, Any] = {"records": [record], "flags": ["from outside"]}
    counted: dict[str, Counted] = {}
    made = rewritten_fingerprint(formatted(run), counted)
    assert made.count(b"\n") == formatted(run).count(b"\n")
    coded = {"code": "too-wide", "values": {"share": 0.207, "target": 0.1}}
    figures = [figure | {"reason": coded}]
    assert json.loads(made) == {**run, "records": [{**record, "figures": figures}]}
    assert counted["reason"].coded == 1
    assert counted["rule"].opaque == {"from outside": 1}


def test_each_reason_of_a_file_stands_on_one_line() -> None:
    whole = about("torch", together(TOO_WIDE, 'a "quoted" {text}'))
    text = formatted({"reason": whole, "values": [1, 2], "after": {"code": 1, "x": {}}})
    assert json.loads(text)["values"] == [1, 2]
    lines = text.decode().splitlines()
    (line_of_first,) = [line for line in lines if "too-wide" in line]
    (line_of_second,) = [line for line in lines if "quoted" in line]
    assert line_of_first == line_of_second
