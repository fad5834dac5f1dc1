"""Why something is so, as a code with its numbers. ``overhead.words.reasons`` makes the sentence of it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from overhead.errors import file_text, without_details
from overhead.results.vocabulary import LongText, Name, Scalar

Code = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,63}$(?!\n)")]


class Reason(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A code and the values that its sentence names.

    ``parts``: other reasons inside the sentence, which names them by their places. ``also``: further reasons that hold
    too. A text in either is one from outside: an error of a driver, a library or a user's program.
    """

    code: Code
    values: Annotated[dict[Name, Scalar | LongText], Meta(max_length=32)] = {}
    parts: Annotated[list[Why], Meta(max_length=8)] = []
    also: Annotated[list[Why], Meta(max_length=32)] = []

    def __str__(self) -> str:
        """The code with its values, for a traceback or a log. It is no sentence for a reader."""
        values = [f"{name}={value}" for name, value in self.values.items()]
        inside = ", ".join([*values, *map(str, self.parts)])
        own = f"{self.code} ({inside})" if inside else self.code
        return "; ".join([own, *map(str, self.also)])

    def __hash__(self) -> int:
        return hash((self.code, tuple(sorted(self.values.items())), tuple(self.parts), tuple(self.also)))

    @property
    def codes(self) -> frozenset[str]:
        """The code of this reason, of those inside it and of all that hold too."""
        found = {self.code}
        for one in [*self.parts, *self.also]:
            found |= codes_of(one)
        return frozenset(found)


Why = LongText | Reason
"""A reason of ours, or a text from outside. '' is no reason."""


def because(code: str, /, *parts: Why, **values: Any) -> Reason:
    """The reason with this code. ``overhead.words.reasons`` has its sentence, which names exactly these values.

    ``parts``: other reasons inside the sentence, which names them by their places. A value may be of any type: what is
    neither a number nor a text is held as a text of one line.
    """
    return Reason(code, {name: _value(value) for name, value in values.items()}, list(parts))


def with_mend(reason: Why, mend: Why) -> Why:
    """The reason why a stack is unavailable, with what would add it, if that is known."""
    return because("with-mend", reason, mend) if mend else reason


def about(what: str, why: Why) -> Why:
    """The reason with what it is about, such as a status, a stack or a file; ``what`` alone without a reason.

    A sentence has a colon between them.
    """
    if not what:
        return why
    return because("about", why, what=what) if why else because("bare", what=what)


def together(*reasons: Why) -> Why:
    """One reason that says all of these, in their order; '' without any."""
    given = [reason for reason in reasons if reason]
    if len(given) < 2:
        return given[0] if given else ""
    first, *others = given
    if isinstance(first, Reason):
        return Reason(first.code, first.values, first.parts, [*first.also, *others])
    return Reason("quoted", {"text": first}, [], others)


def each_of(reason: Why) -> list[Why]:
    """The reasons that hold together, each alone."""
    if isinstance(reason, str):
        return [reason] if reason else []
    return [Reason(reason.code, reason.values, reason.parts), *reason.also]


def codes_of(reason: Why) -> frozenset[str]:
    """The codes of a reason. A text from outside has none."""
    return reason.codes if isinstance(reason, Reason) else frozenset()


def cause_of(reason: Why) -> str:
    """What is equal for failures of one cause: codes and names; of texts, all but numbers and what is quoted."""
    if isinstance(reason, str):
        return without_details(reason)
    texts = [without_details(value) for _, value in sorted(reason.values.items()) if isinstance(value, str)]
    return "\n".join([reason.code, *texts, *map(cause_of, [*reason.parts, *reason.also])])


def _value(given: Any) -> bool | int | float | str:
    """The value as one that a file can hold: scalars of NumPy are its numbers, and errors are their texts."""
    if hasattr(given, "item") and not isinstance(given, str | bool | int | float):
        given = given.item()
    if isinstance(given, bool | int):
        return given
    if isinstance(given, float):
        return float(given)
    return " ".join(file_text(given).split())
