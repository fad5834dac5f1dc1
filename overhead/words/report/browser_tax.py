"""What the browser adds, in words."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.blocks.parts import InMicroseconds
from overhead.reading.browser_tax import Tax
from overhead.reading.view import stack_name
from overhead.results import Caller
from overhead.words.format import listed, number
from overhead.words.glossary import figure_column
from overhead.words.names import CALLER_WORDS

BROWSER_TITLE = "A dispatch in the browser, compared with the same dispatch from compiled code"
BROWSER_CAPTION = (
    "The cost in the browser, divided by the cost through the WebGPU library of this browser,"
    " called from compiled code on the same adapter. A horizontal line shows all ratios within the"
    " two intervals. Hollow: noisy."
)
BROWSER_FIGURES = {
    name: InMicroseconds(figure_column(name))
    for name in ("complete", "fixed", "empty_wait", "naive")
}
"""The figures that are compared, each with its heading."""


def row_label(tax: Tax) -> str:
    """The browser and the case."""
    return f"{stack_name(tax.target)}, {tax.target.pattern_label(tax.record)}"


def alternative(found: Sequence[Tax]) -> str:
    """The picture of what a browser adds, in words for screen readers: each case's cost in the
    browser over its cost from compiled code.
    """
    ratios = []
    for tax in found:
        # "native": compared with calls from compiled code. None where a cost may be zero.
        times = tax.slope_ratio("native")
        if times is not None:
            ratios.append(f"{row_label(tax)} {number(times)}")
    return f"The ratios: {listed(ratios)}."


def table_title(tax: Tax) -> str:
    """The browser on its device, and the library inside it."""
    return f"{tax.target.label}, compared with {tax.library}"


def through_library(tax: Tax, caller: Caller) -> str:
    """The library, and who calls it."""
    return f"{tax.library}, {CALLER_WORDS[caller]}"
