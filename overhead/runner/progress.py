"""Show progress and the time left: a bar in a terminal, plain lines elsewhere. No thread refreshes the bar."""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn

from overhead.reading.format import plain


class Listener:
    """Receives the progress of a run. All times are in seconds. This base class ignores everything."""

    def note(self, text: str) -> None:
        """Receive a line for the user, such as a case that is left out or an error."""

    def begin(self) -> None:
        """The measurement starts."""

    def working(self, what: str) -> None:
        """The run now does ``what``."""

    def left(self, least_s: float, most_s: float) -> None:
        """The run takes this much longer, at least and at most. It is not known before the first processes end."""

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
        self._began = self._last_plain = 0.0
        self._task = self._bar.add_task("", total=1.0, left="")

    def note(self, text: str) -> None:
        self._console.print(plain(text, 4000), markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        self._began = time.monotonic()
        self._bar.start()
        self.note("measuring; the time left is known after the first process of each stack")

    def working(self, what: str) -> None:
        self._bar.start()
        self._bar.update(self._task, description=what[: max(20, self._console.width - 50)])
        self._bar.refresh()

    def left(self, least_s: float, most_s: float) -> None:
        elapsed, words = time.monotonic() - self._began, time_left(least_s, most_s)
        self._bar.update(self._task, completed=elapsed / (elapsed + most_s), left=words)
        self._bar.refresh()
        if not sys.stderr.isatty() and elapsed - self._last_plain >= 20:
            self._last_plain = elapsed
            self.note(f"  {words}")

    def end(self) -> None:
        self._bar.stop()


def time_left(least_s: float, most_s: float) -> str:
    """``40 to 62 s left``, ``2.4 to 4.1 min left``; ``less than 20 s left`` if the one is over twice the other."""
    unit, divisor, decimals = ("s", 1, 0) if most_s < 120 else ("min", 60, 1)
    most = f"{max(5.0, most_s) / divisor:.{decimals}f} {unit} left"
    return f"less than {most}" if most_s > 2 * least_s else f"{least_s / divisor:.{decimals}f} to {most}"
