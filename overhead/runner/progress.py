"""Show progress and the time left: a bar in a terminal, plain lines elsewhere. No thread refreshes
the bar.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn

from overhead.errors import UsageError
from overhead.locks import DEVICE_LOCK, device_lock_holder, shared_folder
from overhead.reading.plain_text import plain
from overhead.runner.events import RunNote, RunStep
from overhead.words import runner as words

_BESIDE = 50
"""Characters of the bar and of the time left."""


class Listener:
    """Receives the progress of a run. All times are in seconds. This base class ignores
    everything.
    """

    def note(self, told: RunNote) -> None:
        """Receive a line for the user, such as a case that is left out or an error."""

    def begin(self) -> None:
        """Receive that the measurement starts."""

    def working(self, now: RunStep) -> None:
        """Receive what the run does now."""

    def waiting(self, seconds: float) -> None:
        """Receive, again and again, that another run measures on this machine, and for how long
        this one has waited.
        """

    def waited(self, seconds: float) -> None:
        """Receive how long a wait for other runs took, after its end: a limit of time does not
        count it.
        """

    def left(self, seconds: float) -> None:
        """Receive about how much longer the run takes: from its plan at first, then corrected again
        and again.
        """

    def end(self) -> None:
        """Receive that the run has ended."""


_LINE_EVERY_S = 20.0
"""A log gets the time left this often, so that the log of a run of ten minutes stays short."""
_TELLS_WAIT_AFTER_S = 3.0
"""A log says nothing of a shorter wait for another run: two runs at once wait for each other again
and again.
"""
_SILENT_AT_MOST_S = 10.0
"""Until the time left is known, a log says what the run does after so many seconds without a
line.
"""
_SILENT_AT_FIRST_S = 2.0
"""The first such line comes sooner, but not at once: a run that is refused at once prints its error
alone.
"""


class Progress(Listener):
    """Shows the progress of a run on standard error until the end of a ``with`` block: a bar in a
    terminal, lines elsewhere. ``clock``: seconds.
    """

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._bar = Bar(
            BarColumn(24),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            auto_refresh=False,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._began = clock()
        # When a line with the time left, and one about a wait, was last printed: long ago.
        self._last_line = -_LINE_EVERY_S
        self._last_wait_line = -_LINE_EVERY_S
        # The id of the process that this run waits for.
        self._holder: int | None = None
        # ``completed``, which is set later, is the part of the run that is done: 1 is all.
        self._task = self._bar.add_task("", total=1.0, left="")
        # When any line was last printed; so that the first one about a step comes sooner.
        self._last_said = clock() - _SILENT_AT_MOST_S + _SILENT_AT_FIRST_S
        self._tells_time_left = False

    def note(self, told: RunNote) -> None:
        """Print a line; in a terminal it wraps between words."""
        text = words.note(told)
        self._last_said = self._clock()
        # Printed as it is: rich would take brackets for markup, and colour numbers and paths.
        self._console.print(
            plain(text, 4000),
            markup=False,
            highlight=False,
            soft_wrap=not self._console.is_terminal,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Show the bar. The time left comes at once."""
        self._bar.start()

    def working(self, now: RunStep) -> None:
        """Show beside the bar what the run does now. Outside a terminal there is no bar: print it,
        but only if nothing was printed for a while and the time left is not yet printed either.
        """
        self._bar.start()
        self._describe(words.step(now))
        is_silent = self._clock() - self._last_said >= _SILENT_AT_MOST_S
        if not self._console.is_terminal and not self._tells_time_left and is_silent:
            self.note(f"  {words.step(now)}")

    def waiting(self, seconds: float) -> None:
        """Say beside the bar for which other process this run waits, and for how long so far.
        Outside a terminal, where there is no bar, print it now and then.
        """
        # Looked up once for each wait, as this is called again and again.
        self._holder = self._holder or device_lock_holder()
        what = words.waiting_for_another_run(
            seconds, self._holder, str(shared_folder() / DEVICE_LOCK)
        )
        self._describe(what)
        is_due = self._clock() - self._last_wait_line >= _LINE_EVERY_S
        if not self._console.is_terminal and is_due and seconds >= _TELLS_WAIT_AFTER_S:
            self._last_wait_line = self._clock()
            self.note(what)

    def waited(self, seconds: float) -> None:
        """Another process may hold the lock next time."""
        self._holder = None

    def left(self, seconds: float) -> None:
        """Show how much of the run is done, and the time left, in the bar. Outside a terminal,
        where there is none, print the time left at first and then every 20 s.
        """
        self._tells_time_left = True
        left = words.time_left(seconds)
        elapsed_s = self._clock() - self._began
        whole_s = elapsed_s + seconds + 1e-9  # not zero, at the begin of a run of no time
        self._bar.update(self._task, completed=elapsed_s / whole_s, left=left)
        self._bar.refresh()
        is_due = self._clock() - self._last_line >= _LINE_EVERY_S
        if not self._console.is_terminal and is_due:
            self._last_line = self._clock()
            self.note(f"  {left}")

    def end(self) -> None:
        """Remove the bar."""
        self._tells_time_left = False
        self._bar.stop()

    def _describe(self, what: str) -> None:
        room = max(20, self._console.width - _BESIDE)
        self._bar.update(self._task, description=shortened(what, room))
        self._bar.refresh()


def shortened(text: str, room: int) -> str:
    """The text in so many characters; what does not fit ends after a word, with dots."""
    if len(text) <= room:
        return text
    whole_words, _, _ = text[:room].rpartition(" ")
    kept = whole_words.rstrip(" ,:;") or text[: room - 1]
    return f"{kept}\N{HORIZONTAL ELLIPSIS}"


@contextlib.contextmanager
def listening(progress: bool | Listener | None) -> Iterator[Listener]:
    """The listener that the argument ``progress`` of the Python API asks for, in a ``with`` block.

    True: print the progress to standard error. False: print nothing. None: True in a terminal and
    in IPython, where a person waits. A ``Listener`` is used as it is.
    """
    if isinstance(progress, Listener):
        yield progress
        return
    if progress not in (True, False, None):
        raise UsageError(f"progress={progress!r:.50}: must be True, False, None or a Listener")
    # IPython in a terminal has a shell too, but no kernel.
    in_notebook = hasattr(_ipython(), "kernel")
    if progress is None:
        progress = sys.stderr.isatty() or _ipython() is not None
    if not progress:
        # The class itself prints nothing.
        yield Listener()
        return
    # In a notebook rich would draw with widgets, which few have, and the stream says that it is a
    # terminal, which it is not: plain lines.
    console = Console(
        stderr=True, force_jupyter=False, force_terminal=False if in_notebook else None
    )
    with Progress(console) as listener:
        yield listener


def _ipython() -> Any:
    """The shell of IPython or of the kernel of a notebook, where this process is one; else None."""
    ipython: Any = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
