"""A browser that fails in different ways. Each failure has a reason, and no process and no profile
remains.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from overhead import scratch
from overhead.child import ChildProcess
from overhead.errors import WithReason
from overhead.probes.base import Unavailable, Unsupported, Unverified, vary
from overhead.probes.browser import browsers, launch
from overhead.probes.browser.chain import BrowserChain, case_spec
from overhead.probes.browser.launch import Browser
from overhead.probes.browser.session import BrowserEnded, BrowserSession
from overhead.results import Case, Why, because

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the stand-in for a browser is a shell script"
)

BASE = Case(pattern="per-submit", caller="browser")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """A function that makes a browser program with a given behaviour. Its profiles are in the
    test's folder.
    """
    scratch.remove()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def make(behaviour: str) -> str:
        path = tmp_path / "chromium"
        script = Path(__file__).parents[2] / "fakes" / "browser.py"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" {behaviour} "$@"\n')
        path.chmod(0o755)
        return str(path)

    yield make
    scratch.remove()


@pytest.fixture
def probe(
    program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], browsers.BrowserProbe]]:
    made: list[browsers.BrowserProbe] = []

    def make(behaviour: str) -> browsers.BrowserProbe:
        monkeypatch.setenv(launch.BROWSER, program(behaviour))
        made.append(browsers.ChromiumProbe())
        return made[-1]

    yield make
    for one in made:
        if one._session is not None:
            one._session.close()


def gone(folder: Path, seconds: float = 15.0) -> bool:
    """Whether the profile and the processes of the browser of this test end within ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not list(folder.glob("**/browser-*")) and not _living(folder):
            return True
        time.sleep(0.05)
    return False


def _living(folder: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and str(folder) in " ".join(
                process.cmdline()
            ):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (
            "ends",
            because(
                "with-text",
                why=because("browser-ended", browser="Chromium", exit_code=3),
                text="the last words",
            ),
        ),
        (
            "silent",
            because(
                "with-text",
                why=because("browser-opened-no-page", browser="Chromium", limit_s=1),
                text="the last words",
            ),
        ),
        (
            "no-webgpu",
            because(
                "browser-refuses", browser="Chromium 1.2.3", text="this browser offers no WebGPU"
            ),
        ),
        ("other-kernels", because("page-got-other-kernels", kernels="step.wgsl")),
        (
            "other-browser",
            because("page-ran-in-other-browser", browser="Firefox 1.0", wanted="Chromium"),
        ),
    ],
)
def test_a_browser_that_fails_to_start_or_to_open_the_page_is_unavailable_with_a_reason(
    probe: Callable[[str], browsers.BrowserProbe],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    reason: Why,
) -> None:
    monkeypatch.setattr(
        browsers,
        "BrowserSession",
        lambda browser: BrowserSession(browser, start_seconds=1 if behaviour == "silent" else 20),
    )
    stack = probe(behaviour)
    for _ in range(2):
        with pytest.raises(Unavailable) as refused:
            stack.targets()
        assert refused.value.reason == reason
    if stack._session is not None:
        stack._session.close()
    assert gone(tmp_path)


def test_a_browser_program_that_cannot_be_executed_is_unavailable(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    path = Path(program("well"))
    path.write_bytes(b"\x7fELF rubbish")
    with pytest.raises(Unavailable, match="browser-not-started"):
        BrowserSession(Browser("chromium", str(path)))
    assert gone(tmp_path)


@pytest.mark.parametrize(
    ("behaviour", "error", "reason"),
    [
        ("crashes", BrowserEnded, because("browser-ended", browser="Chromium", exit_code=139)),
        ("hangs", BrowserEnded, because("browser-silent", browser="Chromium", limit_s=1.0)),
        ("scope", Unverified, "GPUValidationError: a rejected submit"),
        ("other-n", Unverified, because("page-answered-for-other-n")),
    ],
)
def test_sample_raises_if_the_browser_crashes_hangs_or_reports_an_error(
    program: Callable[[str], str],
    tmp_path: Path,
    behaviour: str,
    error: type[WithReason],
    reason: Why,
) -> None:
    one = BrowserSession(
        Browser("chromium", program(behaviour)), answer_seconds=1 if behaviour == "hangs" else 20
    )
    chain = BrowserChain(one, BASE)
    with pytest.raises(error) as caught:
        chain.sample([1])
    assert caught.value.reason == reason
    one.close()
    assert gone(tmp_path)


def test_after_a_worker_is_killed_its_browser_ends_and_its_profile_is_removed(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    code = (
        "import tempfile, time; tempfile.tempdir = {folder!r}\nfrom overhead.probes.browser.launch"
        " import Browser\nfrom overhead.probes.browser.session import"
        " BrowserSession\nBrowserSession(Browser('chromium', {program!r})); print('open',"
        " flush=True); time.sleep(60)\n"
    ).format(folder=str(tmp_path), program=program("well"))
    (tmp_path / "its_worker.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    worker = ChildProcess("its_worker", None, bytes.strip, environment={"PYTHONPATH": path})
    assert worker.receive(60) == b"open"
    assert list(tmp_path.glob("**/browser-*"))
    os.kill(worker.pid, signal.SIGKILL)
    worker.end()
    scratch.remove()
    assert gone(tmp_path)


@pytest.mark.parametrize(
    "case",
    [
        vary(BASE, "caller", "native"),
        vary(BASE, "pattern", "replay"),
        vary(vary(BASE, "pattern", "fused"), "dependency", "independent"),
        vary(BASE, "k", 4),
        vary(BASE, "colour", "red"),
        vary(vary(BASE, "pattern", "wait-each"), "wait", "map"),
    ],
    ids=lambda case: case.key,
)
def test_case_spec_raises_unsupported_for_a_case_that_the_page_cannot_run(case: Case) -> None:
    with pytest.raises(Unsupported):
        case_spec(case)
