"""Other ways to run a step, in words."""

from __future__ import annotations

from collections.abc import Mapping

KIND_LABELS: Mapping[str, str] = {
    "measured": "",
    "condition": "",
    "bound": " (a bound)",
    "prediction": " (predicted)",
}
"""What stands behind the name of an alternative."""
