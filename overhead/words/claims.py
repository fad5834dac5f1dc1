"""The verdicts on published claims in words, and what they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

from overhead.claims import rules
from overhead.claims.findings import ClaimsJudged
from overhead.claims.judging import Judged
from overhead.claims.measured import ClaimValue, MeasuredCase, MeasuringCommand
from overhead.claims.registry import Claim, ClaimTest, Unit, citation
from overhead.claims.rules import VERDICTS, published
from overhead.devices import Processor
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel
from overhead.results import Origin, Reason, Value, Why, formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import (
    MICRO,
    TIMES,
    between,
    count,
    listed,
    number,
    positive_spread,
    spread,
    whole,
)
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import sentence

_LONGEST_LABEL = 300
VALUE = "{}"
"""Stands for the value in the sentence of a test."""

VALUES_AND_CASES = "All values, with their cases"
CLAIMS_PAGE = "Claims"
ABOUT_CLAIMS = "Figures that others published, and whether our measurements reproduce them."
CLAIMS_JUDGED = "Published claims, judged"
WITH_A_VERDICT = "Claims with a verdict"
NOT_DECIDED = "Claims that are not decided here, and why"
WITHOUT_A_VERDICT = "Claims that these files cannot judge"
WHAT_A_VERDICT_MEANS = "What a verdict means"
MEASURED_BESIDE_PUBLISHED = "measured values beside published ones"
READ_AS_ABOVE = "Read as the picture above."
MEASURED_OVER_PUBLISHED = "measured over published (log scale)"
PUBLISHED, MEASURED, SOURCE = "published", "measured", "source"
PUBLISHED_MARK = "published value"
REPRODUCES, REPRODUCES_PARTLY = "reproduces it", "reproduces it partly"
VERDICT_GROUPS: dict[rules.ClaimVerdict, str] = {
    "reproduced": "Reproduced",
    "partial": "Partly reproduced",
    "refuted": "Refuted",
}
"""The headings of the claims in the picture."""
BESIDE_CAPTION = (
    "Each mark is a measured value, divided by the published one: of one machine, and of one stack"
    " where the claim allows several. The line through it is its interval. Near 1 we measured what"
    " was published. An arrow stands for a value beyond the axis, a hollow mark for a noisy value."
)
_FEW_PERCENT = 1.2
"""Up to this factor, a difference is told in percent. Chosen, not measured."""
_NOUNS: dict[Unit, str] = {
    "ratio": "ratio",
    "share": "share",
    "1/s": "rate",
    "dispatches": "number",
}
"""What a published value is; else it is a time."""
_BY_FAILURE: dict[rules.ClaimVerdict, str] = {
    "reproduced": "It fails as published.",
    "partial": "It fails, but for another reason.",
    "refuted": "It runs.",
    "inconclusive": "It did not end within the time limit.",
}
ATTRIBUTION = "Attribution: whether the part that the source names really takes most of this time."
REASONS = "The reasons of each verdict: overhead claims --verbose"
_PROCESSORS: dict[Processor, str] = {
    "gpu": "a GPU",
    "software": "a software adapter",
    "cpu": "a CPU",
}
_MARKS: dict[Unit, str] = {unit: f" {unit}" for unit in get_args(Unit)} | {
    "us": f" {MICRO}",
    "1/s": " per second",
    "ratio": TIMES,
    "share": " %",
}
TOLERANCE = (
    "We measure each claim again without the known mistake of its source, on other hardware and"
    f" with other versions. A time is reproduced if it is at most {rules.REPRODUCED_WITHIN:g} times"
    " as long or short as the published time (of a range: as its nearer end). Up to"
    f" {rules.PARTIAL_WITHIN:g} times, it is partly reproduced (partial). For a share, the same"
    " limits hold for the share and for the rest of the whole. For a ratio, the same limits hold,"
    " and one more: the logarithm of the measured ratio is within a factor of"
    f" {rules.REPRODUCED_WITHIN:g} of the logarithm of the published ratio ({rules.PARTIAL_GAIN:g}"
    " for partial, which means at least half and at most twice the gain). A count, or a claim of"
    f" no difference, is reproduced within {100 * (rules.SAME_DIRECTION - 1):.0f} %; a count is"
    f" partial within a factor of {rules.REPRODUCED_WITHIN:g}. The source names the right part"
    f" (attribution) if this part takes at least {100 * rules.LEAST_SHARE:.0f} % of the number. In"
    " all cases the whole interval must lie inside the limit."
)
"""The rules, the same for all claims."""
RULE = (
    "Reproduced: the whole interval lies within a factor of"
    f" {rules.REPRODUCED_WITHIN:g} of the published value; partial: within a factor of"
    f" {rules.PARTIAL_WITHIN:g}; refuted: all of it lies outside.",
    "For a ratio, its gain (logarithm) must agree too, within a factor of"
    f" {rules.REPRODUCED_WITHIN:g} (partial: {rules.PARTIAL_GAIN:g}). A count must agree within"
    f" {100 * (rules.SAME_DIRECTION - 1):.0f} % (partial: a factor of"
    f" {rules.REPRODUCED_WITHIN:g}).",
)
"""The rules in short, which a page shows above its pictures."""
MEASURED_IN = (
    "Measured values are of one run of each kind of machine, the newest of its large runs; where"
    " that has no value for a claim, of the newest run that has one.",
    "Other runs, such as the typical one that the first page draws, differ by run-to-run"
    " variation.",
)
"""Which runs the column of measured values is from."""


def summary(found: Sequence[Judged]) -> str:
    """How many published claims have each verdict, ``12 published claims: 5 reproduced, ...``, how
    many of the refuted ones their own published figures refute (implied), and how many claims name
    a wrong part as the cause.
    """
    counts = Counter(claim.verdict for claim in found)
    texts = [f"{counts[name]} {name}" for name in VERDICTS if counts[name]]
    sentences = [f"{len(found)} published claims: {', '.join(texts)}."]

    refuted = [claim for claim in found if claim.verdict == "refuted"]
    implied = [claim for claim in refuted if claim.is_implied]
    if implied:
        sentences.append(f"{len(implied)} of the refuted by its own published figures.")

    # ``attribution``: the verdict on the part that the source names as the cause of its number.
    wrong = [claim for claim in found if claim.attribution == "wrong"]
    if wrong:
        claims = count(len(wrong), "claim")
        name = "names" if len(wrong) == 1 else "name"
        sentences.append(f"{claims} {name} a part that does not take most of the time.")
    return " ".join(sentences)


def verdict(judged: Judged) -> str:
    """The verdict on a claim; also that the effect has the same direction but another size
    (``size``: smaller or larger), and on what hardware we measured, if it is of another kind than
    the source's.
    """
    if judged.is_implied:
        return f"{judged.verdict} by its own published figures"
    texts: list[str] = [judged.verdict]
    if judged.size:
        texts.append(f"same direction as published, but a {judged.size} effect")
    texts.append(_other_hardware(judged))
    return "; ".join(filter(None, texts))


def verdict_of(judged: Judged) -> str:
    """The claim's name with its verdict."""
    return f"{judged.claim.id}: {verdict(judged)}."


