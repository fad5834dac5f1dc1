"""Two speeds: whether the rounds form two groups."""

from __future__ import annotations

import numpy as np

from overhead.measure.fitting.two_speeds import reference_changed, split_speeds, two_groups


def test_values_form_two_groups_only_with_a_gap_and_enough_members() -> None:
    """20 values of each of five processes, around 100; those of the upper group around 180."""
    draw = np.random.default_rng(0)
    owners = np.repeat(np.arange(5), 20)
    one = draw.normal(100, 2, 100)
    assert two_groups(one, owners=owners) is None
    assert two_groups(one[:5], owners=owners[:5]) is None
    in_upper = np.arange(100) % 3 == 0
    two = np.where(in_upper, 180.0, 100.0) * draw.normal(1, 0.01, 100)
    found = two_groups(two, owners=owners)
    assert found is not None
    assert (found == in_upper).all()
    few = one.copy()
    few[:3] = 500.0
    assert two_groups(few, owners=owners) is None


def test_a_difference_of_a_fifth_makes_two_groups_within_a_process_but_not_between_processes() -> (
    None
):
    owners = np.repeat(np.arange(5), 20)
    values = np.random.default_rng(0).normal(100, 0.5, 100)
    assert two_groups(np.where(owners < 2, 1.2, 1.0) * values, owners=owners) is None
    assert two_groups(np.where(owners < 2, 2.0, 1.0) * values, owners=owners) is not None
    assert (
        two_groups(np.where(np.arange(100) % 20 < 8, 1.2, 1.0) * values, owners=owners) is not None
    )


def test_a_noisy_figure_that_follows_the_processor_speed_is_split_by_it() -> None:
    draw = np.random.default_rng(0)
    owners = np.repeat(np.arange(5), 20)
    slow = np.arange(100) % 2 == 0
    values = np.where(slow, 150.0, 100.0) * draw.normal(1, 0.12, 100)
    reference = np.where(slow, 150.0, 100.0) * draw.normal(1, 0.005, 100)
    assert two_groups(values, owners=owners) is None
    found = split_speeds(values, reference, owners)
    assert found is not None
    assert found.by == "canary"
    assert split_speeds(draw.normal(100, 12, 100), reference, owners) is None
    assert split_speeds(values, np.zeros(0), owners) is None
    assert reference_changed(reference).any()
    assert not reference_changed(np.zeros(0)).any()
