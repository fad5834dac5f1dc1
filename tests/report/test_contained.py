"""Test that a section that fails in any way costs only itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from overhead.blocks.parts import Part, Text
from overhead.reading.view import View
from overhead.report import register, register_across, render
from overhead.report.core import pages, registry
from overhead.report.core.machines import Machines
from overhead.words.report.pages import section_failed
from tests.fakes.report import fingerprint, record
from tests.report.report_page import Page

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


def raises(view: View) -> Iterator[Part]:
    yield Text(["the first part"])
    raise ValueError("no such\nlayer")


def exits(view: View) -> NoReturn:
    sys.exit(0)


def nonsense(view: View) -> Any:
    return [7]


def raises_across(machines: Machines) -> NoReturn:
    raise BaseException("odd")


def test_a_section_that_fails_becomes_a_sentence_with_the_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    usual_contained: Any,
) -> None:
    monkeypatch.setattr(pages, "contained", usual_contained)
    registry.registered()
    registry.registered_across()
    monkeypatch.setattr(registry._sections, "_items", dict(registry._sections._items))
    monkeypatch.setattr(registry._across, "_items", dict(registry._across._items))
    for build in (raises, exits, nonsense):
        register(build.__name__, "A section of another package", 15)(build)
    register_across("raises-across", "Across", 15, page="front")(raises_across)
    page = Page(render([fingerprint(record())], tmp_path).read_text(encoding="utf-8"))
    reasons = [
        section_failed("raises", "ValueError: no such layer"),
        section_failed("exits", "SystemExit: 0"),
        section_failed("nonsense", "TypeError: 7 is no part of a section"),
        section_failed("raises-across", "BaseException: odd"),
    ]
    lines = [f"overhead: {reason}" for reason in reasons]
    assert sorted(capsys.readouterr().err.splitlines()) == sorted(lines)
    assert all(reason in page.text for reason in reasons)
    assert "the first part" not in page.text