def verdicts(judged: Judged) -> str:
    """All verdicts on a claim: on its number, on the number that the published method gives
    although it has a flaw (``as_published``), and on the part that it names as the cause.
    """
    texts = [verdict(judged)]
    if judged.as_published:
        texts.append(f"with the published method: {judged.as_published}")
    if judged.attribution:
        texts.append(f"attribution: {judged.attribution}")
    return "; ".join(texts)


def explanation_with_flaw(judged: Judged) -> str:
    """What explains the verdict, and what is wrong with the published method."""
    explained = explanation(judged)
    if not judged.claim.flaw:
        return explained
    return f"{explained} The mistake of the source's method: {judged.claim.flaw}"


def in_short(judged: Judged) -> str:
    """Why a claim has its verdict, in one line: how far the measured values lie from the published
    one, and what the verdict on its method and on its cause are, where these say more.
    """
    claim = judged.claim
    test = claim.test
    if test is None:
        return claim.untested
    if test.kind == "implied":
        return _implied(claim, test)
    if not judged.measured:
        return _not_measured(judged.measuring)
    sentences = [_beside_published(judged, test)]
    if _other_hardware(judged):
        sentences.append(f"{_capital(_other_hardware(judged))}.")
    if judged.as_published and judged.as_published != judged.verdict:
        mistake = claim.mistake or "see inside"
        sentences.append(f"With the source's mistake ({mistake}): {judged.as_published}.")
    if judged.attribution == "wrong" and claim.attribution is not None:
        share = measured_range(claim.attribution.test, judged.shares)
        sentences.append(f"The named cause, {claim.attribution.said}, is only {share} of it.")
    return " ".join(sentences)


