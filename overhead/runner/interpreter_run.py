"""The part of a campaign that runs with one interpreter: its tasks, its journal, and what failed so far."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from overhead.errors import cause_of
from overhead.machine import redacted
from overhead.results import FailedLine, JournalLine, Together
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.journal import Journal, Past, note_ladder
from overhead.runner.progress import Listener
from overhead.runner.schedule import Task


@dataclasses.dataclass
class InterpreterRun:
    """The tasks that are measured with one interpreter, and the journal that gets the results.

    ``past``: the contents of the journal of an interrupted run. ``together``: set if two interpreters are compared.
    ``dropped``: keys of the cases that failed, which are not measured again.
    """

    journal: Journal
    tasks: Sequence[Task]
    past: Past | None = None
    interpreter: Interpreter = HERE
    together: Together | None = None
    dropped: set[str] = dataclasses.field(init=False)
    ladders: dict[str, list[int]] = dataclasses.field(init=False)
    _told: Counter[tuple[str, str, str]] = dataclasses.field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self.dropped = set(self.past.failed) if self.past else set()
        self.ladders = dict(self.past.ladders) if self.past else {}

    def missing(self) -> dict[str, int]:
        """By target key, the number of planned processes that the journal lacks."""
        done = self.past.done if self.past else {}
        return {t.target.key: max(0, t.processes - done.get(t.target.key, 0)) for t in self.tasks}

    def keep(self, line: JournalLine, listener: Listener) -> None:
        """Write a line to the journal, and note what later processes need to know."""
        if isinstance(line, FailedLine):
            self.dropped.add(f"{line.target} {line.case}")
            line = redacted(line)
            self._tell(line, listener)
        note_ladder(self.ladders, line)
        self.journal.write([line])

    def _tell(self, line: FailedLine, listener: Listener) -> None:
        """Tell a failure. Of several with one cause, tell the first, and that there are more."""
        cause = (line.target, line.status, cause_of(line.reason))
        self._told[cause] += 1
        if self._told[cause] == 1:
            listener.note(self.named(f"{line.target} {line.case}: {line.status}: {line.reason}"))
        elif self._told[cause] == 2:
            listener.note(self.named(f"{line.target}: more cases {line.status} alike; overhead show --all lists them"))

    def named(self, text: str) -> str:
        """The text. If two interpreters are compared, the name of the side precedes it."""
        return f"{self.together.side}: {text}" if self.together else text
