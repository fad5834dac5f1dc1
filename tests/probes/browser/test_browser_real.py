"""Tests with real headless browsers: all cases of the page run and are verified, started by a
program or a person.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from overhead.loading.folders import load_paths
from overhead.probes.arms import open_case
from overhead.probes.base import Unverified
from overhead.probes.browser import browsers, messages, page_files
from overhead.probes.browser.chain import step_space
from overhead.probes.browser.importing import import_file
from overhead.results import Case, FailedEntry, OpenedEntry, Pattern, RoundEntry, Scalar
from tests.probes.browser.browser_driver import Driver, drive
from tests.workloads.workload_arms import plant

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
    "cases": [
        {"pattern": "per-submit"},
        {"pattern": "fused"},
        {"pattern": "read-each", "rungs": [1, 2]},
    ],
}


@pytest.fixture(scope="module", params=KINDS)
def probe(request: pytest.FixtureRequest) -> Iterator[browsers.BrowserProbe]:
    stack = PROBES[request.param]()
    yield stack
    stack.session().close()


def test_the_target_of_a_browser_names_browser_and_adapter(probe: browsers.BrowserProbe) -> None:
    (target,) = probe.targets()
    page = probe.session().page
    assert target.stack == probe.name
    assert target.adapter not in ("", "not named by the browser")
    assert target.versions[probe.name]
    assert target.versions[f"{probe.name} fallback adapter"] in ("true", "false")
    assert page.isolated
    assert 0 < page.clock_step_ns <= 100_000
    assert page.kernels == page_files.kernel_hashes()


@pytest.mark.parametrize(
    "stack", [*KINDS, pytest.param("onnxruntime", marks=pytest.mark.needs("onnxruntime"))]
)
def test_overhead_list_finds_a_stack_and_removes_its_temporary_files(
    tmp_path: Path, stack: str
) -> None:
    """The name of the folder is too long for a socket in it."""
    folder = tmp_path / ("x" * 70)
    folder.mkdir()
    command = [sys.executable, "-m", "overhead", "list", "--json", "-p", stack]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)}, check=True
    )
    (row,) = json.loads(done.stdout)
    assert row["targets"]
    deadline = time.monotonic() + 15  # a browser is ended by a process of its own
    while any(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("case", list(step_space().star()), ids=lambda case: case.key)
def test_every_case_of_the_page_runs_all_units_in_a_browser(
    probe: browsers.BrowserProbe, case: Any
) -> None:
    with closing(open_case(probe, probe.targets()[0], case)) as chain:
        ns = [0, 1, 3, 17] if chain.latency else [0, 1, 3, 17, 100, 256]
        rows = chain.sample(ns, False)
        assert [row[0] for row in rows] == ns
        assert all(0 <= issue <= total for _, issue, total in rows)
        assert chain.executed() == chain.units(ns)
        assert chain.kernels()
        assert chain.window()["wait"]


def _recurrence(pattern: Pattern) -> Case:
    """A case with more elements than fit into one piece of a buffer."""
    assert messages.PIECE_BYTES < 2 * 4 * 40_001
    return Case(
        pattern=pattern,
        caller="browser",
        unit="step",
        workload="recurrence",
        params={"elements": 40_001},
    )


def _tokens(pattern: Pattern, **params: Scalar) -> Case:
    return Case(
        pattern=pattern, caller="browser", unit="token", workload="qwen2.5-tiny", params=params
    )


LONG = next(case for case in step_space().star() if case.pattern == "fused")
"""A software adapter may silently end a long loop early; then the values are wrong."""
DECODED = [
    _tokens("per-pass", fusions=0),
    _tokens("per-submit", fusions=6),
    _tokens("read-each", fusions=6, readback="token"),
]


@pytest.mark.parametrize(
    ("case", "ns"),
    [
        (LONG, [65534, 65535, 65536, 131070, 200000]),
        *((_recurrence(pattern), [0, 1, 5]) for pattern in ("fused", "per-submit")),
        *(pytest.param(case, [0, 1, 3], marks=pytest.mark.needs("torch")) for case in DECODED),
    ],
    ids=lambda value: value.key if isinstance(value, Case) else "",
)
def test_long_chains_workloads_and_tokens_in_a_browser_are_verified_and_counted(
    probe: browsers.BrowserProbe, case: Case, ns: list[int]
) -> None:
    with closing(open_case(probe, probe.targets()[0], case)) as chain:
        assert [row[0] for row in chain.sample(ns, False)] == ns
        assert chain.executed() == chain.units(ns)
        if case.unit == "token":
            assert chain.units(ns) == sum(ns)


def test_a_browser_workload_with_a_wrong_constant_is_unverified(
    probe: browsers.BrowserProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "recurrence")
    with pytest.raises(Unverified, match="differs-from-reference"):
        open_case(probe, probe.targets()[0], _recurrence("fused"))


def asking(
    probe: browsers.BrowserProbe, monkeypatch: pytest.MonkeyPatch, do: str, **change: Any
) -> None:
    """Change fields of each command ``do`` on its way to the page; each change is a function of the
    old value.
    """
    session = probe.session()
    ask = session.ask

    def changed(asked: str, **fields: Any) -> messages.PageAnswer:
        if asked == do:
            fields |= {name: new(fields[name]) for name, new in change.items()}
        return ask(asked, **fields)

    monkeypatch.setattr(session, "ask", changed)


@pytest.mark.needs("torch")
def test_a_browser_decoder_with_a_changed_kernel_is_unverified(
    probe: browsers.BrowserProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(program: messages.PageProgram) -> messages.PageProgram:
        texts = [
            replace(one, code=one.code.replace("1.0 + exp(-x0)", "1.0 + exp(x0)"))
            for one in program.kernels
        ]
        return replace(program, kernels=texts)

    asking(probe, monkeypatch, "open", program=changed)
    with pytest.raises(Unverified, match="differs-from-float64"):
        open_case(probe, probe.targets()[0], _tokens("per-pass", fusions=6))


@pytest.mark.needs("torch")
def test_a_browser_decoder_whose_cache_is_not_restored_is_unverified(
    probe: browsers.BrowserProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens and the position come first, so the rest is the cache."""
    chain = open_case(probe, probe.targets()[0], _tokens("per-pass", fusions=6))
    asking(probe, monkeypatch, "time", data=lambda data: data[:8] + bytes(len(data) - 8))
    with pytest.raises(Unverified, match=r"logits-differ|token-differs"):  # noqa: PT012
        chain.sample([4, 4], False)
        chain.executed()
    chain.close()


