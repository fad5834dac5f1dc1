"""The first section of the front page: what to do, by kind of reader. A terminal shows it too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from overhead.blocks.parts import Advice, AdviceGroup, GroupedAdvice, Part, Text
from overhead.loading.samples import place_of_samples, samples_file
from overhead.reading.findings import Finding, Reader, RunsAtHand, findings_of
from overhead.reading.view import View
from overhead.report.core.machines import Machines, data_path
from overhead.report.core.page_list import pages
from overhead.report.core.registry import register_across
from overhead.words.findings import READERS, finding_words
from overhead.words.report.to_do import (
    MORE,
    NO_SAVING,
    RUN_AS_JSON,
    TO_DO,
    how_to_check,
    how_to_cite,
)

MOST_ANSWERS = 4
"""So many answers for a reader are not folded on a page. Chosen, not measured."""
_CHECKS: Reader = "figures"


@register_across("to-do", TO_DO, 1, page="front")
def to_do(machines: Machines) -> Iterator[Part]:
    """A section that tells each kind of reader what to do on this machine, that which saves most
    first.
    """
    yield from answers(RunsAtHand(machines.own, machines.others, machines.runs))


def answers(runs: RunsAtHand) -> Iterator[Part]:
    """What to do, by kind of reader; a sentence where nothing was found that saves time on a GPU.
    Nothing for a machine without one.
    """
    by_reader: dict[str, list[Finding]] = {reader: [] for reader in get_args(Reader)}
    for finding in _on_this_hardware(runs):
        by_reader[str(finding.reader)].append(finding)
    saves_time = any(found for reader, found in by_reader.items() if reader != _CHECKS)
    if not saves_time:
        if not runs.shown.has_gpu:
            return
        yield Text([NO_SAVING])

    groups = []
    for reader in get_args(Reader):
        told = [_answer(finding) for finding in by_reader[reader]]
        if reader == _CHECKS:
            told += _checks(runs.shown)
        if told:
            groups.append(_group(READERS[reader], told))
    yield GroupedAdvice(groups)


def _on_this_hardware(runs: RunsAtHand) -> list[Finding]:
    """The findings, on a machine without a GPU only those of CPU cases: what holds for a software
    adapter says nothing about a GPU, and nobody waits for it.
    """
    found = findings_of(runs)
    if runs.shown.has_gpu:
        return found
    return [finding for finding in found if _is_of_cpu(runs.shown, finding)]


def _is_of_cpu(view: View, finding: Finding) -> bool:
    """Whether the finding rests on cases of the CPU alone."""
    records = [view.record(key) for key in finding.records]
    return all(record is not None and record.api == "CPU" for record in records)


def _group(title: str, told: Sequence[Advice]) -> AdviceGroup:
    return AdviceGroup(title, told[:MOST_ANSWERS], told[MOST_ANSWERS:], MORE)


def _answer(finding: Finding) -> Advice:
    words = finding_words(finding)
    name, hash_sign, section = finding.page.partition("#")
    # ``pages`` knows those of slices too.
    for page in pages():
        if page.name == name:
            path = f"{page.path}{hash_sign}{section}"
            return Advice(words.title, words.detail, path, page.title)
    return Advice(words.title, words.detail)


def _checks(view: View) -> list[Advice]:
    """Where the numbers of the run come from, and how to cite them."""
    run = view.fingerprint
    samples = samples_file(run, view.path)
    place = place_of_samples(samples, view.path)
    title, detail = how_to_check(place.path, beside_run=place.is_from_run)
    return [Advice(title, detail, data_path(run), RUN_AS_JSON), Advice(*how_to_cite(run))]
