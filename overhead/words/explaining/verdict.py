"""What is said of a step, in words."""

from __future__ import annotations

from overhead.explaining.record import Explanation
from overhead.explaining.verdict import verdict_reasons
from overhead.words.reasons import sentence


def verdict_sentences(found: Explanation) -> list[str]:
    """What is said of the step, the most important first. An older file holds sentences already."""
    return [sentence(one) for one in verdict_reasons(found, known_by=sentence)]
