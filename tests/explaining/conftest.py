"""Settings of the tests of a person's own calls and steps."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def usual_autograd_mode() -> None:
    """Tests of the torch stack leave the thread in the mode of the last chain; a program begins
    with gradients on.
    """
    if "torch" in sys.modules:
        from overhead.probes.torch.bodies import set_autograd_mode

        set_autograd_mode("grad")
