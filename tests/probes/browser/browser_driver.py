"""Controls a real browser in tests: Chromium through its debugging pipe.

The tests use it to press buttons and to read the page.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from overhead.probes.browser.launch import Browser, find_browser

_TIMEOUT_S = 30.0
_PIPED = ("bash", "-c", 'exec {r}<&"$0" {w}>&"$1"; exec 3<&$r 4>&$w; exec "${@:2}"')
"""Runs a program with the pipes whose numbers come first as its files 3 and 4, which Chromium reads
and writes.
"""


class Driver:
    """A browser under remote control. As a context manager it ends the browser and removes the
    profile.
    """

    def __init__(self, browser: Browser) -> None:
        self.profile = Path(tempfile.mkdtemp(prefix="overhead-driver-"))
        self.downloads = self.profile / "downloads"
        self.downloads.mkdir()
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._start(browser)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError):
                while True:  # until the process group is empty
                    os.killpg(self.process.pid, signal.SIGKILL)
                    self.process.poll()
                    time.sleep(0.02)
        for name in ("_write", "_read"):
            with contextlib.suppress(OSError, AttributeError):
                os.close(getattr(self, name))
        shutil.rmtree(self.profile, ignore_errors=True)

    def until(self, expression: str, seconds: float = _TIMEOUT_S) -> Any:
        """Wait until the JavaScript expression is true in the page. Returns its value."""
        deadline = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{expression} stayed {value!r}:"
                    f" {self.evaluate('document.body.innerText')[:500]}"
                )
            time.sleep(0.1)
        return value

    def _start(self, browser: Browser) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [
            arg for arg in browser.command(self.profile, "about:blank") if arg != "about:blank"
        ]
        self.process = subprocess.Popen(
            [
                *_PIPED,
                str(to_read),
                str(to_write),
                *command,
                "--remote-debugging-pipe",
                "about:blank",
            ],
            pass_fds=(to_read, to_write),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(self.profile)},
        )
        os.close(to_read)
        os.close(to_write)
        self._left, self._number, self._session = b"", 0, ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self._call("Page.enable")
        self._call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def _message(self) -> Any:
        while b"\0" not in self._left:
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise RuntimeError("Chromium went away")
            self._left += chunk
        one, _, self._left = self._left.partition(b"\0")
        return json.loads(one)

    def go(self, url: str) -> None:
        self._call("Page.navigate", url=url)
        place = json.dumps(url.partition("#")[0])
        self.until(f"location.href.split('#')[0] === {place} && document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        found = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")


def drive() -> Driver:
    """A driver for the Chromium of this machine."""
    return Driver(find_browser("chromium"))
