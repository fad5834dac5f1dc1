"""The step of array libraries: add 1 to 256 int32. The values show how often it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead.probes.base import Unverified

if TYPE_CHECKING:
    from numpy import int32
    from numpy.typing import NDArray

_COUNT = 256


def start_values() -> NDArray[int32]:
    """The values before the first step: int32, shape (256,)."""
    import numpy as np

    return np.arange(_COUNT, dtype=np.int32)


def count_steps(values: NDArray[int32]) -> int:
    """How often 1 was added to the start values, modulo 2^32. Raises ``Unverified`` if elements disagree."""
    import numpy as np

    added = (values.astype(np.int64) - start_values()) % 2**32
    if values.shape != (_COUNT,) or (added != added[0]).any():
        raise Unverified(f"elements disagree: between {added.min()} and {added.max()} steps")
    return int(added[0])
