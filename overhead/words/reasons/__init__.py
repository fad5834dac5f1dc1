"""The sentence of each reason: a code of ``results.Reason`` with its values.

A module of this folder holds the sentences of one package's codes, as templates. ``{name}`` stands
for a value of the reason, with a format of Python's or of ``words.templates`` behind a colon. A
value that is a reason itself stands there as its sentence. The sentences of the further reasons
(``also``) come behind.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from overhead.errors import say_reasons_by
from overhead.reading.plain_text import plain
from overhead.results import Reason, Why, about, cause_of, code_of
from overhead.words.format import few
from overhead.words.templates import Formatter

_FORMATTER = Formatter()
_MOST_NAMED = 3
_WORKER = "worker"
"""The value of a note that says which worker process it is about."""
_FIELDS = (
    "reason",
    "mend",
    "message",
    "found",
    "case_reason",
    "rule",
    "why",
    "flags",
    "notes",
    "results",
    "not_seen",
)
"""Fields that hold reasons. In the output of a command the code stands beside each:
``reason_code``.
"""


@functools.cache
def templates() -> Mapping[str, str]:
    """The template of every code: the sentence of a reason, in which ``{name}`` stands for a value
    of the reason.
    """
    # These codes are of no package: they put another reason or a text into words. ``mend``: the
    # command or step that adds what is missing.
    found = {
        "quoted": "{text}",
        "about": "{what}: {why}",
        "bare": "{what}",
        "raised": "{kind}: {why}",
        "raised-at": "{kind}: {why} ({where})",
        "with-mend": "{why} (to add it: {mend})",
        "with-text": "{why}: {text}",
    }
    # Each module of this folder has the templates of one package.
    for module in pkgutil.iter_modules(__path__):
        own: dict[str, str] = importlib.import_module(f"{__name__}.{module.name}").TEMPLATES
        assert found.keys().isdisjoint(own), f"{module.name}: a code that another module has too"
        found |= own
    return found


def sentence(reason: Why) -> str:
    """The reason in words; a text from outside as it is. A code that is not known here is shown
    with its values.
    """
    if isinstance(reason, str):
        return reason
    return "; ".join([_own_sentence(reason), *map(sentence, reason.also)])


def _own_sentence(reason: Reason) -> str:
    """The sentence of the reason without those of ``also``, the further reasons that hold too. A
    value that is a reason becomes its sentence first.
    """
    values: dict[str, Any] = {}
    for name, value in reason.values.items():
        values[name] = sentence(value) if isinstance(value, Reason) else value
    try:
        return _FORMATTER.vformat(templates()[reason.code], (), values)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        # A file of another version, or of another's hand: its code or values have no template.
        return str(Reason(reason.code, reason.values))


# An error can hold a reason, and str(error) is what a caller of the Python API prints.
# overhead.errors may not import the words, as everything imports it, so the words register
# themselves.
say_reasons_by(sentence)


def one_line(reason: Why, limit: int = 200) -> str:
    """The reason as one line of at most so many characters, safe for terminals and drawings."""
    return plain(sentence(reason), limit)


def with_status(status: str, reason: Why) -> str:
    """``noisy: half-width 12 %``, or the one of them that is there; '' without both."""
    return sentence(about(status, reason))


def reasons_said(missing: Iterable[tuple[str, Why]], start: str) -> list[str]:
    """A sentence for each reason, with what it explains: ``missing`` has names with their reasons.

    Reasons of one cause count as one; the first of them stands. Three names are said, and how many
    more there are.
    """
    names_by_cause: dict[object, list[str]] = {}
    texts_by_cause: dict[object, list[str]] = {}
    for name, reason in missing:
        cause = cause_of(reason)  # equal for reasons that differ only in numbers and quoted names
        names_by_cause.setdefault(cause, []).append(name)
        texts_by_cause.setdefault(cause, []).append(sentence(reason))
    sentences = []
    # At most three names, and the text of the first reason, stand for all of one cause.
    for cause, names in names_by_cause.items():
        named = "; ".join(names[:_MOST_NAMED])
        left_out = len(names) - _MOST_NAMED
        if left_out > 0:
            named = f"{named} and {left_out:,} more"
        texts = texts_by_cause[cause]
        why = texts[0]
        if len(set(texts)) > 1:
            why = f"{why} (the numbers of the first; the others look alike)"
        sentences.append(f"{start} {named}: {why}")
    return sentences


def notes_said(notes: Iterable[Why]) -> list[str]:
    """Each note as a sentence; those that differ only in the worker that they are about are one:
    ``a; b; c: what``.
    """
    alike: dict[Why, list[str]] = {}
    for note in notes:
        worker = note.values.get(_WORKER) if isinstance(note, Reason) else None
        # _of_worker(): the note with this text as its worker. With the worker left empty, alike
        # notes are equal.
        workers = alike.setdefault(_of_worker(note, ""), [])
        if worker:
            # The name of a worker is that of its stack and device; the run says elsewhere which
            # device it has.
            stack = str(worker).partition("@")[0]
            workers.append(stack)
    sentences = []
    for note, workers in alike.items():
        each_once = list(dict.fromkeys(workers))
        # few(): the first three, and how many more there are.
        sentences.append(sentence(_of_worker(note, few(each_once))))
    return sentences


def _of_worker(note: Why, worker: str) -> Why:
    """The note about this worker; as it is where it is about none."""
    if isinstance(note, str) or _WORKER not in note.values:
        return note
    return Reason(note.code, {**note.values, _WORKER: worker}, note.also)


def in_words(data: Any) -> Any:
    """Data of a command as its ``--json`` prints it: each reason is its sentence, with its code in
    a field beside it.

    ``data``: builtins, as ``msgspec.to_builtins`` makes them. ``{"reason": {"code": "too-few"}}``
    becomes ``{"reason": "too few", "reason_code": "too-few"}``.
    """
    # A reason becomes its sentence. Of other data the parts are looked at.
    reason = _reason_in(data)
    if reason is not None:
        return sentence(reason)
    if isinstance(data, list | tuple):
        return [in_words(item) for item in data]
    if not isinstance(data, dict):
        return data
    found = {}
    for name, value in data.items():
        found[name] = in_words(value)
        # ``_FIELDS``: the names of fields that hold reasons; only these get their code beside them.
        code = _code_beside(value) if name in _FIELDS else None
        if code:
            found[f"{name}_code"] = code
    return found


def _code_beside(value: Any) -> str | list[str] | None:
    """The code of a reason, or those of a list of reasons with '' for a text from outside; None
    where there is none.
    """
    if isinstance(value, list | tuple):
        codes = [_code(item) for item in value]
        return codes if any(codes) else None
    return _code(value)


def _code(value: Any) -> str:
    """The code of a reason; '' of anything else."""
    return code_of(_reason_in(value) or "")


def _reason_in(data: Any) -> Reason | None:
    """The reason that the data are, as an object or as its fields; None where they are none."""
    if isinstance(data, Reason):
        return data
    if not isinstance(data, dict):
        return None
    has_fields = "code" in data and data.keys() <= {"code", "values", "also"}
    return msgspec.convert(data, Reason) if has_fields else None
