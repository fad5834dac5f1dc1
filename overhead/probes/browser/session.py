"""One browser with one page that accepts commands. It is opened at the first use and closed when
the worker ends.

While the page measures, the threads of this process only wait.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from overhead import scratch
from overhead.child import PrintedText, last_line
from overhead.errors import WithReason
from overhead.probes.base import Unavailable
from overhead.probes.browser import messages
from overhead.probes.browser.identity import with_name_from_log
from overhead.probes.browser.launch import Browser
from overhead.probes.browser.server import PageServer
from overhead.results import Reason, because

_KILL_SECONDS = 3.0
_PRINTED_SECONDS = 0.2
"""How long what the browser printed may take to arrive; Firefox prints the adapter's name before it
opens a page.
"""
_LONGEST_FOLDER = 50
"""Chromium puts a socket into its temporary folder. The path of a socket may have about 100
characters.
"""


class BrowserEnded(WithReason):
    """The browser or its page has ended, or does not answer."""


class BrowserSession:
    """An open page that answers commands. Raises ``Unavailable`` if no page can be opened.

    The browser is a process of the caller's group and inherits its environment. So whatever ends a
    worker ends the browser too.
    """

    def __init__(
        self, browser: Browser, start_seconds: float = 45.0, answer_seconds: float = 60.0
    ) -> None:
        """Start the browser with an empty profile, and wait at most ``start_seconds`` for its page.
        ``answer_seconds``: the longest wait for the answer to a command.
        """
        self.browser = browser
        self._answer_seconds = answer_seconds
        # How many chains the page was asked to open, which numbers them.
        self._chains = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._server: PageServer | None = PageServer()
        self._profile = Path(tempfile.mkdtemp(prefix="browser-", dir=scratch.folder()))
        # The browser's own temporary folder: the profile, unless its path is too long for a socket.
        self._temporary = self._profile
        if len(str(self._profile)) > _LONGEST_FOLDER and os.name != "nt":
            # With the prefix by which ``scratch.sweep`` knows our temporary folders, and removes
            # those that killed processes left.
            self._temporary = Path(tempfile.mkdtemp(prefix=scratch.PREFIX, dir="/tmp"))
        try:
            self.page = self._open(self._server, start_seconds)
        except BaseException:
            self.close()
            raise

    def next_chain(self) -> int:
        """A new number for a chain, unique within this page."""
        self._chains += 1
        return self._chains

    def ask(self, do: str, **fields: Any) -> messages.PageAnswer:
        """Send a command with these fields; return the page's answer. Raises ``BrowserEnded`` if
        there is none, because the browser has ended, or does not answer in time.
        """
        if self._server is None:  # after ``close``
            raise BrowserEnded(because("browser-closed"))
        answer = self._server.ask(do, self._answer_seconds, **fields)
        if answer is not None:
            return answer
        browser = self.browser.kind.title()
        silent = because("browser-silent", browser=browser, limit_s=self._answer_seconds)
        # ``_ended``: how the browser ended, None if it still runs.
        raise BrowserEnded(self._ended() or silent)

    def close(self) -> None:
        """End the page, the browser and the server. A second call does nothing."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        self._kill()
        # A set, because both are usually the same folder. Up to 20 attempts, 2 s in all.
        for folder in {self._temporary, self._profile}:
            for _ in range(20):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    break
                time.sleep(0.1)  # a browser process that is ending may still hold a file

    def _open(self, server: PageServer, seconds: float) -> messages.Page:
        """Start the browser, and return the description of its page. Raises ``Unavailable`` if no
        page connects within these seconds.
        """
        command = self.browser.command(self._profile, server.url)
        environment = {**os.environ, **self.browser.environment, "TMPDIR": str(self._temporary)}
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._profile,
                env=environment,
            )
        except OSError as error:
            raise Unavailable(
                because("browser-not-started", browser=self.browser.kind.title(), text=error)
            ) from None
        assert self._process.stdout is not None
        # Reads in a thread of its own, so that a full pipe never stops the browser.
        printed = PrintedText(self._process.stdout)
        # So that the server stops waiting for a page at once if the browser ends.
        threading.Thread(target=_give_up_at_end, args=(self._process, server), daemon=True).start()
        page = server.wait_for_page(seconds)
        # What the browser printed may arrive a little later than its page: up to 0.2 s are waited.
        log_text = printed.text(_PRINTED_SECONDS)
        # Firefox tells a page no name of the adapter, but prints it.
        if page is not None:
            return with_name_from_log(page, log_text)
        browser = self.browser.kind.title()
        # ``reason`` is the end of the browser if it has ended, with the last line that it printed.
        no_page = because("browser-opened-no-page", browser=browser, limit_s=seconds)
        reason = self._ended() or no_page
        printed_last = last_line(log_text)
        if printed_last:
            reason = because("with-text", why=reason, text=printed_last)
        raise Unavailable(reason)

    def _ended(self) -> Reason | None:
        """How the browser ended by itself; None if it runs."""
        if self._process is None:
            return None
        # None while the process runs.
        exit_code = self._process.poll()
        if exit_code is None:
            return None
        return because("browser-ended", browser=self.browser.kind.title(), exit_code=exit_code)

    def _kill(self) -> None:
        """Kill the browser and the processes that it started. These are listed first, because
        nobody is their parent once the browser has ended.
        """
        if self._process is None or self._process.poll() is not None:
            return
        import psutil

        processes: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            processes = psutil.Process(self._process.pid).children(recursive=True)
        # The first process first, so that it starts no further ones.
        self._process.kill()
        for process in processes:
            # It has ended meanwhile.
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(processes, _KILL_SECONDS)
        self._process.wait()


def _give_up_at_end(process: subprocess.Popen[bytes], server: PageServer) -> None:
    process.wait()
    server.give_up()
