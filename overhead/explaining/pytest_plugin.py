"""The pytest fixture ``dispatch_budget``. pytest loads this module by its entry point, so it
imports nothing heavy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from overhead.explaining.dispatch_budget import BlockCounts


@pytest.fixture
def dispatch_budget(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., contextlib.AbstractContextManager[BlockCounts]]]:
    """A context that fails the test if its block of PyTorch code launches or synchronises more
    often than allowed, and lists what it did, by line.

    ``with dispatch_budget(launches=12, synchronisations=0): step()``. Call the step once before,
    because a first call does more. Skips the test, with the reason, where nothing can be counted.
    """
    folder = str(request.config.rootpath)  # lines are shown relative to it
    entered: list[bool] = []
    """For each budget that the test made: whether a ``with`` block used it."""

    def budget(
        *, launches: int | None = None, synchronisations: int | None = None, **unknown: object
    ) -> contextlib.AbstractContextManager[BlockCounts]:
        """What a test calls: a ``with`` block that may make so many launches and synchronisations.
        ``unknown``: arguments that do not exist, such as one with a spelling error.
        """
        from overhead.explaining.dispatch_budget import check_limits

        if unknown:
            name = min(unknown)
            raise TypeError(
                f"dispatch_budget has no argument {name!r}; it has launches=N and"
                " synchronisations=N"
            )
        check_limits(launches, synchronisations)
        # Not used yet; ``counted`` notes that its block began.
        entered.append(False)
        return counted(len(entered) - 1, launches, synchronisations)

    @contextlib.contextmanager
    def counted(
        number: int, launches: int | None, synchronisations: int | None
    ) -> Iterator[BlockCounts]:
        """A context that counts its block, and fails the test if the block exceeds a limit.
        ``number``: of the budget among those that the test made.
        """
        from overhead.errors import Unavailable
        from overhead.explaining.dispatch_budget import count_block
        from overhead.words.explaining.dispatch_budget import over_budget_text
        from overhead.words.reasons import sentence

        entered[number] = True
        try:
            with count_block(folder) as found:
                yield found
        except Unavailable as error:
            pytest.skip(f"dispatch_budget: {sentence(error.reason)}")
        exceeded = found.over_budget(launches=launches, synchronisations=synchronisations)
        if exceeded:
            pytest.fail(over_budget_text(exceeded), pytrace=False)

    yield budget
    if not all(entered):
        # Without this, the test would pass although nothing was counted.
        pytest.fail(
            "dispatch_budget(...) alone counts nothing: write with dispatch_budget(...): STEP",
            pytrace=False,
        )
