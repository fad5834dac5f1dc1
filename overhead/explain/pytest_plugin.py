"""The pytest fixture ``dispatch_budget``. pytest loads this module by its entry point, so it imports nothing heavy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from overhead.explain.dispatch_budget import BlockCounts


@pytest.fixture
def dispatch_budget(
    request: pytest.FixtureRequest,
) -> Callable[..., contextlib.AbstractContextManager[BlockCounts]]:
    """A context that fails the test if its block of PyTorch code exceeds a budget, and lists what it did, by line.

    ``with dispatch_budget(launches=12, synchronisations=0): step()``. Call the step once before, because a first call
    does more. Skips the test, with the reason, where nothing can be counted.
    """
    folder = str(request.config.rootpath)

    def budget(
        *, launches: int | None = None, synchronisations: int | None = None, **unknown: object
    ) -> contextlib.AbstractContextManager[BlockCounts]:
        from overhead.explain.dispatch_budget import check_limits

        if unknown:
            name = min(unknown)
            raise TypeError(f"dispatch_budget has no argument {name!r}; it has launches=N and synchronisations=N")
        check_limits(launches, synchronisations)
        return counted(launches, synchronisations)

    @contextlib.contextmanager
    def counted(launches: int | None, synchronisations: int | None) -> Iterator[BlockCounts]:
        from overhead.errors import Unavailable
        from overhead.explain.dispatch_budget import count_block
        from overhead.words.explain.dispatch_budget import over_budget_text
        from overhead.words.reasons import sentence

        try:
            with count_block(folder) as found:
                yield found
        except Unavailable as error:
            pytest.skip(f"dispatch_budget: {sentence(error.reason)}")
        if exceeded := found.over_budget(launches=launches, synchronisations=synchronisations):
            pytest.fail(over_budget_text(exceeded), pytrace=False)

    return budget
