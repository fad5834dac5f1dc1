"""WebGPU in Chromium and Firefox. Only the sampling loop runs in the page.

``OVERHEAD_BROWSER`` names a program in place of the first one found.
"""

from __future__ import annotations

import atexit
from typing import ClassVar, Literal

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable
from overhead.probes.browser import identity, workload
from overhead.probes.browser.chain import BrowserChain, step_space
from overhead.probes.browser.launch import BrowserKind, find_browser
from overhead.probes.browser.page_files import kernel_hashes
from overhead.probes.browser.session import BrowserSession
from overhead.probes.common import workload_arms
from overhead.probes.workload_chain import with_workloads
from overhead.results import Case, Target, because


class BrowserProbe(Probe):
    """A browser of one kind. The worker process starts it at the first use and ends it when the
    process exits.
    """

    on_request = True
    worker_packages = ("psutil",)
    cost: ClassVar[Literal["cheap", "fast", "slow", "polling"]] = "slow"
    kind: ClassVar[BrowserKind]
    _session: BrowserSession | None = None
    _refused: Unavailable | None = None

    def targets(self) -> list[Target]:
        """The one adapter that the browser offers to a page. Raises ``Unavailable`` if it offers
        none, with the reason that the page gives.
        """
        page = self.session().page
        # ``page``: what the page says of itself, such as its adapter. ``mend``: what a person can
        # do, here to install this browser.
        if page.adapter is None:
            raise Unavailable(
                because("browser-refuses", browser=identity.version(page), text=page.reason),
                self.mend,
            )
        return [identity.target(self.name, page, self.session().browser)]

    def space(self, target: Target) -> Space:
        """The cases of the step and of workloads, the same in every browser."""
        return with_workloads(
            step_space(), workload_arms.wgsl_arms("browser"), software=target.software
        )

    def open(self, target: Target, case: Case) -> Chain:
        """A chain of a workload for a case with the parameter ``elements``, else of the step."""
        if "elements" in case.params:
            return workload.open_case(self.session(), case)
        return BrowserChain(self.session(), case)

    def session(self) -> BrowserSession:
        """The open browser of this process, started at the first call. Raises ``Unavailable`` if it
        cannot be used, and then the same error at each further call: another start would take as
        long and fail too.
        """
        if self._refused is not None:
            raise self._refused
        if self._session is None:
            try:
                self._session = self._open()
            except Unavailable as refused:
                self._refused = refused
                raise
            # At the end of the process, so that the browser does not outlive it.
            atexit.register(self._session.close)
        return self._session

    def _open(self) -> BrowserSession:
        """A new browser. Raises ``Unavailable`` unless its page runs in a browser of this kind, and
        got the kernels (WGSL) that this package has: the record will name both.
        """
        session = BrowserSession(find_browser(self.kind))
        page = session.page
        # The kind, ``chromium`` or ``firefox``, was guessed from the program's name; the page tells
        # what it runs in.
        if identity.engine(page) != self.kind:
            session.close()
            browser = identity.version(page)
            raise Unavailable(
                because("page-ran-in-other-browser", browser=browser, wanted=self.kind.title())
            )
        # SHA-256 by file name, of the package and as the page computed it.
        our_hashes = kernel_hashes()
        wrong = [name for name, sha256 in page.kernels.items() if sha256 != our_hashes.get(name)]
        if wrong:
            session.close()
            raise Unavailable(because("page-got-other-kernels", kernels=", ".join(wrong)))
        return session


@register
class ChromiumProbe(BrowserProbe):
    """Chromium, Chrome, Edge and other browsers with the engine of Chromium."""

    name = "chromium"
    title = "WebGPU in Chromium"
    mend = because("install-chromium")
    kind = "chromium"


@register
class FirefoxProbe(BrowserProbe):
    """Firefox, whose wait polls every 100 ms."""

    name = "firefox"
    title = "WebGPU in Firefox"
    mend = because("install-firefox")
    cost = "polling"
    kind = "firefox"
