"""The claims and their verdicts as blocks, for the terminal, for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from overhead.blocks.parts import Cell, Part, Table, Text, Tone
from overhead.claims.figure import claims_drawings
from overhead.claims.judging import Judged, by_verdict
from overhead.claims.measured import ClaimValue
from overhead.claims.registry import citation
from overhead.claims.rules import ClaimVerdict
from overhead.words import claims as words

_TONES: dict[ClaimVerdict, Tone] = {"reproduced": "good", "partial": "unsure", "refuted": "bad"}


def verdict_blocks(judged_claims: Sequence[Judged]) -> Iterator[Part]:
    """The verdicts in full: each claim with its publication, its verdict and the reasons. Claims
    that cannot be tested here follow in a table of their own, which a page shows only on a click
    (``folded``).
    """
    yield Text([words.summary(judged_claims), words.TOLERANCE])
    in_order = by_verdict(judged_claims)
    with_verdict = [judged for judged in in_order if judged.verdict != "not testable here"]
    without_verdict = [judged for judged in in_order if judged.verdict == "not testable here"]
    if with_verdict:
        yield _verdict_table(words.WITH_A_VERDICT, with_verdict, folded=False)
    if without_verdict:
        yield _verdict_table(words.WITHOUT_A_VERDICT, without_verdict, folded=True)


def page_blocks(judged_claims: Sequence[Judged]) -> Iterator[Part]:
    """The verdicts as a page shows them: how many claims have each, the picture, and a row for each
    claim, which opens to all that is behind its verdict.
    """
    yield Text([words.summary(judged_claims)], lead=True)
    yield Text(words.RULE)
    yield Text([words.TOLERANCE], folded=words.WHAT_A_VERDICT_MEANS)
    in_order = by_verdict(judged_claims)
    yield from claims_drawings(in_order)
    decided = [judged for judged in in_order if judged.verdict in words.VERDICT_GROUPS]
    undecided = [judged for judged in in_order if judged.verdict not in words.VERDICT_GROUPS]
    if decided:
        yield Text(words.MEASURED_IN)
        yield _page_table(words.WITH_A_VERDICT, decided, folded=False)
    if undecided:
        yield _page_table(words.NOT_DECIDED, undecided, folded=True)
    yield values_table(judged_claims)


def _page_table(title: str, judged_claims: Sequence[Judged], *, folded: bool) -> Table:
    """A row for each claim: what it says, the published figure with a link to its source, what we
    measured, the verdict, and why. The id of the row is that of the claim.
    """
    rows: list[list[str | Cell]] = []
    for judged in judged_claims:
        claim = judged.claim
        source = citation(judged.source)
        figure = ""
        measured = ""
        if claim.test is None or claim.test.kind != "fails":
            figure = words.published_figure(claim)
        if claim.test is not None:
            values = [judged_value.value for judged_value in judged.measured]
            measured = words.measured_range(claim.test, values)
        rows.append(
            [
                Cell(claim.said, anchor=claim.id),
                Cell(figure or words.SOURCE, url=judged.source.where[0], hover=source),
                measured,
                Cell(judged.verdict, tone=_TONES.get(judged.verdict, "")),
                Cell(words.in_short(judged), details=words.in_full(judged)),
            ]
        )
    columns = ["claim", words.PUBLISHED, words.MEASURED, "verdict", "why"]
    return Table(title, columns, rows, folded=folded, prose=True)


def _verdict_table(title: str, judged_claims: Sequence[Judged], *, folded: bool) -> Table:
    """A row for each claim: what it says, the published figure, the source, the verdict, and why.
    ``folded``: a page shows the rows only on a click. ``prose``: the cells are sentences, so a
    terminal shows each row as a paragraph.
    """
    rows = []
    for judged in judged_claims:
        claim = f"{judged.claim.id}: {judged.claim.said}"
        published = words.publication(judged.claim)
        source = Cell(citation(judged.source), url=judged.source.where[0])
        verdict = words.verdicts(judged)
        why = words.explanation_with_flaw(judged)
        rows.append((claim, published, source, verdict, why))
    columns = ["claim", "published", "source", "verdict", "why"]
    return Table(title, columns, rows, folded=folded, prose=True)


def values_table(judged_claims: Sequence[Judged]) -> Table:
    """A table of every value that the verdicts rest on, with the machine, the run and the cases
    that it is of. A value that was not measured shows its status.
    """
    rows = []
    for judged in judged_claims:
        test = judged.claim.test
        if test is None:
            continue
        for judged_value in judged.measured:
            value = judged_value.value
            # The value where there is one, else its status.
            text: str = value.status
            if value.measured:
                text = words.quantity(value.measured, test.unit)
            run = words.run_name(value)
            rows.append((judged.claim.id, text, value.machine, run, words.case_label(value)))
    columns = ["claim", "value", "machine", "run", "case"]
    return Table(words.VALUES_AND_CASES, columns, rows, folded=True)


def overview_blocks(judged_claims: Sequence[Judged]) -> Iterator[Part]:
    """The verdicts in short, as ``overhead claims`` prints them: a row for each claim with the
    verdict and what was published, measured like for like, and measured by the published method.
    Below, the claims whose verdict needs more words.
    """
    yield Text([words.summary(judged_claims), words.TOLERANCE])
    in_order = by_verdict(judged_claims)
    columns = ["verdict", "claim", "measured", "published", "with their method", "attribution"]
    # Positions of the columns, for the alignment and for narrow terminals.
    measured, published, their_method, attribution = range(2, 6)
    yield Table(
        "",
        columns,
        [_overview_row(judged) for judged in in_order],
        numeric=(published, measured, their_method, attribution),
        # A narrow terminal hides these, the first one first. The sentence of a claim has the
        # published number too. ``important``: it is hidden last.
        optional=(their_method, published),
        important=(attribution,),
        meanings={attribution: words.ATTRIBUTION},
    ).without_empty()
    # Claims whose verdict needs more than its one word.
    with_more_words = [judged for judged in in_order if words.verdict(judged) != judged.verdict]
    yield Text([words.verdict_of(judged) for judged in with_more_words])
    yield Text([words.REASONS])


def _overview_row(judged: Judged) -> tuple[Cell | str, ...]:
    """The row of a claim in the overview: verdict, what it says, measured, published, measured by
    the published method, attribution. The claim that a case fails has no published figure.
    """
    test = judged.claim.test
    flawed = judged.claim.flawed
    published = ""
    if test is None or test.kind != "fails":
        published = words.published_figure(judged.claim)
    measured = ""
    if test is not None:
        measured = words.measured_range(
            test, [judged_value.value for judged_value in judged.measured]
        )
    by_their_method = words.measured_range(flawed, judged.flawed) if flawed else ""
    verdict = Cell(judged.verdict, tone=_TONES.get(judged.verdict, ""))
    return (verdict, judged.claim.said, measured, published, by_their_method, judged.attribution)


def claim_data(judged: Judged) -> dict[str, Any]:
    """What ``--json`` prints of a claim: the claim and its source, the verdict in a word and a
    sentence, and all values that it rests on. ``flawed``: the values by the published method, and
    ``as_published`` their verdict. ``shares``: the share of the part that the source says the
    number is the cost of, and ``attribution`` whether that is right. ``size``: whether a refuted
    effect is smaller or larger. ``making``: the command that measures what is needed.
    """
    measured = []
    for judged_value in judged.measured:
        measured.append({**_value(judged_value.value), "verdict": judged_value.verdict})
    return {
        "claim": msgspec.to_builtins(judged.claim),
        "source": msgspec.to_builtins(judged.source),
        "verdict": judged.verdict,
        "sentence": words.explanation(judged),
        "measured": measured,
        "flawed": [_value(value) for value in judged.flawed],
        "as_published": judged.as_published,
        "shares": [_value(value) for value in judged.shares],
        "attribution": judged.attribution,
        "size": judged.size,
        "making": words.measuring_command(judged.measuring),
        "id": judged.claim.id,
    }


def _value(value: ClaimValue) -> dict[str, Any]:
    """What ``--json`` prints of a measured value: its fields, and in words what it is of."""
    return {
        **value.to_dict(),
        "label": words.case_label(value),
        "run": words.run_name(value),
        "note": words.note(value),
    }
