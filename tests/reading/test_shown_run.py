"""Which of a machine's runs its pages show."""

from __future__ import annotations

import msgspec

from overhead.reading.view import measured_steps, run_to_show
from overhead.results import Fingerprint
from tests.fakes.report import fingerprint, record

_FULL = [
    record("dawn", caller="binding"),
    record("dawn", caller="native"),
    record("torch", caller="binding"),
    record("torch", caller="native"),
    record("vulkan", caller="binding"),
    record("vulkan", caller="native"),
]
"""A case by each of two callers through three stacks."""


def shown(*runs: Fingerprint) -> int:
    """``runs``: newest first."""
    return run_to_show([measured_steps(run) for run in runs])


def test_the_newest_complete_run_of_a_machine_is_shown() -> None:
    assert shown(fingerprint(*_FULL), fingerprint(*_FULL)) == 0
    assert shown(fingerprint(*_FULL[:3]), fingerprint(*_FULL)) == 0


def test_a_newer_run_of_few_stacks_or_few_cases_is_not_shown() -> None:
    assert shown(fingerprint(*_FULL[:2]), fingerprint(*_FULL)) == 1
    assert shown(fingerprint(*_FULL[::3]), fingerprint(*_FULL)) == 1
    failed = [msgspec.structs.replace(one, status="failed") for one in _FULL]
    assert shown(fingerprint(*failed), fingerprint(*_FULL)) == 1


def test_a_run_of_workloads_alone_is_shown_only_if_there_is_no_other_run() -> None:
    chains = [msgspec.structs.replace(one, workload="recurrence") for one in _FULL]
    assert shown(fingerprint(*chains), fingerprint(*_FULL[:1])) == 1
    assert shown(fingerprint(*chains)) == 0


def test_a_run_without_environment_variables_is_shown_before_one_that_sets_some() -> None:
    assert shown(fingerprint(*_FULL, environment={"A": "1"}), fingerprint(*_FULL)) == 1
