"""In tests of the report a section that fails fails the test, instead of becoming a sentence on the
page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from overhead.report.core import pages


def _strict(section: str, make: Callable[[], Iterable[Any]]) -> list[Any]:
    return list(make())


@pytest.fixture(scope="package", autouse=True)
def usual_contained() -> Iterator[Callable[..., list[Any]]]:
    """The function that is replaced."""
    usual = pages.contained
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "contained", _strict)
        yield usual
