"""Tests with real headless browsers: all cases of the page run and are verified, started by a program or a person."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from overhead.probes.browser import browsers, cases, messages, page_files
from overhead.probes.browser.importing import import_file
from overhead.results import Case, FailedLine, OpenedLine, Pattern, RoundLine, Scalar
from tests.probes.browser.browser_driver import Driver, drive
from tests.probes.browser.test_browser_server import Running

pytestmark = pytest.mark.slow
KINDS = [
    pytest.param("chromium", marks=pytest.mark.needs("chromium")),
    pytest.param("firefox", marks=pytest.mark.needs("firefox", "lavapipe")),
]
PROBES = {"chromium": browsers.ChromiumProbe, "firefox": browsers.FirefoxProbe}
SHORT = {
    **page_files.PLAN,
    "replicates": 2,
    "rounds": 2,
    "min_rounds": 2,
    "rungs": [1, 4, 100],
    "cases": [{"pattern": "per-submit"}, {"pattern": "fused"}, {"pattern": "read-each", "rungs": [1, 2]}],
}


@pytest.fixture(scope="module", params=KINDS)
def probe(request: pytest.FixtureRequest) -> Iterator[browsers.BrowserProbe]:
    stack = PROBES[request.param]()
    yield stack
    stack.session().close()


def test_the_target_describes_browser_and_adapter(probe: browsers.BrowserProbe) -> None:
    (target,) = probe.targets()
    page = probe.session().page
    assert target.stack == probe.name
    assert target.adapter not in ("", "not named by the browser")
    assert target.versions[probe.name]
    assert target.versions[f"{probe.name} fallback adapter"] in ("true", "false")
    assert page.isolated
    assert 0 < page.clock_step_ns <= 100_000
    assert page.kernels == page_files.hashes()


@pytest.mark.parametrize("stack", [*KINDS, pytest.param("onnxruntime", marks=pytest.mark.needs("onnxruntime"))])
def test_a_stack_is_found_and_leaves_no_temporary_file(tmp_path: Path, stack: str) -> None:
    """The name of the folder is too long for a socket in it."""
    folder = tmp_path / ("x" * 70)
    folder.mkdir()
    command = [sys.executable, "-m", "overhead", "list", "--json", "-p", stack]
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)}, check=True)
    (row,) = json.loads(done.stdout)
    assert row["targets"]
    deadline = time.monotonic() + 15  # a browser is ended by a process of its own
    while any(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("case", list(cases.space().star()), ids=lambda case: case.key)
def test_every_case_runs_and_is_verified(probe: browsers.BrowserProbe, case: Any) -> None:
    chain = probe.open(probe.targets()[0], case)
    try:
        ns = [0, 1, 3, 17] if chain.latency else [0, 1, 3, 17, 100, 256]
        rows = chain.sample(ns, False)
        assert [row[0] for row in rows] == ns
        assert all(0 <= issue <= total for _, issue, total in rows)
        assert chain.executed() == chain.units(ns)
        assert chain.kernels()
        assert chain.window()["wait"]
    finally:
        chain.close()


def test_a_long_fused_chain_runs_all_its_units(probe: browsers.BrowserProbe) -> None:
    """A software adapter may silently end a long loop early; then the values are wrong."""
    case = next(case for case in cases.space().star() if case.pattern == "fused")
    chain = probe.open(probe.targets()[0], case)
    ns = [65534, 65535, 65536, 131070, 200000]
    chain.sample(ns, False)
    assert chain.executed() == chain.units(ns)
    chain.close()


def _recurrence(pattern: Pattern) -> Case:
    """A case with more elements than fit into one piece of a buffer."""
    return Case(pattern=pattern, caller="browser", unit="step", workload="recurrence", params={"elements": 40_001})


def test_a_workload_is_verified_and_counts(probe: browsers.BrowserProbe) -> None:
    assert messages.PIECE_BYTES < 2 * 4 * 40_001
    patterns: tuple[Pattern, ...] = ("fused", "per-submit")
    for pattern in patterns:
        chain = probe.open(probe.targets()[0], _recurrence(pattern))
        ns = [0, 1, 5]
        assert [row[0] for row in chain.sample(ns, False)] == ns
        assert chain.executed() == chain.units(ns)
        chain.close()


def _tokens(pattern: Pattern, **params: Scalar) -> Case:
    return Case(pattern=pattern, caller="browser", unit="token", workload="qwen2.5-tiny", params=params)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    "case",
    [
        _tokens("per-pass", fusions=0),
        _tokens("per-submit", fusions=6),
        _tokens("read-each", fusions=6, readback="token"),
    ],
    ids=lambda case: case.key,
)
def test_tokens_are_verified_and_counted(probe: browsers.BrowserProbe, case: Case) -> None:
    chain = probe.open(probe.targets()[0], case)
    ns = [0, 1, 3]
    assert [row[0] for row in chain.sample(ns, False)] == ns
    assert chain.executed() == chain.units(ns) == 4
    chain.close()


def test_the_page_refuses_a_program_that_does_not_compile_or_fit(probe: browsers.BrowserProbe) -> None:
    """After the refusal, the page keeps no part of the program and continues."""
    session = probe.session()
    program = messages.PageProgram(
        label="x",
        kernels=[messages.PageKernel(code="fn")],
        entries=[messages.PageEntry(name="main", groups=[1])],
        buffers=[messages.PageBuffer(kind="storage", size=4)],
    )

    def tried(**changes: Any) -> messages.PageAnswer:
        asked = messages.CaseSpec(pattern="one-pass")
        return session.ask("open", chain=session.next_chain(), case=asked, program=replace(program, **changes))

    assert tried().kind in ("unverified", "failed")
    assert tried(needs=["no-such"]).error == "the adapter has no no-such"
    assert tried(buffers=[messages.PageBuffer(kind="storage", size=1 << 40)]).kind == "unsupported"
    chain = probe.open(probe.targets()[0], cases.space().base)
    chain.wait()
    assert chain.executed() == 0
    chain.close()


@pytest.fixture(scope="module", params=KINDS[:1])
def driver() -> Iterator[Driver]:
    with drive() as one:
        yield one


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page as one file, with a short plan."""
    monkeypatch.setattr(page_files, "PLAN", SHORT)
    path = tmp_path / "page.html"
    path.write_text(page_files.single_file_page(), encoding="utf-8")
    return path.as_uri()


