"""Decide whether two targets (stacks on devices) or records (results) belong to the same device.

Each API names a device differently, and browsers and some libraries give no device id. So there are
several rules, from strict to lenient. A caller chooses the strictest rule that its data allow.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

from overhead.results import BOARD, Record, Target

Processor = Literal["gpu", "software", "cpu"]
"""What runs the work: GPU hardware, a software adapter, or the CPU without any adapter."""
_COMMON_WORDS = frozenset(
    {"device", "graphics", "corporation", "software", "adapter", "gpu", "vulkan", "the"}
)


Placed = Target | Record
"""What describes a device."""


def same_adapter(one: Placed, other: Placed) -> bool:
    """Whether both have the same adapter name.

    The result is also True for two devices of one model. It may be False for one device under two
    APIs.
    """
    return one.adapter == other.adapter


def same_device(one: Placed, other: Placed) -> bool:
    """Whether both have the same API, adapter name and device id (or both no id)."""
    return one.api == other.api and same_adapter(one, other) and one.device == other.device


def same_decorated_name(one: str, other: str) -> bool:
    """Whether one adapter name contains the other, because drivers add brackets and suffixes to
    names.
    """
    return one in other or other in one


def same_device_if_ids_allow(one: Placed, other: Placed) -> bool:
    """Whether both have the same API, the same kind of adapter, and names of which one contains the
    other.

    If both have a device id, the ids must be equal. A browser gives no device id, so a missing id
    matches every id.
    """
    names = [without_brackets(each.adapter).lower() for each in (one, other)]
    ids = {each.device for each in (one, other) if each.device}
    return (
        same_decorated_name(*names)
        and one.api == other.api
        and one.software == other.software
        and len(ids) < 2
    )


def same_device_across_apis(one: Placed, other: Placed) -> bool:
    """Whether both have the same kind of adapter (or are both CPUs) and names that fit: each API
    has its own names.

    They share a characteristic word, and do not name different models.
    """
    if (one.api == "CPU") != (other.api == "CPU") or one.software != other.software:
        return False
    shared = _name_words(one.adapter) & _name_words(other.adapter)
    return same_adapter(one, other) or (bool(shared) and not names_differ_in_model(one, other))


def names_differ_in_model(one: Placed, other: Placed) -> bool:
    """Whether both adapter names have words with digits, as ``H100`` and ``A2000``, and none of
    them in common.
    """
    models = [
        {word for word in _name_words(each.adapter) if re.search(r"\d", word)}
        for each in (one, other)
    ]
    return all(models) and not models[0] & models[1]


def processor_kind(place: Placed) -> Processor:
    """What runs the work of a target or record: ``gpu``, ``software`` or ``cpu``."""
    return "cpu" if place.api == "CPU" else "software" if place.software else "gpu"


def is_board_id(device: str) -> bool:
    """Whether the device id identifies one physical board. A shorter id only numbers the devices
    with one name.
    """
    return len(device) == BOARD


@functools.lru_cache(maxsize=256)
def without_brackets(adapter: str) -> str:
    """The name of an adapter without text in brackets and without "Device" at the end."""
    inner = re.sub(r"\s*\([^()]*\)", "", adapter)
    short = re.sub(r"\s*\([^()]*\)", "", inner)
    return " ".join(short.split()).removesuffix(" Device") or adapter


def _name_words(adapter: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{3,}", adapter.lower())) - _COMMON_WORDS
