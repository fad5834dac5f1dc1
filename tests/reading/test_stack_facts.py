"""Test that a reader shows a stack by its facts: the suite's own by the suite's, others by those of
the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overhead.errors import BadValue
from overhead.loading.files import write_fingerprint
from overhead.loading.reduce import load
from overhead.probes import facts_of_stack, register
from overhead.probes.base import Chain, Probe, Space
from overhead.reading.dispatch_costs import ROW_GROUPS, dispatch_costs
from overhead.reading.view import View, stack_name
from overhead.report.core.machines import from_paths
from overhead.report.core.pages import write_pages
from overhead.results import Case, Fingerprint, StackFacts, StackRow, Target, facts_of, own_stacks
from tests.fakes.plugins import forget_plugins_afterwards
from tests.fakes.report import fingerprint, record

PLUGIN = Path(__file__).resolve().parents[2] / "docs" / "examples" / "my_stack.py"
FACTS = StackFacts(
    label="the Abacus",
    colour="#123456",
    roles=["webgpu"],
    rows=[StackRow(label="Abacus, one bead", name="the bead", group="kernels", order=5)],
)


def with_abacus(facts: StackFacts | None = FACTS) -> Fingerprint:
    return fingerprint(record("abacus"), stacks={} if facts is None else {"abacus": facts})


def test_a_stack_that_is_not_ours_has_the_facts_of_the_file() -> None:
    view = View(with_abacus())
    costs = dispatch_costs(view)
    assert costs is not None
    (row,) = costs.rows
    assert row.label == "Abacus, one bead"
    assert row.name == "the bead"
    assert row.group == ROW_GROUPS[1]
    assert row.rank == 5
    assert view.targets[0].facts.colour == "#123456"
    assert stack_name(view.targets[0]) == "the Abacus"
    assert "abacus" in view.in_role("webgpu")


def test_without_facts_a_stack_has_its_name_one_row_and_a_colour() -> None:
    view = View(with_abacus(None))
    costs = dispatch_costs(view)
    assert costs is not None
    assert [(row.label, row.group) for row in costs.rows] == [("abacus", ROW_GROUPS[-1])]
    assert view.targets[0].facts == facts_of("abacus")
    assert view.targets[0].facts.colour.startswith("#")


def test_a_file_cannot_rename_our_own_stacks() -> None:
    view = View(fingerprint(record("dawn"), stacks={"dawn": FACTS}))
    assert view.facts("dawn").label == own_stacks()["dawn"].label
    assert view.known_stacks["dawn"] == own_stacks()["dawn"]


def test_the_facts_are_in_the_file_and_on_the_first_page(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    write_fingerprint(file, with_abacus())
    assert load(file).stacks == {"abacus": FACTS}
    page = write_pages(from_paths([file]), tmp_path / "report").read_text("utf-8")
    assert "Abacus, one bead" in page
    assert "#123456" in page


def test_relations_between_our_stacks_name_stacks_that_are_known() -> None:
    for name, facts in own_stacks().items():
        makers = [maker.stack for maker in facts.graphs.values()]
        related = {facts.below, facts.library, *makers} - {""}
        assert related <= own_stacks().keys(), name
    orders = []
    for facts in own_stacks().values():
        orders += [row.order for row in facts.rows]
    assert len(set(orders)) == len(orders), "two rows of one place"


@pytest.mark.parametrize(
    "wrong",
    [{"colour": "red"}, {"roles": ["king"]}, {"rows": [{"label": 3}]}, {"below": "No Stack"}],
    ids=str,
)
def test_a_fact_that_no_file_may_hold_is_refused_when_the_plugin_is_imported(
    wrong: dict[str, object],
) -> None:
    with pytest.raises(BadValue):
        StackFacts(**wrong)  # type: ignore[arg-type]


class SilentProbe(Probe):
    """A stack without a device."""

    def targets(self) -> list[Target]:
        return []

    def space(self, target: Target) -> Space:
        raise NotImplementedError

    def open(self, target: Target, case: Case) -> Chain:
        raise NotImplementedError


def test_facts_of_another_type_are_refused() -> None:
    class Odd(SilentProbe):
        name = "odd"
        title = "odd"
        facts = "label"  # type: ignore[assignment]

    with pytest.raises(BadValue):
        Odd.check_attributes()


@pytest.mark.slow
def test_a_plugins_stack_is_shown_with_its_facts_in_a_process_without_the_plugin(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run.json"
    command = [
        sys.executable,
        "-m",
        "overhead",
        "run",
        "--plugin",
        str(PLUGIN),
        "-p",
        "sqlite",
        "--profile",
        "quick",
    ]
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from overhead.loading.reduce import load\n"
        "from overhead.reading.dispatch_costs import dispatch_costs\n"
        "from overhead.reading.view import View, stack_name\n"
        "view = View(load(Path(sys.argv[1])))\n"
        "target = view.targets[0]\n"
        "labels = [row.label for row in dispatch_costs(view).rows]\n"
        "print(json.dumps([labels, stack_name(target), target.facts.colour]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(out)], check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == [["SQLite UPDATE (CPU)"], "SQLite (CPU)", "#0f5a82"]


def test_without_a_label_a_stack_that_is_not_ours_is_called_by_its_title(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_plugins_afterwards(monkeypatch)

    @register
    class Nameless(SilentProbe):
        name = "nameless"
        title = "a stack of somebody"

    assert facts_of_stack("nameless").label == "a stack of somebody"
    assert facts_of_stack("numpy") == own_stacks()["numpy"]
