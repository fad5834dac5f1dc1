"""What ``overhead browser`` does beside a run of the browser's stack: choose it, write the page, import a file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from overhead import results
from overhead.errors import UsageError
from overhead.probes._support.browser import identity, standalone
from overhead.probes._support.browser.importing import import_file
from overhead.probes._support.browser.launch import BROWSER, OPEN, Browser, Kind, kind_of
from overhead.probes._support.browser.session import BrowserSession
from overhead.probes.base import Unavailable

KINDS: tuple[Kind, ...] = ("chromium", "firefox", "safari")


def choose(browser: str) -> str:
    """The stack that measures in ``browser``: a kind, a program, or ``open`` for what the desktop opens links with.

    Sets the environment that the workers inherit. Raises ``UsageError`` where there is no such browser.
    """
    if browser in KINDS:
        return browser
    if browser != OPEN:
        if shutil.which(browser) is None:
            raise UsageError(f"{browser}: no browser's program; one of {', '.join(KINDS)}, a program, or {OPEN}")
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
    """Write the page as one file that a person can open anywhere. Raises ``UsageError``."""
    try:
        path.write_text(standalone.page(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def write_import(path: Path, journal: Path) -> None:
    """Turn a page's download into a journal. Raises ``BadFile``, or ``UsageError`` where it can't be written."""
    raw = b"".join(map(results.encode_line, import_file(path)))
    try:
        with open(journal, "xb") as file:
            file.write(raw)
    except OSError as error:
        raise UsageError(f"{journal}: {error.strerror}") from None
