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
        """Receive that the measurement starts."""

    def working(self, what: str) -> None:
        """Receive what the run does now, in words."""

    def waited(self, seconds: float) -> None:
        """Receive how long the run has waited until no other run measured on this machine."""

    def left(self, seconds: float) -> None:
        """Receive about how much longer the run takes; not before the first process of each target has ended."""

    def end(self) -> None:
        """Receive that the run has ended."""


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
        """Print a line."""
        self._console.print(plain(text, 4000), markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Show the bar, and say when the time left is known."""
        self._began = time.monotonic()
        self._bar.start()
        self.note("measuring; the time left is known after the first process of each stack")

    def working(self, what: str) -> None:
        """Show ``what`` beside the bar."""
        self._bar.start()
        self._bar.update(self._task, description=what[: max(20, self._console.width - 50)])
        self._bar.refresh()

    def left(self, seconds: float) -> None:
        """Move the bar; outside a terminal, print the time left every 20 s."""
        elapsed = time.monotonic() - self._began
        words = f"about {max(5.0, seconds):.0f} s left" if seconds < 120 else f"about {seconds / 60:.1f} min left"
        self._bar.update(self._task, completed=elapsed / (elapsed + seconds + 1e-9), left=words)
        self._bar.refresh()
        if not sys.stderr.isatty() and elapsed - self._last_plain >= 20:
            self._last_plain = elapsed
            self.note(f"  {words}")

    def end(self) -> None:
        """Remove the bar."""
        self._bar.stop()
