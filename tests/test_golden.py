"""Recorded journals and the samples of committed runs reduce to the same fingerprints.

The journals' words of rules and reasons are a golden apart. A committed run is compared with its file, words included.

After an intended change of wording, of the method or of the schema: ``python -m tests.test_golden``.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from overhead import results
from overhead.loading.reduce import load, reduce_journal

JOURNALS = Path(__file__).parent / "data" / "journals"
REPORTS = Path(__file__).parents[1] / "reports"
WORDS = ("rule", "reason")
RECORDED = sorted(path.name.removesuffix(".jsonl.gz") for path in JOURNALS.glob("*.jsonl.gz"))
LARGE = 80_000
SAMPLES = [
    pytest.param(
        path,
        id=path.name.removesuffix(".samples.jsonl.gz"),
        marks=[pytest.mark.slow] if path.stat().st_size > LARGE else [],
    )
    for path in sorted((REPORTS / "samples").glob("*.samples.jsonl.gz"))
]


def split(value: Any, words: list[str]) -> Any:
    """The value without the texts of rules and reasons, which are appended to ``words`` in order."""
    if isinstance(value, dict):
        words += [f"{key}: {value[key]}" for key in WORDS if key in value]
        return {key: split(item, words) for key, item in value.items() if key not in WORDS}
    return [split(item, words) for item in value] if isinstance(value, list) else value


@functools.cache
def reduced(name: str) -> tuple[str, str]:
    """A recorded journal's fingerprint as JSON, and its rules and reasons, one a line."""
    words: list[str] = []
    figures = split(results.to_builtins(reduce_journal(JOURNALS / f"{name}.jsonl.gz")), words)
    return json.dumps(figures, indent=0) + "\n", "\n".join(words) + "\n"


def rounded(value: Any) -> Any:
    """The same with numbers of eight digits: versions of NumPy and SciPy differ in the last ones."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(f"{value:.8g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {key: rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_journal_reduces_to_the_same_figures(name: str) -> None:
    expected = json.loads((JOURNALS / f"{name}.json").read_text(encoding="utf-8"))
    assert rounded(json.loads(reduced(name)[0])) == rounded(expected)


@pytest.mark.parametrize("samples", SAMPLES)
def test_the_samples_of_a_committed_run_reduce_to_its_file(samples: Path) -> None:
    name = samples.name.removesuffix(".samples.jsonl.gz") + ".json"
    file = next(path for folder in ("data", "data/again") if (path := REPORTS / folder / name).is_file())
    found, expected = (rounded(results.to_builtins(one)) for one in (reduce_journal(samples), load(file)))
    assert json.dumps(found, indent=0) == json.dumps(expected, indent=0)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_journal_reduces_to_the_same_rules_and_reasons(name: str) -> None:
    assert reduced(name)[1] == (JOURNALS / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in RECORDED:
        for suffix, text in zip((".json", ".txt"), reduced(name), strict=True):
            (JOURNALS / f"{name}{suffix}").write_text(text, encoding="utf-8")
