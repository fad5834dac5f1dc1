"""The finding on the calls of a dispatch in words."""

from __future__ import annotations

from overhead.reading.findings.stages import Stage, StagesTold
from overhead.reading.plain_text import plain
from overhead.reading.view import stack_name
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import MICRO, listed, number, spread
from overhead.words.names import CALLER_WORDS


@words_for(StagesTold)
def stages(told: StagesTold) -> FindingWords:
    """Which call of a dispatch takes most, through each library."""
    first = told.found[0]
    called = CALLER_WORDS[first.record.caller]
    longest = []
    both = []
    name = ""
    for found in told.found:
        library = stack_name(found.target)
        time = f"{number(found.longest.time / 1e3)} {MICRO} through {library}"
        # A call that takes most through several libraries is named once.
        is_named = found.longest.name == name
        name = found.longest.name
        longest.append(time if is_named else f"{_name(found.longest)} {time}")
        both.append(f"{library}: {_call(found.longest)}, then {_call(found.second)}")
    title = f"The most expensive call of a {first.record.unit} {called}: {listed(longest)}."
    return FindingWords(title, f"{'; '.join(both)} ({MICRO}, each call timed by itself).")


def _name(stage: Stage) -> str:
    return plain(stage.name, 30)


def _call(stage: Stage) -> str:
    """``submit 10.7 (9.9 to 11.6)``."""
    return f"{_name(stage)} {spread(stage.time / 1e3)}"
