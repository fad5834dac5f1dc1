"""What an open chain says of itself, checked field by field before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from msgspec import Meta

from overhead.fields import checked, checked_mapping
from overhead.measure.sampling.chain import Chain
from overhead.results.vocabulary import Name, Overlap, Scalar

_Positive = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_ATTRIBUTES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("recorded", "wait_spins", "synchronous", "latency", "executes", "counts_device"), bool
    ),
    **dict.fromkeys(("least_ns", "poll_ns", "clock_step_ns"), _NotNegative),
    **dict.fromkeys(("max_n", "held_n"), _Positive),
    "overlap": Overlap,
}
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Description:
    """The part of a case's record that its open chain gives."""

    overlap: Overlap
    synchronous: bool
    wait_spins: bool
    window: dict[str, Scalar]
    kernels: dict[str, str]
    flags: list[str]


def describe(chain: Chain) -> Description:
    """What an open chain says of itself, for the record of its case. Each attribute is checked
    first, also those that only the sampling uses: a plugin's chain may have anything there. Raises
    ``BadValue``, which names the first bad field.
    """
    kind_of_chain = type(chain).__name__
    good: dict[str, Any] = {}
    # ``_ATTRIBUTES``: the kind of value that each attribute must have. ``checked`` returns the
    # value, or raises.
    for attribute, kind in _ATTRIBUTES.items():
        good[attribute] = checked(f"{kind_of_chain}.{attribute}", getattr(chain, attribute), kind)
    # What methods return, and sequences, are checked by kinds of their own.
    good["window"] = checked_mapping(f"{kind_of_chain}.window()", chain.window(), Scalar)
    good["kernels"] = checked_mapping(f"{kind_of_chain}.kernels()", chain.kernels(), _Digest)
    good["flags"] = checked(f"{kind_of_chain}.flags", list(chain.flags), list[Name])
    # Only a part of the attributes is recorded.
    recorded = [field.name for field in fields(Description)]
    return Description(**{name: good[name] for name in recorded})


def opening_of(chain: Chain) -> dict[str, float]:
    """What opening the chain cost, by name: ns, or bytes for ``peak_memory``. Raises
    ``BadValue``.
    """
    return checked_mapping(f"{type(chain).__name__}.opening()", chain.opening(), float)