def _beside_published(judged: Judged, test: ClaimTest) -> str:
    """How the measured values differ from the published one, or why that is not decided."""
    if test.kind == "fails":
        return _BY_FAILURE.get(judged.verdict, "")
    known = [value.measured for value, _ in judged.measured if value.measured is not None]
    if not known:
        why = _reason(judged.measured[0].value)
        return f"No value: {why}."
    if all(value.software for value, _ in judged.measured) and test.software != "counts":
        return "Only a software adapter was measured, which cannot judge this claim."
    bounded = [value for value in known if value.bounded]
    if not bounded:
        return "One process alone measured it, so the interval is not known."
    if test.no_effect:
        return _difference_or_none(judged.verdict)
    return _distance(judged, test, bounded)


def _distance(judged: Judged, test: ClaimTest, values: Sequence[Value]) -> str:
    """How far the measured values are from the published one, by the ends of their intervals."""
    multiples = [rules.beside_published(judged.claim, value) for value in values]
    noun = _NOUNS.get(test.unit, "time")
    if judged.verdict == "reproduced":
        return _agreement(multiples, noun)
    least, most = min(each.floor for each in multiples), max(each.ceiling for each in multiples)
    # A time or a ratio is above zero, even if its interval is not.
    reach = between(least, most) if least > 0 else f"at most {number(most)}"
    distance = f"{reach} times the published {noun}"
    if judged.verdict == "inconclusive":
        return f"The intervals are too wide to decide: {distance}."
    if judged.size:
        return f"The same direction, but a {judged.size} effect: {distance}."
    different = {verdict for _, verdict in judged.measured} - {"inconclusive"}
    if len(different) > 1:
        return f"The verdict differs by machine or stack: {distance}."
    # A ratio on the other side of 1 than the published one is the opposite effect.
    least_published = published(judged.claim).least
    is_opposite = all((value.value > 1) != (least_published > 1) for value in values)
    if test.unit == "ratio" and is_opposite:
        return f"The opposite effect: {distance}."
    return f"{_capital(distance)}."


def _difference_or_none(verdict: rules.ClaimVerdict) -> str:
    """What a claim of no difference comes to."""
    if verdict == "reproduced":
        return "There is no difference, as published."
    if verdict == "inconclusive":
        return "The intervals are too wide to tell whether there is a difference."
    return "There is a difference; the source found none."


def _agreement(multiples: Sequence[Value], noun: str) -> str:
    """How near the measured values are to the published one: the furthest end of their
    intervals.
    """
    furthest = max(max(each.ceiling, 1 / each.floor) for each in multiples)
    if furthest < _FEW_PERCENT:
        return f"Within {number(100 * (furthest - 1))} % of the published {noun}."
    return f"Within a factor of {number(furthest)} of the published {noun}."


def explanation(judged: Judged) -> str:
    """``explained`` as one text."""
    return " ".join(explained(judged))


