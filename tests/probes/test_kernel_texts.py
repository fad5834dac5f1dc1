"""The texts of kernels, whose hashes tell which runs can be compared."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from overhead.loading.files import read_fingerprint

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "overhead" / "probes" / "kernels"


def newest_hashes() -> dict[str, str]:
    """By name of each kernel's file its hash in the newest committed run that has the file."""
    runs = [read_fingerprint(path) for path in (ROOT / "reports" / "data").glob("*.json")]
    hashes: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: run.created):
        hashes.update(run.kernels)
    return hashes


@pytest.mark.parametrize("name", [path.name for path in sorted(KERNELS.glob("step*.*"))])
def test_a_kernel_has_the_text_of_the_newest_committed_run(name: str) -> None:
    """Where a text changes, also by formatting alone, old and new runs can no longer be compared:
    measure the committed runs again in the same change.
    """
    hashes = newest_hashes()
    if name not in hashes:
        pytest.skip("no committed run has this kernel")
    text = (KERNELS / name).read_bytes().replace(b"\r\n", b"\n")
    assert hashlib.sha256(text).hexdigest() == hashes[name]
