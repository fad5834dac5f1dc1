"""Test the colours: contrast with the page, and that no two things share one."""

from __future__ import annotations

import itertools

import pytest

from overhead.report.core import palette
from overhead.report.core.draw import PAPER
from overhead.results import facts_of, own_stacks

LEAST_CONTRAST = 4.5
"""Of a mark or a text with the page (WCAG AA for text)."""
OF_STACKS = [facts.colour for facts in own_stacks().values() if facts.colour]
EVERY = {*OF_STACKS, *palette.LAYER_COLOURS.values(), *palette.CALL_COLOURS.values(),
         *(facts_of(f"stack-{number}").colour for number in range(50))}  # fmt: skip


def luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", sorted(EVERY))
def test_every_colour_has_contrast_with_the_page(colour: str) -> None:
    assert (luminance(PAPER) + 0.05) / (luminance(colour) + 0.05) >= LEAST_CONTRAST


def test_no_two_stacks_share_a_colour_and_stacks_and_layers_differ_visibly() -> None:
    def distance(one: str, other: str) -> int:
        return sum(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5))

    stacks, layers = OF_STACKS, palette.LAYER_COLOURS.values()
    assert (len(set(stacks)), len(set(layers))) == (len(stacks), len(layers))
    assert min(distance(*pair) for pair in itertools.product(stacks, layers)) >= 30
