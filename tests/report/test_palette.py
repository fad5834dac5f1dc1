"""Test the colours: contrast with the page, and that no two things share one."""

from __future__ import annotations

import itertools

import pytest

from overhead.report.core import palette
from overhead.report.core.draw import PAPER
from overhead.results import facts_of, own_stacks

LEAST_CONTRAST = 4.5
"""Of a mark or a text with the page (WCAG AA for text)."""
LEAST_DISTANCE = 30
"""Between two colours that a reader can tell apart, summed over red, green and blue of 255."""
OF_STACKS = [facts.colour for facts in own_stacks().values() if facts.colour]
OF_LAYERS = [*palette.LAYER_COLOURS.values()]
OF_UNKNOWN_STACKS = [facts_of(f"stack-{number}").colour for number in range(50)]
EVERY = {*OF_STACKS, *OF_LAYERS, *OF_UNKNOWN_STACKS, *palette.CALL_COLOURS.values()}


def red_green_blue(colour: str) -> list[int]:
    """The parts of ``#rrggbb``, each from 0 to 255."""
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def linear(part: int) -> float:
    """The light of one part of a colour, from 0 to 1, as WCAG defines it."""
    share = part / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    """How bright a colour is, from 0 to 1, as WCAG defines it."""
    red, green, blue = (linear(part) for part in red_green_blue(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def distance(colour: str, other: str) -> int:
    pairs = zip(red_green_blue(colour), red_green_blue(other), strict=True)
    return sum(abs(part - other_part) for part, other_part in pairs)


@pytest.mark.parametrize("colour", sorted(EVERY))
def test_every_colour_has_contrast_with_the_page(colour: str) -> None:
    contrast = (luminance(PAPER) + 0.05) / (luminance(colour) + 0.05)
    assert contrast >= LEAST_CONTRAST


def test_no_two_stacks_and_no_two_layers_share_a_colour() -> None:
    assert len(set(OF_STACKS)) == len(OF_STACKS)
    assert len(set(OF_LAYERS)) == len(OF_LAYERS)


def test_stacks_and_layers_differ_visibly() -> None:
    pairs = itertools.product(OF_STACKS, OF_LAYERS)
    assert min(distance(stack, layer) for stack, layer in pairs) >= LEAST_DISTANCE
