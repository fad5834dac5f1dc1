"""The settings of a worker's sampling, and the events it emits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overhead.errors import BadValue, Unavailable, Unsupported, Unverified, message_of, raised_in
from overhead.measure.fitting.data import OneOff, Round


@dataclass(frozen=True)
class Settings:
    """``seconds``: sampling time of this process for all its cases. ``target``: relative half-width wanted.

    ``extras``: the cases that also get the slow one-off values (``naive_idle``, ``legacy``, the queue's knee above the
    top). ``staged``: the cases whose calls are timed one by one. ``met``: the cases whose met cost is measured, in
    addition to ``seconds``. ``by_processor``: whether that of ``extras`` is measured on each processor too.
    ``shares``: seconds by case where they differ. ``ladders``: by case, the ladder of an earlier process.
    """

    seconds: float
    target: float = 0.03
    min_rounds: int = 6
    max_rounds: int = 400
    seed: int = 0
    extras: frozenset[str] = frozenset()
    staged: frozenset[str] = frozenset()
    met: frozenset[str] = frozenset()
    by_processor: bool = False
    shares: Mapping[str, float] = field(default_factory=dict)
    ladders: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def share(self, case: str, cases: int) -> float:
        """Seconds of one case, of so many."""
        return self.shares.get(case, self.seconds / cases)


@dataclass(frozen=True)
class Doing:
    """Emitted before any step that may hang or crash, outside every window.

    Without a case: other workers may measure before ``emit`` returns. ``others``: another worker should measure first.
    """

    case: str
    what: str
    others: bool = False


@dataclass(frozen=True)
class RoundMeasured:
    """One case's samples of one round."""

    case: str
    round: Round


@dataclass(frozen=True)
class OneOffMeasured:
    """Values measured outside the ladder, or the reason why there are none. ``issued``: units that were run for them
    and that the case must count."""

    case: str
    name: str
    one_off: OneOff
    issued: int = 0


@dataclass(frozen=True)
class Dropped:
    """A case that is not measured further in this process, and why."""

    case: str
    status: str
    reason: str


Event = Doing | RoundMeasured | OneOffMeasured | Dropped


def status_of(error: BaseException) -> str:
    """The status of a case whose chain raised this exception."""
    if isinstance(error, Unverified):
        return "unverified"
    return "unavailable" if isinstance(error, Unsupported | Unavailable) else "failed"


def reason_of(error: BaseException) -> str:
    """The exception's message in one line. Where the status is ``failed``, its type precedes it, and the line of the
    stack's own code follows."""
    words = message_of(error)
    if words and status_of(error) != "failed":
        return words
    named = words if isinstance(error, BadValue) else f"{type(error).__name__}: {words}".rstrip(": ")
    where = raised_in(error)
    return f"{named} ({where})" if where else named
