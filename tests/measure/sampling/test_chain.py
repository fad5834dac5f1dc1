"""The documented example of a chain runs."""

from __future__ import annotations

import doctest

from overhead.measure.sampling import chain


def test_the_example_in_the_docstring_of_chain_runs() -> None:
    result = doctest.testmod(chain)
    assert result.attempted > 0
    assert result.failed == 0