def test_a_person_runs_the_page(driver: Driver, page: str) -> None:
    """Open the page as a file, start it by keyboard or click, look at samples, download, import."""
    driver.resize(1280, 900)
    driver.go(page)
    driver.until("!document.getElementById('start').disabled")
    driver.evaluate("document.getElementById('start').click()")
    driver.until("!document.getElementById('download').hidden", 120)
    assert "--import" in driver.evaluate("document.getElementById('status').textContent")
    assert driver.evaluate("document.querySelectorAll('#plot circle').length") > 0
    assert "preview" in driver.evaluate("document.getElementById('plot').textContent")
    assert driver.evaluate("document.querySelectorAll('#cases tr').length") == 3
    driver.evaluate("document.getElementById('download').click()")
    path = _downloaded(driver)
    lines = import_file(path)
    assert [line for line in lines if isinstance(line, FailedLine)] == []
    assert len([line for line in lines if isinstance(line, OpenedLine)]) == 2 * 3
    assert len([line for line in lines if isinstance(line, RoundLine)]) == 2 * 3 * 2
    for width in (1280, 390):
        driver.resize(width, 844)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert driver.evaluate(overflow) <= 0


def _downloaded(driver: Driver) -> Path:
    for _ in range(100):
        found = list(driver.downloads.glob("*.json"))
        if found and found[0].read_bytes().endswith(b"]}"):
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"nothing downloaded: {list(driver.downloads.iterdir())}")


def test_a_person_stops_the_page(driver: Driver, page: str) -> None:
    driver.go(page)
    driver.until("!document.getElementById('start').disabled")
    driver.evaluate("document.getElementById('start').click(), document.getElementById('stop').click()")
    driver.until("!document.getElementById('start').disabled")
    assert "nothing to keep" in driver.evaluate("document.getElementById('status').textContent")


