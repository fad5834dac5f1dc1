"""WebGPU in Chromium and Firefox. Only the sampling loop runs in the page.

``OVERHEAD_BROWSER`` names a program in place of the first one found.
"""

from __future__ import annotations

import atexit
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unverified
from overhead.probes.browser import identity
from overhead.probes.browser.cases import case_spec, space, window
from overhead.probes.browser.chain import PageChain
from overhead.probes.browser.launch import BrowserKind, find
from overhead.probes.browser.page_files import hashes
from overhead.probes.browser.session import BrowserSession
from overhead.probes.common.step import RING
from overhead.probes.kernels import lcg
from overhead.results import Case, Scalar, Target


class BrowserChain(PageChain):
    """A chain that runs one case of the step in the page."""

    def __init__(self, session: BrowserSession, case: Case) -> None:
        super().__init__(session, case.pattern)
        self.case = case
        self._seen: list[NDArray[np.uint32]] = []
        self._executed = 0
        self.ask("open", case=case_spec(case))

    def executed(self) -> int:
        values = [np.array(words, np.uint32) for words in self.ask("read").values]
        if len(values) != (RING if self.case.dependency == "independent" else 1):
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


class BrowserProbe(Probe):
    """A browser of one kind. The worker process starts it at the first use and ends it when the process exits."""

    on_request = True
    cost: ClassVar[Literal["cheap", "fast", "slow", "polling"]] = "slow"
    kind: ClassVar[BrowserKind]
    _session: BrowserSession | None = None
    _refused: Unavailable | None = None

    def targets(self) -> list[Target]:
        page = self.session().page
        if page.adapter is None:
            raise Unavailable(f"{identity.version(page)}: {page.reason}", self.mend)
        return [identity.target(self.name, page, self.session().browser)]

    def space(self, target: Target) -> Space:
        from overhead.probes.common import workload_arms
        from overhead.probes.workload_chain import with_workloads

        arms = [*workload_arms.wgsl_arms(self.name, "browser"), workload_arms.wgsl_submitted("browser")]
        return with_workloads(space(), [], software=target.software, late=arms)

    def open(self, target: Target, case: Case) -> Chain:
        if "elements" in case.params:
            from overhead.probes.browser import workload

            return workload.open_case(self.session(), case)
        case_spec(case)
        return BrowserChain(self.session(), case)

    def session(self) -> BrowserSession:
        """The session of this process. If the browser was unavailable, each further call raises the same error."""
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

    def _open(self) -> BrowserSession:
        session = BrowserSession(find(self.kind))
        found = identity.engine(session.page)
        wrong_kernels = {name: text for name, text in session.page.kernels.items() if text != hashes().get(name)}
        if found != self.kind or wrong_kernels:
            session.close()
            ran = f"the page ran in {identity.version(session.page)}, which is no {self.kind.title()}"
            raise Unavailable(ran if found != self.kind else f"the page got other kernels: {', '.join(wrong_kernels)}")
        return session


@register
class ChromiumProbe(BrowserProbe):
    """Chromium, Chrome, Edge and other browsers with the engine of Chromium."""

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
