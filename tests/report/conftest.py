"""In tests of the report a section that fails fails the test, instead of becoming a sentence on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest


def _strict(section: str, make: Callable[[], Iterable[Any]]) -> list[Any]:
    return list(make())


@pytest.fixture(scope="package", autouse=True)
def usual_contained() -> Iterator[Callable[..., list[Any]] | None]:
    """The function that is replaced; None without the packages of the report, whose tests skip themselves."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            from overhead.report.core import pages
        except ImportError:
            yield None
        else:
            usual = pages.contained
            patch.setattr(pages, "contained", _strict)
            yield usual
