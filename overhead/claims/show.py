"""The claims and their verdicts as blocks, for the terminal, for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text, Tone
from overhead.claims.judging import Judged, by_verdict, measured_range, publication_text, published_text, summary
from overhead.claims.registry import citation
from overhead.claims.rules import TOLERANCE, ClaimVerdict

_TONES: dict[ClaimVerdict, Tone] = {"reproduced": "good", "partial": "unsure", "refuted": "bad"}


def verdict_blocks(found: Sequence[Judged]) -> Iterator[Part]:
    """Each claim with its publication, its verdict and the reasons; those without a verdict in a table of their own."""
    yield Text([summary(found), TOLERANCE])
    for title, judged in (("Claims with a verdict", True), ("Claims that these files cannot judge", False)):
        rows = [
            (
                f"{one.claim.id}: {one.claim.said}",
                publication_text(one.claim),
                Cell(citation(one.source), url=one.source.where[0]),
                _verdicts(one),
                _why(one),
            )
            for one in by_verdict(found)
            if (one.verdict != "not testable here") is judged
        ]
        if rows:
            yield Table(title, ["claim", "published", "source", "verdict", "why"], rows, folded=not judged, prose=True)


def overview_blocks(found: Sequence[Judged]) -> Iterator[Part]:
    """A row for each claim: verdict, published figure, measured like for like and by the published method."""
    yield Text([summary(found), TOLERANCE])
    rows = []
    for one in by_verdict(found):
        test, flawed = one.claim.test, one.claim.flawed
        published = "" if test is not None and test.kind == "fails" else published_text(one.claim)
        values = measured_range(test, [value for value, _ in one.measured]) if test else ""
        with_flaw = measured_range(flawed, one.flawed) if flawed else ""
        verdict = Cell(one.verdict, tone=_TONES.get(one.verdict, ""))
        rows.append((verdict, one.claim.said, published, values, with_flaw, one.attribution))
    columns = ["verdict", "claim", "published", "measured", "with their method", "attribution"]
    of_publication, of_ours, their_method, attribution = range(2, 6)
    yield Table(
        "",
        columns,
        rows,
        numeric=(of_publication, of_ours, their_method, attribution),
        optional={their_method: 3, attribution: 2, of_publication: 0, of_ours: 0},
        meanings={attribution: "Attribution: whether the number is the cost of what the source says."},
    ).without_empty()
    yield Text([f"{one.claim.id}: {one.verdict_text}." for one in by_verdict(found) if one.verdict_text != one.verdict])
    yield Text(["Reasons: overhead claims --verbose"])


def _verdicts(one: Judged) -> str:
    """The verdict on the number, on the number by the published method, and on its attribution."""
    published = f"; {one.as_published} with the published method" if one.as_published else ""
    return one.verdict_text + published + (f"; attribution {one.attribution}" if one.attribution else "")


def _why(one: Judged) -> str:
    flaw = f" What is wrong with the published method: {one.claim.flaw}" if one.claim.flaw else ""
    return one.sentence + flaw
