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


def verdict_blocks(found: Sequence[Judged]) -> Iterator[Part]:
    """Each claim with its publication, its verdict and the reasons; those without a verdict in a
    table of their own.
    """
    yield Text([words.summary(found), words.TOLERANCE])
    for title, judged in ((words.WITH_A_VERDICT, True), (words.WITHOUT_A_VERDICT, False)):
        rows = [
            (
                f"{one.claim.id}: {one.claim.said}",
                words.publication(one.claim),
                Cell(citation(one.source), url=one.source.where[0]),
                words.verdicts(one),
                words.explanation_with_flaw(one),
            )
            for one in by_verdict(found)
            if (one.verdict != "not testable here") is judged
        ]
        if rows:
            yield Table(
                title,
                ["claim", "published", "source", "verdict", "why"],
                rows,
                folded=not judged,
                prose=True,
            )


def values_table(found: Sequence[Judged]) -> Table:
    """Every value with the machine, the run and the cases that it is of."""
    rows = []
    for one in found:
        test = one.claim.test
        for value, _ in one.measured if test is not None else ():
            text = (
                words.quantity(value.measured, test.unit)
                if test is not None and value.measured
                else value.status
            )
            rows.append(
                (one.claim.id, text, value.machine, words.run_name(value), words.case_label(value))
            )
    return Table(
        words.VALUES_AND_CASES, ["claim", "value", "machine", "run", "case"], rows, folded=True
    )


def overview_blocks(found: Sequence[Judged]) -> Iterator[Part]:
    """A row for each claim: verdict, published figure, measured like for like and by the published
    method.
    """
    yield Text([words.summary(found), words.TOLERANCE])
    rows = []
    for one in by_verdict(found):
        test, flawed = one.claim.test, one.claim.flawed
        published = (
            "" if test is not None and test.kind == "fails" else words.published_figure(one.claim)
        )
        values = words.measured_range(test, [value for value, _ in one.measured]) if test else ""
        with_flaw = words.measured_range(flawed, one.flawed) if flawed else ""
        verdict = Cell(one.verdict, tone=_TONES.get(one.verdict, ""))
        rows.append((verdict, one.claim.said, values, published, with_flaw, one.attribution))
    columns = ["verdict", "claim", "measured", "published", "with their method", "attribution"]
    of_ours, of_publication, their_method, attribution = range(2, 6)
    yield Table(
        "",
        columns,
        rows,
        numeric=(of_publication, of_ours, their_method, attribution),
        # The sentence of a claim has the published number too.
        optional=(their_method, of_publication),
        important=(attribution,),
        meanings={attribution: words.ATTRIBUTION},
    ).without_empty()
    yield Text(
        [words.verdict_of(one) for one in by_verdict(found) if words.verdict(one) != one.verdict]
    )
    yield Text([words.REASONS])


def claim_data(one: Judged) -> dict[str, Any]:
    """What ``--json`` prints of a claim."""
    judged = vars(one) | {"making": words.measuring_command(one.measuring)}
    del judged["measuring"]
    return {
        **dict.fromkeys(("claim", "source", "verdict")),
        "sentence": words.explanation(one),
        **judged,
        "id": one.claim.id,
        "claim": msgspec.to_builtins(one.claim),
        "source": msgspec.to_builtins(one.source),
        "measured": [{**_value(value), "verdict": verdict} for value, verdict in one.measured],
        "flawed": [_value(value) for value in one.flawed],
        "shares": [_value(value) for value in one.shares],
    }


def _value(of: ClaimValue) -> dict[str, Any]:
    return {
        **of.to_dict(),
        "label": words.case_label(of),
        "run": words.run_name(of),
        "note": words.note(of),
    }
