"""What an open chain says of itself, checked field by field before anything is timed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from msgspec import Meta

from overhead.fields import checked, checked_mapping
from overhead.measure.sampling.chain import Chain
from overhead.results.vocabulary import Name, Overlap, Scalar

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


def fields_of(chain: Chain) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each field, and a function that returns its checked value or raises ``BadValue``."""
    name = type(chain).__name__
    for field, kind in _ATTRIBUTES.items():
        yield field, functools.partial(_attribute, chain, field, kind)
    yield "window", lambda: checked_mapping(f"{name}.window()", chain.window(), Scalar)
    yield "kernels", lambda: checked_mapping(f"{name}.kernels()", chain.kernels(), _Digest)
    yield "flags", lambda: checked(f"{name}.flags", list(chain.flags), list[Name])


def _attribute(chain: Chain, field: str, kind: Any) -> Any:
    return checked(f"{type(chain).__name__}.{field}", getattr(chain, field), kind)


def describe(chain: Chain) -> Description:
    """The description of a chain that has just been opened. Raises ``BadValue``, which names the first bad field."""
    good = {field: get() for field, get in fields_of(chain)}
    return Description(**{field.name: good[field.name] for field in fields(Description)})


def opening_of(chain: Chain) -> dict[str, float]:
    """``Chain.opening``, ns or bytes by name. Raises ``BadValue``."""
    return checked_mapping(f"{type(chain).__name__}.opening()", chain.opening(), float)
