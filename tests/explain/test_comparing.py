"""Two explanations side by side."""

import pathlib
from typing import Any

import msgspec
import pytest

from overhead.errors import BadFile
from overhead.explain.comparing import are_explanations, compare_explanations, compared
from overhead.explain.record import Explanation, save_explanation
from overhead.results import Figure
from tests.fakes.explained import explanation
from tests.fakes.report import H200


def changed(found: Explanation, wall_ns: float, launches: float = 1228) -> Explanation:
    wall = Figure(name="wall", value=wall_ns, low=0.99 * wall_ns, high=1.01 * wall_ns)
    return msgspec.structs.replace(
        found,
        step=msgspec.structs.replace(found.step, wall=wall),
        per_step=msgspec.structs.replace(
            found.per_step, launches=Figure(name="launches", unit="count", value=launches)
        ),
    )


def on_a_known_machine() -> Explanation:
    return msgspec.structs.replace(explanation(), machine=H200)


def pair(found: Any, name: str) -> Any:
    return next(one for one in found.pairs if one.name == name)


def test_a_time_beyond_the_spread_between_runs_has_changed() -> None:
    found = compared(on_a_known_machine(), changed(on_a_known_machine(), 9e6, 614))
    assert (pair(found, "wall").verdict, pair(found, "launches").verdict) == ("changed", "changed")
    assert pair(found, "wall").ratio == pytest.approx(9 / 18.7)
    assert pair(found, "issue").verdict == "same"


def test_a_time_within_the_spread_between_runs_has_not() -> None:
    found = compared(on_a_known_machine(), changed(on_a_known_machine(), 19.5e6))
    assert pair(found, "wall").verdict == "same"
    assert "another run may differ by" in pair(found, "wall").reason


def test_a_kind_of_machine_without_a_known_spread_gives_no_verdict_on_times() -> None:
    found = compared(explanation(), changed(explanation(), 9e6, 614))
    assert (pair(found, "wall").verdict, pair(found, "launches").verdict) == ("unknown", "changed")
    assert "kind of machine" in pair(found, "wall").reason


def test_two_machines_give_ratios_without_a_verdict() -> None:
    other = msgspec.structs.replace(explanation(), machine=msgspec.structs.replace(explanation().machine, id="1" * 12))
    found = compared(explanation(), changed(other, 9e6))
    assert (pair(found, "wall").verdict, pair(found, "wall").reason) == ("unknown", "two machines")
    assert pair(found, "wall").ratio is not None


def test_other_versions_and_arguments_are_named() -> None:
    other = msgspec.structs.replace(explanation(), versions={"torch": "2.13"})
    assert "torch: none and 2.13" in compared(explanation(), other).differences


def test_files_of_two_kinds_are_refused(tmp_path: pathlib.Path) -> None:
    base, new = tmp_path / "base.json", tmp_path / "new.json"
    save_explanation(base, explanation())
    save_explanation(new, explanation())
    assert are_explanations(base, new)
    assert compare_explanations(base, new).pairs
    new.write_text("{}")
    with pytest.raises(BadFile, match="one is an explanation and the other is not"):
        are_explanations(base, new)