def explained(judged: Judged) -> list[str]:
    """The sentences that explain a verdict: what was measured, with the source's method too where
    that has a flaw, how much of the time the part takes that the source names, and what restricts
    the verdict. Without a measurement, how to make one.
    """
    claim = judged.claim
    test = claim.test
    if test is None:
        return [claim.untested]  # the claim itself says why
    if test.kind == "implied":  # the published figures alone decide
        sentences = [_implied(claim, test)]
    elif not judged.measured:
        return [_not_measured(judged.measuring)]
    else:
        # Each value of ``measured`` has a verdict of its own beside it.
        sentences = [*_value_sentences(test, [value for value, _ in judged.measured])]
    # Then the same by the source's own method, where that has a flaw.
    if claim.flawed:
        flawed = [value for value in judged.flawed if value.measured]
        sentences += _value_sentences(claim.flawed, flawed, "with the source's method, ")
    # Then the share of the time that the part takes which the source names.
    shares = [value for value in judged.shares if value.measured]
    if claim.attribution and shares:
        sentences.append(f"The source says that {claim.attribution.said} takes this time.")
        sentences += _value_sentences(claim.attribution.test, shares)
    return [*sentences, *_limits(judged, test)]


def in_full(judged: Judged) -> list[str]:
    """All that is behind a verdict, a paragraph each: the name of the claim and its source, what
    was measured, and the mistake of the source's method.
    """
    claim = judged.claim
    paragraphs = [
        f"{claim.id}, from {citation(judged.source)}; {claim.hardware}.",
        f"How it was published: {claim.how}",
        *explained(judged),
    ]
    if claim.flaw:
        paragraphs.append(f"The mistake of the source's method: {claim.flaw}")
    return paragraphs


def _implied(claim: Claim, test: ClaimTest) -> str:
    """What the published figures together say, and what the hardware reaches."""
    value = quantity(Value(rules.evaluate(test.formula, claim.parts)), test.unit)
    limit = quantity(Value(test.limit), test.unit)
    reached = test.quantity.replace(VALUE, value)
    return f"By the published figures, {reached}, but the hardware reaches at most {limit}."


def _not_measured(measuring: MeasuringCommand) -> str:
    """The explanation of a claim that the files have no measurement for: the command that measures
    what it needs, or that there is none any more.
    """
    if not measuring.command:
        return (
            "These files have no measurement for this claim, and this version of overhead no longer"
            " measures it."
        )
    return (
        "These files have no measurement for this claim. To measure one:"
        f" {measuring_command(measuring)}."
    )


def measuring_command(measuring: MeasuringCommand) -> str:
    """The command that measures what a claim needs, and on which machine."""
    if not measuring.apis:
        return measuring.command
    apis = " and ".join(measuring.apis)
    return f"{measuring.command} on a machine with {apis}"


def _limits(judged: Judged, test: ClaimTest) -> Iterator[str]:
    """Sentences on what restricts the verdict: other hardware than the source's, both sides on one
    machine where the source has two (``cross``), a software adapter, a later statement of the
    author.
    """
    other = _other_hardware(judged)
    if other:
        yield f"{_capital(other)}."
    if judged.claim.cross:
        yield "The source compares two machines, but we measured both sides on one machine."
    on_software = any(value.software for value, _ in judged.measured)
    # Some tests say that software "counts": what they measure does not depend on a GPU.
    if judged.verdict == "inconclusive" and on_software and test.software != "counts":
        yield (
            "We measured a software adapter, which runs on the CPU. So our measurement cannot judge"
            " this claim."
        )
    if judged.claim.withdrawn:
        yield judged.claim.withdrawn


def _other_hardware(judged: Judged) -> str:
    """``we measured on a CPU, and the source measured on Apple M4``; '' if both are of one kind or
    nothing is decided.
    """
    if not judged.is_of_other_hardware:
        return ""
    # ``on``: what did the work, a GPU, a CPU or a software adapter (a GPU driver on the CPU).
    kinds = sorted({_PROCESSORS[value.on] for value, _ in judged.measured})
    return f"we measured on {listed(kinds)}, and the source measured on {judged.claim.hardware}"


def quantity(of: Value, unit: Unit) -> str:
    """A measured value of a claim with its interval and unit, rounded to the digits that the
    interval allows.
    """
    if unit == "dispatches":  # counted, so there is no interval
        number_of = f"{of.value:,.0f}"
    elif unit == "share":  # what a case saves may be below zero
        number_of = spread(of * 100)
    else:
        number_of = positive_spread(of)
    return number_of + _MARKS[unit]


