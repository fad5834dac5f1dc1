"""What an open chain says of itself, checked field by field before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from overhead.fields import checked, checked_mapping
from overhead.measure.sampling.chain import Chain, Name, Overlap, Scalar

_Positive = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_ATTRIBUTES: Mapping[str, Any] = {
    **dict.fromkeys(("recorded", "wait_spins", "synchronous", "latency", "executes"), bool),
    **dict.fromkeys(("least_ns", "poll_ns", "clock_step_ns"), _NotNegative),
    **dict.fromkeys(("max_n", "held_n"), _Positive),
    "overlap": Overlap,
}
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Description:
    """The part of the record that the chain itself gives."""

    overlap: Overlap
    synchronous: bool
    wait_spins: bool
    window: dict[str, Scalar]
    kernels: dict[str, str]
    flags: list[str]


def describe(chain: Chain) -> Description:
    """The description of a chain that has just been opened. Raises ``BadValue``, which names the first bad field."""
    name = type(chain).__name__
    good = {field: checked(f"{name}.{field}", getattr(chain, field), kind) for field, kind in _ATTRIBUTES.items()}
    return Description(
        overlap=good["overlap"],
        synchronous=good["synchronous"],
        wait_spins=good["wait_spins"],
        window=checked_mapping(f"{name}.window()", chain.window(), Scalar),
        kernels=checked_mapping(f"{name}.kernels()", chain.kernels(), _Digest),
        flags=checked(f"{name}.flags", list(chain.flags), list[Name]),
    )


def opening_of(chain: Chain) -> dict[str, float]:
    """``Chain.opening``, ns or bytes by name. Raises ``BadValue``."""
    return checked_mapping(f"{type(chain).__name__}.opening()", chain.opening(), float)
