"""One browser with one page that accepts commands. It is opened at the first use and closed when the worker ends.

The event loop of the server runs only during these calls, in the thread of the caller. While the page measures, this
process waits for the answer and no other thread runs. Therefore the browser is not a ``ChildProcess``, which needs
a reading thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import webbrowser
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from overhead.child import FAMILY, last_words
from overhead.probes.base import Unavailable
from overhead.probes.browser import messages
from overhead.probes.browser.identity import named_by_log
from overhead.probes.browser.launch import Browser
from overhead.probes.browser.server import PageServer

START_SECONDS = 45.0
PERSON_SECONDS = 300.0
"""Time limit until a page that the desktop or a person opens has connected."""
ANSWER_SECONDS = 60.0

T = TypeVar("T")


class BrowserEnded(Exception):
    """The browser or its page has ended, or does not answer."""


class BrowserSession:
    """An open page that answers commands. Raises ``Unavailable`` if no page can be opened."""

    def __init__(
        self, browser: Browser, start_seconds: float = START_SECONDS, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.browser, self._answer_seconds = browser, answer_seconds
        self._loop = asyncio.new_event_loop()
        self._server = PageServer()
        self._keeper: asyncio.subprocess.Process | None = None
        self._ended: asyncio.Task[str] | None = None
        self._profile = Path()
        self._chains = 0
        try:
            self.page = self._run(self._open(start_seconds))
        except BaseException:
            self.close()
            raise

    def next_chain(self) -> int:
        """A new number, unique within this page."""
        self._chains += 1
        return self._chains

    def ask(self, do: str, **fields: Any) -> messages.PageAnswer:
        """Send a command and return the answer of the page. Raises ``BrowserEnded`` if there is no answer."""
        return self._run(self._unless_ended(self._server.ask(do, **fields), self._answer_seconds, "gave no answer"))

    def close(self) -> None:
        """End the page, the browser and the server. A second call does nothing."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            self._run(self._shut())
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _open(self, seconds: float) -> messages.Page:
        url = await self._server.start()
        if self.browser.program:
            await self._start(url)
        else:
            seconds = PERSON_SECONDS
            if not webbrowser.open(url):
                raise Unavailable("this desktop opens no links", "name a browser's program instead of open")
        try:
            page = await self._unless_ended(self._server.hello(), seconds, "did not open the page")
        except BrowserEnded as error:
            raise Unavailable(f"{error}{self._last_words()}") from None
        return named_by_log(page, self._log())

    async def _start(self, url: str) -> None:
        self._profile = Path(tempfile.mkdtemp(prefix="overhead-browser-"))
        command = self.browser.command(self._profile, url)
        self._keeper = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("keeper.py")),
            str(self._profile),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **self.browser.environment, FAMILY: ""},  # it cleans up after a killed worker
        )
        if self.browser.kind != "safari":  # this program only hands the URL to the browser, and exits
            self._ended = asyncio.ensure_future(self._watch())

    async def _watch(self) -> str:
        assert self._keeper is not None
        assert self._keeper.stdout is not None
        word, _, rest = (await self._keeper.stdout.readline()).decode(errors="replace").strip().partition(" ")
        if word == "failed":
            return f"could not be started: {rest}"
        return f"ended by itself (exit code {rest})" if word == "ended" else "lost its keeper"

    async def _unless_ended(self, work: Coroutine[Any, Any, T], seconds: float, failing: str) -> T:
        task = asyncio.ensure_future(work)
        waiting = {task} if self._ended is None else {task, self._ended}
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        name = self.browser.kind.title()
        if self._ended is not None and self._ended.done():
            raise BrowserEnded(f"{name} {self._ended.result()}")
        raise BrowserEnded(f"{name} {failing} for {seconds:.0f} s")

    def _last_words(self) -> str:
        return last_words(self._log())

    def _log(self) -> str:
        try:
            with open(self._profile / "log", "rb") as file:
                return file.read(1 << 20).decode(errors="replace")
        except OSError:
            return ""

    async def _shut(self) -> None:
        await self._server.end()
        await asyncio.sleep(0.05)  # the page must get the command before the connection closes
        await self._server.stop()
        if self._keeper is None or self._keeper.stdin is None or self._keeper.stdout is None:
            return
        self._keeper.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(15):
                if self._ended is not None:
                    await self._ended
                await self._keeper.stdout.read()  # ends when the keeper has cleaned up and exited
