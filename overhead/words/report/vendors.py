"""What a launch costs by vendor: the rows, panels and sources of the picture and of its tables."""

from __future__ import annotations

import re

from overhead.reading.plain_text import plain
from overhead.reading.published import PublishedPoint, Source
from overhead.results import Caller, Fingerprint, Value
from overhead.words.format import MICRO, factor, number, within
from overhead.words.names import CALLER_WORDS

VENDORS_CAPTION = (
    "A row is a stack with its API and its caller; without a caller, calls come from Python. A"
    " large mark is a device that we measured, a small mark a published figure of a device."
    " Hollow: noisy, here an interval that reaches more than 10 % to one side, because runs of"
    " several profiles stand beside each other. Published times are only of calls without a wait"
    " between the calls, as ours are; other software and processors can differ. Software adapters"
    " and CPUs are only in the tables."
)
ONLY_PUBLISHED_TITLE = "Published figures that were measured in other ways"
ONLY_PUBLISHED_CAPTION = (
    "These times contain a wait, or only CPU time, so they cannot be compared with the costs above."
)
_UNITS = {"wait": ", only the wait", "submit": ", one submission", "node": ", one node"}
_MOST_LETTERS = 78
"""Letters of the devices at the end of a row; the table names all devices."""
_SHORT_CALLERS: dict[Caller, str] = {
    "binding": "",
    "ffi": ", no wrappers",
    "native": ", from compiled code",
    "browser": ", JavaScript",
}


def vendors_answer(
    measured: tuple[Value, Value], published: tuple[Value, Value], largest: Value | None
) -> str:
    """The sentences that the section opens with. ``measured``, ``published``: the lowest and the
    highest cost, in microseconds; ``largest``: by how much two measured devices differ most through
    one stack with one caller; None where no stack was measured on two.
    """
    ours, theirs = _range(measured), _range(published)
    costs = (
        f"One more launch costs {ours} on the GPUs that we measured, without the noisy costs, and"
        f" {theirs} by published figures."
    )
    if largest is None:
        return costs
    return (
        f"{costs} Through one stack, the GPUs that we measured differ by at most {factor(largest)}."
    )


def _range(ends: tuple[Value, Value]) -> str:
    """``2.87 to 43.1 µs``, as the picture shows both."""
    low, high = ends
    return f"{_short(low)} to {_short(high)} {MICRO}"


def _short(cost: Value) -> str:
    """A cost without its interval."""
    # An interval of 1 % gives three digits.
    return number(within(cost, 0.01))


def row_name(
    what: str, api: str, label: str, caller: Caller, *, with_arguments: bool = True
) -> str:
    """The name of a row in the picture by vendor: ``CUDA: the CUDA driver, from Python``, a stack
    with its API, what is measured of it if that is no launch, and who calls.

    ``what``: the unit that the cost is of; ``with_arguments``: whether the kernel has any.
    """
    name = _of_unit(what, api, label, with_arguments=with_arguments)
    return f"{name}, {CALLER_WORDS[caller]}"


def short_row_name(
    what: str, api: str, label: str, caller: Caller, *, with_arguments: bool = True
) -> str:
    """The same in the picture, where it must be short: ``the CUDA driver, from compiled code``."""
    name = _of_unit(what, api, label, with_arguments=with_arguments)
    return f"{name}{_SHORT_CALLERS[caller]}"


def _of_unit(what: str, api: str, label: str, *, with_arguments: bool) -> str:
    """The API and the stack, and what is measured of it."""
    kernel = "" if with_arguments else ", no arguments"
    name = plain(label + kernel, 60)  # one line of at most 60 characters
    if api not in name:  # many published stacks have the API in their name
        name = f"{api}: {name}"
    unit = _UNITS.get(what, "")  # what is not there, such as a launch, is not told
    return f"{name}{unit}"


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
    return f"{short_device(device)} {_short(cost)}"


def values_at_end(lowest: Value, highest: Value) -> str:
    """The values of a row, without its devices: ``2.10 to 6.21``."""
    low, high = _short(lowest), _short(highest)
    return low if low == high else f"{low} to {high}"


def short_device(name: str) -> str:
    """The name of a device in short: ``H100`` for ``NVIDIA H100 80GB HBM3``."""
    return re.sub(r" \d+GB HBM\w*$", "", name.removeprefix("NVIDIA "))


def devices_at_end(named: list[str]) -> str:
    """The devices of a row with their values; of too many, how many more there are."""
    shown: list[str] = []
    for i, text in enumerate(named):
        if shown and len(" · ".join([*shown, text])) > _MOST_LETTERS:
            return f"{' · '.join(shown)} · {len(named) - i} more"
        shown.append(text)
    return " · ".join(shown)
