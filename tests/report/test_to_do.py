"""What to do here: for each kind of reader, what was measured and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.markdown import markdown
from overhead.blocks.notebook import notebook_html
from overhead.blocks.parts import AdviceGroup, GroupedAdvice, Table
from overhead.loading.samples import place_of_samples
from overhead.reading import findings
from overhead.reading.findings import Finding, OwnWords, RunsAtHand, rule
from overhead.reading.view import View
from overhead.report.sections.host_shares import layers
from overhead.report.sections.to_do import MOST_ANSWERS, answers
from overhead.words.findings import READERS
from tests.fakes.report import figure, fingerprint, record

CUDA: dict[str, Any] = {"adapter": "Fake GPU 3000", "api": "CUDA", "unit": "launch"}
EAGER = record("torch", each=5_000.0, **CUDA)
ITEM = record("torch", "read-each", 15_000.0, params={"sync": "item", "every": 1}, **CUDA)
DAWN = record("dawn", each=25_000.0, adapter="Fake GPU 3000")
ONE_PASS = record("dawn", "one-pass", 3_000.0, adapter="Fake GPU 3000")


def groups(*records: Any) -> dict[str, AdviceGroup]:
    """The groups of answers by their readers."""
    found: dict[str, AdviceGroup] = {}
    for part in answers(RunsAtHand(View(fingerprint(*records)))):
        if isinstance(part, GroupedAdvice):
            found.update({group.reader: group for group in part.groups})
    return found


def test_each_kind_of_reader_has_answers_of_its_own() -> None:
    found = groups(EAGER, ITEM, DAWN, ONE_PASS)
    assert [*found] == [*READERS.values()]
    assert ".item()" in found[READERS["engines"]].first[0].title
    assert "pass" in found[READERS["webgpu"]].first[0].title


def test_a_reader_for_whom_nothing_was_measured_has_no_group() -> None:
    assert READERS["webgpu"] not in groups(EAGER, ITEM)
    assert READERS["engines"] not in groups(DAWN, ONE_PASS)


def test_a_machine_without_a_gpu_has_no_advice_about_one() -> None:
    run = fingerprint(record("numpy", each=500.0, api="CPU"))
    machine = msgspec.structs.replace(run.machine, gpus=[])
    view = View(msgspec.structs.replace(run, machine=machine))
    assert list(answers(RunsAtHand(view))) == []


def test_a_run_on_a_gpu_without_a_saving_says_so_and_how_to_check_it() -> None:
    parts = list(answers(RunsAtHand(View(fingerprint(EAGER)))))
    assert len(parts) == 2
    assert [*groups(EAGER)] == [READERS["figures"]]


def test_who_checks_figures_is_led_to_the_file_of_the_run_and_told_how_to_cite_it() -> None:
    run = fingerprint(EAGER, ITEM)
    checks = groups(EAGER, ITEM)[READERS["figures"]].first
    assert any(run.machine.id in answer.path for answer in checks)
    assert any(run.machine.id in answer.title for answer in checks)


def test_raw_samples_have_a_place_and_never_a_folder_of_this_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / "mine").mkdir(parents=True)
    monkeypatch.chdir(here)
    below = place_of_samples(here / "mine" / "a.samples.jsonl.gz", here / "a.json")
    assert (below.path, below.is_from_run) == ("mine/a.samples.jsonl.gz", False)
    elsewhere = tmp_path / "data"
    beside = place_of_samples(elsewhere / "a.samples.jsonl.gz", elsewhere / "a.json")
    assert (beside.path, beside.is_from_run) == ("a.samples.jsonl.gz", True)
    in_folder = place_of_samples(tmp_path / "samples" / "a.samples.jsonl.gz", elsewhere / "a.json")
    assert (in_folder.path, in_folder.is_from_run) == ("../samples/a.samples.jsonl.gz", True)


def test_an_answer_links_to_the_section_that_its_rule_names() -> None:
    submit, finish = figure("stage:submit", 10_000.0), figure("stage:finish", 8_000.0)
    timed = msgspec.structs.replace(DAWN, figures=[*DAWN.figures, submit, finish])
    view = View(fingerprint(timed, ONE_PASS))
    (part,) = [part for part in answers(RunsAtHand(view)) if isinstance(part, GroupedAdvice)]
    paths = [answer.path for group in part.groups for answer in group.first]
    assert "pages/cases.html#ladder" in paths
    (table,) = [part for part in layers(view) if isinstance(part, Table)]
    assert {str(row[0]) for row in table.rows} == {"submit", "finish"}


def finds(made: Finding) -> Callable[[View], Finding]:
    """A rule that always makes this finding."""

    def find(view: View) -> Finding:
        return made

    return find


@pytest.fixture
def many_findings() -> Any:
    """Two more findings than a page shows for a reader."""
    names = [f"mine-{number}" for number in range(MOST_ANSWERS + 2)]
    for number, name in enumerate(names):
        made = Finding(OwnWords(f"Do {name}.", "Because."), 10.0 - number, ())
        rule(name)(finds(made))
    yield names
    for name in names:
        del findings._rules._items[name]


def test_a_page_folds_all_but_the_first_answers_and_other_outputs_have_all(
    many_findings: list[str],
) -> None:
    parts = list(answers(RunsAtHand(View(fingerprint(EAGER)))))
    part = parts[-1]
    assert isinstance(part, GroupedAdvice)
    group = part.groups[0]
    assert [answer.title for answer in group.first] == [
        f"Do {name}." for name in many_findings[:MOST_ANSWERS]
    ]
    assert len(group.more) == 2
    for text in (markdown([part]), notebook_html([part])):
        for name in many_findings:
            assert name in text
