"""The sentences of findings: what to do, and on which figures and condition that rests.

A module here is named after the module of ``reading.findings`` whose facts it puts into words. The
words of a slice's findings are in ``words/SLICE/findings.py``.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from overhead.reading.findings import Finding, OwnWords, Reader
from overhead.slices import words_of_features
from overhead.words.format import run_time

Facts = TypeVar("Facts")


@dataclasses.dataclass(frozen=True)
class FindingWords:
    """``title``: what to do, with the figures; ``detail``: intervals, conditions, and the run if it
    is another one than the reader sees.
    """

    title: str
    detail: str


READERS: dict[Reader, str] = {
    "engines": "PyTorch and inference engines",
    "webgpu": "WebGPU and Vulkan",
    "figures": "If you check figures",
}
"""For whom a finding is, as the heading above it."""
_words: dict[type, Callable[[Any], FindingWords]] = {}


def words_for(
    facts: type[Facts],
) -> Callable[[Callable[[Facts], FindingWords]], Callable[[Facts], FindingWords]]:
    """Decorator for the function that puts the facts of a finding into words. ``facts``: their
    type, by which ``finding_words`` finds the function.
    """

    def add(function: Callable[[Facts], FindingWords]) -> Callable[[Facts], FindingWords]:
        _words[facts] = function  # the table that ``finding_words`` looks into
        return function

    return add


def finding_words(finding: Finding) -> FindingWords:
    """The finding in words. Raises ``KeyError`` for facts that no words are registered for."""
    if isinstance(finding.facts, OwnWords):
        return FindingWords(finding.facts.title, finding.facts.detail)
    _load()
    words = _words[type(finding.facts)](finding.facts)
    if not finding.run:
        return words
    return FindingWords(words.title, f"{words.detail} Run of {run_time(finding.run)}.")


@functools.cache
def _load() -> None:
    """Import the modules that register words."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    words_of_features("findings")
