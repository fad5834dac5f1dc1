"""Chromium, Firefox and Safari as they are: the sampling loop runs in a page, everything else here.

The stacks differ in their browser alone. ``OVERHEAD_BROWSER`` names another program than the first one found, or
``open`` for the browser that the desktop opens links with.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported, Unverified
from overhead.probes.browser import identity, wire
from overhead.probes.browser.chain import LATENT, InPage
from overhead.probes.browser.launch import Kind, find
from overhead.probes.browser.material import hashes
from overhead.probes.browser.session import Session
from overhead.probes.kernels import LLVMPIPE_TURNS, lcg
from overhead.results import Case, Scalar, Target

_ORDERLESS = frozenset({"per-submit", "per-k", "per-pass", "one-pass"})


class BrowserChain(InPage):
    """The step in the page."""

    def __init__(self, session: Session, case: Case) -> None:
        super().__init__(session, case.pattern)
        self.case = case
        self._seen: list[NDArray[np.uint32]] = []
        self._executed = 0
        self.ask("open", case=spec(case))

    def executed(self) -> int:
        values = [np.array(words, np.uint32) for words in self.ask("read").values]
        if len(values) != (8 if self.case.dependency == "independent" else 1):
            raise Unverified(f"{len(values)} buffers read back")
        before = self._seen or [lcg.seeds()] * len(values)
        self._executed += sum(lcg.distance(x0, x) for x0, x in zip(before, values, strict=True))
        self._seen = values
        return self._executed

    def window(self) -> dict[str, Scalar]:
        return window(self.case, self.session.page)

    def kernels(self) -> dict[str, str]:
        name = "fused.wgsl" if self.case.pattern == "fused" else "step.wgsl"
        return {name: self.session.page.kernels[name]}


def spec(case: Case) -> wire.CaseSpec:
    """The case in the page's words. Raises ``Unsupported`` where the page has none for it."""
    if case.workload != "step" or case.caller != "browser":
        raise Unsupported(f"the page runs the step from JavaScript, not {case.workload} by {case.caller}")
    try:
        asked = msgspec.convert({"pattern": case.pattern, "dependency": case.dependency, **case.params}, wire.CaseSpec)
    except msgspec.ValidationError as error:
        raise Unsupported(f"the page has no such case: {error}") from None
    if asked.dependency == "independent" and (asked.bindgroup == "once" or asked.pattern not in _ORDERLESS):
        raise Unsupported("independent dispatches rotate bind groups, many to a wait")
    if "wait" in case.params and case.pattern in LATENT:
        raise Unsupported(f"{case.pattern} brings its own wait")
    if (asked.pattern == "per-k") != (asked.k > 1):
        raise Unsupported("per-k, and it alone, takes k of at least 2")
    return asked


def window(case: Case, page: wire.Page) -> dict[str, Scalar]:
    """What the timed window holds: the same keys and words as the native WebGPU stacks."""
    split = case.pattern == "fused" and page.adapter is not None and page.adapter.fallback
    asked = spec(case)
    each = {"per-k": f"1 per {asked.k} units", "per-pass": "1", "one-pass": "1", "fused": "1"}.get(
        case.pattern, "1 per unit"
    )
    every = asked.bindgroup == "rotated" or case.pattern == "per-pass"
    reads = asked.wait == "map" or case.pattern == "read-each"
    return {
        "submits": each,
        **({"dispatches": f"1 per {LLVMPIPE_TURNS} units"} if split else {}),
        "passes": "1 per unit" if case.pattern == "per-pass" else each,
        "bind_changes": "1 per unit" if every else each,
        "bindgroup": asked.bindgroup,
        "bindings": 1,
        "argument": "none",
        "indirect": False,
        "wait": "mapAsync of a 4-byte copy" if reads else "onSubmittedWorkDone",
        "recording": "inside",
        "validation": "on",
        "checks": "on",
        "precision": "u32",
        "workgroups": 4,
    }


def space() -> Space:
    """The star of every browser: what tells most first, since a polling wait leaves time for little."""
    base = Case(pattern="per-submit", caller="browser")
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    extra = [
        *(Case(pattern="per-k", caller="browser", params={"k": k}) for k in (16, 4, 64, 256)),
        Case(pattern="per-submit", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", params=rotated),
    ]
    axes: dict[str, Sequence[Scalar]] = {
        "pattern": ["one-pass", "fused", "per-pass", "wait-each", "read-each"],
        "wait": ["map"],
    }
    return Space(base, axes, extra, _allowed)


def _allowed(case: Case) -> bool:
    try:
        spec(case)
    except Unsupported:
        return False
    return True


class BrowserProbe(Probe):
    """A browser of one kind; a process has one, started at the first need and ended with the process."""

    on_request = True
    cost: ClassVar[Literal["cheap", "fast", "slow", "polling"]] = "slow"
    kind: ClassVar[Kind]
    _session: Session | None = None
    _refused: Unavailable | None = None

    def targets(self) -> list[Target]:
        page = self.session().page
        if page.adapter is None:
            raise Unavailable(f"{identity.version(page)}: {page.reason}", self.mend)
        return [identity.target(self.name, page, self.session().browser)]

    def space(self, target: Target) -> Space:
        from overhead.probes import _work_chain

        arms = [*_work_chain.wgsl_arms(self.name, "browser"), _work_chain.wgsl_submitted("browser")]
        return _work_chain.space(space(), [], software=target.software, late=arms)

    def open(self, target: Target, case: Case) -> Chain:
        if "elements" in case.params:
            from overhead.probes.browser import work

            return work.open_case(self.session(), case)
        spec(case)
        return BrowserChain(self.session(), case)

    def session(self) -> Session:
        """This process's page. A browser that could not be had is not tried again."""
        if self._refused is not None:
            raise self._refused
        if self._session is None:
            try:
                self._session = self._open()
            except Unavailable as refused:
                self._refused = refused
                raise
            atexit.register(self._session.close)
        return self._session

    def _open(self) -> Session:
        session = Session(find(self.kind))
        found = identity.engine(session.page)
        wrong = {name: text for name, text in session.page.kernels.items() if text != hashes().get(name)}
        if found != self.kind or wrong:
            session.close()
            ran = f"the page ran in {identity.version(session.page)}, which is no {self.kind.title()}"
            raise Unavailable(ran if found != self.kind else f"the page got other kernels: {', '.join(wrong)}")
        return session


@register
class ChromiumProbe(BrowserProbe):
    """Chromium, Chrome, Edge and what else is built of Chromium."""

    name = "chromium"
    title = "WebGPU in Chromium"
    mend = "install Chromium, Chrome or Edge (Debian: apt install chromium)"
    kind = "chromium"


@register
class FirefoxProbe(BrowserProbe):
    name = "firefox"
    title = "WebGPU in Firefox"
    mend = "install Firefox (Debian: apt install firefox-esr)"
    cost = "polling"
    kind = "firefox"


@register
class SafariProbe(BrowserProbe):
    name = "safari"
    title = "WebGPU in Safari"
    mend = "run on macOS 26 or newer"
    kind = "safari"
