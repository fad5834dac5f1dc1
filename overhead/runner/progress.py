"""Show progress and the time left: a bar in a terminal, plain lines elsewhere. No thread refreshes the bar."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn

from overhead.errors import UsageError
from overhead.locks import DEVICE_LOCK, shared_folder
from overhead.reading.plain_text import plain
from overhead.runner.events import RunNote, RunStep
from overhead.words import runner as words

_BESIDE = 50
"""Characters of the bar and of the time left."""


class Listener:
    """Receives the progress of a run. All times are in seconds. This base class ignores everything."""

    def note(self, told: RunNote) -> None:
        """Receive a line for the user, such as a case that is left out or an error."""

    def begin(self) -> None:
        """Receive that the measurement starts."""

    def working(self, now: RunStep) -> None:
        """Receive what the run does now."""

    def waiting(self, seconds: float) -> None:
        """Receive, again and again, that another run measures on this machine, and for how long this one has waited."""

    def waited(self, seconds: float) -> None:
        """Receive how long a wait for other runs took, after its end: a limit of time does not count it."""

    def left(self, seconds: float) -> None:
        """Receive about how much longer the run takes; not before the first process of each target has ended."""

    def end(self) -> None:
        """Receive that the run has ended."""


_LINE_EVERY_S = 20.0
"""Outside a terminal a line is printed this often: a log of a run of ten minutes stays short."""
_SILENT_AT_MOST_S = 10.0
"""Outside a terminal a step is told after so long without a line, as long as no time left is known."""
_SILENT_AT_FIRST_S = 2.0
"""The first step is told sooner. What is refused at once has no line but its error."""
_NAMES_LOCK_AFTER_S = 60.0
"""Who waits for longer than this may want to know what holds the lock: the longest turn of a run is shorter."""


class Progress(Listener):
    """Shows the progress on standard error, until the end of a ``with`` block. ``clock``: seconds."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
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
        self._began = self._last_line = 0.0
        self._has_waited = False
        self._task = self._bar.add_task("", total=1.0, left="")
        self._last_said = clock() - _SILENT_AT_MOST_S + _SILENT_AT_FIRST_S
        self._tells_time_left = False

    def note(self, told: RunNote) -> None:
        """Print a line; in a terminal it wraps between words."""
        text = words.note(told)
        self._last_said = self._clock()
        self._console.print(plain(text, 4000), markup=False, highlight=False, soft_wrap=not self._console.is_terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Show the bar, or outside a terminal say when the time left is known."""
        self._began = self._last_line = self._clock()
        self._bar.start()
        if self._console.is_terminal:
            self._bar.update(self._task, left=words.TIME_LEFT_UNKNOWN)
        else:
            self.note(words.MEASURING_BEGINS)

    def working(self, now: RunStep) -> None:
        """Show beside the bar what the run does now; outside a terminal, print it after a silence."""
        self._bar.start()
        self._describe(words.step(now))
        is_silent = self._clock() - self._last_said >= _SILENT_AT_MOST_S
        if not self._console.is_terminal and not self._tells_time_left and is_silent:
            self.note(f"  {words.step(now)}")

    def waiting(self, seconds: float) -> None:
        """Say beside the bar how long this run has waited for another; outside a terminal, print it now and then."""
        what = words.waiting_for_another_run(seconds)
        if seconds >= _NAMES_LOCK_AFTER_S:
            what += words.lock_that_is_held(str(shared_folder() / DEVICE_LOCK))
        self._describe(what)
        if not self._console.is_terminal and (self._is_time_for_line() or not self._has_waited):
            self.note(what)
        self._has_waited = True

    def left(self, seconds: float) -> None:
        """Move the bar; outside a terminal, print the time left every 20 s."""
        self._tells_time_left = True
        elapsed = self._clock() - self._began
        left = words.time_left(seconds)
        self._bar.update(self._task, completed=elapsed / (elapsed + seconds + 1e-9), left=left)
        self._bar.refresh()
        if not self._console.is_terminal and self._is_time_for_line():
            self.note(f"  {left}")

    def end(self) -> None:
        """Remove the bar."""
        self._tells_time_left = False
        self._bar.stop()

    def _describe(self, what: str) -> None:
        room = max(20, self._console.width - _BESIDE)
        self._bar.update(self._task, description=shortened(what, room))
        self._bar.refresh()

    def _is_time_for_line(self) -> bool:
        """Whether the last line is long ago. The caller then prints one."""
        if self._clock() - self._last_line < _LINE_EVERY_S:
            return False
        self._last_line = self._clock()
        return True


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

    True: print the progress to standard error. False: print nothing. None: True in a terminal and in IPython, where a
    person waits. A ``Listener`` is used as it is.
    """
    if isinstance(progress, Listener):
        yield progress
        return
    if progress not in (True, False, None):
        raise UsageError(f"progress={progress!r:.50}: must be True, False, None or a Listener")
    in_notebook = hasattr(_ipython(), "kernel")
    if progress is None:
        progress = sys.stderr.isatty() or _ipython() is not None
    if not progress:
        yield Listener()
        return
    # In a notebook rich would draw with widgets, which few have, and the stream says that it is a terminal, which it
    # is not: plain lines.
    console = Console(stderr=True, force_jupyter=False, force_terminal=False if in_notebook else None)
    with Progress(console) as listener:
        yield listener


def _ipython() -> Any:
    """The shell of IPython or of the kernel of a notebook, where this process is one; else None."""
    ipython: Any = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
