"""Why something is so, as a code with its numbers. ``overhead.words.reasons`` makes the sentence of
it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any

from msgspec import Meta, Struct

from overhead.errors import UsageError, file_text, without_details
from overhead.results.vocabulary import LongText, Name, Scalar

Code = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,63}$(?!\n)")]


class Reason(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A code, the values that its sentence names, and further reasons (``also``) that hold too.

    A value may be a reason itself. A text in ``also`` comes from outside: an error of a driver, a
    library or a user's program.
    """

    code: Code
    values: Annotated[dict[Name, Scalar | LongText | Reason], Meta(max_length=32)] = {}
    also: Annotated[list[Why], Meta(max_length=32)] = []

    def __str__(self) -> str:
        """The code with its values, for a traceback or a log. It is no sentence for a reader."""
        values = ", ".join(f"{name}={value!s}" for name, value in self.values.items())
        code = f"{self.code} ({values})" if values else self.code
        return "; ".join([code, *map(str, self.also)])

    def __hash__(self) -> int:
        return hash((self.code, tuple(self.values.items()), tuple(self.also)))

    @property
    def codes(self) -> frozenset[str]:
        """The code of this reason and of all that hold too."""
        codes = {self.code}
        inner = [value for value in self.values.values() if isinstance(value, Reason)]
        for reason in [*inner, *self.also]:
            codes |= codes_of(reason)
        return frozenset(codes)


Why = LongText | Reason
"""A reason of ours, or a text from outside. '' is no reason."""


def because(code: str, /, **values: Any) -> Reason:
    """The reason with this code. ``overhead.words.reasons`` has its sentence, which names exactly
    these values.
    """
    return Reason(code, {name: _value(value) for name, value in values.items()})


def _value(given: Any) -> bool | int | float | str | Reason:
    """The value as one that a file can hold: a scalar of NumPy is its number, and another object is
    its text, in one line.
    """
    if hasattr(given, "item"):  # a scalar of NumPy
        given = given.item()
    if isinstance(given, bool | int | float | str | Reason):
        return given
    # ``file_text``: the object's text in UTF-8, cut at the length that a file may hold.
    return " ".join(file_text(given).split())


def with_mend(reason: Why, mend: Why) -> Why:
    """The reason why a stack is unavailable, with what would add it, if that is known."""
    return because("with-mend", why=reason, mend=mend) if mend else reason


def together(*reasons: Why) -> Why:
    """One reason that says all of these, in their order; '' without any.

    A reason has a list of others that hold too (``also``), so the others go there. A text from
    outside has none: if it is the first, a reason is made that quotes it.
    """
    given = [reason for reason in reasons if reason]
    if not given:
        return ""
    first, *others = given
    if not others:
        return first
    if isinstance(first, Reason):
        return Reason(first.code, first.values, [*first.also, *others])
    return Reason("quoted", {"text": first}, others)


def parts_of(reason: Why) -> list[Why]:
    """The reasons that hold together, each alone."""
    if isinstance(reason, str):
        return [reason] if reason else []
    return [Reason(reason.code, reason.values), *reason.also]


def about(what: str, why: Why) -> Why:
    """The reason with what it is about, such as a status, a stack or a file; ``what`` alone without
    a reason.

    A sentence has a colon between them.
    """
    if not what:
        return why
    if not why:
        return because("bare", what=what)
    return because("about", what=what, why=why)


def reason_given(error: BaseException) -> Reason | None:
    """The reason that an exception of any class was raised with; None if it has a text, or
    nothing.
    """
    # Of our own errors the text is made of the reason; other classes have it as their argument.
    given: object = None
    if isinstance(error, UsageError):
        given = error.why
    elif error.args:
        given = error.args[0]
    return given if isinstance(given, Reason) else None


def cause_of(why: Why) -> Hashable:
    """Something to compare, equal for reasons of one cause: those that differ only in numbers and
    in quoted names. So of several cases that fail alike the user is told once.
    """
    if isinstance(why, str):
        return without_details(why)
    # Numbers are left out here, and ``without_details`` leaves out those and quoted names of texts.
    texts = [value for value in why.values.values() if isinstance(value, str | Reason)]
    causes_of_values = tuple(cause_of(text) for text in texts)
    causes_of_others = tuple(cause_of(other) for other in why.also)
    return why.code, causes_of_values, causes_of_others


def code_of(reason: Why) -> str:
    """The code of a reason; '' of a text from outside. A reason with the code ``about`` only adds
    what another reason is about, so it has the code of that one.
    """
    if isinstance(reason, str):
        return ""
    if reason.code == "about":
        inner = reason.values.get("why")
        if isinstance(inner, str | Reason):
            return code_of(inner)
    return reason.code


def codes_of(reason: Why) -> frozenset[str]:
    """The codes of a reason. A text from outside has none."""
    return reason.codes if isinstance(reason, Reason) else frozenset()