def published_figure(claim: Claim) -> str:
    """The published figure with its unit and its original digits."""
    figures = list(dict.fromkeys(published(claim)))
    if claim.unit == "share":
        return " to ".join(f"{100 * share:.10g} %" for share in figures)
    texts = [f"{figure:,.10g}" for figure in figures]
    return " to ".join(texts) + _MARKS[claim.unit]


def figure_title(verdict: str, number_of: int) -> str:
    """The title of the picture of the claims with one verdict."""
    return f"{verdict}, {count(number_of, 'claim')}: {MEASURED_BESIDE_PUBLISHED}"


def without_numbers(number_of: int) -> str:
    """How many claims of this verdict the picture does not show; '' for none."""
    if not number_of:
        return ""
    return f" {count(number_of, 'claim')} without a measured number: only in the table."


def beside_alt(judged_claims: Sequence[Judged]) -> str:
    """The picture for those who do not see it: each claim with its verdict."""
    verdicts = [f"{judged.claim.id} {judged.verdict}" for judged in judged_claims]
    return f"Measured over published: {'; '.join(verdicts)}."


def publication(claim: Claim) -> str:
    """The published figure, and the hardware it was measured on."""
    # A claim that something fails publishes no figure.
    has_figure = claim.test is None or claim.test.kind != "fails"
    if not has_figure:
        return claim.hardware
    return f"{published_figure(claim)}, {claim.hardware}"


