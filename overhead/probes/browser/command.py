"""The parts of ``overhead browser`` that do not measure: choose a browser, write the page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from overhead.errors import UsageError
from overhead.probes.base import Unavailable
from overhead.probes.browser import identity, page_files
from overhead.probes.browser.launch import BROWSER, OPEN, Browser, BrowserKind, kind_of
from overhead.probes.browser.session import BrowserSession

_BROWSER_KINDS: tuple[BrowserKind, ...] = ("chromium", "firefox", "safari")


def choose(browser: str) -> str:
    """The name of the stack that measures this browser.

    ``browser`` is a kind, a program, or ``open`` for the default browser of the desktop. Sets environment variables,
    which the workers inherit. Raises ``UsageError`` if there is no such browser.
    """
    if browser in _BROWSER_KINDS:
        return browser
    if browser != OPEN:
        if shutil.which(browser) is None:
            raise UsageError(f"{browser}: no such browser; give {', '.join(_BROWSER_KINDS)}, a program, or {OPEN}")
        os.environ[BROWSER] = browser
        return kind_of(browser)
    os.environ[BROWSER] = OPEN
    try:
        session = BrowserSession(Browser("chromium"))
    except Unavailable as refused:
        raise UsageError(refused.reason) from None
    session.close()
    return identity.engine(session.page)


def write_page(path: Path) -> None:
    """Write the page as one file that can be opened on any machine. Raises ``UsageError``."""
    try:
        path.write_text(page_files.single_file_page(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
