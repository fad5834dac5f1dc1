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
    """Whether both may be one device under one API, as a native library and a browser name it: the
    same kind of adapter (GPU or software), and names of which one contains the other.

    If both have a device id, the ids must be equal. A browser gives no device id, so a missing id
    matches every id.
    """
    if one.api != other.api or one.software != other.software:
        return False
    ids_differ = bool(one.device) and bool(other.device) and one.device != other.device
    if ids_differ:
        return False
    name = without_brackets(one.adapter).lower()
    other_name = without_brackets(other.adapter).lower()
    # One contains the other: drivers add brackets and suffixes to a name.
    return same_decorated_name(name, other_name)


def same_device_across_apis(one: Placed, other: Placed) -> bool:
    """Whether both may be one device under two APIs, each of which has its own names: both are
    GPUs, software adapters or CPUs, and their names fit.

    Names fit if they share a characteristic word, and do not name different models.
    """
    if processor_kind(one) != processor_kind(other) or one.software != other.software:
        return False
    if same_adapter(one, other):
        return True
    # Words that tell devices apart, which both names have. Names differ in the model if both have
    # words with digits, such as H100 and A2000, and none in common.
    shared = _name_words(one.adapter) & _name_words(other.adapter)
    return bool(shared) and not names_differ_in_model(one, other)


def names_differ_in_model(one: Placed, other: Placed) -> bool:
    """Whether both adapter names have words with digits, as ``H100`` and ``A2000``, and none of
    them in common.
    """
    models = _words_with_digits(one.adapter)
    other_models = _words_with_digits(other.adapter)
    return bool(models) and bool(other_models) and models.isdisjoint(other_models)


def processor_kind(place: Placed) -> Processor:
    """What runs the work of a target or record: ``gpu``, ``software`` or ``cpu``."""
    if place.api == "CPU":
        return "cpu"
    return "software" if place.software else "gpu"


def is_board_id(device: str) -> bool:
    """Whether the device id identifies one physical board. A shorter id only numbers the devices
    with one name.
    """
    return len(device) == BOARD


@functools.lru_cache(maxsize=256)
def without_brackets(adapter: str) -> str:
    """The name of an adapter without text in brackets and without "Device" at the end."""
    # Twice, because brackets may stand inside brackets: the first time removes the inner ones.
    without_inner = _IN_BRACKETS.sub("", adapter)
    without = _IN_BRACKETS.sub("", without_inner)
    return " ".join(without.split()).removesuffix(" Device") or adapter


_IN_BRACKETS = re.compile(r"\s*\([^()]*\)")


def _name_words(adapter: str) -> set[str]:
    """The words of a name that tell devices apart, in small letters."""
    words = re.findall(r"[a-z0-9]{3,}", adapter.lower())
    return set(words) - _COMMON_WORDS


def _words_with_digits(adapter: str) -> set[str]:
    """Those words of a name that may be the model, as ``h100``."""
    return {word for word in _name_words(adapter) if re.search(r"\d", word)}