def measured_range(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The lowest to the highest value of a claim over all machines and runs, for a cell of a table:
    ``25.6 to 44.7 µs``; '' without a value.
    """
    values = [claim_value.measured.value for claim_value in found if claim_value.measured]
    if not values:
        return ""
    lowest, highest = _end_text(test, min(values)), _end_text(test, max(values))
    ends = lowest if lowest == highest else f"{lowest} to {highest}"
    return ends + _MARKS[test.unit]


def _end_text(test: ClaimTest, value: float) -> str:
    """An end of a range without its unit."""
    if test.unit == "dispatches":
        return f"{value:,.0f}"
    return number(100 * value if test.unit == "share" else value)


def note(of: ClaimValue) -> str:
    """What to know of the value: where a line begins, and how many cases it goes through."""
    if of.line is None:
        return ""
    return f"one-off cost {spread(of.line.intercept_ms)} ms, from {of.line.cases} cases"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _value_sentences(
    test: ClaimTest, found: Sequence[ClaimValue], begin: str = ""
) -> Iterator[str]:
    """For each machine and run, a sentence with the values that the test of a claim gives there,
    ``On NVIDIA H200, ... 32.9 (32.3 to 33.4)× (dawn) ... (quick run of ...).``, and one for each
    reason why a value is missing.

    ``test.quantity``: the sentence, with a place for the values. ``begin``: what stands before the
    machine.
    """
    # A sentence for each machine and run, with all values from there.
    groups: dict[tuple[str, str], list[ClaimValue]] = {}
    for claim_value in found:
        groups.setdefault((claim_value.machine, run_name(claim_value)), []).append(claim_value)
    for (machine, run), values in groups.items():
        where = _capital(f"{begin}on {machine}")
        of_run = f" ({run})" if run else ""
        known = [
            _value(test, claim_value) for claim_value in values if claim_value.measured is not None
        ]
        if known:
            yield f"{where}, {test.quantity.replace(VALUE, listed(known))}{of_run}."
        missing = [claim_value for claim_value in values if claim_value.measured is None]
        for why in dict.fromkeys(map(_reason, missing)):  # each reason once
            # This claim is that something fails, so the reason is what was measured.
            if test.kind == "fails":
                yield f"{where}, {test.quantity.replace(VALUE, why)}{of_run}."
            else:
                yield f"{where}, there is no value{of_run}: {why}."


def _reason(claim_value: ClaimValue) -> str:
    """Why a claim has no value. A reason with the code ``about`` says what another reason is about,
    a figure or a status: only the innermost one is told.
    """
    why: Why = claim_value.reason or claim_value.status
    while isinstance(why, Reason) and why.code == "about":
        inner = why.values["why"]
        if isinstance(inner, Reason):
            why = inner
        else:
            why = str(inner)
    return sentence(why)


def _value(test: ClaimTest, claim_value: ClaimValue) -> str:
    """``2.12 (1.84 to 2.40) µs (dawn; one-off cost 1.39 ms, from 7 cases)``."""
    if claim_value.measured is None:
        return ""
    value = quantity(claim_value.measured, test.unit)
    about = "; ".join(filter(None, [_short_name(test, claim_value), note(claim_value)]))
    return f"{value} ({about})" if about else value


def _short_name(test: ClaimTest, claim_value: ClaimValue) -> str:
    """The names of a value's stacks that the sentence of its test does not name, because the test
    allows several; '' where the sentence names all of them.
    """
    open_stacks: set[str] = set()
    # The two sides of a ratio, or one. ``stack``: the stacks that may stand on that side; None for
    # any.
    for side in (test.of, test.against):
        if side is not None and side.stack is not None and len(side.stack) > 1:
            open_stacks.update(side.stack)
    cases = [case for case in claim_value.cases if case.target.stack in open_stacks]
    # The sentence names the device (``machine``) already.
    names = dict.fromkeys(_without_adapter(case.target, claim_value.machine) for case in cases)
    return plain(listed([*names]), _LONGEST_LABEL)


def run_name(claim_value: ClaimValue) -> str:
    """The run that a value is of, by its profile and time."""
    return (
        plain(f"{claim_value.profile} run of {claim_value.created}") if claim_value.created else ""
    )


def case_label(claim_value: ClaimValue) -> str:
    """The two targets and cases. A target that both share appears once."""
    return _cases([(case.target.text, case) for case in claim_value.cases])


def _cases(named: Sequence[tuple[str, MeasuredCase]]) -> str:
    """The one or two cases of a value, each with the name of its target (a stack on a device); one
    target of both is named once.
    """
    # ``_pattern``: how a case makes its launches.
    names = {name for name, _ in named}
    if len(names) == 1:
        name = names.pop()
        patterns = " against ".join(_pattern(case) for _, case in named)
        return plain(f"{name} ({patterns})", _LONGEST_LABEL)
    cases = [f"{name} ({_pattern(case)})" for name, case in named]
    return plain(" against ".join(cases), _LONGEST_LABEL)


def _pattern(case: MeasuredCase) -> str:
    """The pattern of a case, and its caller where that is known."""
    return f"{case.pattern}, {CALLER_WORDS[case.caller]}" if case.caller else case.pattern


def _without_adapter(target: TargetLabel, adapter: str) -> str:
    """The target without this adapter."""
    return target.stack + target.more if target.adapter == adapter else target.text


@words_for(ClaimsJudged)
def claims_judged(found: ClaimsJudged) -> FindingWords:
    """How many published claims there are, and how many of them the runs reproduce and refute, in
    the words of the page of claims.
    """
    counted = []
    for verdict_given, judged_claims in found.by_verdict.items():
        number_of = whole(len(judged_claims), _counted(judged_claims))
        counted.append(f"{number_of} {verdict_given}")
    total = whole(len(found.every), _counted(found.every))
    title = f"Of {total} published claims, these runs judge: {listed(counted)}."
    detail = (
        "Each with its source, the measured values and the rule. The others cannot be judged from"
        " these runs."
    )
    return FindingWords(title, detail)


def _counted(judged_claims: Sequence[Judged]) -> Origin | None:
    """What was counted: for each claim the first measured value that its verdict rests on; of one
    that its own published figures decide, the number 1.
    """
    parts: list[Origin | float] = []
    for judged in judged_claims:
        values = [each.value.measured for each in judged.measured]
        origins = [value.origin for value in values if value is not None and value.origin]
        parts.append(origins[0] if origins else 1.0)
    return formed("count", *parts)