@pytest.mark.needs("chromium")
def test_the_page_works_with_keyboard_and_screen_reader(page: str) -> None:
    with drive() as one:
        one.go(page)
        one.until("!document.getElementById('start').disabled")
        named = {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in one.accessibility()}
        assert ("heading", "What does one more dispatch cost in this browser?") in named
        assert {("button", "Measure"), ("button", "Stop")} <= named
        assert "status" in {role for role, _ in named}
        one.press("Tab")
        assert one.evaluate("document.activeElement.id") == "start"
        one.press("Enter")
        one.until("!document.getElementById('download').hidden", 120)
        one.press("Tab")
        named = {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in one.accessibility()}
        assert any(role in ("image", "img") and name.startswith("Time T(n) against n.") for role, name in named)
        assert ("progressbar", "Progress of the measurement") in named
        assert ("link", "Download the samples") in named


@pytest.mark.needs("chromium")
def test_the_page_reports_a_rejected_submit(page: str) -> None:
    """A rejected submit is fast and raises no error, but the error scopes of the page detect it."""
    with drive() as one:
        one.go(page)
        one.until("!document.getElementById('start').disabled")
        module = base64.b64encode(page_files.page_files()["gpu.js"].encode()).decode()
        caught = one.evaluate(f"import('data:text/javascript;base64,{module}').then({_BAD_SUBMIT})")
    assert caught["inside"].startswith("Unverified")
    assert caught["clean"] == "fine"


@pytest.mark.needs("chromium")
def test_a_page_that_was_hidden_for_a_moment_is_flagged(page: str) -> None:
    with drive() as one:
        one.go(page)
        module = base64.b64encode(page_files.page_files()["visibility.js"].encode()).decode()
        seen = one.evaluate(f"import('data:text/javascript;base64,{module}').then({_HIDE_FOR_A_MOMENT})")
    assert seen == [False, True, False]


_HIDE_FOR_A_MOMENT = """async ({ VisibilityWatch }) => {
  const visibility = new VisibilityWatch();
  const before = visibility.wasHidden;
  let hidden = true;
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
  hidden = false;
  document.dispatchEvent(new Event("visibilitychange"));
  const after = visibility.wasHidden;
  visibility.reset();
  return [before, after, visibility.wasHidden];
}"""

_BAD_SUBMIT = """async ({ Gpu }) => {
  const gpu = await Gpu.open();
  const clean = await gpu.checked(() => "fine");
  let inside = "missed";
  try {
    await gpu.checked(() => {
      const buffer = gpu.device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST });
      buffer.destroy();
      const other = gpu.device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_SRC });
      const encoder = gpu.device.createCommandEncoder();
      encoder.copyBufferToBuffer(other, 0, buffer, 0, 4);
      gpu.device.queue.submit([encoder.finish()]);
    });
  } catch (error) {
    inside = `${error.constructor.name}: ${error.message}`;
  }
  return { clean, inside };
}"""


def test_the_served_page_shows_its_progress(driver: Driver) -> None:
    """The served page shows adapter, clock and samples, and no text is wider than the page."""
    running = Running()
    try:
        driver.resize(1280, 900)
        driver.go(f"{running.origin}/#token={running.token}")
        page = running.do(running.server.hello())
        assert page.isolated
        assert running.token not in driver.evaluate("location.href")
        case = messages.CaseSpec(pattern="one-pass")
        assert running.do(running.server.ask("open", chain=1, case=case)).kind == ""
        assert len(running.do(running.server.ask("time", chain=1, ns=[0, 1, 100, 1000] * 3)).samples) == 12
        running.do(running.server.ask("read", chain=1))
        for width in (1280, 390):
            driver.resize(width, 844)
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert driver.evaluate(overflow) <= 0
        running.do(running.server.end())
        driver.until("document.getElementById('status').textContent.startsWith('Done.')")
        assert "preview" in driver.evaluate("document.getElementById('plot').textContent")
        driver.go("about:blank")
        driver.go(f"{running.origin}/#token={running.token}x")
        driver.until("document.getElementById('status').textContent.startsWith('Stopped: 401')")
        assert driver.evaluate("document.getElementById('status').className") == "bad"
    finally:
        driver.go("about:blank")
        running.close()
