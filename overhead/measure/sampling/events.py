"""What a worker is asked for, and what it says while it measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overhead.errors import Unavailable, Unsupported, Unverified
from overhead.measure.sampling.window import Samples


@dataclass(frozen=True)
class Settings:
    """``seconds``: sampling time of this process for all its cases. ``target``: relative half-width.

    ``extras``: the cases that also get what takes long (``naive_idle``, ``legacy``, the queue's knee above the top);
    ``staged``: those whose calls are timed one by one.
    ``shares``: seconds by case where they are not alike. ``slopes_only``: nothing is taken outside the ladder.
    ``ladders``: by case the n that an earlier process calibrated.
    """

    seconds: float
    target: float = 0.03
    min_rounds: int = 6
    max_rounds: int = 400
    seed: int = 0
    extras: frozenset[str] = frozenset()
    staged: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=dict)
    slopes_only: bool = False
    ladders: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def share(self, case: str, cases: int) -> float:
        """Seconds of this case, of so many."""
        return self.shares.get(case, self.seconds / cases)


@dataclass(frozen=True)
class Doing:
    """Said before anything that may hang or crash, outside every window; without a case where others may measure
    before it returns, and with ``others`` where one is to.
    """

    case: str
    what: str
    others: bool = False


@dataclass(frozen=True)
class Rounded:
    """One case's samples of one round; ``canary`` is the round's ``[python_ns, native_ns]``."""

    case: str
    round: int
    samples: Samples
    canary: list[int]


@dataclass(frozen=True)
class Taken:
    """Values taken outside the ladder, ns; ``at`` gives each value's n. Empty with a ``reason`` where there is none."""

    case: str
    name: str
    values: list[float]
    at: list[int] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True)
class Dropped:
    """A case that goes no further in this process."""

    case: str
    status: str
    reason: str


Event = Doing | Rounded | Taken | Dropped


def status_of(error: BaseException) -> str:
    """The status that a chain's exception stands for."""
    if isinstance(error, Unverified):
        return "unverified"
    return "unavailable" if isinstance(error, Unsupported | Unavailable) else "failed"


def reason_of(error: BaseException) -> str:
    """One line: the exception's own words, with its type where no status says it."""
    words = " ".join(str(error).split())
    return words if words and status_of(error) != "failed" else f"{type(error).__name__}: {words}".rstrip(": ")