def test_the_page_refuses_a_program_that_does_not_compile_or_is_too_large(
    probe: browsers.BrowserProbe,
) -> None:
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
        return session.ask(
            "open", chain=session.next_chain(), case=asked, program=replace(program, **changes)
        )

    assert tried().kind in ("unverified", "failed")
    assert tried(needs=["no-such"]).error == "the adapter has no no-such"
    assert tried(buffers=[messages.PageBuffer(kind="storage", size=1 << 40)]).kind == "unsupported"
    chain = open_case(probe, probe.targets()[0], step_space().base)
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


def test_a_person_can_open_the_page_start_it_and_import_the_download(
    driver: Driver, page: str
) -> None:
    """Open the page as a file, start it by keyboard or click, look at samples, download, import."""
    driver.go(page)
    driver.until("!document.getElementById('start').disabled")
    driver.evaluate("document.getElementById('start').click()")
    driver.until("!document.getElementById('download').hidden", 120)
    assert "overhead show" in driver.evaluate("document.getElementById('status').textContent")
    assert driver.evaluate("document.querySelectorAll('#plot circle').length") > 0
    assert "preview" in driver.evaluate("document.getElementById('plot').textContent")
    assert driver.evaluate("document.querySelectorAll('#cases tr').length") == 3
    driver.evaluate("document.getElementById('download').click()")
    path = _downloaded(driver)
    lines = import_file(path)
    assert [line for line in lines if isinstance(line, FailedEntry)] == []
    # Two replicates of three cases, each with two rounds.
    assert len([line for line in lines if isinstance(line, OpenedEntry)]) == 2 * 3
    assert len([line for line in lines if isinstance(line, RoundEntry)]) == 2 * 3 * 2
    (loaded,), skipped = load_paths([path.parent])
    assert {record.caller for record in loaded.fingerprint.records} == {"browser"}
    assert skipped == []
    refused = (
        "document.addEventListener('securitypolicyviolation', (event) =>"
        " done(event.effectiveDirective))"
    )
    assert (
        driver.evaluate(f"new Promise((done) => {{ {refused}; fetch('https://example.org') }})")
        == "connect-src"
    )


def _downloaded(driver: Driver) -> Path:
    for _ in range(100):
        found = list(driver.downloads.glob("*.json"))
        if found and found[0].read_bytes().endswith(b"]}"):
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"nothing downloaded: {list(driver.downloads.iterdir())}")


@pytest.mark.needs("chromium")
def test_the_page_reports_a_submission_that_the_device_rejected(page: str) -> None:
    """A rejected submit is fast and raises no error, but the error scopes of the page detect it."""
    with drive() as one:
        one.go(page)
        one.until("!document.getElementById('start').disabled")
        module = base64.b64encode(page_files.page_files()["gpu.js"].encode()).decode()
        caught = one.evaluate(f"import('data:text/javascript;base64,{module}').then({_BAD_SUBMIT})")
    assert caught["inside"].startswith("Unverified")
    assert caught["clean"] == "fine"


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
