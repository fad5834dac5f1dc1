"""Test the colours: contrast with both pages, and that no two things share one."""

from __future__ import annotations

import itertools

import pytest

from overhead.report.core import palette

PAPER = "#fefefe"


@pytest.mark.parametrize("colour", palette.every_colour())
def test_every_colour_has_contrast_on_the_light_and_on_the_dark_page(colour: str) -> None:
    assert palette.contrast(colour, PAPER) >= palette.LEAST_CONTRAST
    assert palette.contrast(palette.on_dark(colour), palette.DARK_PAPER) >= palette.LEAST_CONTRAST


def test_no_two_stacks_and_no_stack_and_layer_share_a_colour() -> None:
    known = list(palette.STACK_COLOURS.values())
    assert len(set(known)) == len(known)
    layers = [*palette.LAYER_COLOURS.values()]
    assert len(set(layers)) == len(layers)
    twins = [palette.on_dark(c) for c in known], [palette.on_dark(c) for c in layers]
    assert not {*known, *twins[0]} & {*layers, *twins[1]}


def test_colours_of_stacks_and_layers_differ_visibly() -> None:
    def distance(one: str, other: str) -> int:
        return sum(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5))

    pairs = itertools.product(palette.STACK_COLOURS.values(), palette.LAYER_COLOURS.values())
    assert min(distance(*pair) for pair in pairs) >= 30


def test_contrast_is_that_of_black_and_white() -> None:
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_a_plugins_stack_has_the_same_colour_everywhere() -> None:
    assert palette.colour("somebody-elses") == palette.colour("somebody-elses")
    assert palette.themed(palette.colour("somebody-elses")).startswith("var(--c-")


def test_the_page_defines_every_colour_for_both_themes() -> None:
    css = palette.theme_css()
    for colour in palette.every_colour():
        assert css.count(f"--c-{colour[1:]}: ") == 2
