"""The order of what is said of a trace, and what some verdicts make untrue. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.results import Why, code_of

ADVICE_OF_A_STEP = {
    "predicted-gains",
    "fewer-launches-save-little",
    "less-host-work-saves-nothing",
    "host-work-for-each-launch",
}
"""What follows from a replayed step for later ones."""
_BEFORE_THE_CAUSES = {
    "bound-by-data-loader",
    "host-bound",
    "device-bound",
    "device-bound-as-recorded",
    "device-bound-in-turn",
    "less-host-work-saves-nothing",
    "bound-by-synchronisation",
    "mixed",
    "mixed-without-synchronisations-host",
    "mixed-without-synchronisations-device",
    "predicted-gains",
    "fewer-launches-save-little",
    "kernels-inside-operations",
}
"""Where the host's time goes stands behind these."""


def with_causes(said: Sequence[Why], causes: Sequence[Why]) -> list[Why]:
    """The sentences of a verdict with where the host's time goes, which stands behind what bounds
    the step and what would change it.
    """
    behind = 0
    for index, reason in enumerate(said):
        if code_of(reason) in _BEFORE_THE_CAUSES:
            behind = index + 1
    behind = behind or len(said)
    return [*said[:behind], *causes, *said[behind:]]
