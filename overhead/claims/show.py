"""The claims and their verdicts as blocks, for the terminal, for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from overhead.blocks.parts import Cell, Part, Table, Text, Tone
from overhead.claims.judging import Judged, by_verdict
from overhead.claims.measured import ClaimValue
from overhead.claims.registry import citation
from overhead.claims.rules import ClaimVerdict
from overhead.words import claims as words

_TONES: dict[ClaimVerdict, Tone] = {"reproduced": "good", "partial": "unsure", "refuted": "bad"}


def verdict_blocks(judged_claims: Sequence[Judged]) -> Iterator[Part]:
    """Each claim with its publication, its verdict and the reasons; those without a verdict in a
    table of their own.
    """
    yield Text([words.summary(judged_claims), words.TOLERANCE])
    in_order = by_verdict(judged_claims)
    with_verdict = [one for one in in_order if one.verdict != "not testable here"]
    without_verdict = [one for one in in_order if one.verdict == "not testable here"]
    if with_verdict:
        yield _verdict_table(words.WITH_A_VERDICT, with_verdict, folded=False)
    if without_verdict:
        yield _verdict_table(words.WITHOUT_A_VERDICT, without_verdict, folded=True)


def _verdict_table(title: str, judged_claims: Sequence[Judged], *, folded: bool) -> Table:
    """A row for each claim: what it says, the published figure, the source, the verdict, and why.
    ``folded``: a page shows the rows only on a click.
    """
    rows = []
    for one in judged_claims:
        claim = f"{one.claim.id}: {one.claim.said}"
        source = Cell(citation(one.source), url=one.source.where[0])
        published = words.publication(one.claim)
        rows.append(
            (claim, published, source, words.verdicts(one), words.explanation_with_flaw(one))
        )
    columns = ["claim", "published", "source", "verdict", "why"]
    return Table(title, columns, rows, folded=folded, prose=True)


def values_table(judged_claims: Sequence[Judged]) -> Table:
    """Every value with the machine, the run and the cases that it is of."""
    rows = []
    for one in judged_claims:
        test = one.claim.test
        if test is None:
            continue
        for judged in one.measured:
            value = judged.value
            text: str = value.status
            if value.measured:
                text = words.quantity(value.measured, test.unit)
            run = words.run_name(value)
            rows.append((one.claim.id, text, value.machine, run, words.case_label(value)))
    columns = ["claim", "value", "machine", "run", "case"]
    return Table(words.VALUES_AND_CASES, columns, rows, folded=True)


def overview_blocks(judged_claims: Sequence[Judged]) -> Iterator[Part]:
    """A row for each claim: verdict, published figure, measured like for like and by the published
    method.
    """
    yield Text([words.summary(judged_claims), words.TOLERANCE])
    in_order = by_verdict(judged_claims)
    columns = ["verdict", "claim", "measured", "published", "with their method", "attribution"]
    measured, published, their_method, attribution = range(2, 6)
    yield Table(
        "",
        columns,
        [_overview_row(one) for one in in_order],
        numeric=(published, measured, their_method, attribution),
        # The sentence of a claim has the published number too.
        optional=(their_method, published),
        important=(attribution,),
        meanings={attribution: words.ATTRIBUTION},
    ).without_empty()
    differing = [one for one in in_order if words.verdict(one) != one.verdict]
    yield Text([words.verdict_of(one) for one in differing])
    yield Text([words.REASONS])


def _overview_row(one: Judged) -> tuple[Cell | str, ...]:
    """The row of a claim. The claim that a case fails has no published figure."""
    test = one.claim.test
    flawed = one.claim.flawed
    published = ""
    if test is None or test.kind != "fails":
        published = words.published_figure(one.claim)
    measured = ""
    if test is not None:
        measured = words.measured_range(test, [judged.value for judged in one.measured])
    by_their_method = words.measured_range(flawed, one.flawed) if flawed else ""
    verdict = Cell(one.verdict, tone=_TONES.get(one.verdict, ""))
    return (verdict, one.claim.said, measured, published, by_their_method, one.attribution)


def claim_data(one: Judged) -> dict[str, Any]:
    """What ``--json`` prints of a claim."""
    measured = [{**_value(judged.value), "verdict": judged.verdict} for judged in one.measured]
    return {
        "claim": msgspec.to_builtins(one.claim),
        "source": msgspec.to_builtins(one.source),
        "verdict": one.verdict,
        "sentence": words.explanation(one),
        "measured": measured,
        "flawed": [_value(value) for value in one.flawed],
        "as_published": one.as_published,
        "shares": [_value(value) for value in one.shares],
        "attribution": one.attribution,
        "size": one.size,
        "making": words.measuring_command(one.measuring),
        "id": one.claim.id,
    }


def _value(value: ClaimValue) -> dict[str, Any]:
    """What ``--json`` prints of a measured value."""
    return {
        **value.to_dict(),
        "label": words.case_label(value),
        "run": words.run_name(value),
        "note": words.note(value),
    }
