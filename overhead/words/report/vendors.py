"""What a launch costs by vendor: the rows, panels and sources of the picture and of its tables."""

from __future__ import annotations

from overhead.reading.plain_text import plain
from overhead.reading.published import PublishedPoint, Source
from overhead.results import Caller, Fingerprint, Value
from overhead.words.format import number, within
from overhead.words.names import CALLER_WORDS

VENDORS_CAPTION = (
    "A row is a stack with its API and its caller. A large mark is a device that we measured, a"
    " small mark a published figure of a device. Hollow: noisy. The panel of costs holds only"
    " published times of calls without a wait between the calls, because only these can be compared"
    " with ours. The other published times contain a wait, or only CPU time. Software adapters and"
    " CPUs are only in the tables."
)
_UNITS = {"wait": ", only the wait", "submit": ", one submission", "node": ", one node"}
_MOST_NAMES = 4
"""Devices that are named at the end of a row; the table names all."""


def row_name(
    what: str, api: str, label: str, caller: Caller, *, with_arguments: bool = True
) -> str:
    """The name of a row in the picture by vendor: ``CUDA: the CUDA driver, from Python``, a stack
    with its API, what is measured of it if that is no launch, and who calls.

    ``what``: the unit that the cost is of; ``with_arguments``: whether the kernel has any.
    """
    kernel = "" if with_arguments else ", no arguments"
    name = plain(label + kernel, 60)  # one line of at most 60 characters
    if api not in name:  # many published stacks have the API in their name
        name = f"{api}: {name}"
    unit = _UNITS.get(what, "")  # what is not there, such as a launch, is not told
    return f"{name}{unit}, {CALLER_WORDS[caller]}"


def measured_source(run: Fingerprint) -> str:
    """The run that a measured figure is of."""
    return f"run of {run.created[:10]}, {plain(run.profile, 40)}"


def published_source(source: Source) -> str:
    """The publication of a figure."""
    return f"{source.short}, {source.date}"


def published_remark(point: PublishedPoint) -> str:
    """What the source says of versions, and what is to know of its figure."""
    texts = [text for text in (point.versions, point.note) if text]
    return ". ".join(texts)


def device_value(device: str, cost: Value) -> str:
    """A device with its value, at the end of a row."""
    name = device.removeprefix("NVIDIA ")
    # An interval of 1 % gives three digits.
    value = number(within(cost.value, 0.01))
    return f"{name} {value}"


def devices_at_end(named: list[str]) -> str:
    """The first devices of a row with their values."""
    more = ["…"] if len(named) > _MOST_NAMES else []
    return " · ".join([*named[:_MOST_NAMES], *more])
