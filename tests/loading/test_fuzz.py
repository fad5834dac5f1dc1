"""Fuzz the readers with few examples: changed input is read or refused in one line, and never ends
in a traceback.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from overhead.cli import main
from overhead.loading.files import write_fingerprint
from tests.fakes.download import download, entry
from tests.fakes.report import fingerprint, record
from tests.fakes.runs import Made

READERS = (["show"], ["show", "--json"], ["export"], ["export", "--json"], ["claims", "--json"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=30),
    st.sampled_from(
        [
            0.0,
            -0.0,
            1e308,
            -1e308,
            5e-324,
            2**53,
            2**64,
            [],
            {},
            "\x1b[2J",
            "=1+1",
            "../x",
            "\ud800",
        ]
    ),
)
NUMBERS: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.one_of(st.integers(0, 300), st.integers(0, 2**53)),
    float: st.floats(allow_nan=False),
}


def places(body: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys."""
    keys = list(body) if isinstance(body, dict) else list(range(len(body)))
    found = [(body, key) for key in keys]
    for key in keys:
        if isinstance(body[key], dict | list):
            found += places(body[key])
    return found


def change(body: Any, data: st.DataObject) -> None:
    """Change one to three values, most of them numbers to other numbers, which the decoder often
    accepts.
    """
    for _ in range(data.draw(st.sampled_from([1, 1, 2, 3]))):
        kind = data.draw(
            st.sampled_from(["number", "number", "number", "replace", "remove", "repeat"])
        )
        found = [
            (h, k) for h, k in places(body) if kind != "number" or isinstance(h[k], int | float)
        ]
        if not found:
            continue
        holder, key = found[data.draw(st.integers(0, len(found) - 1))]
        if kind == "number":
            holder[key] = data.draw(NUMBERS[type(holder[key])])
        elif kind == "remove":
            del holder[key]
        elif kind == "repeat" and isinstance(holder, list):
            holder.insert(data.draw(st.integers(0, len(holder))), copy.deepcopy(holder[key]))
        else:
            holder[key] = data.draw(VALUES)


def damage(raw: bytes, data: st.DataObject) -> bytes:
    """The bytes; in one example of six cut off or with one byte changed."""
    if not raw or data.draw(st.integers(0, 5)) < 5:
        return raw
    at = data.draw(st.integers(0, len(raw) - 1))
    return (
        raw[:at]
        if data.draw(st.booleans())
        else raw[:at] + bytes([data.draw(st.integers(0, 255))]) + raw[at + 1 :]
    )


def check_command(*arguments: str) -> int:
    """Run a command, which must succeed or print one line and exit with 2. Returns the exit
    code.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    assert code in (0, 2), f"{arguments[0]}: exit {code}: {err.getvalue()}"
    assert code == 0 or err.getvalue().count("\n") == 1, f"{arguments[0]}: {err.getvalue()}"
    return code


def check_readers(path: Path) -> None:
    for command in READERS:
        check_command(command[0], str(path), *command[1:])


def changed_fingerprint(folder: Path, data: st.DataObject) -> None:
    path = folder / "run.json"
    write_fingerprint(path, fingerprint(record(), record(pattern="fused", caller="native")))
    body = json.loads(path.read_bytes())
    change(body, data)
    path.write_bytes(damage(json.dumps(body).encode(), data))
    check_readers(path)


def changed_journal(folder: Path, data: st.DataObject) -> None:
    path = Made(processes=2).journal(folder / "run.jsonl")
    path.write_bytes(damage(_changed_lines(path.read_bytes(), data), data))
    check_readers(path)


def changed_samples(folder: Path, data: st.DataObject) -> None:
    """Raw samples are read beside their fingerprint and by themselves."""
    base = Made(seed=1, processes=3).write(folder / "base.json")
    new = Made(seed=2, processes=3).write(folder / "new.json")
    samples = new.with_suffix(".samples.jsonl.gz")
    lines = _changed_lines(gzip.decompress(samples.read_bytes()), data)
    samples.write_bytes(damage(gzip.compress(damage(lines, data), mtime=0), data))
    check_command("compare", str(base), str(new))
    check_command("compare", str(new), str(base), "--json")
    check_command("show", str(samples))


def changed_download(folder: Path, data: st.DataObject) -> None:
    path, out = folder / "overhead-browser.json", folder / "imported.json"
    per_submit, fused = entry({"pattern": "per-submit"}), entry({"pattern": "fused"})
    body = json.loads(json.dumps(download([per_submit, fused], 2)))
    change(body, data)
    path.write_bytes(damage(json.dumps(body, separators=(",", ":")).encode(), data))
    if check_command("browser", "--import", str(path), "--out", str(out)) == 0:
        check_readers(out)


def _changed_lines(raw: bytes, data: st.DataObject) -> bytes:
    lines = [json.loads(line) for line in raw.splitlines()]
    change(lines, data)
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


FUZZED: dict[str, Callable[[Path, st.DataObject], None]] = {
    "fingerprint": changed_fingerprint,
    "journal": changed_journal,
    "samples": changed_samples,
    "download": changed_download,
}

few = settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("kind", FUZZED)
@few
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_with_one_line(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    FUZZED[kind](folder, data)
    shutil.rmtree(folder)
