"""Recorded journals and the samples of committed runs reduce to the same fingerprints.

Of a committed run the figures are equal, and the codes of its rules and reasons: its file was
written when these were sentences, which have fewer digits than the samples give.

After an intended change of the method or of the schema: ``python -m tests.test_golden``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from overhead import results
from overhead.loading.files import write_fingerprint
from overhead.loading.reduce import load, reduce_journal
from overhead.results import codes_of
from scripts.recode_reasons import recoded

JOURNALS = Path(__file__).parent / "data" / "journals"
REPORTS = Path(__file__).parents[1] / "reports"
REASONS = ("rule", "reason", "why")
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


def codes(reason: Any) -> list[str]:
    """The codes of a reason, coded or as it was written before; [] of a text from outside."""
    if isinstance(reason, str):
        return sorted(codes_of(recoded(reason)))
    inner = [*reason.get("values", {}).values(), *reason.get("also", ())]
    found = {code for one in inner if isinstance(one, str | dict) for code in codes(one)}
    return sorted(found | ({reason["code"]} - {"quoted"}))


def with_codes(value: Any) -> Any:
    """The value with the codes of rules, reasons and flags in place of them, and without what adds
    a missing stack.

    Samples of older versions hold that as a line to type. Such a line is no figure, and has no
    code.
    """
    if isinstance(value, list):
        return [with_codes(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if key != "mend"}
    found = {key: codes(item) if key in REASONS else with_codes(item) for key, item in kept.items()}
    return (
        found | {"flags": [codes(flag) for flag in value["flags"]]}
        if "flags" in value and "records" in value
        else found
    )


def rounded(value: Any) -> Any:
    """The same with numbers of eight digits: versions of NumPy and SciPy differ in the last
    ones.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(f"{value:.8g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {key: rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_journal_reduces_to_the_same_figures(name: str) -> None:
    expected = json.loads((JOURNALS / f"{name}.json").read_text(encoding="utf-8"))
    assert rounded(results.to_builtins(reduce_journal(JOURNALS / f"{name}.jsonl.gz"))) == rounded(
        expected
    )


@pytest.mark.parametrize("samples", SAMPLES)
def test_the_samples_of_a_committed_run_reduce_to_its_file(samples: Path) -> None:
    name = samples.name.removesuffix(".samples.jsonl.gz") + ".json"
    file = next(
        path for folder in ("data", "data/again") if (path := REPORTS / folder / name).is_file()
    )
    found, expected = (
        with_codes(rounded(results.to_builtins(one)))
        for one in (reduce_journal(samples), load(file))
    )
    assert json.dumps(found, indent=0) == json.dumps(expected, indent=0)


if __name__ == "__main__":
    for name in RECORDED:
        write_fingerprint(JOURNALS / f"{name}.json", reduce_journal(JOURNALS / f"{name}.jsonl.gz"))
