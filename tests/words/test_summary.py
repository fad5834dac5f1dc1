"""What a whole run lacks, in words."""

from __future__ import annotations

from overhead.reading.view import View
from overhead.results import MissingStack, because
from overhead.words.reasons import sentence
from overhead.words.summary import missing_sentences
from tests.fakes.report import fingerprint


def test_what_adds_a_stack_is_said_in_words() -> None:
    mend = because("install-mlx", extras="mlx")
    absent = MissingStack(
        stack="mlx",
        reason=because("package-does-not-import", package="mlx", text="none"),
        mend=mend,
    )
    said = missing_sentences(View(fingerprint(unavailable=[absent])))
    assert sentence(mend) in said
    assert mend.code not in said
