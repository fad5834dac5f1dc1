"""Show progress and the time left: a bar in a terminal, plain lines elsewhere. No thread refreshes the bar."""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from overhead.reading.format import plain


class Listener:
    """Receives the progress of a run. All times are in seconds. This base class ignores everything."""

    def note(self, text: str) -> None:
        """Receive a line for the user, such as a case that is left out or an error."""

    def begin(self, planned_s: float) -> None:
        """The measurement starts, and should take ``planned_s``."""

    def working(self, what: str) -> None:
        """The run now does ``what``."""

    def advance(self, done_s: float) -> None:
        """Add ``done_s`` to the completed part of the planned time."""

    def end(self) -> None:
        """The run has ended."""


class Progress(Listener):
    """Shows the progress on standard error, until the end of a ``with`` block."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar = Bar(
            BarColumn(24),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            auto_refresh=False,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._planned = 0.0
        self._began = 0.0
        self._last_plain = 0.0
        self._task = self._bar.add_task("", total=1.0, left="")

    def note(self, text: str) -> None:
        self._console.print(plain(text, 4000), markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self, planned_s: float) -> None:
        self._planned, self._began = planned_s, time.monotonic()
        self._bar.start()
        self.note(f"measuring for about {_duration(planned_s)}")

    def working(self, what: str) -> None:
        self._bar.start()
        self._bar.update(self._task, description=what[: max(20, self._console.width - 50)])
        self._bar.refresh()

    def advance(self, done_s: float) -> None:
        elapsed = time.monotonic() - self._began
        left = self._planned - done_s
        if done_s > 0.1 * self._planned:
            left = elapsed / done_s * left
        words = f"{_duration(max(0.0, left))} left"
        self._bar.update(self._task, completed=done_s / self._planned if self._planned else 1.0, left=words)
        self._bar.refresh()
        if not sys.stderr.isatty() and elapsed - self._last_plain >= 20:
            self._last_plain = elapsed
            self.note(f"  {100 * done_s / self._planned:3.0f} %, {words}")

    def end(self) -> None:
        self._bar.stop()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
