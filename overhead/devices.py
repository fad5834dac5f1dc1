"""When two targets or records ran on the same device.

An API gives a device a name of its own, a browser gives no id, and some libraries give no id either. So there are
several rules, from strict to lenient; a caller chooses the strictest one that its data allow.
"""

from __future__ import annotations

import functools
import re
from typing import Literal, Protocol

from overhead.results import BOARD, Api

Processor = Literal["gpu", "software", "cpu"]
"""What computes: GPU hardware, a software adapter, or the CPU through no adapter."""
_COMMON_WORDS = frozenset({"device", "graphics", "corporation", "software", "adapter", "gpu", "vulkan", "the"})


class Placed(Protocol):
    """What names a device: a ``Target`` or a ``Record``."""

    @property
    def api(self) -> Api: ...
    @property
    def adapter(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def software(self) -> bool: ...


def same_adapter(one: Placed, other: Placed) -> bool:
    """Whether both have the same adapter name. Two devices of one model pass; one device under two APIs may not."""
    return one.adapter == other.adapter


def same_device(one: Placed, other: Placed) -> bool:
    """Whether both have the same API, adapter name and device id (or both no id)."""
    return one.api == other.api and same_adapter(one, other) and one.device == other.device


def same_decorated_name(one: str, other: str) -> bool:
    """Whether one adapter name contains the other: drivers add brackets and suffixes to one device's name."""
    return one in other or other in one


def same_device_if_ids_allow(one: Placed, other: Placed) -> bool:
    """Whether both have the same API and kind of adapter, names that differ by additions only, and no different ids.

    A browser gives no device id, so a missing id counts as equal.
    """
    names = [without_brackets(each.adapter).lower() for each in (one, other)]
    ids = {each.device for each in (one, other) if each.device}
    return same_decorated_name(*names) and one.api == other.api and one.software == other.software and len(ids) < 2


def same_device_across_apis(one: Placed, other: Placed) -> bool:
    """Whether both are CPUs or both are not, have the same kind of adapter, and names with a characteristic word in
    common. Each API names a device differently."""
    if (one.api == "CPU") != (other.api == "CPU") or one.software != other.software:
        return False
    return same_adapter(one, other) or bool(_name_words(one.adapter) & _name_words(other.adapter))


def processor(place: Placed) -> Processor:
    """What computes there."""
    return "cpu" if place.api == "CPU" else "software" if place.software else "gpu"


def is_board_id(device: str) -> bool:
    """Whether the device id names one physical board. A shorter one is only a number among devices of one name."""
    return len(device) == BOARD


@functools.lru_cache(maxsize=256)
def without_brackets(adapter: str) -> str:
    """An adapter's name without its bracketed additions and a closing "Device"."""
    inner = re.sub(r"\s*\([^()]*\)", "", adapter)
    short = re.sub(r"\s*\([^()]*\)", "", inner)
    return " ".join(short.split()).removesuffix(" Device") or adapter


def _name_words(adapter: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{3,}", adapter.lower())) - _COMMON_WORDS
