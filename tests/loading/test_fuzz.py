"""Fuzz the readers with few examples: changed input is read or refused in one line, and never ends in a traceback."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.fakes.changed_input import FUZZED

few = settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("kind", FUZZED)
@few
@given(data=st.data())
def test_changed_input_is_read_or_refused(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    FUZZED[kind](folder, data)
    shutil.rmtree(folder)
