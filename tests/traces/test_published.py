"""Traces that others published: their data, the rules for a mark, and the section that shows
them.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Cell, Drawing, Table
from overhead.report.core.machines import from_fingerprints
from overhead.traces import across
from overhead.traces.published import (
    OwnProgram,
    PublishedTrace,
    PublishedTraces,
    published_traces,
)
from overhead.words.traces import PUBLISHED_TABLE, rows_of_makers
from scripts.published_traces import one_mark_a_maker, trace_of
from tests.fakes.report import fingerprint
from tests.traces.test_trace_faults import usual

needs_pages = pytest.mark.needs("matplotlib", "seaborn", "jinja2")
A_COMMIT = "0123456789abcdef0123456789abcdef01234567"


def published(maker: str = "someone/things", **more: Any) -> PublishedTrace:
    """A published trace with a mark."""
    known: dict[str, Any] = {
        "repository": maker,
        "path": "trace.json",
        "commit": A_COMMIT,
        "recorder": "Kineto with CUPTI",
        "library": "PyTorch",
        "gpu": "NVIDIA H100 80GB HBM3",
        "answer": "host",
        "found_idle": 50,
        "latency_us": 6.0,
        "low_us": 5.0,
        "high_us": 9.0,
        "steps": 3,
        "launches": 10,
        "operations": 8,
        "host_us": 200.0,
    }
    return PublishedTrace(**{**known, **more})


def written(folder: Path, events: list[dict[str, Any]], gpu: str = "NVIDIA A100") -> dict[str, Any]:
    """A corpus with one file of these events: its line of the index."""
    path = folder / "someone" / "things" / "trace.json"
    path.parent.mkdir(parents=True)
    named = [{"id": 0, "name": gpu}] if gpu else []
    content = {"schemaVersion": 1, "deviceProperties": named, "traceEvents": events}
    path.write_text(json.dumps(content), encoding="utf-8")
    return {
        "repo": "someone/things",
        "path": "trace.json",
        "commit": A_COMMIT,
        "format": "kineto",
        "gpu": [gpu],
        "cuda_runtime_version": 12080,
    }


def test_a_trace_with_many_launches_on_an_idle_device_has_a_latency(tmp_path: Path) -> None:
    found = trace_of(tmp_path, written(tmp_path, usual()))
    assert (found.answer, found.left_out, found.versions) == ("host", "", "CUDA 12.8")
    assert found.latency_us == pytest.approx(5)
    # ``usual``: each launch takes the host 50 us.
    assert found.host_us_each == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize(
    ("events", "gpu", "why"),
    [
        (usual(steps=1), "NVIDIA A100", "few launches"),
        (usual(device_us=500), "NVIDIA A100", "few launches"),
        (usual(), "", "no name"),
    ],
    ids=["few launches", "a busy device", "no name of the GPU"],
)
def test_a_trace_that_does_not_compare_has_no_mark(
    tmp_path: Path, events: list[dict[str, Any]], gpu: str, why: str
) -> None:
    found = trace_of(tmp_path, written(tmp_path, events, gpu))
    assert found.left_out == why
    assert not found.is_shown


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    told = written(tmp_path, [])
    (tmp_path / told["repo"] / told["path"]).write_text("{}", encoding="utf-8")
    found = trace_of(tmp_path, told)
    assert (found.answer, found.is_shown) == ("refused", False)


def test_of_several_traces_of_a_maker_the_one_with_most_launches_has_the_mark() -> None:
    few, many = published(found_idle=30), published(found_idle=300, path="other.json")
    other_gpu = published(gpu="NVIDIA A100")
    marked = one_mark_a_maker([few, many, other_gpu])
    assert [trace.left_out for trace in marked] == ["another", "", ""]


def test_the_committed_marks_compare() -> None:
    marks = collections.Counter[object]()
    for trace in published_traces().trace:
        if trace.is_shown:
            assert trace.found_idle >= 20
            assert trace.gpu
            marks[trace.repository, trace.gpu, trace.recorder] += 1
    assert set(marks.values()) == {1}


def test_each_maker_has_one_row_with_all_its_files() -> None:
    host = published()
    traces = [host, published(answer="refused", because="no-trace"), published("another/one")]
    rows = rows_of_makers(traces)
    assert [row[1] for row in rows] == ["1", "2"]
    assert "no trace" in rows[1][3]


@needs_pages
def test_only_a_time_without_a_profiler_has_a_filled_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    own = msgspec.convert(
        {
            "name": "small",
            "gpu": "NVIDIA H100 80GB HBM3",
            "recorder": "Kineto with CUPTI",
            "library": "PyTorch",
            "versions": "PyTorch 2.11.0",
            "day": "2026-11-28",
            "launches": 100.0,
            "operations": 100.0,
            "found_idle": 90,
            "latency_us": 7.0,
            "low_us": 6.0,
            "high_us": 8.0,
            "idle": 0.9,
            "host_us": [700.0, 690.0, 900.0],
            "profiled_host_us": [1100.0, 1090.0, 1300.0],
        },
        OwnProgram,
    )
    data = PublishedTraces(A_COMMIT, [own], [published(), published(left_out="clocks")])
    monkeypatch.setattr(across, "published_traces", lambda: data)
    parts = list[Any](across.traces_of_others(from_fingerprints([fingerprint()])))
    latencies, host = [part for part in parts if isinstance(part, Drawing)]
    assert filled(latencies) == [False, False], "one published, and ours"
    assert sorted(filled(host)) == [False, False, True]
    (table,) = [
        part for part in parts if isinstance(part, Table) and part.caption == PUBLISHED_TABLE
    ]
    (row,) = table.rows
    link = row[0]
    assert isinstance(link, Cell)
    assert A_COMMIT in link.url


def filled(drawing: Drawing) -> list[bool]:
    """Of each mark of the one panel of a picture whether it is filled."""
    assert drawing.draw_narrow is not None
    drawing.draw_narrow()
    drawn: Any = drawing.draw()
    (axes,) = drawn.axes
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    return [mark.get_markerfacecolor() == mark.get_color() for mark in marks]
