"""Contention of known cause on a simulated device: what the windows of a journal come to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overhead.contention.figures import contention_of
from overhead.loading.reduce import load
from overhead.results import Contention, encode_entry
from tests.fakes.runs import Made
from tests.fakes.shared_device import NATIVE, Lines, Shared, simulate

HOST, PYTHON = Shared(), Shared(way="threads", python=4_000.0, library=1_000.0)
DEVICE = Shared(device=3_000.0, depth=32, long_ns=24_000_000)
SLICES = Shared(
    library=500.0, device=1_000.0, units=512, slice=50_000.0, hand_over=10_000.0, long_ns=24_000_000
)
LOCK = Shared(library=3_000.0, locked=2_000.0)


@dataclass(frozen=True)
class Cause:
    """What peers share, the time of a unit of four together, and the limit that follows."""

    shared: Shared
    together_ns: float
    limit: str


CAUSES = {
    "nothing": Cause(HOST, together_ns=500, limit=""),
    "a device each": Cause(replace(HOST, way="devices"), together_ns=500, limit=""),
    "two processors": Cause(replace(HOST, processors=2), together_ns=1_000, limit="processors"),
    "busy neighbours": Cause(
        replace(HOST, way="busy", processors=2, sets=8), together_ns=5_500, limit="processors"
    ),
    "busy neighbours on other processors": Cause(
        replace(HOST, way="busy", slower=1.35),
        together_ns=2_700,
        limit="processors",
    ),
    "a queue": Cause(DEVICE, together_ns=3_000, limit="device"),
    "a queue of whole chains": Cause(
        replace(DEVICE, library=500.0, units=128, depth=1024),
        together_ns=3_000,
        limit="device",
    ),
    "a queue that hides behind one host": Cause(
        replace(HOST, device=1_200.0), together_ns=1_200, limit="device"
    ),
    "a queue that peers poll": Cause(
        replace(HOST, device=1_900.0, processors=2, spins=True),
        together_ns=1_900,
        limit="device",
    ),
    "a queue and a lock": Cause(
        replace(DEVICE, locked=1_900.0, processors=1, spins=True),
        together_ns=3_000,
        limit="device",
    ),
    "three causes": Cause(
        replace(DEVICE, device=2_000.0, locked=1_000.0, processors=2, spins=True),
        together_ns=2_000,
        limit="unknown",
    ),
    "slices": Cause(SLICES, together_ns=1_200, limit="slices"),
    "unfair slices": Cause(
        replace(SLICES, weights=(1.0, 2.0, 1.0, 1.0), long_ns=40_000_000),
        together_ns=1_160,
        limit="slices",
    ),
    "slices that end early": Cause(
        replace(SLICES, library=1_050.0), together_ns=1_200, limit="device"
    ),
    "a lock of processes": Cause(LOCK, together_ns=2_000, limit="lock"),
    "a lock of devices": Cause(replace(LOCK, way="devices"), together_ns=2_000, limit="lock"),
    "a lock of compiled threads": Cause(
        replace(LOCK, way="threads", case=NATIVE), together_ns=2_000, limit="lock"
    ),
    "threads without a compiled caller": Cause(PYTHON, together_ns=4_000, limit="unknown"),
    "slower processors": Cause(replace(HOST, slower=1.35), together_ns=675, limit="unknown"),
}
"""By a name for what slows the peers."""


def by_peers(lines: Lines) -> dict[int, Contention]:
    return {one.peers: one for one in contention_of(lines, 0.1)}


@pytest.mark.parametrize("cause", CAUSES)
def test_costs_and_limit(cause: str) -> None:
    shared, limit = CAUSES[cause].shared, CAUSES[cause].limit
    lines, rates = simulate(shared)
    found = by_peers(lines)
    # `rates` by the simulation: for each set of processes, the units per ns of each peer.
    for peers, sets in rates.items():
        each = np.mean([1 / np.sum(own) for own in sets])
        assert found[peers].status == "ok"
        assert found[peers].value("each") == pytest.approx(each, rel=0.03)
        assert found[peers].value("cost") == pytest.approx(each * len(sets[0]), rel=0.03)
        assert found[peers].costs == pytest.approx(
            list(np.median(1 / np.array(sets), axis=0)), rel=0.03
        )
    assert found[4].value("each") == pytest.approx(CAUSES[cause].together_ns, rel=0.03)
    assert found[4].limit == limit, found[4].why
    # The least number of peers: of busy neighbours there may be none.
    assert min(found) == (0 if shared.way == "busy" else 1)
    assert (found[2].figure("slice") is not None) == (limit == "slices")


@pytest.mark.parametrize(
    ("python", "locked", "limit"), [(4_000.0, 800.0, "interpreter"), (500.0, 900.0, "lock")]
)
def test_a_compiled_caller_tells_the_interpreter_from_a_lock(
    python: float, locked: float, limit: str
) -> None:
    shared = replace(PYTHON, python=python, locked=locked)
    compiled, _ = simulate(replace(shared, python=0.0, case=NATIVE))
    assert by_peers(compiled + simulate(shared)[0])[4].limit == limit


@pytest.mark.parametrize(
    ("slice", "hand_over"), [(50_000.0, 10_000.0), (30_000.0, 3_000.0), (20_000.0, 8_000.0)]
)
def test_slice_and_hand_over(slice: float, hand_over: float) -> None:
    two = by_peers(
        simulate(replace(SLICES, slice=slice, hand_over=hand_over, peers=(2,), depth=128))[0]
    )[2]
    assert two.value("slice") == pytest.approx(slice, rel=0.1)
    assert two.value("hand_over") == pytest.approx(hand_over, rel=0.1)


def test_each_device_alone_has_a_record() -> None:
    lines, _ = simulate(replace(HOST, way="devices", peers=(2,), sets=2))
    found = [(one.target.device, one.devices) for one in contention_of(lines, 0.1)]
    assert found == [("0", ["0"]), ("1", ["1"]), ("0", ["0", "1"])]


def test_one_set_is_noisy_and_names_no_limit() -> None:
    four = by_peers(simulate(replace(LOCK, sets=1))[0])[4]
    assert four.status == "noisy"
    assert four.limit == ""
    assert [figure.name for figure in four.figures if figure.status == "ok"] == []


@pytest.mark.parametrize(
    ("alone", "status", "reason"),
    [(True, "ok", ""), (False, "unverified", "3 units missing")],
    ids=["a window of one alone", "a window of all together"],
)
def test_the_reason_of_a_failed_window_survives(alone: bool, status: str, reason: str) -> None:
    """Without the windows of one alone, the record keeps its cost and lacks only its slowdown."""
    lines, _ = simulate(replace(HOST, sets=2))
    lost = {"chains": [], "status": "unverified", "reason": "3 units missing"}
    failed = [
        msgspec.structs.replace(one, **lost) if getattr(one, "alone", None) is alone else one
        for one in lines
    ]
    four = by_peers(failed)[4]
    assert [one.reason for one in four.figures if one.name == "slowdown"] == ["3 units missing"]
    assert four.status == status
    assert four.reason == reason


def test_from_the_journal_to_the_fingerprint(tmp_path: Path) -> None:
    lines, _ = simulate(LOCK)
    journal = tmp_path / "r.jsonl"
    journal.write_bytes(b"".join(map(encode_entry, [Made().lines()[0], *lines])))
    assert [(one.peers, one.limit) for one in load(journal).contention] == [
        (1, ""),
        (2, "lock"),
        (4, "lock"),
    ]
    without_contention = Made().write(tmp_path / "older.json", samples=False)
    assert load(without_contention).contention == []
