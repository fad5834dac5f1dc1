"""Why something is so, as a code with its numbers. ``overhead.words.reasons`` makes the sentence of it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from overhead.results.vocabulary import LongText, Name, Scalar

Code = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,63}$(?!\n)")]


class Reason(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A code, the values that its sentence names, and further reasons that hold too.

    Of ``also``, a text is one from outside: an error of a driver, a library or a user's program.
    """

    code: Code
    values: Annotated[dict[Name, Scalar | LongText], Meta(max_length=32)] = {}
    also: Annotated[list[Why], Meta(max_length=32)] = []

    def __str__(self) -> str:
        """The code with its values, for a traceback or a log. It is no sentence for a reader."""
        values = ", ".join(f"{name}={value}" for name, value in self.values.items())
        own = f"{self.code} ({values})" if values else self.code
        return "; ".join([own, *map(str, self.also)])

    def __hash__(self) -> int:
        return hash((self.code, tuple(self.values.items()), tuple(self.also)))

    @property
    def codes(self) -> frozenset[str]:
        """The code of this reason and of all that hold too."""
        found = {self.code}
        for one in self.also:
            found |= codes_of(one)
        return frozenset(found)


Why = LongText | Reason
"""A reason of ours, or a text from outside. '' is no reason."""


def because(code: str, /, **values: Any) -> Reason:
    """The reason with this code. ``overhead.words.reasons`` has its sentence, which names exactly these values."""
    return Reason(code, values)


def together(*reasons: Why) -> Why:
    """One reason that says all of these, in their order; '' without any."""
    given = [reason for reason in reasons if reason]
    if len(given) < 2:
        return given[0] if given else ""
    first, *others = given
    if isinstance(first, Reason):
        return Reason(first.code, first.values, [*first.also, *others])
    return Reason("quoted", {"text": first}, others)


def codes_of(reason: Why) -> frozenset[str]:
    """The codes of a reason. A text from outside has none."""
    return reason.codes if isinstance(reason, Reason) else frozenset()
