"""Fuzz the readers: a changed fingerprint or journal is read or refused in one line, and never ends in a traceback."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overhead.cli import main
from overhead.loading.files import write_fingerprint
from tests.fakes.report import fingerprint, record
from tests.fakes.runs import Made

few = settings(
    max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
COMMANDS = (["show"], ["show", "--json"], ["export"], ["export", "--format", "github"], ["claims", "--json"])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=30),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 2**53, 2**64, [], {}, "ok", "\x1b[2J", "=1+1"]),
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *places(value[key]))]


def change(body: Any, data: st.DataObject) -> None:
    """Replace up to four values at random places."""
    for _ in range(data.draw(st.integers(1, 4))):
        found = places(body)
        if not found:
            return
        holder, key = found[data.draw(st.integers(0, len(found) - 1))]
        holder[key] = data.draw(VALUES)


def check_commands(path: Path) -> None:
    for command in COMMANDS:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([command[0], str(path), *command[1:]])
        assert code in (0, 2), err.getvalue()
        assert code == 0 or err.getvalue().count("\n") == 1, err.getvalue()


@few
@given(data=st.data())
def test_a_changed_fingerprint_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "run.json"
    write_fingerprint(path, fingerprint(record(), record(pattern="fused", caller="native")))
    body = json.loads(path.read_bytes())
    change(body, data)
    path.write_text(json.dumps(body), "utf-8")
    check_commands(path)


@few
@given(data=st.data())
def test_a_changed_journal_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = Made(processes=2).journal(tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(lines, data)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text, "utf-8")
    check_commands(path)
